//! The arguments of `lockstep runs`.

use super::{key_value, number};
use clap::{Args, Subcommand, ValueHint};
use lockstep_runs::STORE_VARIABLE;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the runs of a store, the newest first
    List(ListArgs),
    /// Show all that is known of a run
    Show(ShowRunArgs),
    /// Put runs beside each other: what differs in their jobs, what came of it, and their curves
    Compare(CompareArgs),
    /// Find the best runs by a metric
    Best(BestArgs),
    /// Give a run tags and a note, which stay with it
    Tag(TagArgs),
    /// Remove runs
    Rm(RmArgs),
    /// Write the metrics of runs, point by point, as CSV or JSON
    Export(ExportRunsArgs),
    /// Make the index of a store again from the folders of its runs
    Reindex(StoreArgs),
    /// Send runs to MLflow, or what it misses of them
    Push(PushArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep runs push ab27 --mlflow http://127.0.0.1:5000
  lockstep runs push runs/digits-20261116-101500-ab27 --mlflow https://mlflow.example.com
  lockstep runs push ab27 x3k9 --mlflow http://127.0.0.1:5000 --set track.experiment=digits --set track.register=digits

What MLflow has already is not sent again. Tokens and passwords come from MLflow's own variables. --set also overrides \
keys of the runs' jobs, such as those of [track].")]
pub(crate) struct PushArgs {
    /// The runs: names, parts of them that no others have, or folders
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// The server; by default that of the run's job, else MLFLOW_TRACKING_URI
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) mlflow: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// A store of runs.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArgs {
    /// Where the runs lie: a folder, or a URL such as s3://bucket/runs
    #[arg(long, value_name = "DIR", default_value = "runs", env = STORE_VARIABLE, hide_env = true, value_hint = ValueHint::DirPath)]
    pub(crate) store: String,
    /// How a bucket is reached: a key such as storage.endpoint=URL; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep runs list
  lockstep runs list \"accuracy > 0.9 and optimizer.lr < 0.01\" --sort accuracy
  lockstep runs list \"status = failed and age < 7d\"
  lockstep runs list 'job = digits and tag.good' --columns lr,val.loss
  lockstep runs list --store s3://bucket/runs --json | jq '.[0].metrics'

A filter compares parameters (`train.optimizer.lr`, or its end, `lr`), metrics (`accuracy` is that of the test set, else \
of validation data; `val.loss`), tags (`tag.KEY`) and job, name, status, started, ended, duration, age, workers, epochs, \
steps, restarts, error, commit, host and user. Signs: = != < <= > >= ~ (contains). Join with and, or, not, ( ).")]
pub(crate) struct ListArgs {
    /// Which runs, such as \"accuracy > 0.9\"; by default all
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Sort by anything that a filter can name, the largest first; by default `started`
    #[arg(long, value_name = "NAME")]
    pub(crate) sort: Option<String>,
    /// The smallest first
    #[arg(long)]
    pub(crate) ascending: bool,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", value_parser = number::<usize>)]
    pub(crate) limit: Option<usize>,
    /// Columns to show besides the run and its status, between commas: anything that a filter can name
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct FormArgs {
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowRunArgs {
    /// The run: its name, a part of it that no other has, its folder, or its job's name or `latest` for the newest
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep runs compare ab27 x3k9
  lockstep runs compare --where 'job = digits and age < 1d' --metric val.loss
  lockstep runs compare --where 'tag.paper' --html compare.html")]
pub(crate) struct CompareArgs {
    /// The runs: names, parts of them that no others have, or folders
    #[arg(required_unless_present = "filter")]
    pub(crate) runs: Vec<String>,
    /// Compare the runs that this filter chooses, as in `runs list`
    #[arg(long = "where", value_name = "FILTER", conflicts_with = "runs")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Draw these metrics, such as loss or val.accuracy; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Write the curves as a picture
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) svg: Option<PathBuf>,
    /// Write everything as one page that needs nothing else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Print a JSON array, an object a run
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep runs best --metric accuracy
  lockstep runs best --metric val.loss --where 'job = digits' -n 5
  lockstep evaluate runs/$(lockstep runs best --metric accuracy --json | jq -r '.[0].run')")]
pub(crate) struct BestArgs {
    /// What decides, such as accuracy or val.loss
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: String,
    /// The smallest value is best; by default so for losses and errors
    #[arg(long, conflicts_with = "max")]
    pub(crate) min: bool,
    /// The largest value is best; by default so for all that are no losses and errors
    #[arg(long)]
    pub(crate) max: bool,
    /// Only of the runs that this filter chooses, as in `runs list`
    #[arg(long = "where", value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value = "1", value_parser = number::<usize>)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep runs tag ab27 good paper=figure-3
  lockstep runs tag ab27 --remove good --note 'the one with the wrong labels'
  lockstep runs tag ab27 keep          is never removed by `run.keep` and `runs rm --keep`")]
pub(crate) struct TagArgs {
    /// The run: its name, a part of it that no other has, its folder, or its job's name or `latest` for the newest
    pub(crate) run: String,
    /// Tags to give: KEY or KEY=VALUE
    #[arg(value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Take a tag away; may be repeated
    #[arg(long, value_name = "KEY")]
    pub(crate) remove: Vec<String>,
    /// Say something about the run; an empty text takes it back
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep runs rm ab27
  lockstep runs rm --where 'status = failed and age > 30d' --yes
  lockstep runs rm --keep 20                                   the 20 newest of each job stay
  lockstep runs rm --keep '{ days = 30, best = 5, by = \"accuracy\" }'

Runs that go on are not removed, nor those that a version of a model was made from. What `--keep` says is said as \
`run.keep` in a job file.")]
pub(crate) struct RmArgs {
    /// The runs: names, parts of them that no others have, or folders
    #[arg(required_unless_present_any = ["filter", "keep"])]
    pub(crate) runs: Vec<String>,
    /// Remove the runs that this filter chooses, as in `runs list`
    #[arg(long = "where", value_name = "FILTER", conflicts_with = "runs")]
    pub(crate) filter: Option<String>,
    /// Remove what these rules do not keep of each job
    #[arg(long, value_name = "RULES", conflicts_with = "runs")]
    pub(crate) keep: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep runs export ab27 > ab27.csv
  lockstep runs export --where 'job = digits' --metric val.loss --out digits.csv
  lockstep runs export ab27 --system --json

One row for each point: run, kind, name, step, time (in seconds since 1970), value. `runs list --csv` has one row for each run.")]
pub(crate) struct ExportRunsArgs {
    /// The runs: names, parts of them that no others have, or folders; by default all
    pub(crate) runs: Vec<String>,
    /// Export the runs that this filter chooses, as in `runs list`
    #[arg(long = "where", value_name = "FILTER", conflicts_with = "runs")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Only these metrics; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Also what the workers did: processor, memory, samples a second, waiting
    #[arg(long)]
    pub(crate) system: bool,
    /// Print a JSON array instead of CSV
    #[arg(long)]
    pub(crate) json: bool,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}
