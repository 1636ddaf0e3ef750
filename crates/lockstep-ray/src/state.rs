//! What is known of the cluster and of the workers on it, as the shim reports it.

use crate::RayError;
use crate::protocol::{Report, Waiting, bytes};
use lockstep_engine::launcher::{
    Happened, LaunchNotice, LineSplitter, Notify, WorkerEnd, WorkerId,
};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is known now.
#[derive(Default)]
pub(crate) struct State {
    /// The address of this node, once the cluster answered.
    pub(crate) here: Option<IpAddr>,
    /// Version of Ray, and how many nodes there are.
    pub(crate) cluster: Option<(String, usize)>,
    /// The address of the node that each seat is on, once its actor is up.
    pub(crate) seats: BTreeMap<usize, String>,
    /// What there was when room was last waited for.
    pub(crate) waiting: Option<Waiting>,
    /// Why nothing works any more.
    pub(crate) failed: Option<RayError>,
    /// By number, those of whom something may still be heard.
    pub(crate) launches: HashMap<u64, Launch>,
    /// The process of every launch, for people.
    pub(crate) pids: HashMap<u64, u32>,
}

/// A worker that was started.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) id: WorkerId,
    pub(crate) notify: Notify,
    /// Its output is at its end.
    silent: bool,
    ended: bool,
}

impl Launch {
    pub(crate) fn new(id: WorkerId, notify: Notify) -> Self {
        Self {
            id,
            notify,
            silent: false,
            ended: false,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    fn tell(&self, what: Happened) {
        (self.notify)(LaunchNotice { id: self.id, what });
    }
}

/// The state, and a way to wait for it to change.
#[derive(Default)]
pub(crate) struct Watched {
    state: Mutex<State>,
    changed: Condvar,
}

impl Watched {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody panics while holding it in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `is` returns something, for so long at most.
    pub(crate) fn wait<T>(
        &self,
        limit: Duration,
        mut is: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let until = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            if let Some(found) = is(&mut state) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change<T>(&self, how: impl FnOnce(&mut State) -> T) -> T {
        let changed = how(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    fn launch(&self, number: u64, how: impl FnOnce(&mut Launch)) -> Option<Launch> {
        self.change(|state| {
            let launch = state.launches.get_mut(&number)?;
            how(launch);
            let known = launch.clone();
            if known.ended && known.silent {
                state.launches.remove(&number);
            }
            Some(known)
        })
    }
}

/// Takes in reports, one after the other, and tells those who listen what happened to their workers.
#[derive(Default)]
pub(crate) struct Hearing {
    /// What a worker is in the middle of saying, and of writing.
    output: HashMap<u64, (Vec<u8>, LineSplitter)>,
}

impl Hearing {
    /// Takes in a report.
    pub(crate) fn take(&mut self, watched: &Watched, report: Report) {
        match report {
            Report::Failed { why, error, python } => watched.change(|state| {
                let error = RayError::reported(why, error, python);
                state.failed.get_or_insert(error);
            }),
            Report::Connected { here, ray, nodes } => watched.change(|state| {
                state.here = Some(here);
                state.cluster = Some((ray, nodes));
            }),
            Report::Waiting(waiting) => watched.change(|state| state.waiting = Some(waiting)),
            Report::Arrived { seat, node } => watched.change(|state| {
                state.seats.insert(seat, node);
            }),
            Report::Unseated { seat, error } => watched.change(|state| {
                // One that was up is made anew when a worker is to start there.
                if !state.seats.contains_key(&seat) {
                    let error = format!("the actor of worker {seat} did not start: {error}");
                    state.failed.get_or_insert(RayError::Refused(error));
                }
            }),
            Report::Started { launch, value: pid } => {
                watched.change(|state| state.pids.insert(launch, pid));
                if let Some(launch) = watched.launch(launch, |_| {}) {
                    launch.tell(Happened::Started(pid));
                }
            }
            Report::Leaving { launch, value } => {
                if let Some(launch) = watched.launch(launch, |_| {}) {
                    launch.tell(Happened::Leaving(value));
                }
            }
            Report::Said { launch, value } => {
                let Some(known) = watched.launch(launch, |_| {}) else {
                    return;
                };
                let (said, _) = self.output.entry(launch).or_default();
                for byte in bytes(&value) {
                    match byte {
                        b'\n' => {
                            let line = std::mem::take(said);
                            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                            known.tell(Happened::Said(line));
                        }
                        byte => said.push(byte),
                    }
                }
            }
            Report::Wrote { launch, value } => {
                let Some(known) = watched.launch(launch, |_| {}) else {
                    return;
                };
                let (_, written) = self.output.entry(launch).or_default();
                for line in bytes(&value)
                    .into_iter()
                    .filter_map(|byte| written.push(byte))
                {
                    known.tell(Happened::Wrote(line));
                }
            }
            Report::Silent { launch } => self.silent(watched, launch),
            Report::Ended { launch, value } => {
                let end = value.worker_end();
                if let Some(launch) = watched.launch(launch, |launch| launch.ended = true) {
                    launch.tell(Happened::Ended(end));
                }
            }
        }
    }

    fn silent(&mut self, watched: &Watched, launch: u64) {
        let (said, written) = self.output.remove(&launch).unwrap_or_default();
        let mut before = false;
        let silent = |launch: &mut Launch| before = std::mem::replace(&mut launch.silent, true);
        let known = match watched.launch(launch, silent) {
            // Said by the actor, and once more when that ended.
            None => return,
            Some(_) if before => return,
            Some(known) => known,
        };
        if !said.is_empty() {
            known.tell(Happened::Said(String::from_utf8_lossy(&said).into_owned()));
        }
        if let Some(line) = written.finish() {
            known.tell(Happened::Wrote(line));
        }
        known.tell(Happened::OutputEnded);
    }

    /// The shim is gone: so are all workers, since Ray ends the actors of a driver that is.
    pub(crate) fn end(&mut self, watched: &Watched, error: RayError) {
        let left: Vec<(u64, Launch)> = watched.change(|state| {
            state.failed.get_or_insert(error.clone());
            let launches = state.launches.iter();
            launches
                .map(|(number, launch)| (*number, launch.clone()))
                .collect()
        });
        for (number, launch) in left {
            if !launch.silent {
                self.silent(watched, number);
            }
            if !launch.ended {
                watched.launch(number, |launch| launch.ended = true);
                launch.tell(Happened::Ended(WorkerEnd::Lost(error.to_string())));
            }
        }
    }
}
