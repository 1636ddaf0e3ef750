//! Trees keep the promises of every learner.

use lockstep_base::fs::CacheDir;
use lockstep_job::{Job, LearnerJob};
use lockstep_learner::Coordinator;
use lockstep_learner::conformance::{Subject, check};
use lockstep_resolve::ResolvedTrees;
use lockstep_trees::{TreesCoordinator, TreesLearner};
use std::fs;

const JOB: &str =
    "name = 'x'\n[data]\ntrain = { csv = 'train.csv' }\n[model]\nkind = 'xgboost'\nrounds = 2\n";

#[test]
fn trees_keep_the_promises_of_a_learner() {
    let folder = tempfile::tempdir().unwrap();
    // The library and the cache are looked for in the environment, which is set before the process has threads.
    let mut child = lockstep_testkit::child!(in_a_process_of_its_own);
    child
        .env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library())
        .env("LOCKSTEP_CACHE", folder.path());
    lockstep_testkit::succeed(&mut child);
}

#[test]
#[ignore = "the test before starts it"]
fn in_a_process_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|i| format!("{i},{}\n", i % 2)).collect();
    let table = format!("x,label\n{rows}");
    fs::write(folder.path().join("train.csv"), table).unwrap();
    let make = || -> Box<dyn Coordinator> {
        let path = folder.path().join("job.toml");
        let job = Job::parse(&path, JOB, &[], None).unwrap();
        let LearnerJob::Trees(own) = &job.learner else {
            panic!("{job:?}");
        };
        let resolved = ResolvedTrees::of(&job, own).unwrap();
        Box::new(TreesCoordinator::new("x", 2, resolved))
    };
    check(&Subject {
        learner: &TreesLearner,
        make: &make,
        folder: folder.path(),
        cache: &CacheDir::locate().unwrap(),
    });
}
