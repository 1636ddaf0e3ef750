//! What every learner must do, whatever learns.
//!
//! The suite is given a small job of the learner, whose coordinator's side is made anew for each promise. A worker opens
//! what it is told in this same process, so that the cache folder of the process should be one of the test's own.

use crate::{Coordinator, LearnerType, Learners, RunPlan};
use lockstep_base::fs::CacheDir;
use lockstep_events::control::{Assignment, Transport};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A learner with a small job that can be prepared.
pub struct Subject<'a> {
    /// The learner.
    pub learner: &'a dyn LearnerType,
    /// Makes the coordinator's side of the job.
    pub make: &'a dyn Fn() -> Box<dyn Coordinator>,
    /// The folder that the job's files and its store are in.
    pub folder: &'a Path,
    /// Where decoded data goes; not in `folder`.
    pub cache: &'a CacheDir,
}

/// Checks all that can be checked before anything is trained.
///
/// # Panics
/// When a promise is not kept.
pub fn check(subject: &Subject<'_>) {
    both_sides_have_one_name(subject);
    a_forecast_writes_nothing(subject);
    parts_survive_json_to_the_bit(subject);
    what_is_prepared_can_be_opened(subject);
}

/// The coordinator's side and the worker's are found under the same name.
fn both_sides_have_one_name(subject: &Subject<'_>) {
    assert_eq!((subject.make)().kind(), subject.learner.kind());
}

/// A forecast leaves the job's folder as it was.
fn a_forecast_writes_nothing(subject: &Subject<'_>) {
    let before = files(subject.folder);
    let forecast = (subject.make)().forecast(None, subject.cache, &mut |_| {});
    let forecast = forecast.unwrap_or_else(|error| panic!("no forecast: {error}"));
    assert!(!forecast.facts.is_empty(), "a forecast says something");
    assert!(forecast.json.is_object(), "{}", forecast.json);
    assert_eq!(files(subject.folder), before, "a forecast writes nothing");
}

/// What a worker is told is the same after it travelled as text, and whenever it is asked for.
fn parts_survive_json_to_the_bit(subject: &Subject<'_>) {
    let plan = prepare(subject);
    for workers in 1..=3 {
        let part = plan.part("a-run", workers);
        let text = part.to_string();
        let again: Value = serde_json::from_str(&text).expect("a part is JSON");
        assert_eq!(again, part, "{workers} workers");
        assert_eq!(again.to_string(), text, "{workers} workers");
        assert_eq!(plan.part("a-run", workers), part, "{workers} workers");
    }
}

/// A worker can open what the coordinator's side has prepared.
fn what_is_prepared_can_be_opened(subject: &Subject<'_>) {
    let mut plan = prepare(subject);
    plan.begin()
        .unwrap_or_else(|error| panic!("a new run cannot begin: {error}"));
    let assignment = Assignment {
        kind: subject.learner.kind().to_owned(),
        learner: plan.part("a-run", 1),
        run_dir: subject.folder.join("a-run").to_string_lossy().into_owned(),
        incarnation: String::new(),
        rank: 0,
        workers: 1,
        generation: 1,
        transport: Transport::Solo,
        deadline_s: 30.0,
        resume: None,
        max_steps: None,
        step_times: false,
        profile: None,
        catch_up: 0,
        copies: None,
    };
    if let Err(failure) = subject.learner.open(&assignment) {
        panic!("what was prepared cannot be opened: {failure}");
    }
}

/// Checks that each learner of a program has a name of its own.
///
/// # Panics
/// When a promise is not kept.
pub fn check_names(learners: &Learners) {
    for learner in learners.0 {
        let kind = learner.kind();
        let same = learners.0.iter().filter(|other| other.kind() == kind);
        assert_eq!(same.count(), 1, "{kind}");
    }
}

fn prepare(subject: &Subject<'_>) -> Box<dyn RunPlan> {
    let plan = (subject.make)().prepare(None, subject.cache, &mut |_| {});
    plan.unwrap_or_else(|error| panic!("the job cannot be prepared: {error}"))
}

/// All files below a folder with their content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let entries = std::fs::read_dir(folder).expect("a folder");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).expect("a file"))),
        }
    }
    found
}
