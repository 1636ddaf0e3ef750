//! What a run has left that another can be held against.

use super::ReplayError;
use lockstep_events::Trace;
use lockstep_events::event::{Event, Reported, RunResult, Started, Status, UsedLibrary, UsedSet};
use lockstep_place::{Access, Place};
use lockstep_runs::{RunDir, files};
use serde_json::{Map, Value};

/// The record of a run, as far as it can be compared.
#[derive(Debug, Default)]
pub struct RunRecord {
    /// The samples that it used.
    pub data: Vec<UsedSet>,
    /// The libraries of others that computed in it; none of a run that was recorded before these were.
    pub libraries: Vec<UsedLibrary>,
    /// Marks of its parameters.
    pub trace: Trace,
    /// What a script reported, by the number of the report.
    pub reports: Vec<(u64, Map<String, Value>)>,
    /// How it ended, if it did.
    pub result: Option<RunResult>,
}

impl RunRecord {
    /// Reads it from the run's folder. What a crash cut short is passed over.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub fn read(run: &RunDir) -> Result<Self, ReplayError> {
        let (mut data, mut libraries) = (Vec::new(), Vec::new());
        // The last part that began says what was used.
        run.each_event(|recorded| {
            if let Event::Started(started) = recorded.event {
                (data, libraries) = (started.data, started.libraries);
            }
        })?;
        let rows = run.metrics().read().unwrap_or_default();
        let rows = String::from_utf8_lossy(&rows);
        let reports = rows.lines().filter_map(|line| {
            let reported: Reported = serde_json::from_str(line).ok()?;
            Some((reported.report, reported.metrics))
        });
        Ok(Self {
            data,
            libraries,
            trace: Self::trace_of(run)?,
            reports: reports.collect(),
            result: run.read_result().ok().flatten(),
        })
    }

    /// The marks of a run, as far as they were written.
    pub(super) fn trace_of(run: &RunDir) -> Result<Trace, ReplayError> {
        let text = run.read_log(files::TRACE);
        Ok(Trace::parse(&text.map_err(ReplayError::Trace)?))
    }

    /// The hash of what was learned.
    pub fn weights(&self) -> Option<&str> {
        self.result.as_ref()?.weights_sha256.as_deref()
    }

    /// Steps after which the run stopped, if it did not come to its end.
    pub fn stopped_after(&self) -> Option<u64> {
        let succeeded = |result: &RunResult| result.status == Status::Succeeded;
        match self.result.as_ref().is_some_and(succeeded) {
            true => None,
            false => Some(self.trace.last_step()).filter(|&step| step > 0),
        }
    }

    /// Refuses a run that left nothing to compare with.
    ///
    /// # Errors
    /// When it did not.
    pub fn check_comparable(&self, name: &str) -> Result<(), ReplayError> {
        if self.trace.is_empty() && self.weights().is_none() && self.reports.is_empty() {
            let name = name.to_owned();
            return Err(ReplayError::NothingLeft { name });
        }
        Ok(())
    }
}

/// The run that has just started on this machine.
pub(super) fn opened(started: &Started) -> Option<RunDir> {
    let place = Place::parse(&started.run_dir, &Access::default()).ok()?;
    Some(RunDir::named(&started.run, place))
}
