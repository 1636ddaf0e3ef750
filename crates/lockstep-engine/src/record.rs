//! What the coordinator writes into the run's folder while the run goes on: logs and metrics.

use crate::EngineError;
use lockstep_events::event::{EpochResult, RunResult};
use lockstep_events::{Recorded, Thin};
use lockstep_fs::write_atomic;
use lockstep_runs::RunDir;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The record of events.
const EVENTS: &str = "events.jsonl";

/// The open files of a run's folder.
pub(crate) struct Record {
    run: RunDir,
    logs: Vec<File>,
    /// The metrics, once an epoch ended in this part of the run.
    metrics: Option<File>,
    events: File,
    thin: Thin,
}

impl Record {
    /// Opens a log for each of `workers`. What an earlier part of the run wrote is kept.
    pub(crate) fn open(run: RunDir, workers: usize) -> Result<Self, EngineError> {
        let logs = (0..workers)
            .map(|rank| append(&run.worker_log(rank)))
            .collect::<Result<_, _>>()?;
        let events = append(&run.path.join(EVENTS))?;
        Ok(Self {
            run,
            logs,
            metrics: None,
            events,
            thin: Thin::new(Recorded::clock()),
        })
    }

    /// Writes one line of a worker's output.
    pub(crate) fn log(&mut self, rank: usize, line: &str) -> Result<(), EngineError> {
        let written = self.logs[rank].write_all(format!("{line}\n").as_bytes());
        written.map_err(failed(self.run.worker_log(rank)))
    }

    /// Writes what happened; of progress only as much as shows that the run was alive.
    pub(crate) fn event(&mut self, event: &Recorded) -> Result<(), EngineError> {
        if !self.thin.keeps(&event.event, event.time) {
            return Ok(());
        }
        let line = as_json(event) + "\n";
        let written = self.events.write_all(line.as_bytes());
        written.map_err(failed(self.run.path.join(EVENTS)))
    }

    /// Writes what an epoch came to.
    pub(crate) fn epoch(&mut self, epoch: &EpochResult) -> Result<(), EngineError> {
        let path = self.run.metrics();
        let file = match &mut self.metrics {
            Some(file) => file,
            none => none.insert(append(&path)?),
        };
        let line = as_json(epoch) + "\n";
        file.write_all(line.as_bytes()).map_err(failed(path))
    }

    /// Makes the metrics those of the state that the run goes on from: what was recorded after it is
    /// trained again, and a crash may have cut the record short.
    pub(crate) fn restore(&mut self, history: &str) -> Result<(), EngineError> {
        self.metrics = None;
        let path = self.run.metrics();
        match fs::read(&path) {
            Ok(recorded) if recorded == history.as_bytes() => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && history.is_empty() => Ok(()),
            _ => Ok(write_atomic(&path, history.as_bytes())?),
        }
    }

    /// Writes how the run ended.
    pub(crate) fn result(&self, result: &RunResult) -> Result<(), EngineError> {
        let text = as_json(result) + "\n";
        Ok(write_atomic(&self.run.result(), text.as_bytes())?)
    }
}

fn append(path: &Path) -> Result<File, EngineError> {
    let file = File::options().append(true).create(true).open(path);
    file.map_err(failed(path.to_owned()))
}

fn failed(path: PathBuf) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::Record { path, source }
}

fn as_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain structs of numbers and strings have a JSON form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_events::Metrics;

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
            best: true,
        }
    }

    fn losses(run: &RunDir) -> Vec<(u32, f64)> {
        let text = fs::read_to_string(run.metrics()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<EpochResult>(line).unwrap())
            .map(|line| (line.epoch, line.train.get("loss").unwrap()))
            .collect()
    }

    #[test]
    fn the_metrics_of_a_resumed_run_are_those_of_its_state() {
        let store = tempfile::tempdir().unwrap();
        let run = RunDir::create(store.path(), "job").unwrap();
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
        let text = fs::read_to_string(run.metrics()).unwrap();
        fs::write(run.metrics(), &text[..text.len() - 9]).unwrap();
        let mut record = Record::open(run.clone(), 1).unwrap();
        record.restore(&history).unwrap();
        record.epoch(&epoch(2, 3.0)).unwrap();
        assert_eq!(losses(&run), [(1, 1.0), (2, 3.0)]);
    }

    #[test]
    fn each_worker_has_a_log_of_its_own_which_a_resumed_run_continues() {
        let store = tempfile::tempdir().unwrap();
        let run = RunDir::create(store.path(), "job").unwrap();
        for line in ["first", "second"] {
            let mut record = Record::open(run.clone(), 2).unwrap();
            record.log(1, line).unwrap();
        }
        let log = |rank| fs::read_to_string(run.worker_log(rank)).unwrap();
        assert_eq!((log(0).as_str(), log(1).as_str()), ("", "first\nsecond\n"));
    }
}
