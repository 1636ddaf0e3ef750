//! Starts the workers of a gang, and makes what each is told when a generation begins.

use super::member::Member;
use super::notice::{Notice, from_launcher};
use crate::EngineError;
use crate::invitation::Invitation;
use lockstep_events::control::{
    Assignment, CopyMemory, CopyPlace, ProfiledSteps, StateCopy, Transport,
};
use lockstep_gang::{
    Admissions, KeptShape, KeptState, MeshPeer, Plan, Segment, ShmCollective, ShmControl, keepers,
    newest_held,
};
use lockstep_launch::{Launcher, Site, WorkerId, WorkerSpec};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;

/// What carries the exchange of a gang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// One worker exchanges nothing.
    Solo,
    /// Shared memory.
    Shm,
    /// TCP.
    Tcp,
    /// Shared memory among workers who find that they can share some, and TCP between those who cannot.
    Hosts,
    /// None of ours: the learner exchanges in its own way.
    Own,
}

impl Carrier {
    /// What a gang of so many uses that is to use `transport`, where workers run at `site`.
    ///
    /// # Errors
    /// When they are to share memory and cannot.
    pub(crate) fn of(
        transport: lockstep_job::JobTransport,
        workers: usize,
        site: &Site,
    ) -> Result<Self, EngineError> {
        use lockstep_job::JobTransport::{Auto, Shm, Tcp};
        match (transport, site.shares_memory) {
            _ if workers == 1 => Ok(Self::Solo),
            (Auto | Shm, true) => Ok(Self::Shm),
            (Shm, false) => Err(EngineError::NoSharedMemory),
            (Auto, false) => Ok(Self::Hosts),
            (Tcp, _) => Ok(Self::Tcp),
        }
    }

    /// Whether workers are connected one by one, so that nobody has memory that outlives all of them.
    pub(crate) fn is_of_processes(self) -> bool {
        matches!(self, Self::Tcp | Self::Hosts)
    }

    /// In the words of [`Started`](lockstep_events::event::Started).
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Shm => "shm",
            // Which of the two it is may change with each generation.
            Self::Tcp | Self::Hosts => "tcp",
            Self::Own => "own",
        }
    }
}

/// What a gang is, in every generation.
pub(crate) struct GangSettings<'a> {
    /// How many there are at most.
    pub(crate) workers: usize,
    /// What learns.
    pub(crate) kind: &'a str,
    /// The exchange of the whole gang; a smaller one's follows from it. None where the learner has its own.
    pub(crate) plan: Option<&'a Plan>,
    pub(crate) carrier: Carrier,
    /// Whether what workers exchange over TCP is encrypted.
    pub(crate) encrypt: bool,
    /// What the learner is told when it begins with so many workers.
    pub(crate) learner: &'a dyn Fn(usize) -> Value,
    pub(crate) run_dir: String,
    /// Steps after which the run stops by itself.
    pub(crate) max_steps: Option<u64>,
    pub(crate) step_times: bool,
    /// Of which steps a profile is made.
    pub(crate) profile: Option<ProfiledSteps>,
    /// What is copied of the state to memory that outlives a worker, if anything is, and whether after every step.
    pub(crate) copies: Option<(KeptShape, bool)>,
    /// How long a worker is waited for that makes no progress, in seconds.
    pub(crate) deadline_s: f64,
    /// How long all may get no further, in seconds, where that is another time.
    pub(crate) stall_s: Option<f64>,
    /// How long a worker may take to join, in seconds.
    pub(crate) start_deadline_s: f64,
    /// After how long without the coordinator a worker ends itself, in seconds.
    pub(crate) lease_s: f64,
}

/// Where workers find their coordinator.
pub(crate) struct JoinPoint {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The tokens of those who are to come.
    pub(crate) admissions: Admissions,
    pub(crate) notices: SyncSender<Notice>,
}

/// Where a generation begins.
pub(crate) struct StartingPoint {
    /// The generation.
    pub(crate) generation: u16,
    /// The seats by rank.
    pub(crate) seats: Vec<usize>,
    /// The state to go on from, if not from the beginning.
    pub(crate) resume: Option<String>,
    /// Under which checkpoints are written.
    pub(crate) incarnation: String,
    /// The copy of the state to go on from, in place of that.
    pub(crate) copy: Option<StateCopy>,
    /// Steps that were done before.
    pub(crate) catch_up: u64,
}

/// The workers of a gang and what they have in common. Dropping it ends them.
pub(crate) struct GangWorkers<'a> {
    pub(crate) launcher: &'a mut dyn Launcher,
    pub(crate) settings: GangSettings<'a>,
    pub(crate) door: JoinPoint,
    /// By seat.
    pub(crate) members: Vec<Member>,
    /// The memory that the workers share.
    segment: Option<Segment>,
    /// The copies of the state in it, and where they begin.
    copies: Option<(KeptState, usize)>,
    /// The hold on it in the present generation.
    control: Option<ShmControl>,
}

impl<'a> GangWorkers<'a> {
    /// Prepares to start workers.
    pub(crate) fn new(
        launcher: &'a mut dyn Launcher,
        settings: GangSettings<'a>,
        door: JoinPoint,
    ) -> Result<Self, EngineError> {
        let workers = settings.workers;
        let exchange = match (settings.carrier, settings.plan) {
            (Carrier::Shm, Some(plan)) => {
                let mut bytes = 0;
                for workers in 2..=plan.workers() {
                    let plan = plan.for_workers(workers)?;
                    bytes = bytes.max(ShmCollective::bytes_needed(&plan));
                }
                bytes
            }
            _ => 0,
        };
        let at = KeptShape::after(exchange);
        // Where processes keep for each other, each has memory of its own for that.
        let shared = settings
            .copies
            .filter(|_| !settings.carrier.is_of_processes());
        let bytes = match shared {
            Some((shape, _)) => at + shape.bytes(),
            None => exchange,
        };
        let segment = (bytes > 0).then(|| Segment::create(bytes)).transpose()?;
        let copies = match (&segment, shared) {
            (Some(segment), Some((shape, _))) => Some((KeptState::create(segment, at, shape)?, at)),
            _ => None,
        };
        let first = |seat| {
            Member::new(WorkerId {
                seat,
                incarnation: 1,
            })
        };
        Ok(Self {
            members: (0..workers).map(first).collect(),
            launcher,
            settings,
            door,
            segment,
            copies,
            control: None,
        })
    }

    /// Starts the worker of a seat; the one before it, if any, has ended.
    pub(crate) fn start(&mut self, seat: usize) -> Result<(), EngineError> {
        let site = self.launcher.site();
        let id = self.members[seat].id;
        let invitation = Invitation {
            address: site.reached_at(self.door.address),
            token: self.door.admissions.admit(seat, id.incarnation)?,
            listen: matches!(self.settings.carrier, Carrier::Tcp | Carrier::Hosts)
                .then_some(site.peers),
            join_s: self.settings.start_deadline_s,
            lease_s: site.leased.then_some(self.settings.lease_s),
        };
        let spec = WorkerSpec {
            id,
            command: lockstep_launch::GANG_WORKER,
            invitation: invitation.line(),
            speaks: false,
            memory: self.segment.as_ref(),
        };
        let notify = from_launcher(self.door.notices.clone());
        let launched = self.launcher.start(&spec, notify)?;
        self.members[seat].launched(launched);
        Ok(())
    }

    /// A worker in words: its seat, and where it runs.
    pub(crate) fn describe(&self, seat: usize) -> String {
        let place = self.launcher.describe(self.members[seat].id);
        format!("worker {seat} ({place})")
    }

    /// Bytes that the busiest of hosts with so many workers each sends to others in a step.
    pub(crate) fn bytes_between(&self, hosts: &[usize]) -> Result<u64, EngineError> {
        let Some(plan) = self.settings.plan else {
            return Ok(0);
        };
        let tree = plan.for_workers(hosts.iter().sum())?.on_hosts(hosts)?;
        Ok(tree.bytes_between_hosts().into_iter().max().unwrap_or(0))
    }

    /// Whether it matters which workers share a host.
    fn finds_hosts(&self) -> bool {
        self.settings.carrier == Carrier::Hosts && self.settings.plan.is_some_and(Plan::fits_hosts)
    }

    /// The first seat whose worker shares memory with that of this one, which may be itself.
    pub(crate) fn host_of(&self, seat: usize) -> usize {
        let domain = |seat: usize| self.members[seat].memory_domain.as_deref();
        match domain(seat).filter(|_| self.finds_hosts()) {
            None => seat,
            known => (0..seat)
                .find(|&other| domain(other) == known)
                .unwrap_or(seat),
        }
    }

    /// How many workers each host has, where seats are ranked host by host and any host has several. None where the
    /// exchange has to be one of all with all.
    fn hosts(&self, seats: &[usize]) -> Option<Vec<usize>> {
        let mut hosts: Vec<(usize, usize)> = Vec::new();
        for &seat in seats {
            let host = self.host_of(seat);
            match hosts.last_mut() {
                Some((last, workers)) if *last == host => *workers += 1,
                _ => hosts.push((host, 1)),
            }
        }
        let several = hosts.iter().any(|(_, workers)| *workers > 1);
        several.then(|| hosts.into_iter().map(|(_, workers)| workers).collect())
    }

    /// The newest copy of the state that these seats can go on from, if it is no older than a checkpoint after so many
    /// steps. Otherwise all copies are forgotten. To be called when no worker works.
    pub(crate) fn newest_copy(&self, seats: &[usize], step: u64) -> Option<StateCopy> {
        let in_memory = self.copies.as_ref().map(|(copies, _)| copies.shares());
        let shared = in_memory.as_ref().map(|shares| vec![&shares[..]]);
        let held = || seats.iter().map(|&seat| &self.members[seat].held[..]);
        let shares = shared.unwrap_or_else(|| held().collect());
        let newest = newest_held(&shares).filter(|newest| newest.stamp.step >= step);
        if let (None, Some((copies, _))) = (&newest, &self.copies) {
            copies.clear();
        }
        newest.map(|newest| StateCopy {
            number: newest.number,
            step: newest.stamp.step,
            stamp: newest.stamp.stamp,
            holders: match self.copies {
                Some(_) => Vec::new(),
                None => newest.holders,
            },
        })
    }

    /// Where the worker of a seat copies its state to, where that is done at all.
    fn copy_place(&self, seat: usize, begin: &StartingPoint) -> Option<CopyPlace> {
        let (_, every_step) = self.settings.copies?;
        let memory = match (&self.copies, self.members[seat].memory) {
            (Some((_, at)), Some(fd)) => CopyMemory::Shared { fd, at: *at },
            _ if self.settings.carrier.is_of_processes() => {
                let members = begin.seats.iter().map(|&seat| &self.members[seat]);
                let hosts = members.map(|member| member.memory_domain.as_deref());
                CopyMemory::Processes {
                    keepers: keepers(&hosts.collect::<Vec<_>>()),
                }
            }
            _ => return None,
        };
        Some(CopyPlace {
            memory,
            from: begin.copy.clone(),
            every_step,
        })
    }

    /// Prepares the exchange of a generation, and returns what each of its seats is told, by rank.
    pub(crate) fn begin(&mut self, begin: &StartingPoint) -> Result<Vec<Assignment>, EngineError> {
        let workers = begin.seats.len();
        self.control = match (&self.segment, self.settings.plan) {
            (Some(segment), Some(plan)) if workers > 1 && self.settings.carrier == Carrier::Shm => {
                let plan = plan.for_workers(workers)?;
                Some(ShmControl::new(segment, &plan, begin.generation)?)
            }
            _ => None,
        };
        let peers = (begin.seats.iter()).filter_map(|&seat| self.members[seat].peer_address);
        let peers = MeshPeer::for_all(&peers.collect::<Vec<SocketAddr>>())?;
        let peers = |rank: usize| serde_json::to_value(&peers[rank]).expect("keys are plain data");
        let hosts = self.hosts(&begin.seats);
        let encrypt = self.settings.encrypt;
        let learner = (self.settings.learner)(workers);
        let assignment = |(rank, &seat): (usize, &usize)| Assignment {
            kind: self.settings.kind.to_owned(),
            learner: learner.clone(),
            run_dir: self.settings.run_dir.clone(),
            incarnation: begin.incarnation.clone(),
            rank,
            workers,
            generation: begin.generation,
            transport: match self.members[seat].memory {
                _ if self.settings.carrier == Carrier::Own => Transport::Own,
                _ if workers == 1 => Transport::Solo,
                Some(fd) => Transport::Shm { fd },
                None => match hosts.clone() {
                    None => Transport::Tcp {
                        peers: peers(rank),
                        encrypt,
                    },
                    Some(hosts) => Transport::Hosts {
                        hosts,
                        peers: peers(rank),
                        encrypt,
                    },
                },
            },
            deadline_s: self.settings.deadline_s,
            resume: begin.resume.clone(),
            max_steps: self.settings.max_steps,
            step_times: self.settings.step_times,
            profile: self.settings.profile,
            catch_up: begin.catch_up,
            copies: self.copy_place(seat, begin),
        };
        Ok(begin.seats.iter().enumerate().map(assignment).collect())
    }

    /// Tells those who wait in shared memory that `rank` died, or that the step is called off.
    pub(crate) fn call_off(&self, lost: Option<usize>) {
        match (&self.control, lost) {
            (Some(control), Some(rank)) => control.lost(rank),
            (Some(control), None) => control.abort(),
            // Over TCP they see its connections close.
            (None, _) => {}
        }
    }
}

impl Drop for GangWorkers<'_> {
    fn drop(&mut self) {
        self.launcher.end_all();
    }
}
