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
    early: &mut Early<'_>,
) -> Result<Option<Earlier>, EngineError> {
    let Some(place) = &request.resume else {
        return Ok(None);
    };
    let mut waiting = |message| early.tell(Event::Preparing { message });
    let earlier = Earlier::open(place, &mut waiting)?;
    for message in earlier.warnings.iter().cloned() {
        early.tell(Event::Warning { message });
    }
    Ok(Some(earlier))
}

/// The folder of the run that goes on, or a new one in `store`.
pub(super) fn open(
    resumed: Option<Earlier>,
    store: &Place,
    job_name: &str,
) -> Result<(RunDir, Unstarted, RunLock), EngineError> {
    if let Some(Earlier { run, lock, .. }) = resumed {
        return Ok((run, Unstarted { run: None }, lock));
    }
    let (run, lock) = RunDir::create(store, job_name)?;
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
