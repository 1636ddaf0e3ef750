//! The command line of `simulate`.

use super::{JobArgs, number};
use clap::Args;
use lockstep_bench::{Failures, Network};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep simulate job.toml --hosts 8,64,512 --network 25gbit,50us --failures 1/30d
  lockstep simulate job.toml --hosts 16 --json | jq .hosts[0].goodput

A few seconds of the job are trained on this machine, and nothing of it is kept. Every host is taken to be one like this \
machine, and to compute in a step what this machine does, so that the batch grows with the hosts. The model, and how far \
it was off where it was measured, is in docs/scale.md.")]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Numbers of hosts
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "2,8,64", value_parser = number::<u64>)]
    pub(crate) hosts: Vec<u64>,
    /// The network between them: a rate, and a delay if it is known, such as 25gbit,50us or 400mbit/2ms
    #[arg(long, value_name = "RATE", default_value = "10gbit")]
    pub(crate) network: Network,
    /// How often each host is lost, such as 1/h or 1/30d
    #[arg(long, value_name = "RATE", default_value = "0/h")]
    pub(crate) failures: Failures,
    /// Seconds until it is known that a host is lost; by default the job's gang.lease_s
    #[arg(long, value_name = "SECONDS", value_parser = number::<f64>)]
    pub(crate) detection: Option<f64>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}
