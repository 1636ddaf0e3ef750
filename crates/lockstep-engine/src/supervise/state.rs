//! Who is where in a gang that may lose workers: decides what is to be done, and does nothing itself.
//!
//! A worker sits at a *seat*, which keeps its number when its process is replaced. All workers of a
//! *generation* begin together. When one is lost, the generation is called off; those that are healthy
//! say that they stopped, the lost ones are started anew, and once everybody is ready the next
//! generation begins. So nobody ever works in two generations, and no generation begins while anyone
//! may still be writing in the one before it: the model test explores every order of events for that.

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
    /// It stopped working, because of others, and waits.
    Stopped,
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

/// The state of a gang.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GangState {
    seats: Vec<SeatState>,
    /// The present generation; 0 before the first.
    generation: u16,
    /// The present generation was called off.
    called_off: bool,
    /// How often the gang may still begin again.
    restarts_left: u32,
    /// With fewer workers than this the gang gives up.
    min_workers: usize,
    /// It concluded, or gave up.
    over: bool,
}

impl GangState {
    /// A gang whose workers were just started.
    pub(crate) fn new(workers: usize, max_restarts: u32, min_workers: usize) -> Self {
        Self {
            seats: vec![SeatState::Starting; workers],
            generation: 0,
            called_off: false,
            restarts_left: max_restarts,
            min_workers: min_workers.max(1),
            over: false,
        }
    }

    /// The present generation; 0 before the first.
    pub(crate) fn generation(&self) -> u16 {
        self.generation
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
        (0..self.seats.len()).filter(|seat| self.seats[*seat] != SeatState::Retired)
    }

    /// Takes in news of a seat and says what is to be done, in order.
    pub(crate) fn hear(&mut self, seat: usize, news: News) -> Vec<Order> {
        let mut orders = Vec::new();
        if self.over {
            return orders;
        }
        match (news, self.seats[seat]) {
            (News::Joined, SeatState::Starting) => self.seats[seat] = SeatState::Ready,
            (News::Finished, SeatState::Working) => self.seats[seat] = SeatState::Done,
            (News::Stopped, SeatState::Working) => self.leave(seat, SeatState::Ready, &mut orders),
            (News::Ended, SeatState::Working | SeatState::Ready) => {
                self.leave(seat, SeatState::Gone, &mut orders);
            }
            // It has done its part. What rank 0 has published stays.
            (News::Ended, SeatState::Done) if self.ranks().next() != Some(seat) => {
                self.seats[seat] = SeatState::Gone;
            }
            (News::Ended, SeatState::Starting) if self.generation > 0 => {
                self.seats[seat] = SeatState::Retired;
            }
            (News::Ended, SeatState::Starting) => self.give_up(&mut orders),
            (News::Overdue, SeatState::Working | SeatState::Starting) => {
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
        if self.any(SeatState::Working) {
            return;
        }
        // Who finished has passed the last barrier, and so had everybody else done all the work. Rank 0
        // publishes it after that: without it, there is no result, and those who are done begin again.
        if self.ranks().next().map(|first| self.seats[first]) == Some(SeatState::Done) {
            self.over = true;
            orders.push(Order::Conclude);
            return;
        }
        for place in &mut self.seats {
            if *place == SeatState::Done {
                *place = SeatState::Ready;
            }
        }
        if self.called_off {
            if self.restarts_left == 0 {
                return self.give_up(orders);
            }
            self.restarts_left -= 1;
            self.called_off = false;
        }
        for seat in 0..self.seats.len() {
            if self.seats[seat] == SeatState::Gone {
                self.seats[seat] = SeatState::Starting;
                orders.push(Order::Start(seat));
            }
        }
        if self.any(SeatState::Starting) {
            return;
        }
        let ready: Vec<usize> = self.ranks().collect();
        if ready.len() < self.min_workers {
            return self.give_up(orders);
        }
        for &seat in &ready {
            self.seats[seat] = SeatState::Working;
        }
        self.generation += 1;
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

    /// A gang of so many that has begun.
    fn begun(workers: usize, max_restarts: u32, min_workers: usize) -> GangState {
        let mut state = GangState::new(workers, max_restarts, min_workers);
        for seat in 0..workers {
            hear(&mut state, seat, News::Joined);
        }
        assert_eq!(state.generation(), 1);
        state
    }

    #[test]
    fn all_begin_when_the_last_has_joined() {
        let mut state = GangState::new(2, 3, 1);
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
        let mut state = GangState::new(2, 3, 1);
        assert_eq!(hear(&mut state, 1, News::Ended), [Order::GiveUp]);
    }
}
