//! Where workers run: the little that is asked of a machine, a cluster or a cloud.
//!
//! A [`Launcher`] starts a worker on a seat, ends it, tells through one channel what happens to it, and
//! describes it for people. Who is in a gang, generations, recovery and records stand above this and are
//! written once. A child process of this one is the first implementation
//! ([`LocalLauncher`]); every implementation runs the suite in `conformance`.
//!
//! A worker is known by its seat and its incarnation, never by a process id: ids mean nothing on another
//! machine, and are used again.

pub mod conformance;
pub mod hosts;
mod lines;
mod local;
pub mod ray;
pub mod remote;
mod worker_end;

pub use lines::LineSplitter;
pub use local::LocalLauncher;
pub use worker_end::WorkerEnd;

use lockstep_gang::Segment;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

/// The hidden command that makes the program a member of a gang.
pub const GANG_WORKER: &str = "worker";

/// The hidden command that makes the program a worker that takes tasks.
pub const TASK_WORKER: &str = "task-worker";

/// The hidden command that says what a node sees of what a run needs.
pub const NODE_CHECK: &str = "node-check";

/// All hidden commands that make the program a worker of some kind.
pub const COMMANDS: [&str; 3] = [GANG_WORKER, TASK_WORKER, NODE_CHECK];

/// One worker: the seat that it sits on, and how many workers have sat there, counting it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct WorkerId {
    /// Its seat, which stays the same when a worker is replaced.
    pub seat: usize,
    /// Counted from 1 on each seat.
    pub incarnation: u32,
}

impl WorkerId {
    /// The one that takes this one's seat next.
    pub fn successor(self) -> Self {
        Self {
            incarnation: self.incarnation + 1,
            ..self
        }
    }
}

/// What a worker is started with.
#[derive(Debug)]
pub struct WorkerSpec<'a> {
    /// Who it is.
    pub id: WorkerId,
    /// The hidden command of the program that makes it a worker of this kind.
    pub command: &'static str,
    /// One line that it is told in private, before anything else. It holds a secret: arguments and
    /// environment are no way to pass it on, since others may read them.
    pub invitation: String,
    /// Whether its standard output carries messages, each a line of any length, that are heard as
    /// [`WorkerEvent::Said`]. Without, both of its streams are for people.
    pub speaks: bool,
    /// Memory that it shares with the others; only where the [site](Launcher::site) has such.
    pub memory: Option<&'a Segment>,
}

/// What is known of a worker as soon as it is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Launched {
    /// Its process id, if it is known already. It is told to people, and identifies nobody.
    pub pid: Option<u32>,
    /// The number of the descriptor under which it has the shared memory.
    pub memory: Option<RawFd>,
}

/// One thing that happened to one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchNotice {
    /// Which worker.
    pub id: WorkerId,
    /// What.
    pub what: WorkerEvent,
}

/// What can happen to a worker, as its launcher sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEvent {
    /// It is a process now, with this id; told where [`Launched`] could not say it.
    Started(u32),
    /// It said a message, without the end of its line.
    Said(String),
    /// It wrote a line for people, without its end.
    Wrote(String),
    /// It is about to be taken away, for this reason, as when its node is drained. It still runs.
    Leaving(String),
    /// All that it said and wrote was told.
    OutputEnded,
    /// It ended.
    Ended(WorkerEnd),
}

/// Where notices go, from any thread. False when nobody hears them any more.
pub type Notify = Arc<dyn Fn(LaunchNotice) -> bool + Send + Sync>;

/// What came of ending a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is gone, or will be in a moment: its end will be told.
    Certain,
    /// It may still run, as when its machine cannot be reached. It ends itself when its
    /// [lease](Site::leased) runs out.
    Unknown,
}

/// What holds for all workers of a launcher: how they are reached, and what can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Where the coordinator listens for them; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address under which they reach it, if it is another than it listens at.
    pub advertise: Option<IpAddr>,
    /// The address at which a worker listens for its peers. If it is unspecified (`0.0.0.0`), its peers
    /// are told the one from which it reaches the coordinator.
    pub peers: IpAddr,
    /// Whether workers can be given shared memory: they are on the coordinator's host.
    pub shares_memory: bool,
    /// Whether ending a worker may fail without anybody knowing, so that workers must end themselves when
    /// they have not heard the coordinator for so long.
    pub leased: bool,
}

impl Site {
    /// One host: all speak over the loopback device, share memory, and can be ended for certain.
    pub const ONE_HOST: Self = Self {
        listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
        advertise: None,
        peers: IpAddr::V4(Ipv4Addr::LOCALHOST),
        shares_memory: true,
        leased: false,
    };

    /// Where workers reach a coordinator that listens at `bound`.
    pub fn reached_at(&self, bound: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.advertise.unwrap_or(bound.ip()), bound.port())
    }
}

/// Why a worker could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start worker {seat} as `{program}`: {source}")]
pub struct LaunchError {
    /// The seat.
    pub seat: usize,
    /// What was to run there.
    pub program: String,
    /// Why it could not.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Why no worker can be started at all.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NotReady(#[from] pub Box<dyn Error + Send + Sync>);

/// Starts workers and ends them. See the [module](self) for what stands above it.
///
/// # Guarantees
/// - What happens to a worker is told in order: what it said and wrote, then [`WorkerEvent::OutputEnded`];
///   and [`WorkerEvent::Ended`] once, before or after that.
/// - Notices carry the worker's identity, so that nobody takes a late word of one that was replaced for
///   one of its successor.
/// - No worker outlives the launcher: dropping it ends all of them, as far as they can be ended.
pub trait Launcher {
    /// Waits until workers can be started, at most for `deadline`, and returns whether they can: not when
    /// `waiting`, which is told every so often what is waited for, returned false. Nothing else may be asked of a
    /// launcher before. Once it is ready, it stays so.
    ///
    /// # Errors
    /// When workers cannot be started, or not within the deadline. The words say why, and what would help.
    fn ready(
        &mut self,
        deadline: Duration,
        waiting: &mut dyn FnMut(Option<String>) -> bool,
    ) -> Result<bool, NotReady> {
        let _ = (deadline, waiting);
        Ok(true)
    }

    /// The seats that workers can be started on now, and the node that each is on, where workers are on several
    /// machines: what one of them has, another may lack. Empty where all are on this one.
    fn nodes(&self) -> Vec<(usize, String)> {
        Vec::new()
    }

    /// Starts a worker. The one before it on its seat, if any, is gone or was [ended](Self::end).
    ///
    /// # Errors
    /// When it cannot be started. Nothing is told of it then, and others keep running.
    fn start(&mut self, spec: &WorkerSpec<'_>, notify: Notify) -> Result<Launched, LaunchError>;

    /// Sends a line to a worker that was started to [speak](WorkerSpec::speaks). One that cannot hear any
    /// more is told of by its end.
    fn tell(&mut self, id: WorkerId, line: &str);

    /// Ends a worker at once. One that is gone already is left alone.
    fn end(&mut self, id: WorkerId) -> Ending;

    /// Ends all workers at once, and returns when they are gone, as far as that can be known.
    fn end_all(&mut self);

    /// The worker in words, for people: where it runs, such as `pid 123`.
    fn describe(&self, id: WorkerId) -> String;

    /// How workers are reached, and what can be relied on.
    fn site(&self) -> Site;
}
