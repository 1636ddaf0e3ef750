//! Who is where in a gang that may lose workers: decides what is to be done, and does nothing itself.
//!
//! A worker sits at a *seat*, which keeps its number when its process is replaced. All workers of a
//! *generation* begin together. When one is lost, the generation is called off; those that are healthy
//! say that they stopped, the lost ones are started anew, and once everybody is ready the next
//! generation begins. So nobody ever works in two generations, and no generation begins while anyone
//! may still be writing in the one before it: the model test explores every order of events for that.
//!
//! When a worker comes late or is to leave, the generation is asked to pause instead: all write one state after
//! the same step, wait, and the next generation begins from it without repeating any. That is no failure, and
//! costs nothing of the budget for those.

use std::cmp::Reverse;

/// Where one worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SeatState {
    /// Its process was started and has not joined yet.
    Starting,
    /// It waits to be told to begin.
    Ready,
    /// It works in the present generation.
    Working,
    /// It finished its work in the present generation.
    Done,
    /// It was dismissed, and its process is about to end.
    Leaving,
    /// Its process ended.
    Gone,
    /// Its process could not be replaced: the gang goes on without it.
    Retired,
}

/// What is heard of one seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum News {
    /// It joined.
    Joined,
    /// It paused, as all were asked to, and waits.
    Paused,
    /// It asks to be done without, since it is about to be taken away.
    Leaving,
    /// It stopped working, because of others, and waits.
    Stopped,
    /// It came late and cannot take part, as when its node does not see the data. It is about to end.
    Unfit,
    /// It finished its work.
    Finished,
    /// Its process ended, and all that it had to say was heard; or its lease ran out, so that it must have.
    Ended,
    /// It has not answered in time.
    Overdue,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// Tell everyone who works to stop.
    CallOff,
    /// Ask everyone who works to pause after a step: the gang is to become larger or smaller.
    Pause,
    /// Send this seat's worker, which waits, home. It has [ended](News::Ended) when its process has.
    Dismiss(usize),
    /// End this seat's process. If nobody can say whether that worked, it has [ended](News::Ended) when its
    /// lease ran out, and not before: until then it may still write.
    Kill(usize),
    /// Start a process for this seat. If that fails, it has [ended](News::Ended).
    Start(usize),
    /// Tell these seats, in the order of their ranks, to begin.
    Begin(Vec<usize>),
    /// The work is done.
    Conclude,
    /// The gang cannot go on.
    GiveUp,
}

/// How few a gang may be, and how often it may begin again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GangLimits {
    /// How often it may begin again after a loss.
    pub(crate) max_restarts: u32,
    /// With fewer workers than this it gives up.
    pub(crate) min_workers: usize,
    /// With so many it begins without those who are still starting, and takes them in when they come. Without,
    /// it waits for all.
    pub(crate) enough: Option<usize>,
}

/// The state of a gang.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GangState {
    seats: Vec<SeatState>,
    /// The present generation; 0 before the first.
    generation: u16,
    /// The seats of the present generation, by rank.
    present: Vec<usize>,
    /// The host that each seat's worker is on, by the first seat that is there: all are numbered host by host. A worker
    /// that shares memory with none is on a host of its own.
    hosts: Vec<usize>,
    /// Seats whose workers ask to be done without.
    leaving: Vec<bool>,
    /// Seats whose workers cannot take part: nobody takes their places.
    unfit: Vec<bool>,
    /// The present generation was called off.
    called_off: bool,
    /// The present generation was asked to pause.
    pausing: bool,
    /// How often the gang may still begin again.
    restarts_left: u32,
    /// With fewer workers than this the gang gives up.
    min_workers: usize,
    /// With so many it need not wait for those who are still starting; without, it always does.
    enough: Option<usize>,
    /// It concluded, or gave up.
    over: bool,
}

impl GangState {
    /// A gang whose workers were just started.
    pub(crate) fn new(workers: usize, limits: GangLimits) -> Self {
        let enough = limits.enough.filter(|enough| *enough < workers);
        Self {
            seats: vec![SeatState::Starting; workers],
            generation: 0,
            present: Vec::new(),
            hosts: (0..workers).collect(),
            leaving: vec![false; workers],
            unfit: vec![false; workers],
            called_off: false,
            pausing: false,
            restarts_left: limits.max_restarts,
            min_workers: limits.min_workers.max(enough.unwrap_or(1)).max(1),
            enough,
            over: false,
        }
    }

    /// The present generation; 0 before the first.
    pub(crate) fn generation(&self) -> u16 {
        self.generation
    }

    /// The worker of a seat is on the same host as that of another one, or on one of its own.
    pub(crate) fn place(&mut self, seat: usize, host: usize) {
        self.hosts[seat] = host;
    }

    /// Where a seat is.
    pub(crate) fn seat(&self, seat: usize) -> SeatState {
        self.seats[seat]
    }

    /// Whether the present generation is called off and somebody still works in it.
    pub(crate) fn is_calling_off(&self) -> bool {
        self.called_off && self.any(SeatState::Working)
    }

    /// The seats of the present generation by rank.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = usize> + '_ {
        self.present.iter().copied()
    }

    /// Whether a generation works, and nothing was lost of it.
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.is_working() && !self.called_off
    }

    /// Whether a generation works.
    fn is_working(&self) -> bool {
        self.any(SeatState::Working)
    }

    /// Whether the gang could begin without those that it still waits for.
    pub(crate) fn could_begin(&self) -> bool {
        let ready = self.seats.iter().filter(|seat| **seat == SeatState::Ready);
        let enough = self.enough.is_some_and(|enough| ready.count() >= enough);
        enough && !self.over && !self.is_working()
    }

    /// Whether a worker may take as long as it likes to start: there are enough without it.
    pub(crate) fn can_wait_for(&self, seat: usize) -> bool {
        let here = |seat: &&SeatState| matches!(seat, SeatState::Ready | SeatState::Working);
        let others = self.seats.iter().filter(here).count();
        self.seats[seat] == SeatState::Starting && self.enough.is_some_and(|most| others >= most)
    }

    /// Whether a gang that has not begun yet may, without this worker.
    fn can_do_without(&self, seat: usize) -> bool {
        let may_come = |state: &SeatState| matches!(state, SeatState::Ready | SeatState::Starting);
        let others = self.seats.iter().enumerate();
        let others = others.filter(|(other, state)| *other != seat && may_come(state));
        let others = others.count();
        self.enough.is_some_and(|enough| others >= enough)
    }

    /// Whether others have worked, and enough of them are left to go on if this worker cannot take part.
    pub(crate) fn may_be_unfit(&self, seat: usize) -> bool {
        let working = self.present.len() - usize::from(self.is_present(seat));
        self.generation > 1 && self.enough.is_some_and(|enough| working >= enough)
    }

    /// Begins without those that the gang still waits for, if it [could](Self::could_begin).
    pub(crate) fn begin_without_late(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        if self.could_begin() {
            self.begin(&mut orders);
        }
        orders
    }

    /// Takes in news of a seat and says what is to be done, in order.
    pub(crate) fn hear(&mut self, seat: usize, news: News) -> Vec<Order> {
        let mut orders = Vec::new();
        if self.over {
            return orders;
        }
        match (news, self.seats[seat]) {
            (News::Joined, SeatState::Starting) => {
                self.seats[seat] = SeatState::Ready;
                self.pause(&mut orders);
            }
            (News::Paused, SeatState::Working) => self.seats[seat] = SeatState::Ready,
            (News::Leaving, SeatState::Working | SeatState::Ready) => {
                self.leaving[seat] = true;
                self.pause(&mut orders);
            }
            (News::Unfit, SeatState::Working) => self.unfit[seat] = true,
            (News::Finished, SeatState::Working) => self.seats[seat] = SeatState::Done,
            (News::Stopped, SeatState::Working) => self.leave(seat, SeatState::Ready, &mut orders),
            // It came late, and nobody has begun to count on it.
            (News::Ended, SeatState::Ready) if self.is_working() && !self.is_present(seat) => {
                self.seats[seat] = SeatState::Retired;
            }
            (News::Ended, SeatState::Working | SeatState::Ready) => {
                self.leave(seat, SeatState::Gone, &mut orders);
            }
            (News::Ended, SeatState::Leaving) => {
                self.seats[seat] = SeatState::Starting;
                orders.push(Order::Start(seat));
            }
            // It has done its part. What rank 0 has published stays.
            (News::Ended, SeatState::Done) if self.present.first() != Some(&seat) => {
                self.seats[seat] = SeatState::Gone;
            }
            (News::Ended, SeatState::Starting)
                if self.generation > 0 || self.can_do_without(seat) =>
            {
                self.seats[seat] = SeatState::Retired;
            }
            (News::Ended, SeatState::Starting) => self.give_up(&mut orders),
            (News::Overdue, SeatState::Working | SeatState::Starting | SeatState::Leaving) => {
                orders.push(Order::Kill(seat));
            }
            // What comes too late changes nothing.
            _ => {}
        }
        if !self.over {
            self.settle(&mut orders);
        }
        orders
    }

    /// Asks those who work to pause, since the gang is to be another.
    fn pause(&mut self, orders: &mut Vec<Order>) {
        if self.is_working() && !self.called_off && !self.pausing {
            self.pausing = true;
            orders.push(Order::Pause);
        }
    }

    fn is_present(&self, seat: usize) -> bool {
        self.present.contains(&seat)
    }

    /// A worker left the generation before its work was done.
    fn leave(&mut self, seat: usize, to: SeatState, orders: &mut Vec<Order>) {
        self.seats[seat] = to;
        if !self.called_off {
            self.called_off = true;
            orders.push(Order::CallOff);
        }
    }

    /// Does what can be done once nobody works any more.
    fn settle(&mut self, orders: &mut Vec<Order>) {
        if self.is_working() {
            return;
        }
        // Who finished has passed the last barrier, and so had everybody else done all the work. Rank 0
        // publishes it after that: without it, there is no result, and those who are done begin again.
        if self.present.first().map(|first| self.seats[*first]) == Some(SeatState::Done) {
            self.over = true;
            orders.push(Order::Conclude);
            return;
        }
        for place in &mut self.seats {
            if *place == SeatState::Done {
                *place = SeatState::Ready;
            }
        }
        self.pausing = false;
        if self.called_off {
            if self.restarts_left == 0 {
                return self.give_up(orders);
            }
            self.restarts_left -= 1;
            self.called_off = false;
        }
        for seat in 0..self.seats.len() {
            let leaves = std::mem::take(&mut self.leaving[seat]);
            if self.seats[seat] == SeatState::Ready && leaves {
                self.seats[seat] = SeatState::Leaving;
                orders.push(Order::Dismiss(seat));
            } else if self.seats[seat] == SeatState::Gone && self.unfit[seat] {
                self.seats[seat] = SeatState::Retired;
            } else if self.seats[seat] == SeatState::Gone {
                self.seats[seat] = SeatState::Starting;
                orders.push(Order::Start(seat));
            }
        }
        if self.any(SeatState::Starting) || self.any(SeatState::Leaving) {
            return;
        }
        self.begin(orders);
    }

    /// Begins a generation of those who are ready.
    fn begin(&mut self, orders: &mut Vec<Order>) {
        let seats = 0..self.seats.len();
        let mut ready: Vec<usize> = seats
            .filter(|seat| self.seats[*seat] == SeatState::Ready)
            .collect();
        if ready.len() < self.min_workers {
            return self.give_up(orders);
        }
        // Hosts with more workers come first: then their lanes are whole subtrees more often.
        let mut workers_of = vec![0; self.seats.len()];
        for &seat in &ready {
            workers_of[self.hosts[seat]] += 1;
        }
        ready.sort_by_key(|&seat| {
            let host = self.hosts[seat];
            (Reverse(workers_of[host]), host, seat)
        });
        for &seat in &ready {
            self.seats[seat] = SeatState::Working;
        }
        self.generation += 1;
        self.present.clone_from(&ready);
        orders.push(Order::Begin(ready));
    }

    fn give_up(&mut self, orders: &mut Vec<Order>) {
        self.over = true;
        orders.push(Order::GiveUp);
    }

    fn any(&self, place: SeatState) -> bool {
        self.seats.contains(&place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(state: &mut GangState, seat: usize, news: News) -> Vec<Order> {
        state.hear(seat, news)
    }

    fn limits(max_restarts: u32, min_workers: usize) -> GangLimits {
        GangLimits {
            max_restarts,
            min_workers,
            enough: None,
        }
    }

    /// A gang of three that begins when two have joined, and has.
    fn elastic() -> GangState {
        let enough = Some(2);
        let mut state = GangState::new(
            3,
            GangLimits {
                enough,
                ..limits(3, 1)
            },
        );
        assert!(!state.could_begin());
        for seat in [0, 2] {
            assert_eq!(hear(&mut state, seat, News::Joined), []);
        }
        assert!(state.could_begin() && state.can_wait_for(1));
        assert_eq!(state.begin_without_late(), [Order::Begin(vec![0, 2])]);
        assert!(!state.could_begin() && state.begin_without_late().is_empty());
        state
    }

    #[test]
    fn a_worker_that_comes_late_is_taken_in_after_a_pause() {
        let mut state = elastic();
        assert_eq!(hear(&mut state, 1, News::Joined), [Order::Pause]);
        assert_eq!(hear(&mut state, 0, News::Paused), []);
        let all = Order::Begin(vec![0, 1, 2]);
        assert_eq!(hear(&mut state, 2, News::Paused), [all]);
        assert_eq!(state.restarts_left, 3, "that is no failure");
    }

    #[test]
    fn a_late_worker_that_dies_before_the_pause_is_done_without() {
        let mut state = elastic();
        assert_eq!(hear(&mut state, 1, News::Joined), [Order::Pause]);
        assert_eq!(hear(&mut state, 1, News::Ended), []);
        hear(&mut state, 0, News::Paused);
        let both = Order::Begin(vec![0, 2]);
        assert_eq!(hear(&mut state, 2, News::Paused), [both]);
    }

    #[test]
    fn a_late_worker_that_cannot_take_part_is_done_without() {
        let mut state = elastic();
        hear(&mut state, 1, News::Joined);
        hear(&mut state, 0, News::Paused);
        hear(&mut state, 2, News::Paused);
        assert_eq!(state.generation(), 2);
        assert!(state.may_be_unfit(1));
        assert_eq!(hear(&mut state, 1, News::Unfit), []);
        assert_eq!(hear(&mut state, 1, News::Ended), [Order::CallOff]);
        hear(&mut state, 0, News::Stopped);
        let both = Order::Begin(vec![0, 2]);
        assert_eq!(hear(&mut state, 2, News::Stopped), [both]);
        assert_eq!(state.seat(1), SeatState::Retired);
    }

    #[test]
    fn a_gang_that_has_enough_begins_without_one_that_cannot_start() {
        let enough = Some(2);
        let mut state = GangState::new(
            3,
            GangLimits {
                enough,
                ..limits(3, 1)
            },
        );
        assert_eq!(hear(&mut state, 2, News::Ended), []);
        hear(&mut state, 0, News::Joined);
        let both = Order::Begin(vec![0, 1]);
        assert_eq!(hear(&mut state, 1, News::Joined), [both]);
    }

    #[test]
    fn a_worker_that_is_taken_away_leaves_after_a_pause_and_another_is_started() {
        let mut state = elastic();
        assert_eq!(hear(&mut state, 0, News::Leaving), [Order::Pause]);
        hear(&mut state, 0, News::Paused);
        assert_eq!(hear(&mut state, 2, News::Paused), [Order::Dismiss(0)]);
        assert!(!state.could_begin(), "one is too few");
        assert_eq!(hear(&mut state, 1, News::Joined), []);
        assert_eq!(state.begin_without_late(), [Order::Begin(vec![1, 2])]);
        assert_eq!(hear(&mut state, 0, News::Ended), [Order::Start(0)]);
        assert_eq!(hear(&mut state, 0, News::Joined), [Order::Pause]);
        assert_eq!(state.restarts_left, 3, "that is no failure");
    }

    #[test]
    fn one_that_dies_while_the_others_pause_is_a_loss() {
        let mut state = elastic();
        assert_eq!(hear(&mut state, 1, News::Joined), [Order::Pause]);
        assert_eq!(hear(&mut state, 2, News::Ended), [Order::CallOff]);
        assert_eq!(hear(&mut state, 0, News::Stopped), [Order::Start(2)]);
        assert_eq!(state.begin_without_late(), [Order::Begin(vec![0, 1])]);
        assert_eq!(state.restarts_left, 2);
    }

    /// A gang of so many that has begun.
    fn begun(workers: usize, max_restarts: u32, min_workers: usize) -> GangState {
        let mut state = GangState::new(workers, limits(max_restarts, min_workers));
        for seat in 0..workers {
            hear(&mut state, seat, News::Joined);
        }
        assert_eq!(state.generation(), 1);
        state
    }

    #[test]
    fn all_begin_when_the_last_has_joined() {
        let mut state = GangState::new(2, limits(3, 1));
        assert_eq!(hear(&mut state, 1, News::Joined), []);
        assert_eq!(
            hear(&mut state, 0, News::Joined),
            [Order::Begin(vec![0, 1])]
        );
    }

    #[test]
    fn a_lost_worker_is_replaced_when_the_others_have_stopped() {
        let mut state = begun(3, 3, 1);
        assert_eq!(hear(&mut state, 1, News::Ended), [Order::CallOff]);
        assert_eq!(hear(&mut state, 0, News::Stopped), []);
        assert_eq!(hear(&mut state, 2, News::Stopped), [Order::Start(1)]);
        assert_eq!(
            hear(&mut state, 1, News::Joined),
            [Order::Begin(vec![0, 1, 2])]
        );
        assert_eq!(state.generation(), 2);
    }

    #[test]
    fn one_that_is_stopped_for_good_is_killed_and_replaced() {
        let mut state = begun(2, 3, 1);
        assert_eq!(hear(&mut state, 0, News::Stopped), [Order::CallOff]);
        assert!(state.is_calling_off());
        assert_eq!(hear(&mut state, 1, News::Overdue), [Order::Kill(1)]);
        assert_eq!(hear(&mut state, 1, News::Ended), [Order::Start(1)]);
    }

    #[test]
    fn a_replacement_that_cannot_start_is_done_without_unless_too_few_are_left() {
        for (min_workers, last) in [(2, Order::Begin(vec![0, 2])), (3, Order::GiveUp)] {
            let mut state = begun(3, 3, min_workers);
            hear(&mut state, 1, News::Ended);
            hear(&mut state, 0, News::Stopped);
            hear(&mut state, 2, News::Stopped);
            assert_eq!(hear(&mut state, 1, News::Ended), [last]);
        }
    }

    #[test]
    fn the_gang_gives_up_after_so_many_restarts() {
        let mut state = begun(1, 2, 1);
        for _ in 0..2 {
            let orders = hear(&mut state, 0, News::Ended);
            assert_eq!(orders, [Order::CallOff, Order::Start(0)]);
            hear(&mut state, 0, News::Joined);
        }
        let orders = hear(&mut state, 0, News::Ended);
        assert_eq!(orders, [Order::CallOff, Order::GiveUp]);
        assert_eq!(hear(&mut state, 0, News::Joined), []);
    }

    #[test]
    fn a_worker_that_dies_after_another_finished_costs_nothing() {
        let mut state = begun(2, 3, 1);
        assert_eq!(hear(&mut state, 0, News::Finished), []);
        let orders = hear(&mut state, 1, News::Ended);
        assert_eq!(orders, [Order::CallOff, Order::Conclude]);
    }

    #[test]
    fn without_rank_0_which_publishes_nothing_is_concluded() {
        let mut state = begun(3, 3, 1);
        assert_eq!(hear(&mut state, 1, News::Finished), []);
        assert_eq!(hear(&mut state, 2, News::Finished), []);
        assert_eq!(hear(&mut state, 2, News::Ended), []);
        let orders = hear(&mut state, 0, News::Ended);
        assert_eq!(orders, [Order::CallOff, Order::Start(0), Order::Start(2)]);
    }

    #[test]
    fn a_gang_that_cannot_even_start_gives_up() {
        let mut state = GangState::new(2, limits(3, 1));
        assert_eq!(hear(&mut state, 1, News::Ended), [Order::GiveUp]);
    }
}
