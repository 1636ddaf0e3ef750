//! The coordinator's loop: hears the workers, keeps the record, replaces who is lost, and ends the gang.
//!
//! All that happens to a gang arrives as [`Notice`]s at one place, one after the other, so nothing
//! here needs a lock. What follows from it the [`Roll`] decides. Every wait has a deadline; whatever way
//! the loop ends, all workers are gone.

use super::blame::{Blame, Sign, describe_exit};
use super::fold::Folder;
use super::losses::Losses;
use super::member::Member;
use super::muster::{Beginning, Muster};
use super::notice::{Notice, listen};
use super::record::Record;
use super::roll::{News, Order, Place, Roll};
use crate::{EngineError, Stop, StopFlag, describe};
use lockstep_events::control::{Finished, FromWorker, ToWorker};
use lockstep_events::event::{Event, Restart};
use lockstep_gang::{Hello, Link};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How long workers may take from being started to having joined.
pub(super) const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long after the first sign of a failure its cause is waited for.
const CAUSE_DEADLINE: Duration = Duration::from_secs(1);
/// How long workers may take to finish a step and write the state when they are asked to stop.
const STOP_DEADLINE: Duration = Duration::from_secs(60);
/// How long a worker may take to end after it was dismissed.
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
    pub(super) muster: Muster<'a>,
    pub(super) roll: Roll,
    pub(super) members: Vec<Member>,
    pub(super) notices: Receiver<Notice>,
    pub(super) record: Record,
    pub(super) stop: StopFlag,
    /// When the command started.
    pub(super) started_at: Instant,
    /// How long a silent worker is waited for.
    pub(super) deadline: Duration,
    /// The state that a generation can go on from now, and what people should know about it.
    pub(super) resume_point: &'a dyn Fn() -> Result<(Option<PathBuf>, Vec<String>), EngineError>,
    pub(super) events: &'a mut dyn FnMut(Event),
    pub(super) folder: Folder,
    pub(super) blame: Blame,
    pub(super) losses: Losses,
    /// When the first step was done by all, in seconds after `started_at`.
    pub(super) first_step_s: Option<f64>,
    /// Epochs that were trained completely.
    pub(super) epochs: u32,
    /// How the gang ended, once that is decided.
    pub(super) decided: Option<Decision>,
}

/// How the supervision ends, before the workers' last words are compared.
pub(super) enum Decision {
    Conclude,
    GiveUp,
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
        self.muster.crew.kill();
        match (outcome, self.drain()) {
            (Ok(Outcome::Failed(first)), Err(second)) => {
                Ok(Outcome::Failed(in_turn(&first, &second)))
            }
            (Ok(_), Err(error)) => Err(error),
            (outcome, _) => outcome,
        }
    }

    fn watch_until_decided(&mut self) -> Result<Outcome, EngineError> {
        let mut stopping = None;
        loop {
            if let Ok(notice) = self.notices.recv_timeout(TICK) {
                self.take(notice)?;
            } else {
                self.look_for_silence()?;
            }
            self.emit_logs(false);
            match self.decided {
                None => {}
                Some(Decision::Conclude) => return self.conclude(),
                Some(Decision::GiveUp) => {
                    self.hear_the_cause()?;
                    return Ok(Outcome::Failed(self.verdict()));
                }
            }
            match self.stop.get() {
                Stop::No => (),
                Stop::Now => return Ok(Outcome::Killed),
                Stop::Graceful if self.roll.generation() == 0 => return Ok(Outcome::Killed),
                Stop::Graceful => {
                    if stopping.is_none() {
                        (self.events)(Event::Stopping);
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

    /// Waits a moment for the reason of a failure, if only its consequences are known.
    fn hear_the_cause(&mut self) -> Result<(), EngineError> {
        let by = Instant::now() + CAUSE_DEADLINE;
        let is_gone = |members: &[Member], seat: usize| members[seat].is_gone();
        while !self
            .blame
            .cause()
            .is_some_and(|seat| is_gone(&self.members, seat))
        {
            let left = by.saturating_duration_since(Instant::now());
            match self.notices.recv_timeout(left) {
                Ok(notice) => self.take(notice)?,
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Dismisses the workers, who are done, and compares what they came to.
    fn conclude(&mut self) -> Result<Outcome, EngineError> {
        for member in &self.members {
            if let Some(link) = &member.link {
                link.close();
            }
        }
        let by = Instant::now() + EXIT_DEADLINE;
        while !self.members.iter().all(|member| member.has_ended()) {
            let left = by.saturating_duration_since(Instant::now());
            match self.notices.recv_timeout(left) {
                Ok(notice) => self.take(notice)?,
                Err(_) => break,
            }
        }
        self.losses.end();
        Ok(self.agreement())
    }

    /// Finds those who should have answered by now. Called when there is nothing else to hear, so that
    /// time in which this process itself was stopped does not count against the workers.
    fn look_for_silence(&mut self) -> Result<(), EngineError> {
        for seat in 0..self.members.len() {
            let member = &mut self.members[seat];
            member.silent_for += TICK;
            let patience = match self.roll.place(seat) {
                Place::Starting if member.has_ended() => continue,
                Place::Starting => START_DEADLINE,
                // Others have waited for it in vain already.
                Place::Working if self.roll.is_calling_off() && self.blame.is_awaited(seat) => {
                    CAUSE_DEADLINE
                }
                Place::Working => self.deadline + CAUSE_DEADLINE,
                _ => continue,
            };
            if member.silent_for > patience && !member.killed {
                if self.roll.generation() == 0 {
                    return Err(EngineError::StartDeadline {
                        rank: seat,
                        pid: self.muster.crew.pid(seat),
                        seconds: START_DEADLINE.as_secs(),
                    });
                }
                if self.roll.place(seat) == Place::Working {
                    let seconds = patience.as_secs_f64();
                    self.blame.note(seat, Sign::Silent { seconds });
                }
                self.follow(seat, News::Overdue)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, notice: Notice) -> Result<(), EngineError> {
        match notice {
            Notice::Joined { hello, link } => self.join(hello, link)?,
            Notice::Line { rank, line } => {
                self.record.log(rank, &line)?;
                self.members[rank].hear(&line);
                let pid = self.muster.crew.pid(rank);
                self.folder.push(rank, pid, line, Instant::now());
            }
            Notice::OutputEnded { rank } => {
                self.members[rank].output_ended = true;
                self.judge_exit(rank)?;
            }
            Notice::Exited { rank } => {
                let status = self.muster.crew.reap(rank);
                let status = status.map_err(|source| EngineError::System {
                    what: "learn how a worker ended",
                    source,
                })?;
                self.members[rank].exit = Some(status);
                if self.roll.place(rank) == Place::Working {
                    let lost = self.roll.ranks().position(|seat| seat == rank);
                    self.muster.call_off(lost);
                }
                self.judge_exit(rank)?;
            }
            Notice::Said { rank, message } => self.hear(rank, message)?,
            Notice::LinkEnded { rank, error } => {
                self.members[rank].link_ended = true;
                if self.members[rank].finished.is_none() && self.decided.is_none() {
                    self.blame.note(rank, Sign::LinkLost(error));
                }
                self.judge_exit(rank)?;
            }
        }
        Ok(())
    }

    /// An exit is judged only when all that the worker said was heard: its last words may be that it
    /// finished, or why it could not.
    fn judge_exit(&mut self, seat: usize) -> Result<(), EngineError> {
        let member = &mut self.members[seat];
        if !member.is_gone() || member.judged {
            return Ok(());
        }
        member.judged = true;
        let Some(status) = member.exit else {
            return Ok(());
        };
        if member.finished.is_none() {
            self.blame.note(seat, Sign::Exited(status));
        } else if !status.success() {
            let end = describe_exit(status);
            let message = format!("worker {seat} finished its work, but was then {end}");
            (self.events)(Event::Warning { message });
        }
        self.follow(seat, News::Ended)
    }

    fn join(&mut self, hello: Hello, link: Link) -> Result<(), EngineError> {
        let Hello { rank, pid, .. } = hello;
        let expected = rank < self.members.len()
            && pid == self.muster.crew.pid(rank)
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
        listen(rank, reader, self.muster.notices.clone()).map_err(system)?;
        self.members[rank].link = Some(writer);
        self.members[rank].peer_address = hello.listener;
        (self.events)(Event::Worker { rank, pid });
        self.follow(rank, News::Joined)
    }

    fn hear(&mut self, seat: usize, message: FromWorker) -> Result<(), EngineError> {
        self.members[seat].silent_for = Duration::ZERO;
        match message {
            FromWorker::Alive => {}
            FromWorker::FirstStep { step } => {
                self.members[seat].first_step = true;
                let mut ranks = self.roll.ranks();
                if ranks.next() == Some(seat) {
                    self.losses.resumed(step);
                }
                if self.first_step_s.is_none() && self.members.iter().all(|m| m.first_step) {
                    let seconds = self.started_at.elapsed().as_secs_f64();
                    self.first_step_s = Some(seconds);
                    (self.events)(Event::FirstStep { seconds });
                }
            }
            FromWorker::CaughtUp => self.losses.caught_up(),
            FromWorker::Progress(progress) => {
                let before = u64::from(progress.epoch - 1) * progress.steps;
                self.losses.reached(before + progress.step);
                (self.events)(Event::Progress(progress));
            }
            FromWorker::Epoch(epoch) => {
                self.losses.reached(epoch.step);
                // One that is trained again comes to what it came to before.
                if epoch.epoch > self.epochs {
                    self.record.epoch(&epoch)?;
                    self.epochs = epoch.epoch;
                    (self.events)(Event::Epoch(epoch));
                }
            }
            FromWorker::Finished(finished) => {
                self.members[seat].finished = Some(finished);
                self.follow(seat, News::Finished)?;
            }
            FromWorker::Warning { words: message } => (self.events)(Event::Warning { message }),
            FromWorker::Failed {
                error,
                peer_lost,
                waiting_for,
                step,
            } => {
                self.losses.reached(step);
                // A worker says this only here, so that nobody reads it twice; its log has it too.
                let logged = self.record.log(seat, &format!("error: {error}"));
                if peer_lost {
                    let waiting_for = waiting_for.and_then(|rank| self.roll.ranks().nth(rank));
                    self.blame.note(seat, Sign::PeerLost { error, waiting_for });
                    self.follow(seat, News::Stopped)?;
                } else {
                    // It would fail again for the same reason.
                    self.blame.note(seat, Sign::Reported(error));
                    self.decided = Some(Decision::GiveUp);
                }
                logged?;
            }
        }
        Ok(())
    }

    /// Tells the roll, and does what it says.
    fn follow(&mut self, seat: usize, news: News) -> Result<(), EngineError> {
        if self.decided.is_some() {
            return Ok(());
        }
        let mut orders: VecDeque<(usize, Order)> = VecDeque::new();
        let heard = |orders: Vec<Order>| orders.into_iter().map(move |order| (seat, order));
        orders.extend(heard(self.roll.hear(seat, news)));
        while let Some((_, order)) = orders.pop_front() {
            match order {
                Order::CallOff => self.call_off(),
                Order::Kill(seat) => {
                    self.members[seat].killed = true;
                    self.muster.crew.kill_one(seat);
                }
                Order::Start(seat) => {
                    if let Err(error) = self.replace(seat) {
                        let message = describe(&error);
                        (self.events)(Event::Warning { message });
                        orders.extend(heard(self.roll.hear(seat, News::Ended)));
                    }
                }
                Order::Begin(seats) => self.begin(seats)?,
                Order::Conclude => self.decided = Some(Decision::Conclude),
                Order::GiveUp => self.decided = Some(Decision::GiveUp),
            }
        }
        Ok(())
    }

    fn call_off(&mut self) {
        self.losses.began();
        // One that died was named when its process ended.
        if !self.members.iter().any(Member::has_ended) {
            self.muster.call_off(None);
        }
        let generation = self.roll.generation();
        for seat in 0..self.members.len() {
            if self.roll.place(seat) == Place::Working {
                self.members[seat].silent_for = Duration::ZERO;
                self.tell(seat, &ToWorker::CallOff { generation });
            }
        }
    }

    fn replace(&mut self, seat: usize) -> Result<(), EngineError> {
        self.emit_logs(true);
        self.members[seat].renew();
        let started = self.muster.start(seat, self.roll.generation());
        if started.is_err() {
            // Nothing will be heard of it.
            self.members[seat].never_started();
        }
        started
    }

    fn begin(&mut self, seats: Vec<usize>) -> Result<(), EngineError> {
        let generation = self.roll.generation();
        let (resume, warnings) = (self.resume_point)()?;
        for message in warnings.into_iter().filter(|_| generation > 1) {
            (self.events)(Event::Warning { message });
        }
        let peers = seats
            .iter()
            .filter_map(|&seat| self.members[seat].peer_address);
        let beginning = Beginning {
            generation,
            peers: peers.collect(),
            resume,
            catch_up: self.losses.furthest(),
            seats,
        };
        if generation > 1 {
            let restart = Restart {
                restart: self.losses.count_restart(),
                workers: beginning.seats.len(),
                reason: self.verdict(),
                from: beginning.resume.clone(),
            };
            self.blame = Blame::default();
            (self.events)(Event::Restart(restart));
        }
        let assignments = self.muster.begin(&beginning)?;
        for (&seat, assignment) in beginning.seats.iter().zip(assignments) {
            let member = &mut self.members[seat];
            member.silent_for = Duration::ZERO;
            self.tell(seat, &ToWorker::Begin(Box::new(assignment)));
        }
        if self.stop.get() == Stop::Graceful {
            self.ask_to_stop();
        }
        Ok(())
    }

    fn tell(&mut self, seat: usize, message: &ToWorker) {
        if let Some(link) = &mut self.members[seat].link {
            // A link that cannot be written to is at its end, which its reader reports.
            let _ = link.send(message);
        }
    }

    fn ask_to_stop(&mut self) {
        for seat in 0..self.members.len() {
            self.tell(seat, &ToWorker::Stop);
        }
    }

    /// What all workers' last words come to: they must agree on the weights.
    fn agreement(&self) -> Outcome {
        let ends = self.members.iter().enumerate();
        let mut ends = ends.filter_map(|(seat, member)| Some((seat, member.finished.as_ref()?)));
        let (first_seat, first) = ends.next().expect("somebody finished");
        for (seat, end) in ends {
            if end.weights_sha256 != first.weights_sha256 {
                return Outcome::Failed(format!(
                    "workers {first_seat} and {seat} ended with different weights ({} and {}): this is a bug",
                    first.weights_sha256, end.weights_sha256
                ));
            }
        }
        Outcome::Finished(first.clone())
    }

    /// Who failed first, and why.
    fn verdict(&self) -> String {
        let Some(seat) = self.blame.culprit() else {
            return "the gang failed".to_string();
        };
        let pid = self.muster.crew.pid(seat);
        let reason = self.blame.reason(seat);
        let mut verdict = format!("worker {seat} (pid {pid}) failed first: {reason}");
        if let Some(line) = &self.members[seat].last_line
            && self.blame.has_last_words(seat)
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
        let seat = slow.unwrap_or(0);
        let pid = self.muster.crew.pid(seat);
        let seconds = STOP_DEADLINE.as_secs();
        format!("worker {seat} (pid {pid}) did not stop within {seconds} s of being asked to")
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
                Ok(notice @ Notice::Line { .. }) => self.take(notice)?,
                Ok(Notice::OutputEnded { rank }) => self.members[rank].output_ended = true,
                Ok(_) => (),
                // Something that a worker started still holds the pipe open.
                Err(_) => break,
            }
        }
        self.emit_logs(true);
        Ok(())
    }
}
