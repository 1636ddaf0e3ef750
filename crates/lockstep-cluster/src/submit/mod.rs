//! What is sent to a cluster for a job or a command, and how it is run there.
//!
//! To a head goes a package: the job file as it is, the files that it names by relative paths, a script and the files
//! that its command names among them, and a program. The job's command is the same `lockstep run` that one would
//! type; its events come back through the job's log. To Kubernetes go manifests that hold the same files.

mod command;
mod inputs;
mod job;
mod kube;
mod layout;
mod one_node;

pub use command::CommandRequest;
pub use job::{Engine, JobRequest, JobSource, Program};
pub use kube::KubeRequest;

use crate::ClusterError;
use crate::jobs::{Client, Needs, Package, Submission};
use std::collections::BTreeMap;

/// What is to run on a cluster, with all that is asked of it.
#[derive(Debug)]
pub struct SubmitRequest {
    /// What runs.
    pub work: Work,
    /// The job's id; by default its name and some letters.
    pub id: Option<String>,
    /// Variables for the job.
    pub variables: BTreeMap<String, String>,
    /// Its place in the queue of `lockstep serve`, as metadata that others have no words for.
    pub queue: Vec<(String, String)>,
}

/// What runs on a cluster.
#[derive(Debug)]
pub enum Work {
    /// A job file.
    Job(Box<JobRequest>),
    /// Any command.
    Command(CommandRequest),
}

/// A request with the files that travel.
pub struct Packed<'r> {
    request: &'r SubmitRequest,
    package: Package,
    /// The job file's name in the package; empty for a command.
    file: String,
    /// Whether the job's runs go to a folder beside its file.
    store_beside: bool,
}

/// What is sent to a head.
pub struct Prepared {
    /// What whoever submits should know first.
    pub warning: Option<String>,
    /// What the program needs that travels with the job.
    pub sent: Option<Needs>,
    /// The files that travel, if any do.
    package: Option<Package>,
    submission: Submission,
}

impl SubmitRequest {
    /// Finds the files that travel with it.
    ///
    /// # Errors
    /// When one is missing, or cannot be read.
    pub fn pack(&self) -> Result<Packed<'_>, ClusterError> {
        match &self.work {
            Work::Job(job) => job.pack(self),
            Work::Command(command) => Ok(Packed {
                request: self,
                package: command.package()?,
                file: String::new(),
                store_beside: false,
            }),
        }
    }

    /// The metadata of its place in the queue, for a server that has one.
    fn place_in_queue(&self, client: &Client) -> Result<&[(String, String)], ClusterError> {
        if !self.queue.is_empty() && client.lockstep_version().is_none() {
            return Err(ClusterError::NoQueueOnRay {
                address: client.address().to_string(),
            });
        }
        Ok(&self.queue)
    }
}

impl Packed<'_> {
    /// Decides what the head is asked for, by what the head is.
    ///
    /// # Errors
    /// When the program cannot travel, and when the head has no words for what is asked.
    pub fn prepare(self, client: &Client) -> Result<Prepared, ClusterError> {
        match &self.request.work {
            Work::Job(job) => job.prepare(self, client),
            Work::Command(command) => command.prepare(self, client),
        }
    }
}

impl Prepared {
    /// Sends it; the job's id.
    ///
    /// # Errors
    /// When it is too large, when the connection breaks, and when the head refuses.
    pub fn send(&mut self, client: &Client) -> Result<String, ClusterError> {
        if let Some(package) = &self.package {
            self.submission.runtime_env.working_dir = Some(client.upload(package)?);
        }
        Ok(client.submit(&self.submission)?)
    }
}
