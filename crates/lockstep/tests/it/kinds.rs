//! What kinds of jobs there are is known to the job file and to the list of learners, and to nobody else.

use crate::learners::{self, LEARNERS};
use lockstep_job::Job;
use lockstep_learner::conformance;
use std::fs;
use std::path::{Path, PathBuf};

const NETWORK: &str = "name = 'x'\n[data]\ntrain = { csv = 'a.csv' }\n[model]\nkind = 'mlp'\nhidden = [3]\n\
     [train]\nepochs = 1\nbatch = 2\noptimizer = { kind = 'sgd' }\n";
const TREES: &str = "name = 'x'\n[data]\ntrain = { csv = 'a.csv' }\n[model]\nkind = 'xgboost'\n";
const SCRIPT: &str = "name = 'x'\n[train]\ncommand = ['true']\n";

#[test]
fn every_job_has_one_learner() {
    conformance::check_names(&LEARNERS);
    let mut kinds = Vec::new();
    for text in [NETWORK, TREES, SCRIPT] {
        let job = Job::parse(Path::new("/jobs/job.toml"), text, &[], None).unwrap();
        let kind = learners::of(&job).kind();
        let coordinator = learners::coordinator(&job, Path::new("/jobs"));
        let coordinator = coordinator.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(coordinator.kind(), kind);
        assert!(LEARNERS.of_kind(kind).is_some(), "{kind}");
        kinds.push(kind);
    }
    kinds.dedup();
    assert_eq!(kinds.len(), LEARNERS.0.len(), "{kinds:?}");
}

#[test]
fn no_other_source_asks_of_which_kind_a_job_is() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        if folder.file_name() != Some("lockstep-job".as_ref()) && folder.join("src").is_dir() {
            collect(&folder.join("src"), &mut sources);
        }
    }
    assert!(sources.len() > 500, "{}", sources.len());
    let asks = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        // Tests stand at the foot of a file, and may know what job they have made.
        let code = text.split("#[cfg(test)]\nmod tests").next();
        code.is_some_and(|code| code.contains("LearnerJob::"))
    };
    let asking: Vec<PathBuf> = sources.into_iter().filter(asks).collect();
    let names: Vec<_> = asking.iter().map(|path| path.file_name()).collect();
    assert_eq!(names, [Some("learners.rs".as_ref())], "{asking:?}");
}

/// All Rust files below a folder.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => collect(&path, found),
            false if path.extension() == Some("rs".as_ref()) => found.push(path),
            false => {}
        }
    }
}
