//! Who takes too long: to join, to give a sign of life, or to get on.
//!
//! Time in which this process itself was stopped does not count against the workers. In return, they are
//! told every so often that the coordinator lives.

use super::{CAUSE_DEADLINE, EXIT_DEADLINE, HEARTBEAT, Supervisor, TICK};
use crate::EngineError;
use crate::supervise::root_cause::Sign;
use crate::supervise::state::{News, SeatState};
use lockstep_events::control::ToWorker;
use lockstep_events::event::Event;
use lockstep_launch::WorkerEnd;
use std::time::{Duration, Instant};

/// After how long it is said that another worker is waited for.
const TELL: Duration = Duration::from_secs(2);

/// The most time that counts against workers between two looks: if it was more, this process was stopped.
const LONGEST_TICK: Duration = Duration::from_millis(100);

impl Supervisor<'_> {
    /// Counts the time that passed, and finds those who should have answered, got on or ended by now. Time
    /// in which this process itself was stopped does not count against the workers.
    pub(super) fn count_time(&mut self) -> Result<(), EngineError> {
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

    /// Says once, if a worker was lost and another one takes its time to come in its place, that the gang waits for that: as
    /// long as its host is gone, say.
    pub(super) fn tell_of_wait(&mut self) {
        let mut members = self.gang.members.iter().enumerate();
        let is_late = members.any(|(seat, member)| {
            self.state.seat(seat) == SeatState::Starting && member.silent_for > TELL
        });
        let Some(lost) = self.lost.as_ref().filter(|_| is_late && !self.told_of_wait) else {
            return;
        };
        let most = self.gang.settings.start_deadline_s;
        let message = format!(
            "{lost}; waiting for another in its place, for {most} s at the most (gang.start_deadline_s)"
        );
        self.told_of_wait = true;
        self.emit(Event::Warning { message });
    }

    /// Finds out whether a worker takes too long: to join, to give a sign of life, or to get on.
    pub(super) fn look_for_delay(&mut self, seat: usize) -> Result<(), EngineError> {
        let member = &self.gang.members[seat];
        match self.state.seat(seat) {
            SeatState::Starting if self.state.can_wait_for(seat) => return Ok(()),
            SeatState::Leaving if member.silent_for > EXIT_DEADLINE => {}
            SeatState::Starting => {
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
            SeatState::Working => {
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
    pub(super) fn patience(&self, seat: usize) -> (Duration, Duration) {
        // What a peer says of it comes first: it learns of the gang's progress two heartbeats late.
        let deadline =
            Duration::from_secs_f64(self.gang.settings.deadline_s) + 2 * HEARTBEAT + CAUSE_DEADLINE;
        let awaited = self.root_cause.is_awaited(seat);
        match self.state.is_calling_off() {
            true if awaited => (CAUSE_DEADLINE, CAUSE_DEADLINE),
            true => (deadline, deadline),
            false => {
                let mut working = (self.state.ranks())
                    .filter(|seat| self.state.seat(*seat) == SeatState::Working);
                let all = match self.gang.settings.stall_s {
                    Some(stall) => Duration::from_secs_f64(stall),
                    None => deadline + CAUSE_DEADLINE,
                };
                let stand = working.all(|seat| self.gang.members[seat].still_for > all);
                (deadline, if stand { all } else { Duration::MAX })
            }
        }
    }

    /// Tells all workers, every so often, that the coordinator lives and how far the gang is. Only one that
    /// is as good as dead is told nothing, so that its lease runs out.
    pub(super) fn show_life(&mut self) {
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
}
