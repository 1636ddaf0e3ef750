//! Who is there, on which seat, and what runs there: the coordinator's knowledge of its hosts.

use crate::WorkerEnd;
use crate::hosts::protocol::ToHost;
use crate::remote::{self, LaunchReport, Launches, PendingNotices};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

/// A signal that cannot be caught: what a worker that never began is said to have ended by.
const KILL: i32 = 9;

/// The state, and a way to wait for it to change.
pub(crate) type SharedState = remote::SharedState<State>;

/// What is known now.
#[derive(Default)]
pub(crate) struct State {
    /// The workers that were started.
    pub(crate) launches: Launches,
    /// The links that are open, by number: those that hold a seat, and those whose hosts are leaving or were replaced.
    pub(crate) connections: HashMap<u64, Connection>,
    /// The connection that holds each seat.
    pub(crate) seats: BTreeMap<usize, u64>,
    /// The name of the host that had each seat last.
    pub(crate) names: BTreeMap<usize, String>,
    /// The connection that each launch was sent over.
    placed: HashMap<u64, u64>,
    /// What is to be done on seats that nobody holds, in order.
    waiting: BTreeMap<usize, Vec<(u64, ToHost)>>,
    /// Whether the run succeeded, once it is over.
    pub(crate) over: Option<bool>,
    /// How many have come.
    count: u64,
}

/// A link to a host.
pub(crate) struct Connection {
    pub(crate) index: usize,
    /// What is to be said to it.
    orders: SyncSender<ToHost>,
    silence: Arc<Silence>,
}

/// Why a host is not told that the coordinator is there, so that its lease runs out.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// It was not heard for a while, and may be heard again.
    pub(crate) unheard: AtomicBool,
    /// It is given up.
    given_up: AtomicBool,
}

impl Silence {
    pub(crate) fn is_kept(&self) -> bool {
        self.unheard.load(Ordering::Relaxed) || self.given_up.load(Ordering::Relaxed)
    }
}

impl Connection {
    pub(crate) fn new(index: usize, orders: SyncSender<ToHost>, silence: Arc<Silence>) -> Self {
        Self {
            index,
            orders,
            silence,
        }
    }

    /// Says something to the host. One that takes nothing in any more is given up.
    pub(crate) fn say(&self, order: ToHost) {
        if self.orders.try_send(order).is_err() {
            self.give_up();
        }
    }

    fn give_up(&self) {
        self.silence.given_up.store(true, Ordering::Relaxed);
    }
}

impl State {
    /// Gives a host its seat, and has it do what waits there. Who held the seat before is sent away.
    pub(crate) fn arrive(&mut self, connection: Connection, name: String) -> u64 {
        self.count += 1;
        let (number, index) = (self.count, connection.index);
        if let Some(before) = self.seats.insert(index, number)
            && let Some(before) = self.connections.get(&before)
        {
            let why = format!("another host {index} has come");
            before.say(ToHost::GoAway { why });
            before.give_up();
        }
        self.names.insert(index, name);
        self.connections.insert(number, connection);
        for (launch, order) in self.waiting.remove(&index).unwrap_or_default() {
            self.order(index, launch, order);
        }
        number
    }

    /// A host is about to be taken away: nothing new is started there, and its workers leave.
    pub(crate) fn leaving(&mut self, number: u64, why: &str) -> Vec<PendingNotices> {
        self.unseat(number);
        let leaving = |launch| (launch, LaunchReport::Leaving(why.to_owned()));
        let launches: Vec<_> = self.placed_on(number).into_iter().map(leaving).collect();
        self.hear_all(launches)
    }

    /// A link is at its end, and so are the workers behind it.
    pub(crate) fn gone(&mut self, number: u64, why: &str) -> Vec<PendingNotices> {
        self.unseat(number);
        self.connections.remove(&number);
        let mut reports = Vec::new();
        for launch in self.placed_on(number) {
            self.placed.remove(&launch);
            reports.push((launch, LaunchReport::Silent));
            let lost = WorkerEnd::Lost(why.to_owned());
            reports.push((launch, LaunchReport::Ended(lost)));
        }
        self.hear_all(reports)
    }

    /// Takes the seat from a connection that has one.
    fn unseat(&mut self, number: u64) {
        self.seats.retain(|_, holder| *holder != number);
    }

    fn placed_on(&self, number: u64) -> Vec<u64> {
        let placed = self.placed.iter().filter(|(_, on)| **on == number);
        placed.map(|(launch, _)| *launch).collect()
    }

    fn hear_all(&mut self, reports: Vec<(u64, LaunchReport)>) -> Vec<PendingNotices> {
        let hear = |(launch, reported)| self.launches.hear(launch, reported);
        reports.into_iter().map(hear).collect()
    }

    /// Has something done with a launch: where it is, or if it is nowhere yet, on its seat as soon as somebody holds
    /// that.
    pub(crate) fn order(&mut self, seat: usize, launch: u64, order: ToHost) {
        if let Some(number) = self.placed.get(&launch) {
            if let Some(connection) = self.connections.get(number) {
                connection.say(order);
            }
            return;
        }
        let holder = self.seats.get(&seat);
        match holder.and_then(|number| Some((number, self.connections.get(number)?))) {
            Some((number, connection)) => {
                self.placed.insert(launch, *number);
                connection.say(order);
            }
            None => self.waiting.entry(seat).or_default().push((launch, order)),
        }
    }

    /// Ends a launch. One that waits for a host never begins.
    pub(crate) fn end(&mut self, launch: u64) -> Vec<PendingNotices> {
        if self.placed.contains_key(&launch) {
            self.order(0, launch, ToHost::End { launch });
            return Vec::new();
        }
        for waiting in self.waiting.values_mut() {
            waiting.retain(|(of, _)| *of != launch);
        }
        let ended = LaunchReport::Ended(WorkerEnd::Signal(KILL));
        self.hear_all(vec![(launch, LaunchReport::Silent), (launch, ended)])
    }

    /// Takes in what a host reports of a launch.
    pub(crate) fn hear(&mut self, launch: u64, reported: LaunchReport) -> PendingNotices {
        let tidings = self.launches.hear(launch, reported);
        if !self.launches.is_audible(launch) {
            self.placed.remove(&launch);
        }
        tidings
    }
}
