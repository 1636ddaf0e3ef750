//! The command line.

mod bench;
mod cache;
mod command;
mod doctor;
mod export;
mod kube;
mod models;
mod quiet;
mod remote;
mod replay;
mod runs;
mod serve;
mod serve_model;
mod simulate;
mod tune;

pub(crate) use bench::BenchArgs;
pub(crate) use cache::{CacheCommand, CleanArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use export::ExportArgs;
pub(crate) use kube::{KubeArgs, KubeClusterCommand, KubeCommand, KubeForwardArgs, KubeJobArgs};
pub(crate) use models::{AliasArgs, ModelsCommand, RegisterArgs};
pub(crate) use quiet::{command, is_quiet};
pub(crate) use remote::{ClusterCommand, FollowArgs, HeadArgs, JobsCommand, KUBE, SubmitArgs};
pub(crate) use replay::ReplayArgs;
pub(crate) use runs::{
    BestArgs, CompareArgs, ExportRunsArgs, ListArgs, PushArgs, RmArgs, RunsCommand, ShowRunArgs,
    StoreArgs, TagArgs,
};
pub(crate) use serve::{
    DoorArgs, GuardArgs, QueueArgs, ServeArgs, ServeCommand, ServerPlaceArgs, TokenCommand,
};
pub(crate) use serve_model::ServeModelArgs;
pub(crate) use simulate::SimulateArgs;

pub(crate) use tune::{SearchMethod, TrialCluster, TuneArgs};

use crate::command::JobKind;
use clap::builder::ArgPredicate;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Args, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};
use lockstep_cluster::submit::JobSource;
use lockstep_job::{Job, JobDevice, JobPrecision, Location, Override};
use lockstep_learner::ForkFrom;
use lockstep_runs::{STORE_VARIABLE, named_store};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Data-parallel training in one binary: the same weights, to the bit, on any number of workers.
#[derive(Debug, Parser)]
#[command(
    name = "lockstep",
    version,
    arg_required_else_help = true,
    infer_subcommands = true,
    after_help = "\
Begin with:
  lockstep init job.toml         write a commented job file, of the kind that you choose
  lockstep run job.toml          train it; Ctrl-C stops in good order, once more at once

Exit codes: 0 success, 1 failure, 2 wrong usage or job file, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a job and show how it goes
    Run(RunArgs),
    /// Start a script as a gang: so many processes that find each other, as `torchrun` does
    Launch(LaunchArgs),
    /// Run a job or a command on `lockstep serve`, on a Ray cluster, or on Kubernetes
    Submit(SubmitArgs),
    /// Look after the jobs of `lockstep serve` or of a Ray cluster
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Serve a team: a queue of jobs that Ray's client speaks to, runs, models, and pages that show them
    Serve(ServeArgs),
    /// Serve the predictions of one model over HTTP: MLflow's scoring protocol, and the Open Inference Protocol
    ServeModel(ServeModelArgs),
    /// Jobs on Kubernetes: manifests, how they are, why they do not run
    #[command(subcommand)]
    Kube(KubeCommand),
    /// Look at a Ray cluster
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Embed a job's pictures: write their vectors, as `run` does before it trains on them
    Embed(EmbedArgs),
    /// Measure the model of a run on a set: precision, recall, F1, confusion, the hardest mistakes
    Evaluate(EvaluateArgs),
    /// Predict every sample of a set with the model of a run: its class, or its number
    Predict(PredictArgs),
    /// Train a run again from its record, and say whether it comes to the same bits
    Replay(ReplayArgs),
    /// Measure what more workers gain: speedup, efficiency, accuracy, and a report of them
    Bench(BenchArgs),
    /// Say what a job would do on many hosts that are lost now and then, from its step on this one
    Simulate(SimulateArgs),
    /// Search for the settings that learn best: grid, random or TPE, poor trials stopped early
    Tune(TuneArgs),
    /// Look for what is wrong with this machine, a store, data and services, and say what to do
    Doctor(DoctorArgs),
    /// Write the model of a run in a format that other programs compute with
    Export(ExportArgs),
    /// Find, compare, tag and remove runs
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Names for what runs learned: versions of models, and aliases such as `champion`
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Look at a job file: what it comes to, whether it is right, what can be in it
    #[command(subcommand)]
    Job(JobCommand),
    /// Write a commented job file to start from
    Init(InitArgs),
    /// Bring or list the data sets that are known by name
    #[command(subcommand)]
    Data(DataCommand),
    /// See what downloaded and decoded data take, and make room
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  lockstep completions bash > ~/.local/share/bash-completion/completions/lockstep
  lockstep completions zsh > ~/.zfunc/_lockstep
  lockstep completions fish > ~/.config/fish/completions/lockstep.fish")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command
    #[command(after_help = "\
Examples:
  lockstep man --out ~/.local/share/man/man1")]
    Man {
        /// Folder that they go to, made if it is not there
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out: PathBuf,
    },
    /// Be a worker of a gang; started by `run`, never by hand
    #[command(hide = true)]
    Worker,
    /// Become a script that dies with its worker; started by a worker, never by hand
    #[command(hide = true)]
    ScriptProcess {
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
    /// Say whether a node of a cluster sees what a run needs; started by other commands, never by hand
    #[command(hide = true)]
    NodeCheck,
    /// Do numbered tasks; started by other commands, never by hand
    #[command(hide = true)]
    TaskWorker,
    /// Look after a job of a server's queue; started by `serve`, never by hand
    #[command(hide = true)]
    JobProcess {
        /// The job's folder
        folder: PathBuf,
        /// Which attempt it is
        #[arg(long)]
        attempt: u32,
        /// The GPUs that it has
        #[arg(long, value_delimiter = ',')]
        gpus: Vec<u32>,
        /// The user that its command runs as
        #[arg(long)]
        user: Option<String>,
    },
    /// Be one of the numbered processes of a run on a cluster; started there, never by hand
    #[command(hide = true)]
    Pod(PodArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep run job.toml
  lockstep run job.toml --workers 4 --epochs 3
  lockstep run job.toml --set train.optimizer.lr=0.01 --set 'model.hidden=[256, 256]'
  lockstep run job.toml --dry-run
  lockstep run job.toml --json | jq 'select(.event == \"epoch\")'
  lockstep run job.toml --resume             the job's newest run
  lockstep run job.toml --resume runs/NAME
  lockstep run job.toml --resume --epochs 20             more epochs
  lockstep run --resume runs/NAME                        without the job file: that of the run
  lockstep run job.toml --resume runs/NAME --fork        a new run with the weights that one kept
  lockstep run job.toml --resume runs/NAME --fork=last   with its last ones
  lockstep run job.toml --folds 5                        tested on each fifth of the data once
  lockstep run job.toml --engine ray         on the Ray cluster that this machine is a node of

The number of workers never changes the result: that depends on train.lanes alone.")]
#[command(mut_arg("path", unless_resumed))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Check everything and print the plan, the memory and the size of the model; train nothing
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// Go on with a run from its newest checkpoint: its folder, its name in the job's store or a part of it, `latest`, or by
    /// default the job's newest
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) resume: Option<Option<PathBuf>>,
    /// Begin a new run with the weights of the one that --resume means: those that it kept as the best, or its last;
    /// the job may be another
    #[arg(long, requires = "resume", value_name = "WHICH", num_args = 0..=1, require_equals = true,
          default_missing_value = "best")]
    pub(crate) fork: Option<ForkWeights>,
    /// Train 300 steps twice, on two numbers of workers where the lanes allow it, and compare the
    /// weights; keeps nothing
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    pub(crate) verify_determinism: bool,
    /// Write a profile of some steps to this file: what each thread of each worker did, and when, for ui.perfetto.dev
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["dry_run", "verify_determinism", "folds"])]
    pub(crate) profile: Option<PathBuf>,
    /// The first and the last of these steps, counted from 1
    #[arg(long, value_name = "A..B", requires = "profile", default_value = "11..20", value_parser = steps)]
    pub(crate) profile_steps: (u64, u64),
    /// Train as often as this, each time tested on another part of the training set, and print every measure with its mean
    /// and deviation; each fold is a run of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1000),
          conflicts_with_all = ["resume", "dry_run", "verify_determinism"])]
    pub(crate) folds: Option<u16>,
    /// Keep nothing of the runs of the folds
    #[arg(long, requires = "folds")]
    pub(crate) discard: bool,
    /// Download neither known data sets nor libraries: what is not in the cache is an error; LOCKSTEP_OFFLINE=1 says the
    /// same to every command
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// The steps of `A..B`.
fn steps(given: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|&step| step > 0);
    let both = given.split_once("..").map(|(a, b)| (number(a), number(b)));
    match both {
        Some((Some(first), Some(last))) if first <= last => Ok((first, last)),
        _ => Err("it must be two steps such as 11..20, the first of which comes first".to_owned()),
    }
}

/// What stands for the job file where none is given.
const NO_JOB_FILE: &str = "-";

/// A job file must be there, unless a run brings its own.
fn unless_resumed(path: Arg) -> Arg {
    path.index(1)
        .required(false)
        .required_unless_present("resume")
        .default_value_if("resume", ArgPredicate::IsPresent, NO_JOB_FILE)
}

/// Which weights of a run another one begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForkWeights {
    /// Those that it kept as the best on validation data
    Best,
    /// Those of its newest step
    Last,
}

impl ForkWeights {
    /// As it is given.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Last => "last",
        }
    }
}

impl From<ForkWeights> for ForkFrom {
    fn from(which: ForkWeights) -> Self {
        match which {
            ForkWeights::Best => Self::Best,
            ForkWeights::Last => Self::Last,
        }
    }
}

/// What all pods of a run are started with; the rest comes through the environment.
#[derive(Debug, Args)]
pub(crate) struct PodArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

/// How a run is shown, wherever it runs.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// Print events as JSON, one object on each line; the last is the result
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the result, and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show every worker's progress; of a job on a cluster, all other lines of its log on standard error too
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep launch --workers 4 -- python3 train.py --lr 0.1
  lockstep launch --workers 2 --resume -- python3 train.py     the script's newest run

PyTorch, TensorFlow, JAX and XGBoost find what they expect in the environment, and `import lockstep` works. \
A job file with `train.command` does the same, and can name data.")]
pub(crate) struct LaunchArgs {
    /// Processes to start
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = number::<usize>)]
    pub(crate) workers: usize,
    /// Name of the runs; by default that of the script
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Where the run's folder is made
    #[arg(long, value_name = "DIR", default_value = "runs", env = STORE_VARIABLE, hide_env = true, value_hint = ValueHint::DirPath)]
    pub(crate) store: String,
    /// How often the gang begins again after a loss
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) max_restarts: Option<u32>,
    /// Go on with a run from its newest checkpoint: its folder, its name in the store, or by default the newest
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) resume: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep embed job.toml
  lockstep embed job.toml --workers 4

Parts that are there and were made from the same pictures, weights and transform stay as they are. So what \
was interrupted goes on where it was.")]
pub(crate) struct EmbedArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Print events as JSON, one object on each line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep evaluate runs/NAME
  lockstep evaluate NAME                     its name in the folder `runs`
  lockstep evaluate --model digits@champion
  lockstep evaluate runs/NAME --data fashion-mnist:train --out elsewhere
  lockstep evaluate runs/NAME --data '{ images = \"i.idx\", labels = \"l.idx\" }' --workers 4
  lockstep evaluate runs/NAME --json | jq .macro.f1

The numbers are those of scikit-learn, and the same for any number of workers. Samples of classes that the \
model does not know are named and counted, and are in no other number.")]
pub(crate) struct EvaluateArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The set, as data.test in a job file; by default that of the run's job
    #[arg(long, value_name = "DATA")]
    pub(crate) data: Option<String>,
    /// Where evaluation.json and confusion.svg go; by default the run's folder, and nowhere with --data or --model
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Print evaluation.json instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

impl EvaluateArgs {
    /// Whether this measures on another set than the run did.
    pub(crate) fn measures_other_data(&self) -> bool {
        let is_of_data = |set: &String| set.trim_start().starts_with("data");
        self.data.is_some() || self.model.set.iter().any(is_of_data)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep predict runs/NAME --data photos/ --out classes.parquet
  lockstep predict runs/NAME --data fashion-mnist:test --out classes.jsonl --probabilities
  lockstep predict runs/NAME --data *.jpg --out - | jq -r '[.path, .predicted] | @tsv'
  lockstep predict runs/NAME --data new.csv --out new-with-classes.csv
  lockstep predict runs/NAME --data new.csv --out new.parquet --id customer --keep town,age
  lockstep predict --model digits@champion --store s3://bucket/runs --data new.csv --out -

One row for each sample, in the order of the data: `path`, `label` if it is known, `predicted`, `probability`, `row`.")]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// What to look at, by default data.test of the run's job: pictures, folders of pictures, tables, or sets as
    /// data.test has them; labels need not be there
    #[arg(long, value_name = "DATA", num_args = 1..)]
    pub(crate) data: Vec<String>,
    /// The file to write: .parquet, .jsonl or .csv; `-` writes JSON lines to standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,
    /// Write the probabilities of all classes too
    #[arg(long)]
    pub(crate) probabilities: bool,
    /// The column of the table that tells its rows apart; it is written first, in place of `path`
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,
    /// Columns of the table to write beside the predictions, as they are
    #[arg(long, value_name = "COLUMN,COLUMN", value_delimiter = ',')]
    pub(crate) keep: Vec<String>,
    /// Write how far each column moves each prediction (SHAP values) too; for boosted trees
    #[arg(long)]
    pub(crate) shap: bool,
}

/// A trained model, and what it is to look at.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The run: its folder, its name in the store or a part of it that no other has, its job's name or `latest` for the
    /// newest
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath, required_unless_present = "model")]
    pub(crate) run: Option<PathBuf>,
    /// A registered model instead of a run: NAME@ALIAS, NAME@VERSION, or NAME for the newest version
    #[arg(long, value_name = "MODEL", conflicts_with = "run")]
    pub(crate) model: Option<String>,
    /// Where runs and models lie: a folder, or a URL such as s3://bucket/runs
    #[arg(long, value_name = "DIR", default_value = "runs", env = STORE_VARIABLE, hide_env = true, value_hint = ValueHint::DirPath)]
    pub(crate) store: String,
    /// Worker processes; by default as many as the run's job has
    #[arg(short, long, value_name = "N", value_parser = number::<usize>)]
    pub(crate) workers: Option<usize>,
    /// What a network, and the encoder of pictures, is computed on: auto, cpu, cuda, or cuda:1 for the second GPU; by
    /// default a GPU if there is one, unless the run's job says cpu
    #[arg(long, value_name = "DEVICE", value_parser = JobDevice::parse)]
    pub(crate) device: Option<JobDevice>,
    /// How precisely a network is computed: f32, or fixed16, which is faster on processors with AMX and on GPUs; by default
    /// as it was trained
    #[arg(long, value_name = "PRECISION", value_parser = ["f32", "fixed16"])]
    pub(crate) precision: Option<String>,
    /// Set a key of the run's job to a TOML value; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

impl ModelArgs {
    /// How precisely the network is computed, if not as it was trained.
    pub(crate) fn precision(&self) -> Option<JobPrecision> {
        let all = [JobPrecision::F32, JobPrecision::Fixed16];
        let asked = self.precision.as_deref();
        all.into_iter().find(|own| asked == Some(own.word()))
    }
}

/// Where workers run.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// Where workers run: on this machine, or on the Ray cluster that this machine is a node of
    #[arg(long, value_name = "ENGINE", default_value = "local")]
    pub(crate) engine: Engine,
}

/// What starts workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// This process
    Local,
    /// Actors of a Ray cluster
    Ray,
}

/// A job file and what is changed in it.
#[derive(Debug, Clone, Args)]
pub(crate) struct JobArgs {
    /// The job file
    #[arg(value_name = "JOB", value_hint = ValueHint::FilePath)]
    pub(crate) path: PathBuf,
    /// Worker processes; at most train.lanes, which stay as they are
    #[arg(short, long, value_name = "N", value_parser = number::<usize>)]
    pub(crate) workers: Option<usize>,
    /// Set a key of the job file to a TOML value; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<String>,
    /// Passes over the training set, the same as --set train.epochs=N
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) epochs: Option<u32>,
    /// Name of the job, the same as --set name=NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Print the job as it would run, with every default written out
    Show(JobArgs),
    /// Check a job file without touching its data
    Check(JobArgs),
    /// Print the JSON Schema of job files, for editors
    Schema,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep init                                asks what to learn from, and writes job.toml
  lockstep init digits.toml --kind images      a job named `digits`
  lockstep init flowers.toml --kind photos

Where nobody can be asked, the kind is `images`.")]
pub(crate) struct InitArgs {
    /// Where to write it; the job is named after the file
    #[arg(default_value = "job.toml", value_hint = ValueHint::FilePath)]
    pub(crate) path: PathBuf,
    /// What the job learns from, or with
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<JobKind>,
    /// Replace a file that exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Bring a data set, an encoder, or the library of `xgboost`, into the cache, verified by its hash
    Get {
        /// Its name, as `lockstep data list` prints it; all its splits come together
        name: String,
    },
    /// List the data sets and encoders that are known by name, with the licences and hashes of encoders
    List,
    /// Say what a set holds: the columns of a table, their types, gaps and ranges; the classes and sizes of photos; the labels
    Show(DataShowArgs),
}

/// What is to be shown of a set.
#[derive(Debug, Args)]
pub(crate) struct DataShowArgs {
    /// A file, a folder or a URL, or what `data.train` of a job file could be, such as '{ csv = "a.csv", delimiter = ";" }'
    pub(crate) source: String,
    /// The column of the labels, if it is not `label`
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: Option<String>,
    /// One line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Set a key of the job file that matters here, such as storage.region; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<String>,
}

/// Commands of other programs, and what they are called here.
const ELSEWHERE: [(&str, &str); 6] = [
    ("train", "run"),
    ("fit", "run"),
    ("start", "run"),
    ("test", "evaluate"),
    ("search", "tune"),
    ("new", "init"),
];

impl Cli {
    /// What this process was started with. Ends it if that cannot be understood, or help was asked for.
    pub(crate) fn read() -> Self {
        let matches = quiet::command().try_get_matches();
        let matches = matches.unwrap_or_else(|error| with_hint(error).exit());
        quiet::remember(&matches);
        let read = Self::from_arg_matches(&matches);
        read.unwrap_or_else(|error| error.format(&mut quiet::command()).exit())
    }
}

/// The error about a command line, with a tip where a command is called otherwise here.
fn with_hint(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let known = ELSEWHERE
        .iter()
        .find(|(theirs, _)| *theirs == given.as_str());
    if let Some((_, ours)) = known {
        let ours = ContextValue::Strings(vec![(*ours).to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, ours);
    }
    error
}

/// A number that counts something.
fn number<T: FromStr>(given: &str) -> Result<T, String> {
    let wrong = |_| "it must be a whole number, such as 2".to_owned();
    given.parse().map_err(wrong)
}

/// A key and its value, which are looked at together with the job file.
fn key_value(given: &str) -> Result<String, String> {
    match given.contains('=') {
        true => Ok(given.to_owned()),
        false => Err(format!("it has no `=`; write {given}=VALUE")),
    }
}

/// `--set KEY=VALUE`, as often as it was given, as changes to a job file.
pub(crate) fn overrides(set: &[String]) -> Result<Vec<Override>, lockstep_job::JobError> {
    set.iter().map(|set| set.parse()).collect()
}

impl JobArgs {
    /// All changes to the job file, in the order in which they count.
    pub(crate) fn overrides(&self) -> Result<Vec<Override>, lockstep_job::JobError> {
        let mut overrides = overrides(&self.set)?;
        if let Some(epochs) = self.epochs {
            overrides.push(Override::integer("--epochs", "train.epochs", epochs.into()));
        }
        if let Some(name) = &self.name {
            overrides.push(Override::text("--name", "name", name));
        }
        Ok(overrides)
    }

    /// The job that the file and the changes come to.
    pub(crate) fn load(&self) -> Result<Job, lockstep_job::JobError> {
        self.load_from(&self.path)
    }

    /// The job with where it comes from, for whoever sends it elsewhere.
    pub(crate) fn source(&self) -> Result<JobSource, lockstep_job::JobError> {
        Ok(JobSource {
            job: self.load()?,
            path: self.path.clone(),
            overrides: self.overrides()?,
            workers: self.workers,
            words: self.words().into_iter().skip(1).collect(),
        })
    }

    /// The job that the changes make of another file than the one that was named: that of a run. Where the environment
    /// names a store, runs that would go to a folder beside the file go there.
    pub(crate) fn load_from(&self, path: &Path) -> Result<Job, lockstep_job::JobError> {
        let overrides = self.overrides()?;
        let mut job = Job::load(path, &overrides, self.workers)?;
        let elsewhere = || Job::elsewhere(path, &overrides, self.workers);
        if let Some(store) = named_store()
            && job.run.store != elsewhere()?.run.store
        {
            job.run.store = Location::new(store);
        }
        Ok(job)
    }

    /// Whether no job file was named: the run to go on with has one.
    pub(crate) fn is_of_run(&self) -> bool {
        self.path == Path::new(NO_JOB_FILE)
    }

    /// The words of a command that means the same job.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = match self.is_of_run() {
            true => Vec::new(),
            false => vec![self.path.display().to_string()],
        };
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(workers) = self.workers {
            option("--workers", workers.to_string());
        }
        for set in &self.set {
            option("--set", set.clone());
        }
        if let Some(epochs) = self.epochs {
            option("--epochs", epochs.to_string());
        }
        if let Some(name) = &self.name {
            option("--name", name.clone());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_command_of_another_program_is_told_what_it_is_called_here() {
        let error = Cli::try_parse_from(["lockstep", "train", "job.toml"]).unwrap_err();
        let said = with_hint(error).to_string();
        assert!(said.contains("'train'") && said.contains("'run'"), "{said}");
        let error = Cli::try_parse_from(["lockstep", "nonsense"]).unwrap_err();
        assert!(!with_hint(error).to_string().contains("'run'"));
    }

    #[test]
    fn a_job_survives_the_way_through_its_words() {
        let given = [
            "lockstep",
            "run",
            "a b.toml",
            "--workers",
            "2",
            "--set",
            "x=[1, 2]",
            "--epochs",
            "3",
            "--name",
            "n",
        ];
        let words = |given: &[String]| match Cli::try_parse_from(given).unwrap().command {
            Command::Run(run) => run.job.words(),
            other => panic!("{other:?}"),
        };
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        let once = words(&given);
        assert_eq!(once, given[2..]);
    }
}
