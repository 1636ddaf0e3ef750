//! All jobs of a queue in memory, as they were last read: who waits, who may begin, who never can.

use crate::folder::{AttemptEnd, Folder};
use crate::plan::{Waiting, in_line};
use crate::queue::PASSING;
use crate::state::Progress;
use crate::{JobRecord, JobStatus, JobView, Machine, QueueError};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What somebody could see of jobs.
pub(crate) type Fingerprint = Vec<(u64, u32, JobStatus, bool)>;

/// A job in memory.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) asked: Arc<JobRecord>,
    pub(crate) progress: Progress,
    /// The keeper that was started for this attempt, and the GPUs it was given.
    pub(crate) keeper: Option<(Child, Vec<u32>)>,
    /// The number by which its folder is watched, if it is.
    pub(crate) watch: Option<i32>,
    /// Whether something may have happened to it that nobody heard of.
    pub(crate) unread: bool,
    /// It does not begin earlier, by a clock that nobody sets.
    pub(crate) not_before: Option<Instant>,
}

impl Job {
    /// How long it must still wait before it may begin.
    pub(crate) fn wait(&self) -> Duration {
        let until = self.not_before.unwrap_or_else(Instant::now);
        until.saturating_duration_since(Instant::now())
    }

    /// Whether it has room on the machine.
    pub(crate) fn is_placed(&self) -> bool {
        !self.progress.is_final() && (self.progress.begun.is_some() || self.keeper.is_some())
    }
}

/// All jobs in memory.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) jobs: BTreeMap<String, Job>,
    machine: Machine,
}

impl State {
    /// Reads all jobs, and removes what was being made or removed when the last server ended.
    pub(crate) fn load(folder: &Path, machine: Machine) -> Result<State, QueueError> {
        let mut state = State {
            jobs: BTreeMap::new(),
            machine,
        };
        for entry in fs::read_dir(folder).map_err(QueueError::file(folder))? {
            let entry = entry.map_err(QueueError::file(folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(PASSING) {
                let _ = fs::remove_dir_all(entry.path());
                continue;
            }
            match Folder::new(entry.path()).asked() {
                Ok(asked) if asked.id == name => {
                    let progress = Progress::read(&Folder::new(entry.path()), &asked, 1);
                    state.insert(asked, progress);
                }
                Ok(_) => eprintln!("warning: {} holds another job", entry.path().display()),
                Err(error) => eprintln!("warning: {error}"),
            }
        }
        Ok(state)
    }

    fn insert(&mut self, asked: JobRecord, progress: Progress) {
        let job = Job {
            asked: Arc::new(asked),
            not_before: Some(Instant::now() + progress.pause()),
            progress,
            keeper: None,
            watch: None,
            unread: true,
        };
        self.jobs.insert(job.asked.id.clone(), job);
    }

    pub(crate) fn next_number(&self) -> u64 {
        let numbers = self.jobs.values().map(|job| job.asked.number);
        numbers.max().map_or(1, |last| last + 1)
    }

    pub(crate) fn add(&mut self, asked: JobRecord) -> Option<JobView> {
        let id = asked.id.clone();
        let progress = Progress {
            attempt: 1,
            ..Progress::default()
        };
        self.insert(asked, progress);
        self.view(&id)
    }

    pub(crate) fn asked(&self, id: &str) -> Option<Arc<JobRecord>> {
        self.jobs.get(id).map(|job| Arc::clone(&job.asked))
    }

    pub(crate) fn drop_job(&mut self, id: &str) {
        self.jobs.remove(id);
    }

    /// Whether a job can be forgotten.
    pub(crate) fn may_remove(&self, id: &str) -> Result<(), QueueError> {
        let job = self.jobs.get(id);
        let job = job.ok_or_else(|| QueueError::Missing(id.to_owned()))?;
        if !job.progress.is_final() {
            return Err(QueueError::NotEnded {
                id: id.to_owned(),
                status: job.progress.status(),
            });
        }
        match self.needed_by(id) {
            Some(by) => Err(QueueError::Needed {
                id: id.to_owned(),
                by,
            }),
            None => Ok(()),
        }
    }

    /// A job that is to run after `id`.
    fn needed_by(&self, id: &str) -> Option<String> {
        let waits = |job: &&Job| {
            !job.progress.is_final() && job.asked.after.iter().any(|after| after == id)
        };
        let by = self.jobs.values().find(waits);
        by.map(|job| job.asked.id.clone())
    }

    pub(crate) fn view(&self, id: &str) -> Option<JobView> {
        let job = self.jobs.get(id)?;
        let mut view = self.told(job);
        if view.status == JobStatus::Pending && !job.is_placed() {
            let line = self.line();
            view.position = line.iter().position(|waiting| waiting.id == id);
        }
        Some(view)
    }

    pub(crate) fn views(&self) -> Vec<JobView> {
        let line = self.line();
        let places: BTreeMap<&str, usize> = line
            .iter()
            .enumerate()
            .map(|(place, waiting)| (waiting.id, place))
            .collect();
        let told = |job: &Job| {
            let mut view = self.told(job);
            view.position = places.get(job.asked.id.as_str()).copied();
            view
        };
        let mut views: Vec<JobView> = self.jobs.values().map(told).collect();
        views.sort_by_key(|view| view.number);
        views
    }

    fn told(&self, job: &Job) -> JobView {
        let waits_for = match job.progress.status() == JobStatus::Pending && !job.is_placed() {
            true => self.waits_for(job),
            false => None,
        };
        job.progress.view(&job.asked, waits_for)
    }

    /// What a job waits for beside room.
    fn waits_for(&self, job: &Job) -> Option<String> {
        let open = |id: &&String| {
            let before = self.jobs.get(*id);
            before.is_some_and(|before| !before.progress.is_final())
        };
        let open: Vec<&str> = job
            .asked
            .after
            .iter()
            .filter(open)
            .map(String::as_str)
            .collect();
        if !open.is_empty() {
            return Some(format!("It is to run after {}.", open.join(", ")));
        }
        // The limits may be lower than they were when it was submitted. It waits for those that it needs.
        let why = self.machine.lacks(&job.asked.needs)?;
        Some(format!("It cannot run now: {why}."))
    }

    /// The jobs that could begin if there is room, in line.
    pub(crate) fn line(&self) -> Vec<Waiting<'_>> {
        let ready = |job: &&Job| {
            !job.progress.is_final()
                && !job.is_placed()
                && self.waits_for(job).is_none()
                && self.doomed(job).is_none()
        };
        let mut line: Vec<Waiting<'_>> = self
            .jobs
            .values()
            .filter(ready)
            .map(|job| Waiting {
                id: &job.asked.id,
                user: &job.asked.user,
                needs: &job.asked.needs,
                priority: job.asked.priority,
                number: job.asked.number,
            })
            .collect();
        in_line(&mut line);
        line
    }

    /// The end of a job that must not begin any more, because one that it was to run after did not succeed.
    pub(crate) fn doomed(&self, job: &Job) -> Option<AttemptEnd> {
        job.asked.after.iter().find_map(|id| {
            let how = match self.jobs.get(id).map(|before| before.progress.status()) {
                None => "is gone".to_owned(),
                Some(JobStatus::Failed | JobStatus::Stopped) => "did not succeed".to_owned(),
                Some(_) => return None,
            };
            let message = format!("It was to run after the job {id}, which {how}.");
            Some(AttemptEnd::failed(
                "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
                message,
            ))
        })
    }

    /// Changes when a job does, in a way that somebody could see.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let of = |job: &Job| {
            (
                job.asked.number,
                job.progress.attempt,
                job.progress.status(),
                job.progress.stop,
            )
        };
        self.jobs.values().map(of).collect()
    }
}
