//! Every order of events that a small gang can meet, explored: crashes, hangs and awakenings, messages
//! that are late, replacements that do not start, deadlines that strike too early, workers that are out of
//! reach when they are to be ended.
//!
//! The [`GangState`] under test is the one that runs; only processes and links are modelled. A link delivers
//! in order, after any delay, what was said before its end; then it says that the process ended.
//!
//! Workers also copy their state after steps, each its own share, and may die in the midst of that. The copies and their
//! stamps are modelled, in memory that all share as in the workers' own, where each share goes to a keeper too. Which copy
//! counts is decided by the function that runs.

mod copies;

use super::state::{GangLimits, GangState, News, Order, SeatState};
use copies::{Copies, Share};
use lockstep_gang::{RankStamp, keepers};
use stateright::{Checker, Model, Property};
use std::collections::VecDeque;

/// What the coordinator says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CoordinatorMessage {
    Begin(u16),
    CallOff(u16),
    Pause(u16),
    Dismiss,
}

/// One worker's process and its link.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    alive: bool,
    /// Stopped: it does nothing, and may be woken.
    hung: bool,
    /// The generation that it works in.
    works_in: Option<u16>,
    /// It has come to the last barrier of its work.
    arrived: bool,
    /// It was asked to pause.
    asked_to_pause: bool,
    /// The coordinator ended it, and cannot say whether that worked: its lease is running out.
    condemned: bool,
    /// Copies that it has completed in its generation, and whether it is writing another one.
    copies: u64,
    copying: bool,
    /// The generation that it sends them in: what was sent in an earlier one does not arrive any more.
    sends_in: Option<u16>,
    /// Of these, how many its keeper has, and whether that one is at the next.
    kept: u64,
    keeping: bool,
    /// The copy that its generation goes on from is in its memory.
    restored: bool,
    inbox: VecDeque<CoordinatorMessage>,
    outbox: VecDeque<News>,
}

impl Process {
    fn started() -> Self {
        Self {
            alive: true,
            hung: false,
            works_in: None,
            arrived: false,
            asked_to_pause: false,
            condemned: false,
            copies: 0,
            copying: false,
            sends_in: None,
            kept: 0,
            keeping: false,
            restored: false,
            inbox: VecDeque::new(),
            outbox: VecDeque::from([News::Joined]),
        }
    }

    fn runs(&self) -> bool {
        self.alive && !self.hung
    }

    fn stop_working(&mut self) {
        self.works_in = None;
        self.copying = false;
        self.outbox.push_back(News::Stopped);
    }

    fn die(&mut self) {
        self.alive = false;
        self.works_in = None;
        self.copying = false;
        self.inbox.clear();
        // Of one that is out of reach nobody hears that it ended.
        if !self.condemned {
            self.outbox.push_back(News::Ended);
        }
    }
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    state: GangState,
    processes: Vec<Process>,
    /// Who was told to begin in the present generation, and who of them came to the last barrier.
    members: Vec<usize>,
    arrived: Vec<usize>,
    crashes_left: u8,
    hangs_left: u8,
    failed_starts_left: u8,
    alarms_left: u8,
    /// How often a worker may be out of reach when it is to be ended.
    cuts_left: u8,
    /// How often a worker may ask to be done without.
    leaves_left: u8,
    /// The copies of the state.
    copies: Copies,
    /// The members of the present generation have agreed to pause.
    agreed_to_pause: bool,
    /// Rank 0 has published what was learned.
    published: bool,
    concluded: bool,
    gave_up: bool,
    /// Somebody said that it finished when not all work was done.
    finished_early: bool,
    /// A generation began while a worker could still write in an older one.
    overlapped: bool,
    /// A generation began with fewer than allowed.
    too_few: bool,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ModelEvent {
    Crash(usize),
    Hang(usize),
    Wake(usize),
    /// A worker does what it was told.
    Obey(usize),
    /// A worker comes to the last barrier.
    Arrive(usize),
    /// A worker passes it.
    Finish(usize),
    /// A worker finds that a peer is gone.
    MissPeer(usize),
    /// All have come to the end of a step, and one of them was asked to pause.
    Agree,
    /// A worker pauses, as was agreed.
    Pause(usize),
    /// A worker begins to copy its share of the state, or is done with it.
    Copy(usize),
    Copied(usize),
    /// What a worker has copied begins to come to its keeper, or is there.
    Keep(usize),
    Kept(usize),
    /// All workers of a generation have brought what it goes on from to their memory.
    Restore,
    /// A worker asks to be done without.
    Leave(usize),
    /// The coordinator has waited long enough for those who are starting.
    Settle,
    /// The coordinator hears a worker; if that makes it start one, this says whether that works.
    Hear(usize, bool),
    /// A deadline strikes; if that ends a worker, this says whether it can be reached.
    Alarm(usize, bool),
    /// A worker that is out of reach ends itself. One that hangs does so as the first thing when it wakes.
    LeaseEnds(usize),
    /// The coordinator has waited for that.
    LeaseWaited(usize),
}

struct GangModel {
    workers: usize,
    max_restarts: u32,
    min_workers: usize,
    crashes: u8,
    hangs: u8,
    failed_starts: u8,
    alarms: u8,
    cuts: u8,
    leaves: u8,
    /// Copies of the state in a generation that comes to its end.
    copies: u64,
    /// Whether all workers share the memory for them.
    shares_memory: bool,
    enough: Option<usize>,
}

impl World {
    /// The process of a seat ends.
    fn die(&mut self, seat: usize) {
        self.processes[seat].die();
        self.copies.wipe(seat);
    }

    /// The seat that keeps copies for one, as of the present members.
    fn keeper(&self, seat: usize) -> Option<usize> {
        let rank = self.members.iter().position(|member| *member == seat)?;
        let keepers = keepers(&vec![None; self.members.len()]);
        Some(self.members[*keepers.get(rank)?])
    }

    /// The newest share that a worker has completed in the present generation.
    fn share(&self, seat: usize) -> Share {
        let copies = self.processes[seat].copies;
        let step = self.copies.begun + copies;
        let stamp = RankStamp {
            stamp: u64::from(self.state.generation()) << 48 | copies,
            step,
            ranks: self.members.len() as u64,
        };
        Share { stamp, step }
    }

    /// Counts the step of the newest copy of a worker, if all have it and it lies where it is to lie.
    fn count(&mut self, seat: usize) {
        let (copies, works_in) = (self.processes[seat].copies, self.processes[seat].works_in);
        let has_copied = |member: &usize| {
            let process = &self.processes[*member];
            process.works_in == works_in && process.copies >= copies && self.is_kept(*member)
        };
        // A share of an earlier generation may be of the same step: that proves nothing.
        if works_in.is_some() && self.members.iter().all(has_copied) {
            self.copies.counted = self.copies.begun + copies;
            let home = |&seat: &usize| [Some(seat), self.keeper(seat)].into_iter().flatten();
            let homes = self.members.iter().map(|seat| home(seat).collect());
            self.copies.homes = homes.collect();
            self.copies.wiped.clear();
        }
    }

    /// Whether all that a worker has copied lies where it is to lie.
    fn is_kept(&self, seat: usize) -> bool {
        let process = &self.processes[seat];
        self.copies.are_shared() || self.members.len() < 2 || process.kept >= process.copies
    }

    fn tell_state(&mut self, seat: usize, news: News, works: bool, min_workers: usize) {
        let orders = self.state.hear(seat, news);
        self.carry_out(orders, works, min_workers);
    }

    fn carry_out(&mut self, orders: Vec<Order>, works: bool, min_workers: usize) {
        let mut orders = VecDeque::from(orders);
        while let Some(order) = orders.pop_front() {
            match order {
                Order::CallOff => {
                    let generation = self.state.generation();
                    for seat in 0..self.processes.len() {
                        if self.state.seat(seat) == SeatState::Working && self.processes[seat].alive
                        {
                            self.processes[seat]
                                .inbox
                                .push_back(CoordinatorMessage::CallOff(generation));
                        }
                    }
                }
                Order::Pause => {
                    let generation = self.state.generation();
                    for seat in self.state.ranks().collect::<Vec<_>>() {
                        if self.state.seat(seat) == SeatState::Working && self.processes[seat].alive
                        {
                            self.processes[seat]
                                .inbox
                                .push_back(CoordinatorMessage::Pause(generation));
                        }
                    }
                }
                Order::Dismiss(seat) => {
                    if self.processes[seat].alive {
                        self.processes[seat]
                            .inbox
                            .push_back(CoordinatorMessage::Dismiss);
                    }
                }
                Order::Kill(seat) if !works && self.cuts_left > 0 => {
                    self.cuts_left -= 1;
                    self.processes[seat].condemned = true;
                }
                Order::Kill(seat) => {
                    if self.processes[seat].alive {
                        self.die(seat);
                    }
                }
                Order::Start(seat) if works || self.failed_starts_left == 0 => {
                    self.processes[seat] = Process::started();
                    self.copies.wipe(seat);
                }
                Order::Start(seat) => {
                    self.failed_starts_left -= 1;
                    orders.extend(self.state.hear(seat, News::Ended));
                }
                Order::Begin(seats) => {
                    self.overlapped |= self.processes.iter().any(|p| p.works_in.is_some());
                    self.too_few |= seats.len() < min_workers;
                    for &seat in &seats {
                        let told = CoordinatorMessage::Begin(self.state.generation());
                        if self.processes[seat].alive {
                            self.processes[seat].inbox.push_back(told);
                        }
                    }
                    self.copies.begin(&seats);
                    self.members = seats;
                    self.arrived.clear();
                    self.agreed_to_pause = false;
                }
                Order::Conclude => self.concluded = true,
                Order::GiveUp => self.gave_up = true,
            }
        }
    }

    fn is_over(&self) -> bool {
        self.concluded || self.gave_up
    }
}

impl Model for GangModel {
    type State = World;
    type Action = ModelEvent;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            state: GangState::new(
                self.workers,
                GangLimits {
                    max_restarts: self.max_restarts,
                    min_workers: self.min_workers,
                    enough: self.enough,
                },
            ),
            processes: vec![Process::started(); self.workers],
            members: Vec::new(),
            arrived: Vec::new(),
            crashes_left: self.crashes,
            hangs_left: self.hangs,
            failed_starts_left: self.failed_starts,
            alarms_left: self.alarms,
            cuts_left: self.cuts,
            leaves_left: self.leaves,
            copies: Copies::of(self.workers, self.shares_memory),
            agreed_to_pause: false,
            published: false,
            concluded: false,
            gave_up: false,
            finished_early: false,
            overlapped: false,
            too_few: false,
        }]
    }

    fn actions(&self, world: &World, events: &mut Vec<ModelEvent>) {
        if world.is_over() {
            return;
        }
        let all_arrived = world.members.iter().all(|s| world.arrived.contains(s));
        let generation = Some(world.state.generation());
        let together = |seat: &usize| {
            let process = &world.processes[*seat];
            process.works_in == generation && process.runs() && !process.arrived && !process.copying
        };
        if !world.agreed_to_pause
            && world.members.iter().all(together)
            && (world.members.iter()).any(|seat| world.processes[*seat].asked_to_pause)
        {
            events.push(ModelEvent::Agree);
        }
        let begun = |seat: &usize| {
            let process = &world.processes[*seat];
            process.works_in == generation && process.runs() && !process.restored
        };
        if !world.members.is_empty() && world.members.iter().all(begun) {
            events.push(ModelEvent::Restore);
        }
        if world.state.could_begin() {
            events.push(ModelEvent::Settle);
        }
        for (seat, process) in world.processes.iter().enumerate() {
            let place = world.state.seat(seat);
            if process.alive && world.crashes_left > 0 {
                events.push(ModelEvent::Crash(seat));
            }
            if process.runs() && world.hangs_left > 0 {
                events.push(ModelEvent::Hang(seat));
            }
            if process.alive && process.hung {
                events.push(ModelEvent::Wake(seat));
                // The deadline of one that hangs strikes at last; another's may, if it is slow.
                if matches!(
                    place,
                    SeatState::Working | SeatState::Starting | SeatState::Leaving
                ) {
                    alarm(world, seat, events);
                }
            } else if process.alive
                && world.alarms_left > 0
                && matches!(place, SeatState::Working | SeatState::Starting)
            {
                alarm(world, seat, events);
            }
            if process.condemned && process.alive {
                events.push(ModelEvent::LeaseEnds(seat));
            } else if process.condemned {
                events.push(ModelEvent::LeaseWaited(seat));
            }
            if process.runs() && !process.inbox.is_empty() {
                events.push(ModelEvent::Obey(seat));
            }
            if process.runs() && world.leaves_left > 0 {
                events.push(ModelEvent::Leave(seat));
            }
            if process.runs() && process.copying {
                events.push(ModelEvent::Copied(seat));
            }
            // What was sent may arrive after the sender has died, as long as the keeper works.
            if let Some(keeper) = world.keeper(seat).filter(|_| !world.copies.are_shared())
                && world.processes[keeper].works_in == process.sends_in
                && world.processes[keeper].runs()
                && process.sends_in == generation
                && process.kept < process.copies
            {
                events.push(match process.keeping {
                    false => ModelEvent::Keep(seat),
                    true => ModelEvent::Kept(seat),
                });
            }
            // Nobody goes on to another step before all have copied the last one.
            let is_copied = |peer: &usize| {
                let kept = world.is_kept(*peer);
                let peer = &world.processes[*peer];
                peer.works_in == process.works_in && peer.copies >= process.copies && kept
            };
            if process.runs()
                && process.restored
                && process.works_in == generation
                && !process.copying
                && !process.arrived
                && process.copies < self.copies
                && world.members.iter().all(is_copied)
            {
                events.push(ModelEvent::Copy(seat));
            }
            if process.runs() && process.works_in == generation && world.agreed_to_pause {
                events.push(ModelEvent::Pause(seat));
            } else if process.runs() && process.works_in.is_some() {
                if !process.arrived
                    && process.restored
                    && process.copies == self.copies
                    && world.members.iter().all(is_copied)
                {
                    events.push(ModelEvent::Arrive(seat));
                } else if process.arrived && all_arrived {
                    events.push(ModelEvent::Finish(seat));
                }
                let missing = |peer: &usize| {
                    let peer = &world.processes[*peer];
                    peer.works_in != process.works_in && !all_arrived && !world.agreed_to_pause
                };
                if world.members.iter().any(missing) {
                    events.push(ModelEvent::MissPeer(seat));
                }
            }
            if !process.outbox.is_empty() {
                events.push(ModelEvent::Hear(seat, true));
                if world.failed_starts_left > 0 {
                    events.push(ModelEvent::Hear(seat, false));
                }
            }
        }
    }

    fn next_state(&self, world: &World, event: ModelEvent) -> Option<World> {
        let mut world = world.clone();
        match event {
            ModelEvent::Crash(seat) => {
                world.crashes_left -= 1;
                world.die(seat);
            }
            ModelEvent::Hang(seat) => {
                world.hangs_left -= 1;
                world.processes[seat].hung = true;
            }
            ModelEvent::Wake(seat) => world.processes[seat].hung = false,
            ModelEvent::Obey(seat) => {
                let process = &mut world.processes[seat];
                match process.inbox.pop_front()? {
                    CoordinatorMessage::Begin(generation) => {
                        process.works_in = Some(generation);
                        process.arrived = false;
                        process.copies = 0;
                        process.sends_in = Some(generation);
                        process.kept = 0;
                        process.keeping = false;
                        process.restored = world.copies.are_shared();
                        process.asked_to_pause = false;
                        world.copies.keep_only_from(seat);
                    }
                    CoordinatorMessage::Pause(generation) => {
                        process.asked_to_pause |= process.works_in == Some(generation);
                    }
                    CoordinatorMessage::Dismiss => world.die(seat),
                    CoordinatorMessage::CallOff(generation)
                        if process.works_in == Some(generation) =>
                    {
                        process.stop_working();
                    }
                    CoordinatorMessage::CallOff(_) => {}
                }
            }
            ModelEvent::Arrive(seat) => {
                world.processes[seat].arrived = true;
                world.arrived.push(seat);
                world.arrived.sort_unstable();
            }
            ModelEvent::Finish(seat) => {
                world.published |= world.members.first() == Some(&seat);
                let process = &mut world.processes[seat];
                process.works_in = None;
                process.outbox.push_back(News::Finished);
            }
            ModelEvent::MissPeer(seat) => world.processes[seat].stop_working(),
            ModelEvent::Agree => world.agreed_to_pause = true,
            ModelEvent::Pause(seat) => {
                let process = &mut world.processes[seat];
                process.works_in = None;
                process.outbox.push_back(News::Paused);
            }
            ModelEvent::Restore => {
                if !world.copies.are_shared() {
                    let members = world.members.clone();
                    world.copies.restore(&members);
                }
                for &seat in &world.members {
                    world.processes[seat].restored = true;
                }
            }
            ModelEvent::Copy(seat) => {
                let rank = world.members.iter().position(|member| *member == seat)?;
                let process = &mut world.processes[seat];
                process.copying = true;
                let copy = world.copies.next(process.copies);
                let generation = process.works_in?;
                world.copies.take_back(seat, (copy, rank), generation);
            }
            ModelEvent::Copied(seat) => {
                let rank = world.members.iter().position(|member| *member == seat)?;
                let process = &mut world.processes[seat];
                let copy = world.copies.next(process.copies);
                process.copying = false;
                process.copies += 1;
                let share = world.share(seat);
                world.copies.memory(seat)[copy][rank] = share;
                world.count(seat);
            }
            ModelEvent::Keep(seat) => {
                let rank = world.members.iter().position(|member| *member == seat)?;
                let keeper = world.keeper(seat)?;
                world.processes[seat].keeping = true;
                let copy = world.copies.next(world.processes[seat].kept);
                let generation = world.state.generation();
                world.copies.take_back(keeper, (copy, rank), generation);
            }
            ModelEvent::Kept(seat) => {
                let rank = world.members.iter().position(|member| *member == seat)?;
                let keeper = world.keeper(seat)?;
                let copy = world.copies.next(world.processes[seat].kept);
                world.processes[seat].keeping = false;
                world.processes[seat].kept += 1;
                let share = world.share(seat);
                world.copies.memory(keeper)[copy][rank] = share;
                world.count(seat);
            }
            ModelEvent::Leave(seat) => {
                world.leaves_left -= 1;
                world.processes[seat].outbox.push_back(News::Leaving);
            }
            ModelEvent::Settle => {
                let orders = world.state.begin_without_late();
                world.carry_out(orders, true, self.min_workers);
            }
            ModelEvent::Hear(seat, starts) => {
                let before = world.failed_starts_left;
                let news = world.processes[seat].outbox.pop_front()?;
                let all_arrived = world.members.iter().all(|s| world.arrived.contains(s));
                world.finished_early |= news == News::Finished && !all_arrived;
                world.tell_state(seat, news, starts, self.min_workers);
                // To fail where nothing is started is the same as not to.
                if !starts && world.failed_starts_left == before {
                    return None;
                }
            }
            ModelEvent::Alarm(seat, reached) => {
                if !world.processes[seat].hung {
                    world.alarms_left -= 1;
                }
                world.tell_state(seat, News::Overdue, reached, self.min_workers);
            }
            ModelEvent::LeaseEnds(seat) => world.die(seat),
            ModelEvent::LeaseWaited(seat) => {
                world.processes[seat].condemned = false;
                // Its link is closed: what it said last is not heard any more.
                world.processes[seat].outbox.clear();
                world.tell_state(seat, News::Ended, true, self.min_workers);
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nobody works in two generations", |_, w: &World| {
                !w.overlapped && !w.finished_early
            }),
            Property::always("no step that counts is done again", |_, w: &World| {
                !w.copies.lost
            }),
            Property::always("never with too few", |_, w: &World| !w.too_few),
            Property::always("no result without what was learned", |_, w: &World| {
                !w.concluded || w.published
            }),
            Property::always("it ends in one way", |_, w: &World| {
                !(w.concluded && w.gave_up)
            }),
            Property::eventually("it ends", |_, w: &World| w.is_over()),
            Property::sometimes("it recovers and concludes", |_, w: &World| {
                w.concluded && w.state.generation() > 1
            }),
        ]
    }
}

/// A deadline strikes for a worker that is not on its way out already.
fn alarm(world: &World, seat: usize, events: &mut Vec<ModelEvent>) {
    if world.processes[seat].condemned {
        return;
    }
    events.push(ModelEvent::Alarm(seat, true));
    if world.cuts_left > 0 {
        events.push(ModelEvent::Alarm(seat, false));
    }
}

fn explore(gang: GangModel) -> usize {
    let checker = gang.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    checker.unique_state_count()
}

#[test]
fn whatever_happens_to_two_workers_no_generation_overlaps_and_the_run_ends() {
    let states = explore(GangModel {
        workers: 2,
        max_restarts: 2,
        min_workers: 1,
        crashes: 2,
        hangs: 1,
        failed_starts: 1,
        alarms: 1,
        cuts: 1,
        leaves: 0,
        copies: 0,
        shares_memory: true,
        enough: None,
    });
    assert!(states > 1_000, "{states} states are too few to mean much");
}

#[test]
fn whatever_happens_to_three_workers_no_generation_overlaps_and_the_run_ends() {
    explore(GangModel {
        workers: 3,
        max_restarts: 1,
        min_workers: 2,
        crashes: 1,
        hangs: 1,
        failed_starts: 1,
        alarms: 0,
        cuts: 1,
        leaves: 0,
        copies: 0,
        shares_memory: true,
        enough: None,
    });
}

#[test]
fn whatever_happens_to_workers_that_come_and_leave_no_generation_overlaps_and_the_run_ends() {
    for (workers, leaves, crashes) in [(2, 1, 1), (3, 1, 0)] {
        explore(GangModel {
            workers,
            max_restarts: 1,
            min_workers: 1,
            crashes,
            hangs: 0,
            failed_starts: 1,
            alarms: 0,
            cuts: 0,
            leaves,
            copies: 0,
            shares_memory: true,
            enough: Some(workers - 1),
        });
    }
}

/// Small gangs that copy their state, and lose workers meanwhile.
fn explore_copies(shares_memory: bool) {
    for (workers, crashes, copies) in [(2, 2, 3), (3, 1, 2)] {
        explore(GangModel {
            workers,
            max_restarts: 2,
            min_workers: 1,
            crashes,
            hangs: 0,
            failed_starts: 1,
            alarms: 0,
            cuts: 0,
            leaves: 0,
            copies,
            shares_memory,
            enough: None,
        });
    }
}

#[test]
fn wherever_a_worker_dies_while_copies_are_written_the_newest_that_counts_is_whole() {
    explore_copies(true);
}

#[test]
fn wherever_a_worker_dies_while_others_keep_its_copies_all_that_counts_is_left_with_them() {
    explore_copies(false);
}
