//! The arguments of `lockstep serve`.

use super::StoreArgs;
use super::remote::seconds;
use clap::{Args, ValueHint};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep serve                             then open http://127.0.0.1:8265
  lockstep serve --store s3://bucket/runs --folder /var/lib/lockstep
  RAY_ADDRESS=http://127.0.0.1:8265 ray job submit -- python train.py")]
pub(crate) struct ServeArgs {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value = "8265")]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The folder of the server's own files: jobs, packages, tokens, the audit log; by default `.server` in the
    /// store, which must then be a folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Jobs")]
    pub(crate) queue: QueueArgs,
}

/// How the queue of jobs is to be.
#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// Processors that jobs may use together; by default all
    #[arg(long, value_name = "N", value_parser = amount)]
    pub(crate) cpus: Option<f64>,
    /// Memory that jobs may use together, such as 64GiB; by default all
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// GPUs that jobs may use together; by default all
    #[arg(long, value_name = "N")]
    pub(crate) gpus: Option<u32>,
    /// Something else that jobs may ask for, and how much of it there is; may be repeated
    #[arg(long = "resource", value_name = "NAME=N", value_parser = resource)]
    pub(crate) resources: Vec<(String, f64)>,
    /// What is said of this machine, for label selectors of jobs; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// How many jobs of one user run at a time
    #[arg(long, value_name = "N")]
    pub(crate) per_user: Option<usize>,
    /// How many jobs that have ended are remembered
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) keep_jobs: usize,
    /// For how many days they are
    #[arg(long, value_name = "DAYS", default_value = "30", value_parser = amount)]
    pub(crate) keep_days: f64,
    /// How long a job may take to end once it was asked to, before it is killed
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) grace: Duration,
    /// How much of a job's log is kept
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub(crate) log_limit: u64,
    /// The largest package that is accepted
    #[arg(long, value_name = "SIZE", default_value = "100MiB", value_parser = size)]
    pub(crate) package_limit: u64,
}

/// An amount of something: not negative, and no more than can be meant.
fn amount(given: &str) -> Result<f64, String> {
    let number = given.parse().ok();
    let number = number.filter(|number| (0.0..=1e6).contains(number));
    number.ok_or_else(|| "it must be a number between 0 and 1000000, such as 2.5".to_owned())
}

/// A number of bytes.
fn size(given: &str) -> Result<u64, String> {
    let digits = given.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = given.split_at(digits.unwrap_or(given.len()));
    let shift = match unit {
        "" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        "TiB" => Some(40),
        _ => None,
    };
    let bytes = shift.and_then(|shift| number.parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.ok_or_else(|| "it must be a number of bytes, such as 512MiB or 64GiB".to_owned())
}

fn label(given: &str) -> Result<(String, String), String> {
    let pair = given.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) =
        pair.ok_or_else(|| format!("it has no name and `=`; write NAME={given}"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn resource(given: &str) -> Result<(String, f64), String> {
    let (name, value) = label(given)?;
    Ok((name, amount(&value)?))
}
