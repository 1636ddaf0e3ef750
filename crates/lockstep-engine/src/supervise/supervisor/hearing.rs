//! What is heard of workers, and what it means for the gang.

use super::{Decision, Supervisor};
use crate::supervise::notice::{Notice, listen};
use crate::supervise::root_cause::Sign;
use crate::supervise::state::{News, SeatState};
use crate::{EngineError, Stop};
use lockstep_events::control::{FromWorker, ToWorker, WorkerUsage};
use lockstep_events::event::{Event, Usage};
use lockstep_gang::{Hello, Link};
use lockstep_launch::{LaunchNotice, WorkerEnd, WorkerEvent, WorkerId};
use std::time::Instant;

impl Supervisor<'_> {
    pub(super) fn take(&mut self, notice: Notice) -> Result<(), EngineError> {
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
                let expected = member.finished.is_some() || member.dismissed;
                if !expected && self.decided.is_none() {
                    self.root_cause.note(id.seat, Sign::LinkLost(error));
                }
                self.judge_end(id.seat)
            }
        }
    }

    /// Whether this is the worker that has its seat now. The last words of one that was replaced count no
    /// more.
    pub(super) fn is_present(&self, id: WorkerId) -> bool {
        let member = self.gang.members.get(id.seat);
        member.is_some_and(|member| member.id == id)
    }

    pub(super) fn happened(&mut self, seat: usize, what: WorkerEvent) -> Result<(), EngineError> {
        match what {
            WorkerEvent::Started(pid) => {
                self.gang.members[seat].pid = pid;
                return Ok(());
            }
            WorkerEvent::Wrote(line) | WorkerEvent::Said(line) => {
                self.watch.record.log(seat, &line)?;
                let member = &mut self.gang.members[seat];
                member.hear(&line);
                self.folder.push(seat, member.pid, line, Instant::now());
                return Ok(());
            }
            WorkerEvent::Leaving(why) => return self.leaves(seat, &why),
            WorkerEvent::OutputEnded => self.gang.members[seat].output_ended = true,
            WorkerEvent::Ended(end) => {
                let member = &mut self.gang.members[seat];
                match end {
                    // Nothing more will be heard of it, not even that its link ended.
                    WorkerEnd::Lost(_) => member.gone(end),
                    end => member.end = Some(end),
                }
                if self.state.seat(seat) == SeatState::Working {
                    let lost = self.state.ranks().position(|ranked| ranked == seat);
                    self.gang.call_off(lost);
                }
            }
        }
        self.judge_end(seat)
    }

    /// An end is judged only when all that the worker said was heard: its last words may be that it
    /// finished, or why it could not.
    pub(super) fn judge_end(&mut self, seat: usize) -> Result<(), EngineError> {
        let member = &mut self.gang.members[seat];
        if !member.is_gone() || member.judged {
            return Ok(());
        }
        member.judged = true;
        let Some(end) = member.end.clone() else {
            return Ok(());
        };
        if member.dismissed {
            // As it was told to.
        } else if member.finished.is_none() {
            self.root_cause.note(seat, Sign::Ended(end));
        } else if !end.is_success() {
            let message = format!("worker {seat} finished its work, but was then {end}");
            self.emit(Event::Warning { message });
        }
        self.follow(seat, News::Ended)
    }

    pub(super) fn join(
        &mut self,
        id: WorkerId,
        hello: Hello,
        link: Link,
    ) -> Result<(), EngineError> {
        // One that was given up meanwhile finds its link closed.
        if !self.is_present(id) {
            return Ok(());
        }
        let (rank, pid) = (id.seat, hello.pid);
        let member = &mut self.gang.members[rank];
        let (reader, writer) = link.split();
        let listening = listen(member.id, reader, self.gang.door.notices.clone());
        listening.map_err(EngineError::system("listen to a worker"))?;
        member.link = Some(writer);
        member.peer_address = hello.listener;
        member.memory_domain = hello.memory_domain;
        for seat in 0..self.gang.members.len() {
            self.state.place(seat, self.gang.host_of(seat));
        }
        self.emit(Event::Worker { rank, pid });
        let worker = self.gang.describe(rank);
        self.resizing_because(format!("{worker} has come"));
        self.follow(rank, News::Joined)
    }

    /// A worker is about to be taken away: it leaves in good order. If the run is ending anyway, it need not.
    fn leaves(&mut self, seat: usize, why: &str) -> Result<(), EngineError> {
        if self.watch.stop.get() != Stop::No {
            return Ok(());
        }
        let worker = self.gang.describe(seat);
        self.resizing_because(format!("{worker} leaves: {why}"));
        self.follow(seat, News::Leaving)
    }

    /// Passes a value of one worker on to all of its generation.
    fn pass_on(&mut self, seat: usize, generation: u16, name: &str, value: &serde_json::Value) {
        let ranks: Vec<usize> = self.state.ranks().collect();
        let Some(rank) = ranks.iter().position(|ranked| *ranked == seat) else {
            return;
        };
        if generation != self.state.generation() {
            return;
        }
        for ranked in ranks {
            let (name, value) = (name.to_owned(), value.clone());
            let shared = ToWorker::Shared {
                generation,
                name,
                rank,
                value,
            };
            self.tell(ranked, &shared);
        }
    }

    /// Remembers why the gang is about to be another, if it is at work and nobody was lost.
    fn resizing_because(&mut self, reason: String) {
        if self.state.is_undisturbed() {
            self.resizing.get_or_insert(reason);
        }
    }

    /// Tells what a worker takes of its machine.
    fn note_usage(&mut self, seat: usize, usage: WorkerUsage) {
        let Some(rank) = self.state.ranks().position(|ranked| ranked == seat) else {
            return;
        };
        self.emit(Event::Usage(Usage {
            rank,
            cpu_percent: usage.cpu_percent,
            memory_bytes: usage.memory_bytes,
            samples_per_s: self.gang.members[seat].samples_per_s,
            waiting: usage.waiting,
        }));
    }

    pub(super) fn hear(&mut self, seat: usize, message: FromWorker) -> Result<(), EngineError> {
        match message {
            FromWorker::Alive { progress } => {
                self.gang.members[seat].shows_life(progress);
                return Ok(());
            }
            // Said beside the work, whether that gets on or not.
            FromWorker::Usage(usage) => {
                self.note_usage(seat, usage);
                return Ok(());
            }
            // All else is said by the one who works.
            _ => self.gang.members[seat].is_fresh(),
        }
        match message {
            FromWorker::Alive { .. } | FromWorker::Usage(_) => {}
            FromWorker::Trace(line) => {
                let traced = self.watch.record.trace(&line);
                self.warn_unrecorded(traced);
            }
            FromWorker::Profile { events } => {
                let written = self.watch.record.profile(&events);
                self.warn_unrecorded(written);
            }
            FromWorker::FirstStep { step } => {
                self.gang.members[seat].first_step = true;
                if self.state.ranks().next() == Some(seat) {
                    self.losses.resumed(step);
                }
                let members = &self.gang.members;
                if self.first_step_s.is_none() && self.state.ranks().all(|s| members[s].first_step)
                {
                    let seconds = self.watch.started_at.elapsed().as_secs_f64();
                    self.first_step_s = Some(seconds);
                    self.emit(Event::FirstStep { seconds });
                }
            }
            FromWorker::CaughtUp => self.losses.caught_up(),
            FromWorker::Progress(progress) => {
                let before = u64::from(progress.epoch - 1) * progress.steps;
                self.losses.reached(before + progress.step);
                self.gang.members[seat].samples_per_s = progress.samples_per_s;
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
            FromWorker::Reported(mut reported) => {
                reported.total_s = self.watch.started_at.elapsed().as_secs_f64();
                self.watch.record.reported(&reported)?;
                self.reported = Some(reported.metrics.clone());
                self.emit(Event::Reported(reported));
            }
            FromWorker::Share {
                generation,
                name,
                value,
            } => self.pass_on(seat, generation, &name, &value),
            FromWorker::Held { shares } => {
                // Of what cannot be read nothing is held.
                let shares = serde_json::from_value(shares).unwrap_or_default();
                self.gang.members[seat].held = shares;
            }
            FromWorker::Finished(finished) => {
                self.gang.members[seat].finished = Some(finished);
                self.follow(seat, News::Finished)?;
            }
            FromWorker::Paused { step } => {
                self.losses.reached(step);
                self.follow(seat, News::Paused)?;
            }
            FromWorker::Leaving => self.leaves(seat, "it was asked to end (SIGTERM)")?,
            FromWorker::Warning { words: message } => self.emit(Event::Warning { message }),
            FromWorker::Failed {
                error,
                peer_lost,
                again,
                waiting_for,
                step,
            } => {
                self.losses.reached(step);
                // A worker says this only here, so that nobody reads it twice; its log has it too.
                let logged = self.watch.record.log(seat, &format!("error: {error}"));
                if again {
                    self.root_cause.note(seat, Sign::Reported(error));
                    self.follow(seat, News::Stopped)?;
                } else if peer_lost {
                    let waiting_for = waiting_for.and_then(|rank| self.state.ranks().nth(rank));
                    self.root_cause
                        .note(seat, Sign::PeerLost { error, waiting_for });
                    self.follow(seat, News::Stopped)?;
                } else if !self.gang.members[seat].first_step && self.state.may_be_unfit(seat) {
                    // It came late; what the others have done must not be lost for it.
                    let worker = self.gang.describe(seat);
                    let message = format!("{worker} came late and cannot take part: {error}");
                    self.emit(Event::Warning { message });
                    self.root_cause.note(seat, Sign::Reported(error));
                    self.follow(seat, News::Unfit)?;
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
}
