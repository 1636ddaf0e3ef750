//! The command line of `bench`.

use super::{JobArgs, key_value, number};
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep bench job.toml                    one worker against as many as the job has
  lockstep bench job.toml --workers 1,2,4 --batch 64,128 --epochs 2 --repeat 5 --out results
  lockstep bench job.toml --workers 1,2,4 --weak         the same batch for each worker
  lockstep bench job.toml --predict 8,64 --network 10gbit
  lockstep bench job.toml --fail-below 1.6               exit code 1 if it is slower than that
  lockstep bench job.toml --json | jq .comparison.speedup

Settings take turns, so that what else the machine does hits all alike. Training time counts from the first step.
Exit codes: 0 measured, 1 failed or slower than --fail-below, 2 wrong usage or job file, 130 interrupted; what \
was measured by then is kept.")]
pub(crate) struct BenchArgs {
    /// The job file
    #[arg(value_name = "JOB", value_hint = ValueHint::FilePath)]
    pub(crate) path: PathBuf,
    /// Numbers of workers to compare, at most train.lanes; by default one and as many as the job has
    #[arg(short, long, value_name = "N,N", value_delimiter = ',', value_parser = number::<usize>)]
    pub(crate) workers: Vec<usize>,
    /// Batches to compare; by default the job's own. With --weak, the batch of one worker
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = number::<u64>)]
    pub(crate) batch: Vec<u64>,
    /// Passes over the training set, the same as --set train.epochs=N
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) epochs: Option<u32>,
    /// How often every setting is measured
    #[arg(long, value_name = "N", default_value = "3", value_parser = number::<usize>)]
    pub(crate) repeat: usize,
    /// Keep the batch of each worker the same, instead of that of all together
    #[arg(long)]
    pub(crate) weak: bool,
    /// Do not measure what workers do that exchange nothing
    #[arg(long)]
    pub(crate) no_limit: bool,
    /// Measure other systems beside it: torch-threads, torch-ddp, ray-train; what they need is installed once
    #[arg(long, value_name = "PEER,PEER", value_delimiter = ',')]
    pub(crate) against: Vec<String>,
    /// Forecast what so many workers would do, from what is measured and the model of docs/scale.md
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = number::<usize>)]
    pub(crate) predict: Vec<usize>,
    /// The network between those workers: a rate, and a delay if it is known, such as 10gbit or 400mbit/2ms
    #[arg(long, value_name = "RATE", default_value = "10gbit")]
    pub(crate) network: String,
    /// Fail if the speedup is less than this
    #[arg(long, value_name = "X")]
    pub(crate) fail_below: Option<f64>,
    /// Set a key of the job file to a TOML value; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<String>,
    /// Write comparison.json, comparison.md and report.html here too, beside the folder in the job's store
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Print comparison.json instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

impl BenchArgs {
    /// The job with what all settings have in common, on so many workers.
    pub(crate) fn job(&self, workers: Option<usize>) -> JobArgs {
        JobArgs {
            path: self.path.clone(),
            workers,
            set: self.set.clone(),
            epochs: self.epochs,
            name: None,
        }
    }
}
