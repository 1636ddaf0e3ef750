//! The command line of `tune`.

use super::{EngineArgs, JobArgs, KubeArgs, number};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep tune job.toml --search 'train.optimizer.lr=log(1e-4,1e-1)' --trials 40 --parallel 2
  lockstep tune job.toml --search 'model.hidden=[[256], [512, 512]]' --search 'model.dropout=uniform(0,0.5)'
  lockstep tune job.toml --search 'train.batch=[32, 64, 128]' --method grid --metric accuracy
  lockstep tune job.toml --search ... --resume           goes on with the newest search of the job
  lockstep tune job.toml --search ... --to kube --parallel 9
                                                         trains each trial as a Job of its own on Kubernetes

Trials are compared on the validation set, so the job needs data.val or data.val_split. Poor ones are stopped after a ninth \
and a third of the epochs, and those that go on do so from their checkpoints. The same seed tries the same, whatever \
--parallel says and however often it was killed.")]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// A key and what it may be: log(LOW,HIGH), uniform(LOW,HIGH), int(LOW,HIGH), or a list of values; may be repeated
    #[arg(long, value_name = "KEY=RANGE")]
    pub(crate) search: Vec<String>,
    /// How many settings are tried
    #[arg(long, value_name = "N", default_value = "20", value_parser = number::<usize>)]
    pub(crate) trials: usize,
    /// How many are trained at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::<usize>)]
    pub(crate) parallel: usize,
    /// How settings are chosen
    #[arg(long, value_name = "METHOD", default_value = "tpe")]
    pub(crate) method: SearchMethod,
    /// What random numbers come from
    #[arg(long, value_name = "N", default_value = "0", value_parser = number::<u64>)]
    pub(crate) seed: u64,
    /// What trials are compared by, on the validation set
    #[arg(long, value_name = "NAME", default_value = "loss")]
    pub(crate) metric: String,
    /// Train every trial to the end
    #[arg(long)]
    pub(crate) no_halving: bool,
    /// Go on with a search: its name in the job's store, or by default the newest of the job
    #[arg(long, value_name = "NAME", value_hint = ValueHint::DirPath)]
    pub(crate) resume: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Train the trials on a cluster, as the `kube` table of the job file says; the search itself stays here
    #[arg(long, value_name = "CLUSTER", conflicts_with = "engine")]
    pub(crate) to: Option<TrialCluster>,
    #[command(flatten, next_help_heading = "With --to kube")]
    pub(crate) at: KubeArgs,
    /// Print the search as one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// The cluster that trials are trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrialCluster {
    /// Kubernetes
    Kube,
}

/// How settings are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchMethod {
    /// All combinations, five levels of a range of numbers
    Grid,
    /// Anything
    Random,
    /// What good trials have in common
    Tpe,
}
