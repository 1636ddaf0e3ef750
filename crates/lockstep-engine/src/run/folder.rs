//! The folder of a run: that of an earlier one that goes on, or a new one, which stays only if the run begins.

use super::{Early, RunRequest};
use crate::EngineError;
use crate::resume::Earlier;
use lockstep_events::event::Event;
use lockstep_place::Place;
use lockstep_runs::{RunDir, RunLock};

/// Opens the run to go on with or to begin from, if there is one, and tells its warnings.
pub(super) fn earlier(
    request: &RunRequest,
    store: &Place,
    early: &mut Early<'_>,
) -> Result<Option<Earlier>, EngineError> {
    let mut waiting = |message| early.tell(Event::Preparing { message });
    let earlier = match (&request.resume, &request.name) {
        (Some(place), _) => Some(Earlier::open(place, &mut waiting)?),
        (None, Some(name)) => Earlier::named(store, name, &mut waiting)?,
        (None, None) => None,
    };
    for message in earlier.iter().flat_map(|earlier| earlier.warnings.clone()) {
        early.tell(Event::Warning { message });
    }
    Ok(earlier)
}

/// The folder of the run that goes on, or a new one in `store`: under the name that was chosen before, or another.
pub(super) fn open(
    resumed: Option<Earlier>,
    store: &Place,
    name: Option<&str>,
    job_name: &str,
) -> Result<(RunDir, Unstarted, RunLock), EngineError> {
    if let Some(Earlier { run, lock, .. }) = resumed {
        return Ok((run, Unstarted { run: None }, lock));
    }
    let (run, lock) = match name {
        Some(name) => RunDir::take(store, name, &mut |_| {})?,
        None => RunDir::create(store, job_name)?,
    };
    let folder = Unstarted {
        run: Some(run.clone()),
    };
    Ok((run, folder, lock))
}

/// Removes the folder of a run that did not begin.
pub(super) struct Unstarted {
    run: Option<RunDir>,
}

impl Unstarted {
    pub(super) fn keep(&mut self) {
        self.run = None;
    }
}

impl Drop for Unstarted {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            // The error that brought us here is the one to report.
            let _ = run.discard();
        }
    }
}
