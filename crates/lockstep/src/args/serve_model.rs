//! The arguments of `lockstep serve-model`.

use super::remote::seconds;
use super::serve::{DoorArgs, ServerPlaceArgs, size};
use clap::Args;
use std::net::IpAddr;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep serve-model digits@champion
  lockstep serve-model digits/3 --port 8080
  lockstep serve-model runs/digits-20261116-101500-ab27
  curl http://127.0.0.1:5001/invocations -H 'Content-Type: text/csv' --data-binary @new.csv
  curl http://127.0.0.1:5001/invocations -F file=@photo.jpg
  lockstep serve token add anna --role read      for --host 0.0.0.0, where a token is needed")]
pub(crate) struct ServeModelArgs {
    /// What is served: NAME@ALIAS, NAME/VERSION, or a run by its folder or name
    pub(crate) model: String,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value = "5001")]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) place: ServerPlaceArgs,
    #[command(flatten, next_help_heading = "Security")]
    pub(crate) door: DoorArgs,
    #[command(flatten, next_help_heading = "Requests")]
    pub(crate) requests: RequestArgs,
}

/// How requests are answered, and how large they may be.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// Rows that are computed at once, if several requests are waiting
    #[arg(long, value_name = "ROWS", default_value = "256", value_parser = at_least_one)]
    pub(crate) max_batch: usize,
    /// Milliseconds that a batch waits for requests which have arrived but are not read yet
    #[arg(long, value_name = "MS", default_value = "2")]
    pub(crate) batch_wait: u64,
    /// Requests that may wait for the model; others are told to come again (503)
    #[arg(long, value_name = "N", default_value = "512", value_parser = at_least_one)]
    pub(crate) queue: usize,
    /// Seconds that a request may take
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// The longest body of a request
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size)]
    pub(crate) max_body: u64,
    /// The most rows of a request
    #[arg(long, value_name = "N", default_value = "10000", value_parser = at_least_one)]
    pub(crate) max_rows: usize,
    /// The most pixels of a picture
    #[arg(long, value_name = "N", default_value = "50000000")]
    pub(crate) max_pixels: u64,
    /// Threads that compute a batch
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub(crate) threads: usize,
}

fn at_least_one(given: &str) -> Result<usize, String> {
    match given.parse() {
        Ok(0) | Err(_) => Err("it must be a whole number, at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}
