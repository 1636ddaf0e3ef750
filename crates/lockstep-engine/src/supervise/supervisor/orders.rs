//! What the state of the gang asks for, done: workers are ended and replaced, generations begin and are
//! called off.

use super::{CAUSE_DEADLINE, Decision, Supervisor};
use crate::launcher::Ending;
use crate::resume::GenerationStart;
use crate::supervise::generation::StartingPoint;
use crate::supervise::member::Member;
use crate::supervise::root_cause::RootCause;
use crate::supervise::state::{News, Order, SeatState};
use crate::{EngineError, Stop, describe};
use lockstep_events::control::ToWorker;
use lockstep_events::event::{Event, Restart};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

impl Supervisor<'_> {
    /// Tells the state, and does what it says.
    pub(super) fn follow(&mut self, seat: usize, news: News) -> Result<(), EngineError> {
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
    pub(super) fn kill(&mut self, seat: usize) {
        let member = &mut self.gang.members[seat];
        member.killed = true;
        if self.gang.launcher.end(member.id) == Ending::Unknown {
            // Both clocks run from what the worker heard last, and it heard nothing after this.
            let lease = Duration::from_secs_f64(self.gang.settings.lease_s);
            member.lease_until = Some(Instant::now() + lease + CAUSE_DEADLINE);
        }
    }

    pub(super) fn call_off(&mut self) {
        self.losses.began();
        // One that died was named when its process ended.
        if !self.gang.members.iter().any(Member::has_ended) {
            self.gang.call_off(None);
        }
        let generation = self.state.generation();
        for seat in 0..self.gang.members.len() {
            if self.state.seat(seat) == SeatState::Working {
                self.gang.members[seat].is_fresh();
                self.tell(seat, &ToWorker::CallOff { generation });
            }
        }
    }

    pub(super) fn replace(&mut self, seat: usize) -> Result<(), EngineError> {
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

    pub(super) fn begin(&mut self, seats: Vec<usize>) -> Result<(), EngineError> {
        let generation = self.state.generation();
        let GenerationStart {
            checkpoint: resume,
            warnings,
            incarnation,
        } = (self.watch.begin_generation)(generation)?;
        for message in warnings.into_iter().filter(|_| generation > 1) {
            self.emit(Event::Warning { message });
        }
        let beginning = StartingPoint {
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

    pub(super) fn tell(&mut self, seat: usize, message: &ToWorker) {
        if let Some(link) = &mut self.gang.members[seat].link {
            // A link that cannot be written to is at its end, which its reader reports.
            let _ = link.send(message);
        }
    }

    pub(super) fn ask_to_stop(&mut self) {
        for seat in 0..self.gang.members.len() {
            self.tell(seat, &ToWorker::Stop);
        }
    }
}
