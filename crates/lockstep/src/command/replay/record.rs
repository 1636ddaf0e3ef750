//! What a run has left that another can be held against.

use anyhow::{Context, bail};
use lockstep_events::Trace;
use lockstep_events::event::{Event, Reported, RunResult, Started, Status, UsedSet};
use lockstep_place::{Access, Place};
use lockstep_runs::{RunDir, files};
use serde_json::{Map, Value};

/// The record of a run, as far as it can be compared.
#[derive(Debug, Default)]
pub(super) struct RunRecord {
    /// The samples that it used.
    pub(super) data: Vec<UsedSet>,
    /// Marks of its parameters.
    pub(super) trace: Trace,
    /// What a script reported, by the number of the report.
    pub(super) reports: Vec<(u64, Map<String, Value>)>,
    /// How it ended, if it did.
    pub(super) result: Option<RunResult>,
}

impl RunRecord {
    /// Reads it from the run's folder. What a crash cut short is passed over.
    pub(super) fn read(run: &RunDir) -> anyhow::Result<Self> {
        let mut data = Vec::new();
        // The last part that began says what was used.
        run.each_event(|recorded| {
            if let Event::Started(started) = recorded.event {
                data = started.data;
            }
        })?;
        let rows = run.metrics().read().unwrap_or_default();
        let rows = String::from_utf8_lossy(&rows);
        let reports = rows.lines().filter_map(|line| {
            let reported: Reported = serde_json::from_str(line).ok()?;
            Some((reported.report, reported.metrics))
        });
        let result = run.result().read().ok();
        Ok(Self {
            data,
            trace: Self::trace_of(run)?,
            reports: reports.collect(),
            result: result.and_then(|text| serde_json::from_slice(&text).ok()),
        })
    }

    /// The marks of a run, as far as they were written.
    pub(super) fn trace_of(run: &RunDir) -> anyhow::Result<Trace> {
        let text = run.read_log(files::TRACE);
        Ok(Trace::parse(&text.context("cannot read the run's trace")?))
    }

    /// The hash of what was learned.
    pub(super) fn weights(&self) -> Option<&str> {
        self.result.as_ref()?.weights_sha256.as_deref()
    }

    /// Steps after which the run stopped, if it did not come to its end.
    pub(super) fn stopped_after(&self) -> Option<u64> {
        let succeeded = |result: &RunResult| result.status == Status::Succeeded;
        match self.result.as_ref().is_some_and(succeeded) {
            true => None,
            false => Some(self.trace.last_step()).filter(|&step| step > 0),
        }
    }

    /// Refuses a run that left nothing to compare with.
    pub(super) fn check_comparable(&self, name: &str) -> anyhow::Result<()> {
        if self.trace.is_empty() && self.weights().is_none() && self.reports.is_empty() {
            bail!(
                "{name} has left nothing to compare with: it ended before its first step, or an older \
                 version of lockstep trained it"
            );
        }
        Ok(())
    }
}

/// The run that has just started on this machine.
pub(super) fn opened(started: &Started) -> Option<RunDir> {
    let place = Place::parse(&started.run_dir, &Access::default()).ok()?;
    Some(RunDir::named(&started.run, place))
}
