//! The arguments of `lockstep serve`.

use super::StoreArgs;
use clap::{Args, ValueHint};
use std::net::IpAddr;
use std::path::PathBuf;

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
}
