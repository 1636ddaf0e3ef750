//! What the state of the gang asks for, done: workers are ended and replaced, generations begin and are
//! called off.

use super::{CAUSE_DEADLINE, Decision, LATE, Supervisor};
use crate::resume::GenerationStart;
use crate::supervise::generation::StartingPoint;
use crate::supervise::member::Member;
use crate::supervise::root_cause::RootCause;
use crate::supervise::state::{News, Order, SeatState};
use crate::{EngineError, Stop, describe};
use lockstep_events::control::ToWorker;
use lockstep_events::event::{Event, Restart};
use lockstep_launch::Ending;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

impl Supervisor<'_> {
    /// Tells the state, and does what it says.
    pub(super) fn follow(&mut self, seat: usize, news: News) -> Result<(), EngineError> {
        if self.decided.is_some() {
            return Ok(());
        }
        let orders = self.state.hear(seat, news);
        self.carry_out(orders)
    }

    /// Begins without those who are still starting, if it could and has waited for them.
    pub(super) fn begin_without_late(&mut self) -> Result<(), EngineError> {
        if self.decided.is_some() || !self.state.could_begin() {
            self.could_begin = None;
            return Ok(());
        }
        if self.could_begin.get_or_insert_with(Instant::now).elapsed() < LATE {
            return Ok(());
        }
        let orders = self.state.begin_without_late();
        self.carry_out(orders)
    }

    fn carry_out(&mut self, orders: Vec<Order>) -> Result<(), EngineError> {
        let mut orders = VecDeque::from(orders);
        while let Some(order) = orders.pop_front() {
            match order {
                Order::CallOff => self.call_off(),
                Order::Pause => self.pause(),
                Order::Dismiss(seat) => self.gang.members[seat].dismiss(),
                Order::Kill(seat) => self.kill(seat),
                Order::Start(seat) => {
                    if let Err(error) = self.replace(seat) {
                        self.note_unstartable(&error);
                        orders.extend(self.state.hear(seat, News::Ended));
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

    /// Asks those who work to pause after a step.
    fn pause(&mut self) {
        self.losses.pauses();
        let generation = self.state.generation();
        for seat in self.state.ranks().collect::<Vec<_>>() {
            self.tell(seat, &ToWorker::Pause { generation });
        }
    }

    pub(super) fn call_off(&mut self) {
        self.resizing = None;
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

    /// Keeps why a worker could not be replaced, and warns of it; not of what is known, such as the end of the process that
    /// starts all of them.
    fn note_unstartable(&mut self, error: &EngineError) {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let cause = cause.to_string();
        if self.lost.as_ref().is_some_and(|lost| lost.contains(&cause)) {
            return;
        }
        let message = describe(error);
        let before = self.unstartable.replace(message.clone());
        if before.is_none_or(|before| !before.contains(&cause)) {
            self.emit(Event::Warning { message });
        }
    }

    pub(super) fn replace(&mut self, seat: usize) -> Result<(), EngineError> {
        self.emit_logs(true);
        if !self.gang.members[seat].dismissed {
            // Said before another takes its place, and its name.
            let verdict = self.verdict();
            self.lost.get_or_insert(verdict);
        }
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
            step,
            warnings,
            incarnation,
        } = (self.watch.begin_generation)(generation)?;
        let copy = self.gang.newest_copy(&seats, step);
        let (resume, step) = match &copy {
            Some(copy) => (None, copy.step),
            None => (resume, step),
        };
        for message in warnings.into_iter().filter(|_| generation > 1) {
            self.emit(Event::Warning { message });
        }
        let beginning = StartingPoint {
            generation,
            resume,
            copy,
            incarnation,
            catch_up: self.losses.begins(),
            seats,
        };
        let workers = beginning.seats.len();
        if let Some(reason) = self.resizing.take() {
            self.emit(Event::Resized {
                workers,
                reason,
                step,
            });
        } else if generation > 1 {
            let reason = self.lost.take().unwrap_or_else(|| self.verdict());
            self.told_of_wait = false;
            let restart = Restart {
                restart: self.losses.count_restart(),
                workers,
                reason,
                from: beginning.resume.clone(),
                step,
            };
            self.root_cause = RootCause::default();
            self.emit(Event::Restart(restart));
        }
        let assignments = self.gang.begin(&beginning)?;
        if let Some(hosts) = assignments
            .first()
            .and_then(|first| first.transport.hosts())
        {
            let bytes_sent = self.gang.bytes_between(hosts)?;
            let mut seats = beginning.seats.iter().copied();
            let hosts = hosts
                .iter()
                .map(|&workers| seats.by_ref().take(workers).collect());
            let hosts = hosts.collect();
            self.emit(Event::Hosts { hosts, bytes_sent });
        }
        for (&seat, assignment) in beginning.seats.iter().zip(assignments) {
            let member = &mut self.gang.members[seat];
            member.is_fresh();
            member.finished = None;
            member.held.clear();
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
