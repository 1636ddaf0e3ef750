//! What the coordinator writes into the run's folder while the run goes on: logs and metrics.

use crate::EngineError;
use crate::profile::ProfileFile;
use lockstep_events::event::{EpochResult, Reported, RunResult};
use lockstep_events::{Recorded, Thin, TraceLine};
use lockstep_runs::files::{EVENTS, METRICS, TRACE, worker_log};
use lockstep_runs::{Journal, RunDir, RunsError, as_json};

/// The growing files of a run.
pub(crate) struct Record {
    run: RunDir,
    journal: Journal,
    /// The name of each worker's log.
    logs: Vec<String>,
    thin: Thin,
    /// The number of the last report of a script.
    last_report: u64,
    profile: Option<ProfileFile>,
}

impl Record {
    /// Opens a log for each of `workers`. What an earlier part of the run wrote is kept.
    pub(crate) fn open(run: RunDir, workers: usize) -> Result<Self, EngineError> {
        let mut journal = Journal::open(&run)?;
        let logs: Vec<String> = (0..workers).map(worker_log).collect();
        for log in &logs {
            journal.open_log(log)?;
        }
        journal.open_log(EVENTS)?;
        journal.open_log(TRACE)?;
        Ok(Self {
            run,
            journal,
            logs,
            thin: Thin::for_curves(Recorded::clock()),
            last_report: 0,
            profile: None,
        })
    }

    /// The same, which also writes a profile.
    pub(crate) fn with_profile(self, profile: Option<ProfileFile>) -> Self {
        Self { profile, ..self }
    }

    /// Takes what a worker did in the profiled steps.
    pub(crate) fn profile(&mut self, events: &str) -> Result<(), EngineError> {
        match &mut self.profile {
            None => Ok(()),
            Some(profile) => profile.add(events),
        }
    }

    /// Writes one line of a worker's output.
    pub(crate) fn log(&mut self, rank: usize, line: &str) -> Result<(), EngineError> {
        Ok(self.journal.log(&self.logs[rank], line)?)
    }

    /// Writes what happened; of progress only as much as shows that the run was alive.
    pub(crate) fn event(&mut self, event: &Recorded) -> Result<(), EngineError> {
        if !self.thin.keeps(&event.event, event.time) {
            return Ok(());
        }
        Ok(self.journal.events(std::slice::from_ref(event))?)
    }

    /// Writes marks of the parameters.
    pub(crate) fn trace(&mut self, line: &TraceLine) -> Result<(), EngineError> {
        Ok(self.journal.log(TRACE, &as_json(line))?)
    }

    /// Writes what an epoch came to.
    pub(crate) fn epoch(&mut self, epoch: &EpochResult) -> Result<(), EngineError> {
        Ok(self.journal.row(METRICS, &as_json(epoch))?)
    }

    /// Writes what a script reported. After a failure it reports some things again: what it said of them before,
    /// and after them, is forgotten.
    pub(crate) fn reported(&mut self, reported: &Reported) -> Result<(), EngineError> {
        if reported.report <= self.last_report {
            let text = self.journal.table(METRICS)?;
            let is_before = |line: &&str| {
                let row = serde_json::from_str::<Reported>(line);
                row.is_ok_and(|row| row.report < reported.report)
            };
            let kept = text.lines().filter(is_before);
            let kept: String = kept.map(|line| format!("{line}\n")).collect();
            self.journal.restore(METRICS, &kept)?;
        }
        self.last_report = reported.report;
        Ok(self.journal.row(METRICS, &as_json(reported))?)
    }

    /// Makes the metrics those of the state that the run goes on from: what was recorded after it is
    /// trained again, and a crash may have cut the record short.
    pub(crate) fn restore(&mut self, history: &str) -> Result<(), EngineError> {
        Ok(self.journal.restore(METRICS, history)?)
    }

    /// Checks that the run is still where it was.
    pub(crate) fn check_there(&self) -> Result<(), EngineError> {
        Ok(self.run.check_there()?)
    }

    /// Writes how the run ended, once all before it is written.
    pub(crate) fn result(&mut self, result: &RunResult) -> Result<(), EngineError> {
        self.journal.finish()?;
        let text = as_json(result) + "\n";
        Ok(self
            .run
            .result()
            .write(text.as_bytes())
            .map_err(RunsError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_events::Metrics;
    use lockstep_place::{Access, Place};
    use lockstep_runs::RunLock;

    fn epoch(epoch: u32, train_loss: f64) -> EpochResult {
        EpochResult {
            epoch,
            step: 10,
            train: Metrics::from([("loss", train_loss)]),
            val: None,
            test: None,
            seconds: 1.0,
            total_s: 1.0,
            samples_per_s: 1.0,
            lr: None,
            gradient_norm: None,
            best: true,
        }
    }

    fn create(store: &tempfile::TempDir) -> (RunDir, RunLock) {
        let path = store.path().to_str().unwrap();
        let place = Place::parse(path, &Access::default()).unwrap();
        RunDir::create(&place, "job").unwrap()
    }

    fn losses(run: &RunDir) -> Vec<(u32, f64)> {
        let text = String::from_utf8(run.metrics().read().unwrap()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<EpochResult>(line).unwrap())
            .map(|line| (line.epoch, line.train.get("loss").unwrap()))
            .collect()
    }

    #[test]
    fn the_metrics_of_a_resumed_run_are_those_of_its_state() {
        let store = tempfile::tempdir().unwrap();
        let (run, _lock) = create(&store);
        let mut record = Record::open(run.clone(), 1).unwrap();
        record.restore("").unwrap();
        for number in 1..=3 {
            record.epoch(&epoch(number, 1.0)).unwrap();
        }
        let history = as_json(&epoch(1, 1.0)) + "\n";
        // In the same process, and in another after a crash in the middle of a line.
        record.restore(&history).unwrap();
        record.epoch(&epoch(2, 2.0)).unwrap();
        assert_eq!(losses(&run), [(1, 1.0), (2, 2.0)]);
        let text = String::from_utf8(run.metrics().read().unwrap()).unwrap();
        run.metrics()
            .write(&text.as_bytes()[..text.len() - 9])
            .unwrap();
        let mut record = Record::open(run.clone(), 1).unwrap();
        record.restore(&history).unwrap();
        record.epoch(&epoch(2, 3.0)).unwrap();
        assert_eq!(losses(&run), [(1, 1.0), (2, 3.0)]);
    }

    #[test]
    fn each_worker_has_a_log_of_its_own_which_a_resumed_run_continues() {
        let store = tempfile::tempdir().unwrap();
        let (run, _lock) = create(&store);
        for line in ["first", "second"] {
            let mut record = Record::open(run.clone(), 2).unwrap();
            record.log(1, line).unwrap();
        }
        let log = |rank| String::from_utf8(run.worker_log(rank).read().unwrap()).unwrap();
        assert_eq!((log(0).as_str(), log(1).as_str()), ("", "first\nsecond\n"));
    }
}
