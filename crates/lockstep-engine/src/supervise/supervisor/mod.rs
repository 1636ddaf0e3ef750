//! The coordinator's loop: hears the workers, keeps the record, replaces who is lost, and ends the gang.
//!
//! All that happens to a gang arrives as [`Notice`]s at one place, one after the other, so nothing
//! here needs a lock. What follows from it the [`GangState`] decides. Every wait has a deadline; whatever way
//! the loop ends, all workers are gone.

mod delay;
mod hearing;
mod orders;
mod words;

use super::fold::LineFolder;
use super::generation::GangWorkers;
use super::losses::Losses;
use super::member::Member;
use super::notice::Notice;
use super::root_cause::RootCause;
use super::state::{GangLimits, GangState};
use crate::record::Record;
use crate::resume::GenerationStart;
use crate::{EngineError, Stop, StopFlag, describe};
use lockstep_events::Recorded;
use lockstep_events::control::Finished;
use lockstep_events::event::Event;
use lockstep_launch::{LaunchNotice, WorkerEvent};
use serde_json::{Map, Value};
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
/// How long a gang that could begin waits for those who are still starting.
const LATE: Duration = Duration::from_millis(500);
/// How often wishes to stop, deadlines and waiting log lines are looked at.
const TICK: Duration = Duration::from_millis(20);
/// How often the workers are told that the coordinator lives, and how far the gang is.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// How a gang ended.
#[derive(Debug)]
pub(crate) enum GangOutcome {
    /// All workers said that they finished, and agree on the weights.
    Finished(Box<Finished>),
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
    /// How few the gang may be, and how often it may begin again.
    pub(crate) limits: GangLimits,
    /// Epochs that were trained completely before.
    pub(crate) epochs: u32,
    /// The state that a generation can go on from now, and what people should know about it.
    pub(crate) begin_generation: &'a dyn Fn(u16) -> Result<GenerationStart, EngineError>,
    pub(crate) events: &'a mut dyn FnMut(Event),
}

/// One gang under supervision.
pub(crate) struct Supervisor<'a> {
    pub(crate) gang: GangWorkers<'a>,
    watch: Watch<'a>,
    state: GangState,
    folder: LineFolder,
    root_cause: RootCause,
    pub(crate) losses: Losses,
    /// When the first step was done by all, in seconds after the start.
    pub(crate) first_step_s: Option<f64>,
    /// Epochs that were trained completely.
    pub(crate) epochs: u32,
    /// What a script reported last.
    pub(crate) reported: Option<Map<String, Value>>,
    /// Who was lost first since the generation began, and why.
    lost: Option<String>,
    /// Whether it was said that others are waited for in their places.
    told_of_wait: bool,
    /// Why a worker could not be replaced.
    unstartable: Option<String>,
    /// Why the present generation was asked to pause, if nobody was lost since.
    resizing: Option<String>,
    /// Since when the gang could begin without those who are still starting.
    could_begin: Option<Instant>,
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
    pub(crate) fn new(gang: GangWorkers<'a>, watch: Watch<'a>) -> Self {
        let workers = gang.members.len();
        Self {
            state: GangState::new(workers, watch.limits),
            folder: LineFolder::new(workers),
            root_cause: RootCause::default(),
            losses: Losses::default(),
            first_step_s: None,
            epochs: watch.epochs,
            reported: None,
            lost: None,
            told_of_wait: false,
            unstartable: None,
            resizing: None,
            could_begin: None,
            decided: None,
            unrecorded: false,
            counted: Instant::now(),
            told: Instant::now(),
            gang,
            watch,
        }
    }

    /// Whether any worker has done a step, or a script has reported something.
    pub(crate) fn has_trained(&self) -> bool {
        let mut members = self.gang.members.iter();
        self.reported.is_some() || members.any(|member| member.first_step)
    }

    /// What the run writes.
    pub(crate) fn record(&mut self) -> &mut Record {
        &mut self.watch.record
    }

    /// Tells and records what happens.
    fn emit(&mut self, event: Event) {
        let event = Recorded::now(event);
        let recorded = self.watch.record.event(&event);
        self.warn_unrecorded(recorded);
        (self.watch.events)(event.event);
    }

    /// Says once that the record has gaps.
    fn warn_unrecorded(&mut self, recorded: Result<(), EngineError>) {
        if let Err(error) = recorded
            && !std::mem::replace(&mut self.unrecorded, true)
        {
            let message = format!("what happens is no longer recorded: {}", describe(&error));
            (self.watch.events)(Event::Warning { message });
        }
    }

    /// Watches over the gang until it ended. No worker is left when this returns.
    pub(crate) fn watch(&mut self) -> Result<GangOutcome, EngineError> {
        let outcome = match self.watch_until_decided() {
            // The workers' trouble came first, so it comes first.
            Err(error) if !self.root_cause.is_empty() => {
                Ok(GangOutcome::Failed(in_turn(&self.verdict(), &error)))
            }
            outcome => outcome,
        };
        self.gang.launcher.end_all();
        match (outcome, self.drain()) {
            (Ok(GangOutcome::Failed(first)), Err(second)) => {
                Ok(GangOutcome::Failed(in_turn(&first, &second)))
            }
            (Ok(_), Err(error)) => Err(error),
            (outcome, _) => outcome,
        }
    }

    fn watch_until_decided(&mut self) -> Result<GangOutcome, EngineError> {
        let mut stopping = None;
        loop {
            if let Ok(notice) = self.watch.notices.recv_timeout(TICK) {
                self.take(notice)?;
            }
            self.count_time()?;
            self.begin_without_late()?;
            self.tell_of_wait();
            self.show_life();
            self.emit_logs(false);
            match self.decided {
                None => {}
                Some(Decision::Conclude) => return self.conclude(),
                Some(Decision::GiveUp) => {
                    self.hear_the_cause()?;
                    let mut failure = self.verdict();
                    if let Some(why) = &self.unstartable {
                        failure += &format!("; it could not be replaced: {why}");
                    }
                    return Ok(GangOutcome::Failed(failure));
                }
            }
            match self.watch.stop.get() {
                Stop::No => (),
                Stop::Now => return Ok(GangOutcome::Killed),
                Stop::Graceful if self.state.generation() == 0 => return Ok(GangOutcome::Killed),
                Stop::Graceful => {
                    if stopping.is_none() {
                        self.emit(Event::Stopping);
                        self.ask_to_stop();
                    }
                    let since = *stopping.get_or_insert_with(Instant::now);
                    if since.elapsed() > STOP_DEADLINE {
                        return Ok(GangOutcome::Failed(self.slow_to_stop()));
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
    fn conclude(&mut self) -> Result<GangOutcome, EngineError> {
        for member in &self.gang.members {
            match &member.link {
                Some(link) => link.close(),
                // It comes too late.
                None if !member.has_ended() => drop(self.gang.launcher.end(member.id)),
                None => {}
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
        self.losses.caught_up();
        Ok(self.agreement())
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
                        WorkerEvent::Ended(_) | WorkerEvent::Started(_) => (),
                        WorkerEvent::OutputEnded => self.gang.members[id.seat].output_ended = true,
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
