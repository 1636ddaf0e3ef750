//! Workers that hosts start.

use crate::hosts::HostsError;
use crate::hosts::protocol::ToHost;
use crate::hosts::state::{SharedState, State};
use crate::remote::named;
use crate::{
    Ending, LaunchError, Launched, Launcher, NotReady, Notify, Site, WorkerId, WorkerSpec,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the end of a worker is waited for before nobody can say whether it ended.
const END: Duration = Duration::from_secs(2);
/// How long the ends of all are waited for.
const END_ALL: Duration = Duration::from_secs(4);
/// How often somebody who waits for hosts may say that he does no longer.
const LOOK: Duration = Duration::from_millis(50);
/// How long hosts are waited for without a word, and how often it is said again.
const TELL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Starts workers on the hosts that have come. The worker of a seat whose host is not there starts when it comes.
pub struct HostLauncher {
    watched: Arc<SharedState>,
    /// Where the coordinator listens for workers.
    listen: SocketAddr,
    seats: usize,
    enough: usize,
}

impl HostLauncher {
    pub(crate) fn new(
        watched: Arc<SharedState>,
        listen: SocketAddr,
        seats: usize,
        enough: usize,
    ) -> Self {
        Self {
            watched,
            listen,
            seats,
            enough,
        }
    }

    /// Who is not there, in words.
    fn missing(&self, state: &State) -> String {
        let missing = (0..self.seats).filter(|seat| !state.seats.contains_key(seat));
        named(missing.map(|seat| format!("host {seat}")).collect())
    }
}

impl Launcher for HostLauncher {
    fn ready(
        &mut self,
        deadline: Duration,
        waiting: &mut dyn FnMut(Option<String>) -> bool,
    ) -> Result<bool, NotReady> {
        let began = Instant::now();
        let mut tell_at = began + TELL.0;
        loop {
            let enough = |state: &mut State| (state.seats.len() >= self.enough).then_some(());
            if self.watched.wait(LOOK, enough).is_some() {
                let state = self.watched.lock();
                let on =
                    |seat: &usize| Some(format!("worker {seat} on {}", state.names.get(seat)?));
                let hosts = named(state.seats.keys().filter_map(on).collect());
                drop(state);
                return Ok(waiting(Some(format!("the hosts are there: {hosts}"))));
            }
            let state = self.watched.lock();
            let here = state.seats.len();
            if began.elapsed() > deadline {
                let error = HostsError::TooFew {
                    here,
                    enough: self.enough,
                    missing: self.missing(&state),
                    seconds: deadline.as_secs_f64(),
                };
                return Err(NotReady(error.into()));
            }
            let mut news = None;
            if Instant::now() > tell_at {
                tell_at = Instant::now() + TELL.1;
                let (enough, missing) = (self.enough, self.missing(&state));
                news = Some(format!(
                    "waiting for hosts: {here} of {enough} are there; missing: {missing}"
                ));
            }
            drop(state);
            if !waiting(news) {
                return Ok(false);
            }
        }
    }

    fn nodes(&self) -> Vec<(usize, String)> {
        let state = self.watched.lock();
        let node = |seat: &usize| Some((*seat, state.names.get(seat)?.clone()));
        state.seats.keys().filter_map(node).collect()
    }

    fn start(&mut self, spec: &WorkerSpec<'_>, notify: Notify) -> Result<Launched, LaunchError> {
        self.watched.change(|state| {
            let launch = state.launches.add(spec.id, notify);
            let start = ToHost::Start {
                launch,
                command: spec.command.to_owned(),
                invitation: spec.invitation.clone(),
                speaks: spec.speaks,
            };
            state.order(spec.id.seat, launch, start);
        });
        Ok(Launched::default())
    }

    fn tell(&mut self, id: WorkerId, line: &str) {
        self.watched.change(|state| {
            let running = state.launches.number(id);
            if let Some(launch) = running.filter(|launch| !state.launches.has_ended(*launch)) {
                let line = line.to_owned();
                state.order(id.seat, launch, ToHost::Tell { launch, line });
            }
        });
    }

    fn end(&mut self, id: WorkerId) -> Ending {
        let (launch, tidings) = {
            let mut state = self.watched.lock();
            match state.launches.number(id) {
                Some(launch) if !state.launches.has_ended(launch) => (launch, state.end(launch)),
                _ => return Ending::Certain,
            }
        };
        tidings.into_iter().for_each(|tidings| tidings.tell());
        let ended = |state: &mut State| state.launches.has_ended(launch).then_some(());
        match self.watched.wait(END, ended) {
            Some(()) => Ending::Certain,
            None => Ending::Unknown,
        }
    }

    fn end_all(&mut self) {
        let (left, tidings) = {
            let mut state = self.watched.lock();
            let left = state.launches.running();
            let tidings: Vec<_> = left.iter().flat_map(|launch| state.end(*launch)).collect();
            (left, tidings)
        };
        tidings.into_iter().for_each(|tidings| tidings.tell());
        let ended = |state: &mut State| {
            let mut left = left.iter();
            left.all(|launch| state.launches.has_ended(*launch))
                .then_some(())
        };
        self.watched.wait(END_ALL, ended);
    }

    fn describe(&self, id: WorkerId) -> String {
        let state = self.watched.lock();
        match (state.launches.pid(id), state.names.get(&id.seat)) {
            (Some(pid), Some(name)) => format!("pid {pid} on {name}"),
            (None, Some(name)) => format!("on {name}"),
            (_, None) => "whose host has not come".to_owned(),
        }
    }

    fn site(&self) -> Site {
        Site {
            listen: self.listen,
            advertise: None,
            peers: match self.listen {
                SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            },
            shares_memory: false,
            leased: true,
        }
    }
}

impl Drop for HostLauncher {
    fn drop(&mut self) {
        self.end_all();
    }
}
