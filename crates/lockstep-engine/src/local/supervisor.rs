//! The coordinator's loop: hears the workers, keeps the record, and ends the gang.
//!
//! All that happens to a gang arrives as [`Notice`]s at one place, one after the other, so nothing
//! here needs a lock. Every wait has a deadline; whatever way the loop ends, all workers are gone.

use super::blame::{Blame, Sign, describe_exit};
use super::crew::Crew;
use super::fold::Folder;
use super::member::Member;
use super::notice::{Notice, listen};
use super::record::Record;
use crate::{EngineError, Stop, StopFlag, describe};
use lockstep_gang::{Hello, Link, ShmControl};
use lockstep_train::control::{Assignment, Finished, FromWorker, ToWorker};
use lockstep_train::event::Event;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

/// How long workers may take from being started to having joined.
pub(super) const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long after the first sign of a failure its cause is waited for.
const CAUSE_DEADLINE: Duration = Duration::from_secs(1);
/// How long workers may take to finish a step and write the state when they are asked to stop.
const STOP_DEADLINE: Duration = Duration::from_secs(60);
/// How long a worker may take to end after it said that it finished.
const EXIT_DEADLINE: Duration = Duration::from_secs(10);
/// How long the rest of the output of workers that are gone is waited for.
const OUTPUT_DEADLINE: Duration = Duration::from_secs(1);
/// How often wishes to stop, deadlines and waiting log lines are looked at.
const TICK: Duration = Duration::from_millis(20);

/// How a gang ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// All workers said that they finished, and agree on the weights.
    Finished(Finished),
    /// It was ended at once, as asked.
    Killed,
    /// A worker failed; the text says which one failed first, and why.
    Failed(String),
}

/// A failure and one that came after it, in one sentence.
pub(super) fn in_turn(first: &str, second: &EngineError) -> String {
    format!("{first}; after that: {}", describe(second))
}

/// One gang under supervision.
pub(super) struct Supervisor<'a> {
    pub(super) crew: Crew,
    /// Tells those who wait in shared memory that a worker died.
    pub(super) control: Option<ShmControl>,
    pub(super) members: Vec<Member>,
    pub(super) notices: Receiver<Notice>,
    /// For the threads that listen to links.
    pub(super) sender: SyncSender<Notice>,
    pub(super) record: Record,
    pub(super) stop: StopFlag,
    /// When the command started.
    pub(super) started_at: Instant,
    pub(super) generation: u16,
    /// Makes a worker's assignment from its rank and, over TCP, all workers' addresses.
    pub(super) assign: &'a dyn Fn(usize, Vec<SocketAddr>) -> Assignment,
    pub(super) events: &'a mut dyn FnMut(Event),
    pub(super) folder: Folder,
    pub(super) blame: Blame,
    /// When the first step was done by all, in seconds after `started_at`.
    pub(super) first_step_s: Option<f64>,
    /// Epochs that were trained completely.
    pub(super) epochs: u32,
}

impl Supervisor<'_> {
    /// Watches over the gang until it ended. No worker is left when this returns.
    pub(super) fn watch(&mut self) -> Result<Outcome, EngineError> {
        let outcome = match self.watch_until_decided() {
            // The workers' trouble came first, so it comes first.
            Err(error) if !self.blame.is_empty() => {
                Ok(Outcome::Failed(in_turn(&self.verdict(), &error)))
            }
            outcome => outcome,
        };
        self.crew.kill();
        match (outcome, self.drain()) {
            (Ok(Outcome::Failed(first)), Err(second)) => {
                Ok(Outcome::Failed(in_turn(&first, &second)))
            }
            (Ok(_), Err(error)) => Err(error),
            (outcome, _) => outcome,
        }
    }

    fn watch_until_decided(&mut self) -> Result<Outcome, EngineError> {
        let started = Instant::now();
        let mut trouble = None;
        let mut stopping = None;
        let mut finished = None;
        loop {
            if let Ok(notice) = self.notices.recv_timeout(TICK) {
                self.take(notice)?;
            }
            self.emit_logs(false);
            if !self.blame.is_empty() {
                let since = *trouble.get_or_insert_with(Instant::now);
                if self.is_settled() || since.elapsed() > CAUSE_DEADLINE {
                    return Ok(Outcome::Failed(self.verdict()));
                }
            } else if self.members.iter().all(|member| member.finished.is_some()) {
                let since = *finished.get_or_insert_with(Instant::now);
                let ended = self.members.iter().all(Member::is_gone);
                if ended || since.elapsed() > EXIT_DEADLINE {
                    return Ok(self.agreement());
                }
            } else if started.elapsed() > START_DEADLINE {
                self.require_all_joined()?;
            }
            match self.stop.get() {
                Stop::No => (),
                Stop::Now => return Ok(Outcome::Killed),
                Stop::Graceful if !self.members.iter().all(Member::has_joined) => {
                    return Ok(Outcome::Killed);
                }
                Stop::Graceful => {
                    if stopping.is_none() {
                        self.ask_to_stop();
                    }
                    let since = *stopping.get_or_insert_with(Instant::now);
                    if since.elapsed() > STOP_DEADLINE {
                        return Ok(Outcome::Failed(self.slow_to_stop()));
                    }
                }
            }
        }
    }

    /// Whether the worker that failed is known, and the others had their chance to end by themselves:
    /// those in a gang hear of it, those that still wait for theirs do not.
    fn is_settled(&self) -> bool {
        let is_gone = |rank: usize| self.members[rank].is_gone();
        let begun = self.members.iter().all(Member::has_joined);
        self.blame.cause().is_some_and(is_gone)
            && (!begun || self.members.iter().all(Member::is_gone))
    }

    fn take(&mut self, notice: Notice) -> Result<(), EngineError> {
        match notice {
            Notice::Joined { hello, link } => self.join(hello, link)?,
            Notice::Line { rank, line } => {
                self.record.log(rank, &line)?;
                self.members[rank].hear(&line);
                self.folder
                    .push(rank, self.crew.pid(rank), line, Instant::now());
            }
            Notice::OutputEnded { rank } => self.members[rank].output_ended = true,
            Notice::Exited { rank } => {
                let status = self.crew.reap(rank).map_err(|source| EngineError::System {
                    what: "learn how a worker ended",
                    source,
                })?;
                self.members[rank].exit = Some(status);
                self.judge_exit(rank);
            }
            Notice::Said { rank, message } => self.hear(rank, message)?,
            Notice::LinkEnded { rank, error } => {
                self.members[rank].link_ended = true;
                if self.members[rank].finished.is_none() {
                    self.blame.note(rank, Sign::LinkLost(error));
                }
                self.judge_exit(rank);
            }
        }
        Ok(())
    }

    /// An exit is judged only when all that the worker said was heard: its last words may be that it
    /// finished, or why it could not.
    fn judge_exit(&mut self, rank: usize) {
        let member = &self.members[rank];
        let Some(status) = member.exit else { return };
        if member.has_joined() && !member.link_ended {
            return;
        }
        if member.finished.is_none() {
            self.blame.note(rank, Sign::Exited(status));
            // Over TCP the others see its connections close.
            if let Some(control) = &self.control {
                control.lost(rank);
            }
        } else if !status.success() {
            let end = describe_exit(status);
            let message = format!("worker {rank} finished its work, but was then {end}");
            (self.events)(Event::Warning { message });
        }
    }

    fn join(&mut self, hello: Hello, link: Link) -> Result<(), EngineError> {
        let Hello { rank, pid, .. } = hello;
        let expected = rank < self.members.len()
            && hello.generation == self.generation
            && pid == self.crew.pid(rank)
            && !self.members[rank].has_joined();
        if !expected {
            let message = format!("a stranger asked to join as worker {rank} (pid {pid})");
            (self.events)(Event::Warning { message });
            return Ok(());
        }
        let (reader, writer) = link.split();
        let system = |source| EngineError::System {
            what: "listen to a worker",
            source,
        };
        listen(rank, reader, self.sender.clone()).map_err(system)?;
        self.members[rank].link = Some(writer);
        self.members[rank].peer_address = hello.listener;
        (self.events)(Event::Worker { rank, pid });
        if self.members.iter().all(Member::has_joined) {
            let peers: Vec<SocketAddr> = self
                .members
                .iter()
                .filter_map(|member| member.peer_address)
                .collect();
            for rank in 0..self.members.len() {
                let assignment = Box::new((self.assign)(rank, peers.clone()));
                self.tell(rank, &ToWorker::Begin(assignment));
            }
        }
        Ok(())
    }

    fn hear(&mut self, rank: usize, message: FromWorker) -> Result<(), EngineError> {
        match message {
            FromWorker::FirstStep => {
                self.members[rank].first_step = true;
                if self.first_step_s.is_none() && self.members.iter().all(|m| m.first_step) {
                    let seconds = self.started_at.elapsed().as_secs_f64();
                    self.first_step_s = Some(seconds);
                    (self.events)(Event::FirstStep { seconds });
                }
            }
            FromWorker::Warning { words } => (self.events)(Event::Warning { message: words }),
            FromWorker::Progress(progress) => (self.events)(Event::Progress(progress)),
            FromWorker::Epoch(epoch) => {
                self.record.epoch(&epoch)?;
                self.epochs = epoch.epoch;
                (self.events)(Event::Epoch(epoch));
            }
            FromWorker::Finished(finished) => self.members[rank].finished = Some(finished),
            FromWorker::Failed {
                error,
                peer_lost,
                waiting_for,
            } => {
                // A worker says this only here, so that nobody reads it twice; its log has it too.
                let logged = self.record.log(rank, &format!("error: {error}"));
                let sign = if peer_lost || waiting_for.is_some() {
                    Sign::PeerLost { error, waiting_for }
                } else {
                    Sign::Reported(error)
                };
                self.blame.note(rank, sign);
                logged?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, rank: usize, message: &ToWorker) {
        if let Some(link) = &mut self.members[rank].link {
            // A link that cannot be written to is at its end, which its reader reports.
            let _ = link.send(message);
        }
    }

    fn ask_to_stop(&mut self) {
        (self.events)(Event::Stopping);
        for rank in 0..self.members.len() {
            self.tell(rank, &ToWorker::Stop);
        }
    }

    fn require_all_joined(&self) -> Result<(), EngineError> {
        match self.members.iter().position(|member| !member.has_joined()) {
            None => Ok(()),
            Some(rank) => Err(EngineError::StartDeadline {
                rank,
                pid: self.crew.pid(rank),
                seconds: START_DEADLINE.as_secs(),
            }),
        }
    }

    /// What all workers' last words come to: they must agree on the weights.
    fn agreement(&self) -> Outcome {
        let mut ends = self
            .members
            .iter()
            .filter_map(|member| member.finished.as_ref());
        let first = ends
            .next()
            .expect("a gang has at least one worker, and all finished");
        for (other, end) in ends.enumerate() {
            if end.weights_sha256 != first.weights_sha256 {
                return Outcome::Failed(format!(
                    "workers 0 and {} ended with different weights ({} and {}): this is a bug",
                    other + 1,
                    first.weights_sha256,
                    end.weights_sha256
                ));
            }
        }
        Outcome::Finished(first.clone())
    }

    /// Who failed first, and why.
    fn verdict(&self) -> String {
        let Some(rank) = self.blame.culprit() else {
            return "the gang failed".to_string();
        };
        let pid = self.crew.pid(rank);
        let reason = self.blame.reason(rank);
        let mut verdict = format!("worker {rank} (pid {pid}) failed first: {reason}");
        if let Some(line) = &self.members[rank].last_line
            && self.blame.has_last_words(rank)
        {
            verdict += &format!("; the last it wrote was: {line}");
        }
        verdict
    }

    fn slow_to_stop(&self) -> String {
        let slow = self
            .members
            .iter()
            .position(|member| member.finished.is_none());
        let rank = slow.unwrap_or(0);
        let pid = self.crew.pid(rank);
        let seconds = STOP_DEADLINE.as_secs();
        format!("worker {rank} (pid {pid}) did not stop within {seconds} s of being asked to")
    }

    fn emit_logs(&mut self, all: bool) {
        let now = Instant::now();
        loop {
            let line = if all {
                self.folder.pop_any()
            } else {
                self.folder.pop(now)
            };
            match line {
                Some(line) => (self.events)(Event::Log(line)),
                None => return,
            }
        }
    }

    /// Takes in what the workers, who are gone by now, still wrote.
    fn drain(&mut self) -> Result<(), EngineError> {
        let by = Instant::now() + OUTPUT_DEADLINE;
        while !self.members.iter().all(|member| member.output_ended) {
            let left = by.saturating_duration_since(Instant::now());
            match self.notices.recv_timeout(left) {
                Ok(notice @ (Notice::Line { .. } | Notice::OutputEnded { .. })) => {
                    self.take(notice)?;
                }
                Ok(_) => (),
                // Something that a worker started still holds the pipe open.
                Err(_) => break,
            }
        }
        self.emit_logs(true);
        Ok(())
    }
}
