//! Runs in MLflow and TensorBoard, read back by their own readers, and notices.

pub(crate) mod mlflow;
mod notices;
pub(crate) mod tensorboard;

use crate::common::{JOB, Place};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The small job with more to train on, a validation set, and these further sections.
fn job(epochs: u32, sections: &str) -> String {
    let job = JOB
        .replace("epochs = 2", &format!("epochs = {epochs}"))
        .replace("[model]", "val_split = 0.2\n\n[model]");
    format!("{job}\n{sections}")
}

/// What a Python script of this folder says as JSON.
fn ask(python: PathBuf, script: &str, words: &[&str]) -> Value {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers/track")
        .join(script);
    let said = lockstep_testkit::succeed(
        Command::new(python)
            .arg(script)
            .args(words)
            .env("MLFLOW_DISABLE_TELEMETRY", "true")
            .env("DO_NOT_TRACK", "true")
            .env_remove("MLFLOW_TRACKING_URI"),
    );
    let last = said.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{said}"))
}

/// The warnings of a run.
fn warnings(ran: &crate::common::Ran) -> Vec<String> {
    let events = ran.events().into_iter();
    let warnings = events.filter(|event| event["event"] == "warning");
    warnings
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect()
}

/// Trains the place's job for some seconds, so that some of it was sent and noted and some not, and kills it.
fn killed_in_the_middle(place: &Place) {
    let mut running = place.start(&[]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(8) {
        running.wait_for("epoch");
    }
    running.signal(Signal::KILL);
    running.finish();
    place.assert_no_process_is_left();
}

/// The only run of a place.
fn only_run(place: &Place) -> PathBuf {
    let runs = place.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].clone()
}
