//! The arguments of `lockstep serve`.

use super::StoreArgs;
use super::remote::seconds;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use lockstep_server::Role;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep serve                             then open http://127.0.0.1:8265
  lockstep serve --store s3://bucket/runs --folder /var/lib/lockstep
  lockstep serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
  lockstep serve token add anna --role submit
  RAY_ADDRESS=http://127.0.0.1:8265 ray job submit -- python train.py")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// The port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value = "8265")]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) place: ServerPlaceArgs,
    /// The head of a Ray cluster whose nodes the dashboard shows too, such as http://head:8265
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) ray: Option<String>,
    /// The Kubernetes namespace whose nodes and pods the dashboard shows too
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) kube: Option<String>,
    /// The kubeconfig's context for --kube; by default its current one, or the account of this pod
    #[arg(long, value_name = "NAME", requires = "kube")]
    pub(crate) kube_context: Option<String>,
    #[command(flatten, next_help_heading = "Security")]
    pub(crate) guard: GuardArgs,
    #[command(flatten, next_help_heading = "Jobs")]
    pub(crate) queue: QueueArgs,
}

/// Where a server keeps what it has.
#[derive(Debug, Args)]
pub(crate) struct ServerPlaceArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The folder of the server's own files: jobs, packages, tokens, the audit log; by default `.server` in the
    /// store, which must then be a folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}

/// How the server protects itself.
#[derive(Debug, Args)]
pub(crate) struct GuardArgs {
    #[command(flatten)]
    pub(crate) door: DoorArgs,
    /// The largest file that is accepted as an artifact of a run
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = size)]
    pub(crate) upload_limit: u64,
}

/// Who may come in, and how.
#[derive(Debug, Args)]
pub(crate) struct DoorArgs {
    /// Ask for a token on loopback too: for machines of several users, and behind a proxy
    #[arg(long)]
    pub(crate) require_token: bool,
    /// A name that the server is called by, beside its addresses and the machine's name; may be repeated
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// The certificates of TLS, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of TLS, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: Option<PathBuf>,
}

/// What can be done beside serving.
#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Who may ask a server, and what; a server that runs follows at once
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, and print it: it cannot be shown again
    Add {
        /// Who gets it
        name: String,
        /// What that one may do
        #[arg(long, value_enum, default_value = "submit")]
        role: RoleArg,
        #[command(flatten)]
        place: ServerPlaceArgs,
    },
    /// List the names of all tokens, their roles, and when they were made
    List {
        #[command(flatten)]
        place: ServerPlaceArgs,
    },
    /// Remove a token: whoever has it is refused from now on
    Remove {
        /// Whose it is
        name: String,
        #[command(flatten)]
        place: ServerPlaceArgs,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RoleArg {
    /// Look at everything
    Read,
    /// Submit jobs, log runs, and stop and remove what is one's own
    Submit,
    /// Everything
    Admin,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Role {
        match role {
            RoleArg::Read => Role::Read,
            RoleArg::Submit => Role::Submit,
            RoleArg::Admin => Role::Admin,
        }
    }
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
    /// The user of this machine that jobs run as, who can then not reach tokens and records of jobs; needs a server that
    /// runs as root. By default the server's own user, so that whoever may submit may do everything
    #[arg(long, value_name = "NAME")]
    pub(crate) job_user: Option<String>,
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
pub(super) fn amount(given: &str) -> Result<f64, String> {
    let number = given.parse().ok();
    let number = number.filter(|number| (0.0..=1e6).contains(number));
    number.ok_or_else(|| "it must be a number between 0 and 1000000, such as 2.5".to_owned())
}

/// A number of bytes.
pub(super) fn size(given: &str) -> Result<u64, String> {
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

pub(super) fn resource(given: &str) -> Result<(String, f64), String> {
    let (name, value) = label(given)?;
    Ok((name, amount(&value)?))
}
