//! A job from its submission to its end, and what can be asked of it later.

use super::heads::{assert_says, command, events_of, head, ran, run, status, submit};
use crate::common::{self, Place};
use serde_json::Value;
use std::fs;

#[test]
fn a_submitted_job_has_the_bits_the_events_and_the_end_of_one_that_runs_here() {
    let place = Place::new();
    let here = place.weights(&[]);

    // The program travels too, and a job in a folder beside its data finds it there as here.
    fs::create_dir(place.path("jobs")).unwrap();
    let text = common::JOB
        .replace("\"train-", "\"../train-")
        .replace("\"test-", "\"../test-");
    fs::write(place.path("jobs/job.toml"), text).unwrap();
    let args = [
        "submit",
        "jobs/job.toml",
        "--to",
        head(),
        "--json",
        "--id",
        "whole",
    ];
    // Neither Python nor anything else of this machine is needed, whatever Python the cluster has.
    let there = ran(command(&place, &args).env("PATH", "/nowhere"));
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.result()["weights_sha256"], here.as_str());
    assert_eq!(there.result()["status"], "succeeded");
    let kinds: Vec<Value> = there.events().iter().map(|e| e["event"].clone()).collect();
    for kind in ["started", "worker", "first_step", "epoch"] {
        assert!(
            kinds.contains(&kind.into()),
            "{kind} is missing in {kinds:?}"
        );
    }
    assert!(
        there.stderr.contains("set run.store to a URL"),
        "{}",
        there.stderr
    );
    assert!(!place.path("jobs/runs").exists());

    // Later, by its id.
    let job = status(&place, "whole");
    assert_eq!(job["status"], "SUCCEEDED");
    assert_eq!(job["metadata"]["lockstep_job"], "small");
    let shown = run(&place, &["jobs", "status", "whole", "--to", head()]);
    assert!(
        shown
            .stdout
            .contains("./lockstep run jobs/job.toml --engine ray --json"),
        "{}",
        shown.stdout
    );
    let list = run(&place, &["jobs", "list", "--to", head()]);
    assert!(list.stdout.contains("whole"), "{}", list.stdout);
    let log = run(&place, &["jobs", "logs", "whole", "--to", head()]);
    assert_eq!(events_of(&log.stdout).pop(), Some(there.result()));
    let followed = run(&place, &["jobs", "logs", "-f", "whole", "--to", head()]);
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    assert_eq!(followed.stdout, log.stdout);
    let again = run(&place, &["jobs", "wait", "whole", "--to", head()]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    for part in ["first step after", "2 epochs in", &here] {
        assert!(
            again.stdout.contains(part),
            "{part} is missing in {}",
            again.stdout
        );
    }
    let twice = submit(&place, head(), &["--id", "whole"]);
    assert_says(&twice, 1, &["there is a job `whole` already", "--id"]);
    let removed = run(&place, &["jobs", "rm", "whole", "--to", head()]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    let gone = run(&place, &["jobs", "wait", "whole", "--to", head()]);
    assert_says(&gone, 1, &["there is no job `whole`"]);
}
