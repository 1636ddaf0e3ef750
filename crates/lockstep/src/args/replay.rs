//! The command line of `replay`.

use super::{EngineArgs, ShowArgs, key_value, number};
use clap::{Args, ValueHint};
use lockstep_job::JobDevice;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep replay runs/NAME
  lockstep replay runs/NAME --workers 4      another number of workers: the same bits
  lockstep replay runs/NAME --device cpu     what was trained on a GPU, on the processor: the same bits
  lockstep replay s3://bucket/runs/NAME
  lockstep replay runs/NAME --json | tail -1 | jq .difference

Exit codes: 0 the same to the bit, 1 not the same or not possible, 130 interrupted.")]
pub(crate) struct ReplayArgs {
    /// The run: its folder, its URL, its name in the folder `runs` or a part of it that no other has, its job's name or
    /// `latest` for the newest
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) run: PathBuf,
    /// Worker processes; by default as many as the run's job has
    #[arg(short, long, value_name = "N", value_parser = number::<usize>)]
    pub(crate) workers: Option<usize>,
    /// What a network is computed on: auto, cpu, cuda, or cuda:1 for the second GPU; by default what the run's job says
    #[arg(long, value_name = "DEVICE", value_parser = JobDevice::parse)]
    pub(crate) device: Option<JobDevice>,
    /// Set a key of the run's job that does not change the result, such as storage.KEY; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<String>,
    /// Keep the run that is trained here in this store, instead of removing it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}
