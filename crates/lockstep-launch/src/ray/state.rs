//! What is known of the cluster and of the workers on it, as the shim reports it.

use crate::WorkerEnd;
use crate::ray::RayError;
use crate::ray::protocol::{Report, Waiting, bytes, lacked_memory};
use crate::remote::{self, LaunchReport, Launches};
use std::collections::BTreeMap;
use std::net::IpAddr;

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
    /// The workers that were started.
    pub(crate) launches: Launches,
}

/// The state, and a way to wait for it to change.
pub(crate) type SharedState = remote::SharedState<State>;

/// Takes in a report, and tells those who listen what happened to their workers.
pub(crate) fn take(watched: &SharedState, report: Report) {
    let (launch, reported) = match report {
        Report::Failed { why, error, python } => {
            return watched.change(|state| {
                let error = RayError::reported(why, error, python);
                state.failed.get_or_insert(error);
            });
        }
        Report::Connected { here, ray, nodes } => {
            return watched.change(|state| {
                state.here = Some(here);
                state.cluster = Some((ray, nodes));
            });
        }
        Report::Waiting(waiting) => {
            return watched.change(|state| state.waiting = Some(waiting));
        }
        Report::Arrived { seat, node } => {
            return watched.change(|state| {
                state.seats.insert(seat, node);
            });
        }
        Report::Unseated { seat, error } => {
            return watched.change(|state| {
                // One that was up is made anew when a worker is to start there.
                if !state.seats.contains_key(&seat) {
                    let cause = match lacked_memory(&error) {
                        true => "out of memory: ",
                        false => "",
                    };
                    let error = format!("the actor of worker {seat} did not start: {cause}{error}");
                    state.failed.get_or_insert(RayError::Refused(error));
                }
            });
        }
        Report::Started { launch, value } => (launch, LaunchReport::Started(value)),
        Report::Leaving { launch, value } => (launch, LaunchReport::Leaving(value)),
        Report::Said { launch, value } => (launch, LaunchReport::Said(bytes(&value))),
        Report::Wrote { launch, value } => (launch, LaunchReport::Wrote(bytes(&value))),
        Report::Silent { launch } => (launch, LaunchReport::Silent),
        Report::Ended { launch, value } => (launch, LaunchReport::Ended(value.worker_end())),
    };
    hear(watched, launch, reported);
}

fn hear(watched: &SharedState, launch: u64, reported: LaunchReport) {
    watched
        .change(|state| state.launches.hear(launch, reported))
        .tell();
}

/// The shim is gone: so are all workers, since Ray ends the actors of a driver that is.
pub(crate) fn end(watched: &SharedState, error: &RayError) {
    let left = watched.change(|state| {
        state.failed.get_or_insert(error.clone());
        state.launches.audible()
    });
    for launch in left {
        hear(watched, launch, LaunchReport::Silent);
        let lost = WorkerEnd::Lost(error.to_string());
        hear(watched, launch, LaunchReport::Ended(lost));
    }
}
