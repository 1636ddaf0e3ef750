//! Runs as their folders are, written by hand.

use lockstep_place::{Access, Place};
use lockstep_runs::{RunDir, RunLock};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// A time in November 2026.
pub(crate) const BEGAN: f64 = 1_794_000_000.0;

pub(crate) fn place(path: &Path) -> Place {
    Place::parse(path.to_str().unwrap(), &Access::default()).unwrap()
}

/// A run that is written by hand.
pub(crate) struct Written {
    pub(crate) run: RunDir,
    pub(crate) lock: Option<RunLock>,
}

impl Written {
    /// A run of the job `job` that has begun.
    pub(crate) fn begin(store: &Path, job: &str, lr: f64) -> Self {
        let (run, lock) = RunDir::create(&place(store), job).unwrap();
        let text = format!(
            "name = \"{job}\"\n[train]\nepochs = 3\noptimizer = {{ kind = \"sgd\", lr = {lr:?} }}\n"
        );
        run.job().write(text.as_bytes()).unwrap();
        let written = Self {
            run,
            lock: Some(lock),
        };
        written.event(
            0.0,
            json!({
                "event": "started", "workers": 2, "lanes": 2, "epochs": 3, "steps_per_epoch": 100,
                "parameters": 7, "metrics": ["loss", "accuracy"], "resumed_step": 0,
                "data": [{"set": "train", "name": "digits", "source": "x", "samples": 9, "sha256": "ab"}],
            }),
        );
        written
    }

    /// Adds an event of so many seconds after the beginning.
    pub(crate) fn event(&self, seconds: f64, mut event: Value) {
        event["v"] = 1.into();
        event["time"] = (BEGAN + seconds).into();
        self.text(&format!("{event}\n"));
    }

    /// Adds to the record as it is.
    pub(crate) fn text(&self, text: &str) {
        let place = self.run.file("events.jsonl");
        let path = place.local().unwrap();
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn progress(&self, epoch: u64, step: u64, loss: f64) {
        let seconds = (epoch * 100 + step) as f64 / 10.0;
        self.event(
            seconds,
            json!({
                "event": "progress", "epoch": epoch, "step": step, "steps": 100, "loss": loss,
                "samples_per_s": 10.0, "rank": 0,
            }),
        );
    }

    pub(crate) fn epoch(&self, epoch: u64, accuracy: f64) {
        self.event(
            (epoch * 100) as f64 / 10.0 + 10.0,
            json!({
                "event": "epoch", "epoch": epoch, "step": epoch * 100, "train_loss": 0.5,
                "val": {"loss": 0.4, "accuracy": accuracy}, "test": null, "seconds": 1.0,
                "total_s": 1.0, "samples_per_s": 9.0, "best": true,
            }),
        );
    }

    /// Ends the run well.
    pub(crate) fn end(&mut self, accuracy: f64) {
        let result = json!({
            "event": "result", "status": "succeeded", "run": self.run.name, "epochs": 3,
            "metrics": {"loss": 0.3, "accuracy": accuracy}, "restarts": 1, "best_epoch": 3,
            "weights_sha256": "abcd", "error": null, "timing": {"samples_per_s": 12.5},
        });
        self.event(60.0, result.clone());
        self.run
            .result()
            .write(result.to_string().as_bytes())
            .unwrap();
        self.lock = None;
    }
}

/// A whole run.
pub(crate) fn whole(store: &Path, job: &str, lr: f64, accuracy: f64) -> String {
    let mut written = Written::begin(store, job, lr);
    for epoch in 1..=3 {
        for step in [10, 50, 90] {
            written.progress(epoch, step, 1.0 / (epoch * 100 + step) as f64);
        }
        written.epoch(epoch, accuracy);
    }
    written.end(accuracy);
    written.run.name
}
