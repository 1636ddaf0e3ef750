//! The arguments of commands that talk to Kubernetes.

use super::remote::seconds;
use super::{FollowArgs, JobArgs};
use clap::{Args, Subcommand, ValueHint};
use lockstep_cluster::kube::Wanted;
use std::path::PathBuf;
use std::time::Duration;

/// Which cluster is meant, as kubectl has it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KubeArgs {
    /// The kubeconfig file; by default those of KUBECONFIG, else ~/.kube/config, else the account of this pod
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context; by default its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The namespace; by default kube.namespace of the job, else that of the context
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl KubeArgs {
    /// The same for the crate that talks to it.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespace: self.namespace.clone(),
        }
    }
}

/// A job that is to be brought to Kubernetes.
#[derive(Debug, Args)]
pub(crate) struct KubeJobArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) at: KubeArgs,
    /// The name of everything that is made, and of the run; by default the job's name and some letters
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

/// A port of a pod that is to be reached from here.
#[derive(Debug, Args)]
pub(crate) struct KubeForwardArgs {
    /// The name of a job, a RayCluster or a Service
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) at: KubeArgs,
    /// The port of the pod or the Service; by default the head's dashboard, or the Service's first
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// The port here; by default that of the pod, and 0 takes a free one
    #[arg(long, value_name = "PORT")]
    pub(crate) local: Option<u16>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KubeCommand {
    /// Print the manifests of a job
    #[command(after_help = "\
Examples:
  lockstep kube render job.toml
  lockstep kube render job.toml --set kube.engine='\"kuberay\"'

Nothing is asked and nothing is made. The same job gives the same text. In place of the run's token stands a \
sentence; `lockstep kube apply` and `submit --to kube` make one.")]
    Render(KubeJobArgs),
    /// Bring a job to the cluster, print its name and leave it to itself
    Apply {
        #[command(flatten)]
        job: KubeJobArgs,
        /// Have the server check everything, and make nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Say how a job is, and why its pods do not run
    Status {
        /// The job's name
        name: String,
        #[command(flatten)]
        at: KubeArgs,
        /// Say it again whenever it has changed, until the job ends
        #[arg(short, long)]
        watch: bool,
        /// Print a JSON object
        #[arg(long, conflicts_with = "watch")]
        json: bool,
    },
    /// Print the log of the pod that tells of a job's run
    Logs {
        /// The job's name
        name: String,
        /// Go on until the job ends; lost connections are made again, replaced pods followed
        #[arg(short, long)]
        follow: bool,
        #[command(flatten)]
        at: KubeArgs,
        /// How long a lost connection is tried again before it is given up
        #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
        patience: Duration,
    },
    /// Wait for a job's end, show it as `submit` does, and end with its exit code
    Wait {
        /// The job's name
        name: String,
        #[command(flatten)]
        at: KubeArgs,
        #[command(flatten)]
        follow: FollowArgs,
    },
    /// Stop a job's pods, in good order: they write their state; `--resume` of `submit`, or `start`, goes on
    Stop {
        /// The job's name
        name: String,
        #[command(flatten)]
        at: KubeArgs,
    },
    /// Let a job go on that was stopped
    Start {
        /// The job's name
        name: String,
        #[command(flatten)]
        at: KubeArgs,
    },
    /// Remove jobs, with their pods and all that belongs to them; runs stay in their store
    Delete {
        /// The jobs' names
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        at: KubeArgs,
    },
    /// List the jobs of a namespace
    List {
        #[command(flatten)]
        at: KubeArgs,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Reach a port of a job's or a server's pod from here, until Ctrl-C
    #[command(after_help = "\
Examples:
  lockstep kube forward team-lockstep            the server of the Helm chart: http://127.0.0.1:8265
  lockstep kube forward digits-k3xpq             the dashboard of a RayJob's head
  lockstep kube forward digits-k3xpq --port 6006 --local 0

Connections go through the API server. A pod that is replaced is found again by the next connection.")]
    Forward(KubeForwardArgs),
    /// Look after a RayCluster that stands
    #[command(subcommand)]
    Cluster(KubeClusterCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum KubeClusterCommand {
    /// Make a RayCluster with as many workers as the job has; with a range of workers it is scaled between them
    Start(KubeJobArgs),
    /// Say how a RayCluster is, and why its pods do not run
    Inspect {
        /// Its name
        name: String,
        #[command(flatten)]
        at: KubeArgs,
    },
    /// Reach the dashboard of a RayCluster from here, or another port of its head, until Ctrl-C
    Forward(KubeForwardArgs),
    /// Remove a RayCluster
    Stop {
        /// Its name
        name: String,
        #[command(flatten)]
        at: KubeArgs,
    },
}
