//! The arguments of commands that talk to the head of a cluster.

use super::command::CommandArgs;
use super::{Engine, ForkWeights, JobArgs, KubeArgs, ShowArgs, key_value};
use clap::builder::ArgPredicate;
use clap::{Arg, Args, Subcommand, ValueHint};
use lockstep_cluster::jobs::{self, Client, JobsError};
use lockstep_cluster::submit::{self, JobRequest, Program, SubmitRequest, Work};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep submit job.toml --to http://HEAD:8265
  lockstep submit job.toml --to http://HEAD:8265 --workers 8 --set run.store=s3://bucket/runs
  lockstep submit job.toml --to kube         on Kubernetes, as [kube] in the job file says
  lockstep submit job.toml --detach          prints the job's id; then: lockstep jobs wait ID
  lockstep submit job.toml --binary image    uses the `lockstep` in the PATH of the nodes' image
  lockstep submit -- python3 train.py        any command; prints the job's id, or waits for its end with --wait
  lockstep submit --working-dir . --gpus 1 --wait -- python3 train.py

What travels: the job file, what it names by a relative path, and this program. What it names by an absolute path \
or a URL is read where the job runs. With a command, the folder of --working-dir travels, and nothing without it.

Ctrl-C leaves the job alone; a second one within 3 seconds stops it, in good order. The exit code is that of the \
run: 0 success, 1 failure (also of the connection), 2 wrong job file, 130 interrupted.

A token is taken from LOCKSTEP_TOKEN, from RAY_AUTH_TOKEN, from the file that RAY_AUTH_TOKEN_PATH names, or from ~/.ray/auth_token.")]
#[command(mut_arg("path", unless_a_command))]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) head: HeadArgs,
    #[command(flatten, next_help_heading = "With --to kube")]
    pub(crate) at: KubeArgs,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
    #[command(flatten, next_help_heading = "With a command")]
    pub(crate) run: CommandArgs,
    /// Print the job's id and leave it to itself, as a command is unless --wait is given
    #[arg(long, conflicts_with_all = ["quiet", "verbose", "wait"])]
    pub(crate) detach: bool,
    /// Follow the job to its end, and end with its exit code, as with a job file
    #[arg(long)]
    pub(crate) wait: bool,
    /// Where workers run: all over the Ray cluster, or beside the job's command on one machine; by default the first on
    /// a Ray head, and the second on `lockstep serve`
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<Engine>,
    /// The program that travels, by default this one; `image` sends none and uses the one in the nodes' PATH
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) binary: Option<PathBuf>,
    /// The job's id; by default its name and some letters
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// A variable for the job; who may see the jobs of the cluster may see it; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = key_value)]
    pub(crate) env: Vec<String>,
    /// Go on with a run from its newest checkpoint: its URL, its path or its name there, or by default the
    /// job's newest
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<Option<String>>,
    /// Begin a new run with the weights of the one that --resume means: those that it kept as the best, or its last
    #[arg(long, requires = "resume", value_name = "WHICH", num_args = 0..=1, require_equals = true,
          default_missing_value = "best")]
    pub(crate) fork: Option<ForkWeights>,
}

/// What `--to` says when Kubernetes is meant.
pub(crate) const KUBE: &str = "kube";
/// What `--binary` says when the program of the nodes' image is meant.
const IMAGE: &str = "image";

impl SubmitArgs {
    /// Whether the job goes to Kubernetes.
    pub(crate) fn is_for_kube(&self) -> bool {
        self.head.to.as_deref() == Some(KUBE)
    }

    /// All that is asked, as one value. A job file is read for it.
    pub(crate) fn request(&self) -> anyhow::Result<SubmitRequest> {
        let work = match self.run.command.is_empty() {
            false => Work::Command(self.run.request()),
            true => Work::Job(Box::new(JobRequest {
                source: self.job.source()?,
                engine: self.engine.map(|engine| match engine {
                    Engine::Local => submit::Engine::Local,
                    Engine::Ray => submit::Engine::Ray,
                }),
                program: match &self.binary {
                    None => Program::Own,
                    Some(path) if path == Path::new(IMAGE) => Program::Image,
                    Some(path) => Program::File(path.clone()),
                },
                resume: self.resume.clone(),
                fork: self.fork.map(ForkWeights::word),
                verbose: self.follow.show.verbose,
            })),
        };
        if let Some(pair) = self.env.iter().find(|pair| pair.starts_with('=')) {
            anyhow::bail!("--env {pair:?} has no name before the `=`");
        }
        Ok(SubmitRequest {
            work,
            id: self.id.clone(),
            variables: pairs(&self.env),
            queue: self.run.place.metadata(),
        })
    }
}

/// Names and values, of which clap has seen to the `=`.
pub(super) fn pairs(given: &[String]) -> BTreeMap<String, String> {
    let pairs = given.iter().filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A job file must be there, unless there is a command.
fn unless_a_command(path: Arg) -> Arg {
    path.index(1)
        .required(false)
        .required_unless_present("command")
        .default_value_if("command", ArgPredicate::IsPresent, "-")
}

/// How a head is found and who asks.
#[derive(Debug, Clone, Args)]
pub(crate) struct HeadArgs {
    /// The address of `lockstep serve` or of a Ray head, http://HOST:8265, or `kube` for Kubernetes; by default that
    /// of RAY_API_SERVER_ADDRESS or RAY_ADDRESS, else this machine
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) to: Option<String>,
    /// Headers for every request as a JSON object; by default those of RAY_JOB_HEADERS
    #[arg(long, value_name = "JSON")]
    pub(crate) headers: Option<String>,
}

impl HeadArgs {
    /// The head that is meant, once it has let us in.
    pub(crate) fn connect(&self) -> Result<Client, JobsError> {
        jobs::connect(self.to.as_deref(), self.headers.as_deref())
    }
}

/// How a job is followed.
#[derive(Debug, Clone, Args)]
pub(crate) struct FollowArgs {
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// How long a lost connection is tried again before it is given up
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) patience: Duration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List the jobs of a server or a cluster
    List {
        #[command(flatten)]
        head: HeadArgs,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Say how a job is
    Status {
        /// The job's id
        id: String,
        #[command(flatten)]
        head: HeadArgs,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print a job's log
    Logs {
        /// The job's id
        id: String,
        /// Go on until the job ends; a lost connection is made again
        #[arg(short, long)]
        follow: bool,
        #[command(flatten)]
        head: HeadArgs,
        /// How long a lost connection is tried again before it is given up
        #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
        patience: Duration,
    },
    /// Wait for a job's end, show it as `submit` does, and end with its exit code
    Wait {
        /// The job's id
        id: String,
        #[command(flatten)]
        head: HeadArgs,
        #[command(flatten)]
        follow: FollowArgs,
    },
    /// Stop a job, in good order: it is given time to write its state, on a Ray head 3 seconds
    Stop {
        /// The job's id
        id: String,
        /// Do not wait until it has stopped
        #[arg(long)]
        no_wait: bool,
        #[command(flatten)]
        head: HeadArgs,
    },
    /// Remove jobs that have ended from the head's list, with their logs
    Rm {
        /// The jobs' ids
        #[arg(required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        head: HeadArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the nodes of a cluster: cores, GPUs and memory, and what of them is free
    Status {
        #[command(flatten)]
        head: HeadArgs,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

/// A span of time in seconds.
pub(super) fn seconds(given: &str) -> Result<Duration, String> {
    let wrong = || "it must be a number of seconds, such as 60".to_owned();
    let number: f64 = given.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number).map_err(|_| wrong())
}
