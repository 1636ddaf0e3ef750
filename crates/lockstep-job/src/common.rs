//! What every job has, whatever learns in it.

use crate::{
    Data, JobGang, Kube, LoadedJob, LocalInput, Location, Notify, Recover, Resources, Run, Storage,
    Track, Workers,
};

/// Asks a job of any kind for the same thing.
macro_rules! of_any {
    ($job:expr, $name:ident => $what:expr) => {
        match $job {
            LoadedJob::Network($name) => $what,
            LoadedJob::Script($name) => $what,
            LoadedJob::Trees($name) => $what,
        }
    };
}

impl LoadedJob {
    /// The name of the job.
    pub fn name(&self) -> &str {
        of_any!(self, job => &job.name)
    }

    /// Where its runs go.
    pub fn store(&self) -> &Location {
        of_any!(self, job => &job.run.store)
    }

    /// Where its runs go, and which of them stay.
    pub fn run(&self) -> &Run {
        of_any!(self, job => &job.run)
    }

    /// How its places are reached.
    pub fn storage(&self) -> &Storage {
        of_any!(self, job => &job.storage)
    }

    /// How many workers it has.
    pub fn workers(&self) -> Workers {
        of_any!(self, job => job.train.workers)
    }

    /// How its workers keep together.
    pub fn gang(&self) -> &JobGang {
        of_any!(self, job => &job.gang)
    }

    /// The same, to be changed.
    pub fn gang_mut(&mut self) -> &mut JobGang {
        of_any!(self, job => &mut job.gang)
    }

    /// What each of its workers needs.
    pub fn resources(&self) -> &Resources {
        of_any!(self, job => &job.resources)
    }

    /// How its pods look on Kubernetes.
    pub fn kube(&self) -> &Kube {
        of_any!(self, job => &job.kube)
    }

    /// Who else keeps a record of its runs.
    pub fn track(&self) -> &Track {
        of_any!(self, job => &job.track)
    }

    /// Who is told of what happens in them.
    pub fn notify(&self) -> &Notify {
        of_any!(self, job => &job.notify)
    }

    /// What happens when one of its workers is lost.
    pub fn recover(&self) -> Recover {
        of_any!(self, job => job.recover)
    }

    /// The sets that it learns from; a script may have none.
    pub fn data(&self) -> Option<&Data> {
        match self {
            LoadedJob::Network(job) => Some(&job.data),
            LoadedJob::Script(job) => job.data.as_ref(),
            LoadedJob::Trees(job) => Some(&job.data),
        }
    }

    /// The same, to be changed.
    pub fn data_mut(&mut self) -> Option<&mut Data> {
        match self {
            LoadedJob::Network(job) => Some(&mut job.data),
            LoadedJob::Script(job) => job.data.as_mut(),
            LoadedJob::Trees(job) => Some(&mut job.data),
        }
    }

    /// Threads of a worker.
    pub fn threads(&self) -> usize {
        match self {
            LoadedJob::Network(job) => job.train.threads,
            LoadedJob::Script(_) => 1,
            LoadedJob::Trees(job) => job.train.threads,
        }
    }

    /// All files and folders of this machine that the job names by keys of their own.
    pub fn local_inputs(&self) -> Vec<LocalInput> {
        of_any!(self, job => job.local_inputs())
    }
}
