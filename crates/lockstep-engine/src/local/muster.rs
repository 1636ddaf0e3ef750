//! Starts the workers of a gang, and makes what each is told when a generation begins.

use super::crew::Crew;
use super::notice::Notice;
use crate::EngineError;
use crate::invitation::Invitation;
use lockstep_events::control::{Assignment, Transport};
use lockstep_fs::CacheDir;
use lockstep_gang::{Plan, Secret, Segment, ShmCollective, ShmControl};
use lockstep_job::Job;
use lockstep_train::LearnerPart;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::SyncSender;

/// What carries the exchange, in the words of [`Started`](lockstep_events::event::Started).
pub(super) fn kind_of_transport(job: &Job) -> &'static str {
    match job.gang.transport {
        _ if job.train.workers == 1 => "solo",
        lockstep_job::Transport::Auto | lockstep_job::Transport::Shm => "shm",
        lockstep_job::Transport::Tcp => "tcp",
    }
}

/// Where a generation begins.
pub(super) struct Beginning {
    /// The generation.
    pub(super) generation: u16,
    /// The seats by rank.
    pub(super) seats: Vec<usize>,
    /// Over TCP, where each of them listens, by rank.
    pub(super) peers: Vec<SocketAddr>,
    /// The state to go on from, if not from the beginning.
    pub(super) resume: Option<PathBuf>,
    /// Steps that were done before.
    pub(super) catch_up: u64,
}

/// What all workers of a run have in common.
pub(super) struct Muster<'a> {
    pub(super) job: &'a Job,
    pub(super) run_dir: &'a Path,
    pub(super) cache: &'a CacheDir,
    pub(super) worker_exe: &'a Path,
    /// The exchange of the whole gang; a smaller one's follows from it.
    pub(super) plan: &'a Plan,
    /// SHA-256 of the file of weights to begin with.
    pretrained: Option<String>,
    /// Steps after which the run stops by itself.
    max_steps: Option<u64>,
    pub(super) door: SocketAddr,
    pub(super) secret: &'a Secret,
    pub(super) notices: SyncSender<Notice>,
    pub(super) crew: Crew,
    /// The memory that the workers share.
    segment: Option<Segment>,
    /// The hold on it in the present generation.
    control: Option<ShmControl>,
    /// Under which number each seat's process has the segment.
    descriptors: Vec<Option<RawFd>>,
}

impl<'a> Muster<'a> {
    /// Prepares to start the workers of a run; `min_workers` is how few the gang may come down to.
    #[allow(clippy::too_many_arguments, reason = "each is used as it is, once")]
    pub(super) fn new(
        job: &'a Job,
        run_dir: &'a Path,
        cache: &'a CacheDir,
        worker_exe: &'a Path,
        plan: &'a Plan,
        pretrained: Option<String>,
        max_steps: Option<u64>,
        min_workers: usize,
        door: SocketAddr,
        secret: &'a Secret,
        notices: SyncSender<Notice>,
    ) -> Result<Self, EngineError> {
        let segment = match kind_of_transport(job) {
            "shm" => {
                let mut bytes = 0;
                for workers in min_workers.max(2)..=plan.workers() {
                    let plan = plan.for_workers(workers)?;
                    bytes = bytes.max(ShmCollective::bytes_needed(&plan));
                }
                Some(Segment::create(bytes)?)
            }
            _ => None,
        };
        Ok(Self {
            job,
            run_dir,
            cache,
            worker_exe,
            plan,
            pretrained,
            max_steps,
            door,
            secret,
            notices,
            crew: Crew::default(),
            segment,
            control: None,
            descriptors: vec![None; plan.workers()],
        })
    }

    /// Starts a process for `seat`; the one before it, if any, has ended.
    pub(super) fn start(&mut self, seat: usize, generation: u16) -> Result<(), EngineError> {
        let invitation = Invitation {
            address: self.door,
            secret: self.secret.to_hex(),
            rank: seat,
            generation,
            listen: kind_of_transport(self.job) == "tcp",
        };
        let line = serde_json::to_string(&invitation).expect("an invitation is plain data");
        let mut command = Command::new(self.worker_exe);
        command
            .arg("worker")
            .env("LOCKSTEP_CACHE", self.cache.path());
        let spawned = self
            .crew
            .spawn(seat, command, &line, self.segment.as_ref(), &self.notices);
        self.descriptors[seat] = spawned.map_err(|source| EngineError::Spawn {
            rank: seat,
            exe: self.worker_exe.to_owned(),
            source: source.into(),
        })?;
        Ok(())
    }

    /// Prepares the exchange of a generation, and returns what each of its seats is told, by rank.
    pub(super) fn begin(&mut self, begin: &Beginning) -> Result<Vec<Assignment>, EngineError> {
        let workers = begin.seats.len();
        self.control = match &self.segment {
            Some(segment) if workers > 1 => {
                let plan = self.plan.for_workers(workers)?;
                Some(ShmControl::new(segment, &plan, begin.generation)?)
            }
            _ => None,
        };
        let mut job = self.job.clone();
        job.train.workers = workers;
        let deadline_s = job.gang.deadline_s;
        let part = LearnerPart {
            job,
            pretrained: self.pretrained.clone(),
        };
        let learner = serde_json::to_value(part).expect("a job is plain data");
        let assignment = |(rank, &seat): (usize, &usize)| Assignment {
            learner: learner.clone(),
            deadline_s,
            run_dir: self.run_dir.to_owned(),
            rank,
            workers,
            generation: begin.generation,
            transport: match self.descriptors[seat] {
                _ if workers == 1 => Transport::Solo,
                Some(fd) => Transport::Shm { fd },
                None => Transport::Tcp {
                    peers: begin.peers.clone(),
                },
            },
            resume: begin.resume.clone(),
            max_steps: self.max_steps,
            catch_up: begin.catch_up,
        };
        Ok(begin.seats.iter().enumerate().map(assignment).collect())
    }

    /// Tells those who wait in shared memory that `rank` died, or that the step is called off.
    pub(super) fn call_off(&self, lost: Option<usize>) {
        match (&self.control, lost) {
            (Some(control), Some(rank)) => control.lost(rank),
            (Some(control), None) => control.abort(),
            // Over TCP they see its connections close.
            (None, _) => {}
        }
    }
}
