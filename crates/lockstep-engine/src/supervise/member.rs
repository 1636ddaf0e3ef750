//! What the coordinator knows of one worker.

use lockstep_events::control::Finished;
use lockstep_gang::{HeldShare, LinkWriter};
use lockstep_launch::{Launched, WorkerEnd, WorkerId};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// How much of a worker's last line is repeated in an error.
const LAST_LINE: usize = 300;

/// One worker of a gang.
#[derive(Debug, Default)]
pub(crate) struct Member {
    /// Who it is.
    pub(crate) id: WorkerId,
    /// Its process id, for people; 0 while it is not known.
    pub(crate) pid: u32,
    /// The number of the descriptor under which it has the shared memory.
    pub(crate) memory: Option<RawFd>,
    /// The link to it, once it joined.
    pub(crate) link: Option<LinkWriter>,
    /// Where its peers reach it, over TCP.
    pub(crate) peer_address: Option<SocketAddr>,
    /// Which other workers it can share memory with: those of whom the same is known.
    pub(crate) memory_domain: Option<String>,
    /// The shares of copies of the state that its process holds, since it stopped working.
    pub(crate) held: Vec<HeldShare>,
    /// It has done its first optimizer step.
    pub(crate) first_step: bool,
    /// Its last report.
    pub(crate) finished: Option<Finished>,
    /// All that it said over the link was heard.
    pub(crate) link_ended: bool,
    /// All that it wrote was read.
    pub(crate) output_ended: bool,
    /// How it ended.
    pub(crate) end: Option<WorkerEnd>,
    /// Its end was judged.
    pub(crate) judged: bool,
    /// It was ended by the coordinator.
    pub(crate) killed: bool,
    /// It was sent home in good order.
    pub(crate) dismissed: bool,
    /// Nobody knows whether it was: its lease runs out at this time.
    pub(crate) lease_until: Option<Instant>,
    /// How long it has said nothing.
    pub(crate) silent_for: Duration,
    /// Samples a second, as it last reported.
    pub(crate) samples_per_s: f64,
    /// How far its work is, in a count that only grows while it works.
    pub(crate) progress: u64,
    /// How long that has stood still.
    pub(crate) still_for: Duration,
    /// The last line that it wrote and that says something.
    pub(crate) last_line: Option<String>,
}

impl Member {
    /// A worker that was not started yet.
    pub(crate) fn new(id: WorkerId) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// The one that takes its seat next.
    pub(crate) fn successor(&self) -> Self {
        Self {
            first_step: self.first_step,
            ..Self::new(self.id.successor())
        }
    }

    /// It was started.
    pub(crate) fn launched(&mut self, launched: Launched) {
        self.pid = launched.pid.unwrap_or(0);
        self.memory = launched.memory;
    }

    /// Sends it home: it ends when its link does.
    pub(crate) fn dismiss(&mut self) {
        self.dismissed = true;
        self.is_fresh();
        if let Some(link) = &self.link {
            link.close();
        }
    }

    /// It could not be started: nothing will be heard of it.
    pub(crate) fn never_started(&mut self) {
        self.gone(WorkerEnd::Unknown);
        self.judged = true;
    }

    /// It is out of reach and does not run any more: nothing will be heard of it.
    pub(crate) fn gone(&mut self, end: WorkerEnd) {
        if let Some(link) = &self.link {
            link.close();
        }
        self.end = Some(end);
        self.output_ended = true;
        self.link_ended = true;
        self.lease_until = None;
    }

    /// Whether it has proven that it belongs to the gang.
    pub(crate) fn has_joined(&self) -> bool {
        self.link.is_some()
    }

    /// Whether it ended, and everything that it left was taken in.
    pub(crate) fn is_gone(&self) -> bool {
        let link_ended = self.link_ended || !self.has_joined();
        self.end.is_some() && self.output_ended && link_ended
    }

    /// Whether it ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Begins to count anew how long it is silent and stands still.
    pub(crate) fn is_fresh(&mut self) {
        self.silent_for = Duration::ZERO;
        self.still_for = Duration::ZERO;
    }

    /// It shows that it lives, and how far its work is.
    pub(crate) fn shows_life(&mut self, progress: u64) {
        self.silent_for = Duration::ZERO;
        if self.progress != progress {
            self.progress = progress;
            self.still_for = Duration::ZERO;
        }
    }

    /// Time passes in which nothing was heard of it.
    pub(crate) fn waits(&mut self, time: Duration) {
        self.silent_for += time;
        self.still_for += time;
    }

    /// Remembers a line as its last.
    pub(crate) fn hear(&mut self, line: &str) {
        if !line.trim().is_empty() {
            self.last_line = Some(line.trim().chars().take(LAST_LINE).collect());
        }
    }
}
