//! The coordinator's loop: hears the workers, keeps the record, replaces who is lost, and ends the gang.
//!
//! All that happens to a gang arrives as [`Notice`]s at one place, one after the other, so nothing
//! here needs a lock. What follows from it the [`GangState`] decides. Every wait has a deadline; whatever way
//! the loop ends, all workers are gone.

use super::fold::Folder;
use super::generation::{Beginning, Gang};
use super::losses::Losses;
use super::member::Member;
use super::notice::{Notice, listen};
use super::root_cause::{RootCause, Sign};
use super::state::{GangState, News, Order, Place};
use crate::launcher::{Ending, Happened, LaunchNotice, WorkerEnd, WorkerId};
use crate::record::Record;
use crate::resume::GenerationStart;
use crate::{EngineError, Stop, StopFlag, describe};
use lockstep_events::Recorded;
use lockstep_events::control::{Finished, FromWorker, ToWorker};
use lockstep_events::event::{Event, Restart};
use lockstep_gang::{Hello, Link};
use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

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
/// The most time that counts against workers between two looks: if it was more, this process was stopped.
const LONGEST_TICK: Duration = Duration::from_millis(100);
/// How often the workers are told that the coordinator lives, and how far the gang is.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// How a gang ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All workers said that they finished, and agree on the weights.
    Finished(Finished),
    /// It was ended at once, as asked.
    Killed,
    /// A worker failed; the text says which one failed first, and why.
    Failed(String),
}

/// A failure and one that came after it, in one sentence.
pub(crate) fn in_turn(first: &str, second: &EngineError) -> String {
    format!("{first}; after that: {}", describe(second))
}

/// What the supervision of a gang needs beside the gang itself.
pub(crate) struct Watch<'a> {
    pub(crate) notices: Receiver<Notice>,
    pub(crate) record: Record,
    pub(crate) stop: StopFlag,
    /// When the command started.
    pub(crate) started_at: Instant,
    /// How often the gang may begin again.
    pub(crate) max_restarts: u32,
    /// Epochs that were trained completely before.
    pub(crate) epochs: u32,
    /// The state that a generation can go on from now, and what people should know about it.
    pub(crate) begin_generation: &'a dyn Fn(u16) -> Result<GenerationStart, EngineError>,
    pub(crate) events: &'a mut dyn FnMut(Event),
}

/// One gang under supervision.
pub(crate) struct Supervisor<'a> {
    pub(crate) gang: Gang<'a>,
    watch: Watch<'a>,
    state: GangState,
    folder: Folder,
    root_cause: RootCause,
    pub(crate) losses: Losses,
    /// When the first step was done by all, in seconds after the start.
    pub(crate) first_step_s: Option<f64>,
    /// Epochs that were trained completely.
    pub(crate) epochs: u32,
    /// Who was lost first since the generation began, and why.
    lost: Option<String>,
    /// How the gang ended, once that is decided.
    decided: Option<Decision>,
    /// Events could not be recorded, and that was said.
    unrecorded: bool,
    /// When time was last counted.
    counted: Instant,
    /// When the workers were last told that the coordinator lives.
    told: Instant,
}

/// How the supervision ends, before the workers' last words are compared.
enum Decision {
    Conclude,
    GiveUp,
}

impl<'a> Supervisor<'a> {
    /// Over a gang whose workers were just started.
    pub(crate) fn new(gang: Gang<'a>, watch: Watch<'a>) -> Self {
        let workers = gang.members.len();
        Self {
            state: GangState::new(workers, watch.max_restarts, gang.settings.min_workers),
            folder: Folder::new(workers),
            root_cause: RootCause::default(),
            losses: Losses::default(),
            first_step_s: None,
            epochs: watch.epochs,
            lost: None,
            decided: None,
            unrecorded: false,
            counted: Instant::now(),
            told: Instant::now(),
            gang,
            watch,
        }
    }

    /// Whether any worker has done a step.
    pub(crate) fn has_trained(&self) -> bool {
        self.gang.members.iter().any(|member| member.first_step)
    }

    /// What the run writes.
    pub(crate) fn record(&mut self) -> &mut Record {
        &mut self.watch.record
    }

    /// Tells and records what happens.
    fn emit(&mut self, event: Event) {
        let event = Recorded::now(event);
        if let Err(error) = self.watch.record.event(&event)
            && !std::mem::replace(&mut self.unrecorded, true)
        {
            let message = format!("what happens is no longer recorded: {}", describe(&error));
            (self.watch.events)(Event::Warning { message });
        }
        (self.watch.events)(event.event);
    }

    /// Watches over the gang until it ended. No worker is left when this returns.
    pub(crate) fn watch(&mut self) -> Result<Outcome, EngineError> {
        let outcome = match self.watch_until_decided() {
            // The workers' trouble came first, so it comes first.
            Err(error) if !self.root_cause.is_empty() => {
                Ok(Outcome::Failed(in_turn(&self.verdict(), &error)))
            }
            outcome => outcome,
        };
        self.gang.launcher.end_all();
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
            if let Ok(notice) = self.watch.notices.recv_timeout(TICK) {
                self.take(notice)?;
            }
            self.count_time()?;
            self.show_life();
            self.emit_logs(false);
            match self.decided {
                None => {}
                Some(Decision::Conclude) => return self.conclude(),
                Some(Decision::GiveUp) => {
                    self.hear_the_cause()?;
                    return Ok(Outcome::Failed(self.verdict()));
                }
            }
            match self.watch.stop.get() {
                Stop::No => (),
                Stop::Now => return Ok(Outcome::Killed),
                Stop::Graceful if self.state.generation() == 0 => return Ok(Outcome::Killed),
                Stop::Graceful => {
                    if stopping.is_none() {
                        self.emit(Event::Stopping);
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
            .root_cause
            .cause()
            .is_some_and(|seat| is_gone(&self.gang.members, seat))
        {
            let left = by.saturating_duration_since(Instant::now());
            match self.watch.notices.recv_timeout(left) {
                Ok(notice) => self.take(notice)?,
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Dismisses the workers, who are done, and compares what they came to.
    fn conclude(&mut self) -> Result<Outcome, EngineError> {
        for member in &self.gang.members {
            if let Some(link) = &member.link {
                link.close();
            }
        }
        let by = Instant::now() + EXIT_DEADLINE;
        while !self.gang.members.iter().all(|member| member.has_ended()) {
            let left = by.saturating_duration_since(Instant::now());
            match self.watch.notices.recv_timeout(left) {
                Ok(notice) => self.take(notice)?,
                Err(_) => break,
            }
        }
        self.losses.end();
        Ok(self.agreement())
    }

    /// Counts the time that passed, and finds those who should have answered, got on or ended by now. Time
    /// in which this process itself was stopped does not count against the workers.
    fn count_time(&mut self) -> Result<(), EngineError> {
        let passed = self.counted.elapsed();
        if passed < TICK {
            return Ok(());
        }
        self.counted = Instant::now();
        for member in &mut self.gang.members {
            member.waits(passed.min(LONGEST_TICK));
        }
        for seat in 0..self.gang.members.len() {
            let member = &mut self.gang.members[seat];
            if member
                .lease_until
                .is_some_and(|until| until < Instant::now())
            {
                member.gone(WorkerEnd::Lost("its lease ran out".to_owned()));
                self.judge_end(seat)?;
            } else if !member.killed && !member.has_ended() {
                self.look_for_delay(seat)?;
            }
        }
        Ok(())
    }

    /// Finds out whether a worker takes too long: to join, to give a sign of life, or to get on.
    fn look_for_delay(&mut self, seat: usize) -> Result<(), EngineError> {
        let member = &self.gang.members[seat];
        match self.state.place(seat) {
            Place::Starting => {
                let patience = Duration::from_secs_f64(self.gang.settings.start_deadline_s);
                if member.silent_for <= patience {
                    return Ok(());
                }
                if self.state.generation() == 0 {
                    return Err(EngineError::StartDeadline {
                        worker: self.gang.describe(seat),
                        seconds: self.gang.settings.start_deadline_s,
                    });
                }
            }
            Place::Working => {
                let (silence, standstill) = self.patience(seat);
                let sign = if member.silent_for > silence {
                    let seconds = silence.as_secs_f64();
                    Sign::Silent { seconds }
                } else if member.still_for > standstill {
                    let seconds = standstill.as_secs_f64();
                    Sign::Stuck { seconds }
                } else {
                    return Ok(());
                };
                self.root_cause.note(seat, sign);
            }
            _ => return Ok(()),
        }
        self.follow(seat, News::Overdue)
    }

    /// How long a working member may say nothing, and how long it may get no further.
    ///
    /// A worker that waits for another gets no further, and says nothing of it until its own deadline
    /// strikes: so standing still counts only against one that others waited for in vain, or when all of
    /// them stand still and none complained.
    fn patience(&self, seat: usize) -> (Duration, Duration) {
        // What a peer says of it comes first: it learns of the gang's progress two heartbeats late.
        let deadline =
            Duration::from_secs_f64(self.gang.settings.deadline_s) + 2 * HEARTBEAT + CAUSE_DEADLINE;
        let awaited = self.root_cause.is_awaited(seat);
        match self.state.is_calling_off() {
            true if awaited => (CAUSE_DEADLINE, CAUSE_DEADLINE),
            true => (deadline, deadline),
            false => {
                let mut working =
                    (self.state.ranks()).filter(|seat| self.state.place(*seat) == Place::Working);
                let all = deadline + CAUSE_DEADLINE;
                let stand = working.all(|seat| self.gang.members[seat].still_for > all);
                (deadline, if stand { all } else { Duration::MAX })
            }
        }
    }

    /// Tells all workers, every so often, that the coordinator lives and how far the gang is. Only one that
    /// is as good as dead is told nothing, so that its lease runs out.
    fn show_life(&mut self) {
        if self.told.elapsed() < HEARTBEAT {
            return;
        }
        self.told = Instant::now();
        let members = self.gang.members.iter();
        let progress = members.fold(0u64, |sum, member| sum.wrapping_add(member.progress));
        for seat in 0..self.gang.members.len() {
            if !self.gang.members[seat].killed {
                self.tell(seat, &ToWorker::Alive { progress });
            }
        }
    }

    fn take(&mut self, notice: Notice) -> Result<(), EngineError> {
        match notice {
            Notice::Joined { id, hello, link } => self.join(id, hello, link),
            Notice::Refused(refusal) => {
                let message = refusal.to_string();
                self.emit(Event::Warning { message });
                Ok(())
            }
            Notice::Launcher(LaunchNotice { id, what }) => match self.is_present(id) {
                true => self.happened(id.seat, what),
                false => Ok(()),
            },
            Notice::Said { id, message } => match self.is_present(id) {
                true => self.hear(id.seat, message),
                false => Ok(()),
            },
            Notice::LinkEnded { id, error } => {
                if !self.is_present(id) {
                    return Ok(());
                }
                let member = &mut self.gang.members[id.seat];
                member.link_ended = true;
                if member.finished.is_none() && self.decided.is_none() {
                    self.root_cause.note(id.seat, Sign::LinkLost(error));
                }
                self.judge_end(id.seat)
            }
        }
    }

    /// Whether this is the worker that has its seat now. The last words of one that was replaced count no
    /// more.
    fn is_present(&self, id: WorkerId) -> bool {
        let member = self.gang.members.get(id.seat);
        member.is_some_and(|member| member.id == id)
    }

    fn happened(&mut self, seat: usize, what: Happened) -> Result<(), EngineError> {
        match what {
            Happened::Wrote(line) | Happened::Said(line) => {
                self.watch.record.log(seat, &line)?;
                let member = &mut self.gang.members[seat];
                member.hear(&line);
                self.folder.push(seat, member.pid, line, Instant::now());
                return Ok(());
            }
            Happened::OutputEnded => self.gang.members[seat].output_ended = true,
            Happened::Ended(end) => {
                self.gang.members[seat].end = Some(end);
                if self.state.place(seat) == Place::Working {
                    let lost = self.state.ranks().position(|ranked| ranked == seat);
                    self.gang.call_off(lost);
                }
            }
        }
        self.judge_end(seat)
    }

    /// An end is judged only when all that the worker said was heard: its last words may be that it
    /// finished, or why it could not.
    fn judge_end(&mut self, seat: usize) -> Result<(), EngineError> {
        let member = &mut self.gang.members[seat];
        if !member.is_gone() || member.judged {
            return Ok(());
        }
        member.judged = true;
        let Some(end) = member.end.clone() else {
            return Ok(());
        };
        if member.finished.is_none() {
            self.root_cause.note(seat, Sign::Ended(end));
        } else if !end.is_success() {
            let message = format!("worker {seat} finished its work, but was then {end}");
            self.emit(Event::Warning { message });
        }
        self.follow(seat, News::Ended)
    }

    fn join(&mut self, id: WorkerId, hello: Hello, link: Link) -> Result<(), EngineError> {
        // One that was given up meanwhile finds its link closed.
        if !self.is_present(id) {
            return Ok(());
        }
        let (rank, pid) = (id.seat, hello.pid);
        let member = &mut self.gang.members[rank];
        let (reader, writer) = link.split();
        let system = |source| EngineError::System {
            what: "listen to a worker",
            source,
        };
        listen(member.id, reader, self.gang.door.notices.clone()).map_err(system)?;
        member.link = Some(writer);
        member.peer_address = hello.listener;
        self.emit(Event::Worker { rank, pid });
        self.follow(rank, News::Joined)
    }

    fn hear(&mut self, seat: usize, message: FromWorker) -> Result<(), EngineError> {
        match message {
            FromWorker::Alive { progress } => {
                self.gang.members[seat].shows_life(progress);
                return Ok(());
            }
            // All else is said by the one who works.
            _ => self.gang.members[seat].is_fresh(),
        }
        match message {
            FromWorker::Alive { .. } => {}
            FromWorker::FirstStep { step } => {
                self.gang.members[seat].first_step = true;
                if self.state.ranks().next() == Some(seat) {
                    self.losses.resumed(step);
                }
                if self.first_step_s.is_none() && self.gang.members.iter().all(|m| m.first_step) {
                    let seconds = self.watch.started_at.elapsed().as_secs_f64();
                    self.first_step_s = Some(seconds);
                    self.emit(Event::FirstStep { seconds });
                }
            }
            FromWorker::CaughtUp => self.losses.caught_up(),
            FromWorker::Progress(progress) => {
                let before = u64::from(progress.epoch - 1) * progress.steps;
                self.losses.reached(before + progress.step);
                self.emit(Event::Progress(progress));
            }
            FromWorker::Epoch(epoch) => {
                self.losses.reached(epoch.step);
                // One that is trained again comes to what it came to before.
                if epoch.epoch > self.epochs {
                    self.watch.record.epoch(&epoch)?;
                    self.epochs = epoch.epoch;
                    self.emit(Event::Epoch(epoch));
                }
            }
            FromWorker::Finished(finished) => {
                self.gang.members[seat].finished = Some(finished);
                self.follow(seat, News::Finished)?;
            }
            FromWorker::Warning { words: message } => self.emit(Event::Warning { message }),
            FromWorker::Failed {
                error,
                peer_lost,
                waiting_for,
                step,
            } => {
                self.losses.reached(step);
                // A worker says this only here, so that nobody reads it twice; its log has it too.
                let logged = self.watch.record.log(seat, &format!("error: {error}"));
                if peer_lost {
                    let waiting_for = waiting_for.and_then(|rank| self.state.ranks().nth(rank));
                    self.root_cause
                        .note(seat, Sign::PeerLost { error, waiting_for });
                    self.follow(seat, News::Stopped)?;
                } else {
                    // It would fail again for the same reason.
                    self.root_cause.note(seat, Sign::Reported(error));
                    self.decided = Some(Decision::GiveUp);
                }
                logged?;
            }
        }
        Ok(())
    }

    /// Tells the state, and does what it says.
    fn follow(&mut self, seat: usize, news: News) -> Result<(), EngineError> {
        if self.decided.is_some() {
            return Ok(());
        }
        let mut orders: VecDeque<(usize, Order)> = VecDeque::new();
        let heard = |orders: Vec<Order>| orders.into_iter().map(move |order| (seat, order));
        orders.extend(heard(self.state.hear(seat, news)));
        while let Some((_, order)) = orders.pop_front() {
            match order {
                Order::CallOff => self.call_off(),
                Order::Kill(seat) => self.kill(seat),
                Order::Start(seat) => {
                    if let Err(error) = self.replace(seat) {
                        let message = describe(&error);
                        self.emit(Event::Warning { message });
                        orders.extend(heard(self.state.hear(seat, News::Ended)));
                    }
                }
                Order::Begin(seats) => self.begin(seats)?,
                Order::Conclude => self.decided = Some(Decision::Conclude),
                Order::GiveUp => self.decided = Some(Decision::GiveUp),
            }
        }
        Ok(())
    }

    /// Ends a worker. If nobody can say whether that worked, its lease must run out first.
    fn kill(&mut self, seat: usize) {
        let member = &mut self.gang.members[seat];
        member.killed = true;
        if self.gang.launcher.end(member.id) == Ending::Unknown {
            // Both clocks run from what the worker heard last, and it heard nothing after this.
            let lease = Duration::from_secs_f64(self.gang.settings.lease_s);
            member.lease_until = Some(Instant::now() + lease + CAUSE_DEADLINE);
        }
    }

    fn call_off(&mut self) {
        self.losses.began();
        // One that died was named when its process ended.
        if !self.gang.members.iter().any(Member::has_ended) {
            self.gang.call_off(None);
        }
        let generation = self.state.generation();
        for seat in 0..self.gang.members.len() {
            if self.state.place(seat) == Place::Working {
                self.gang.members[seat].is_fresh();
                self.tell(seat, &ToWorker::CallOff { generation });
            }
        }
    }

    fn replace(&mut self, seat: usize) -> Result<(), EngineError> {
        self.emit_logs(true);
        // Said before another takes its place, and its name.
        let verdict = self.verdict();
        self.lost.get_or_insert(verdict);
        self.gang.members[seat] = self.gang.members[seat].successor();
        let started = self.gang.start(seat);
        if started.is_err() {
            self.gang.members[seat].never_started();
        }
        started
    }

    fn begin(&mut self, seats: Vec<usize>) -> Result<(), EngineError> {
        let generation = self.state.generation();
        let GenerationStart {
            checkpoint: resume,
            warnings,
            incarnation,
        } = (self.watch.begin_generation)(generation)?;
        for message in warnings.into_iter().filter(|_| generation > 1) {
            self.emit(Event::Warning { message });
        }
        let beginning = Beginning {
            generation,
            resume,
            incarnation,
            catch_up: self.losses.furthest(),
            seats,
        };
        if generation > 1 {
            let reason = self.lost.take().unwrap_or_else(|| self.verdict());
            let restart = Restart {
                restart: self.losses.count_restart(),
                workers: beginning.seats.len(),
                reason,
                from: beginning.resume.clone(),
            };
            self.root_cause = RootCause::default();
            self.emit(Event::Restart(restart));
        }
        let assignments = self.gang.begin(&beginning)?;
        for (&seat, assignment) in beginning.seats.iter().zip(assignments) {
            let member = &mut self.gang.members[seat];
            member.is_fresh();
            member.finished = None;
            self.tell(seat, &ToWorker::Begin(Box::new(assignment)));
        }
        if self.watch.stop.get() == Stop::Graceful {
            self.ask_to_stop();
        }
        Ok(())
    }

    fn tell(&mut self, seat: usize, message: &ToWorker) {
        if let Some(link) = &mut self.gang.members[seat].link {
            // A link that cannot be written to is at its end, which its reader reports.
            let _ = link.send(message);
        }
    }

    fn ask_to_stop(&mut self) {
        for seat in 0..self.gang.members.len() {
            self.tell(seat, &ToWorker::Stop);
        }
    }

    /// What all workers' last words come to: they must agree on the weights.
    fn agreement(&self) -> Outcome {
        let ends = self.gang.members.iter().enumerate();
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
        let Some(seat) = self.root_cause.culprit() else {
            return "the gang failed".to_string();
        };
        let reason = self.root_cause.reason(seat);
        let worker = self.gang.describe(seat);
        let mut verdict = format!("{worker} failed first: {reason}");
        if let Some(line) = &self.gang.members[seat].last_line
            && self.root_cause.has_last_words(seat)
        {
            verdict += &format!("; the last it wrote was: {line}");
        }
        verdict
    }

    fn slow_to_stop(&self) -> String {
        let slow = self
            .gang
            .members
            .iter()
            .position(|member| member.finished.is_none());
        let worker = self.gang.describe(slow.unwrap_or(0));
        let seconds = STOP_DEADLINE.as_secs();
        format!("{worker} did not stop within {seconds} s of being asked to")
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
                Some(line) => self.emit(Event::Log(line)),
                None => return,
            }
        }
    }

    /// Takes in what the workers, who are gone by now, still wrote.
    fn drain(&mut self) -> Result<(), EngineError> {
        let by = Instant::now() + OUTPUT_DEADLINE;
        while !self.gang.members.iter().all(|member| member.output_ended) {
            let left = by.saturating_duration_since(Instant::now());
            match self.watch.notices.recv_timeout(left) {
                Ok(Notice::Launcher(LaunchNotice { id, what })) if self.is_present(id) => {
                    match what {
                        Happened::Ended(_) => (),
                        Happened::OutputEnded => self.gang.members[id.seat].output_ended = true,
                        written => self.happened(id.seat, written)?,
                    }
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
