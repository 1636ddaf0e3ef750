//! What the coordinator knows of one worker.

use lockstep_events::control::Finished;
use lockstep_gang::LinkWriter;
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::Duration;

/// How much of a worker's last line is repeated in an error.
const LAST_LINE: usize = 300;

/// One worker of a gang.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// The link to it, once it joined.
    pub(super) link: Option<LinkWriter>,
    /// Where its peers reach it, over TCP.
    pub(super) peer_address: Option<SocketAddr>,
    /// It has done its first optimizer step.
    pub(super) first_step: bool,
    /// Its last report.
    pub(super) finished: Option<Finished>,
    /// All that it said over the link was heard.
    pub(super) link_ended: bool,
    /// All that it wrote was read.
    pub(super) output_ended: bool,
    /// How its process ended.
    pub(super) exit: Option<ExitStatus>,
    /// Its end was judged.
    pub(super) judged: bool,
    /// It was ended by the coordinator.
    pub(super) killed: bool,
    /// How long it has said nothing.
    pub(super) silent_for: Duration,
    /// The last line that it wrote and that says something.
    pub(super) last_line: Option<String>,
}

impl Member {
    /// Whether it has proven that it belongs to the gang.
    pub(super) fn has_joined(&self) -> bool {
        self.link.is_some()
    }

    /// Whether it ended, and everything that it left was taken in.
    pub(super) fn is_gone(&self) -> bool {
        let link_ended = self.link_ended || !self.has_joined();
        self.exit.is_some() && self.output_ended && link_ended
    }

    /// Whether its process ended.
    pub(super) fn has_ended(&self) -> bool {
        self.exit.is_some()
    }

    /// A new process takes the place of the one that ended.
    pub(super) fn renew(&mut self) {
        *self = Self {
            first_step: self.first_step,
            ..Self::default()
        };
    }

    /// The new process could not be started: nothing will be heard of it.
    pub(super) fn never_started(&mut self) {
        self.exit = Some(ExitStatus::default());
        self.output_ended = true;
        self.judged = true;
    }

    /// Remembers a line as its last.
    pub(super) fn hear(&mut self, line: &str) {
        if !line.trim().is_empty() {
            self.last_line = Some(line.trim().chars().take(LAST_LINE).collect());
        }
    }
}
