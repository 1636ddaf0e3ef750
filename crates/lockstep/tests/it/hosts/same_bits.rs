//! Where workers run makes no difference to what they come to.

use super::{Gang, job};
use crate::common::EIGHT_STEPS;
use crate::common::trees::{TREES, trees_here};
use std::process::Command;

#[test]
fn three_hosts_come_to_the_weights_of_one_machine() {
    let mut gang = Gang::new(&job());
    let here = gang.place.train(&[]);
    let mut run = gang.start();
    let started = run.wait_for("started");
    assert_eq!(
        (&started["run"], &started["workers"]),
        (&"small-run".into(), &3.into())
    );
    assert_eq!(started["transport"], "tcp");
    let hosts = run.wait_for("hosts");
    assert_eq!(hosts["hosts"], serde_json::json!([[0, 1], [2]]));
    assert!(hosts["bytes_sent"].as_u64() > Some(0));
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], here["weights_sha256"]);
    assert_eq!(result["metrics"], here["metrics"]);
    assert!(gang.place.path("runs/small-run/result.json").is_file());
}

#[test]
fn three_hosts_grow_the_trees_of_one_machine() {
    let mut gang = Gang::new(TREES);
    let xgboost = lockstep_testkit::xgboost_library();
    let here = trees_here(&gang.place, &xgboost);
    gang.xgboost = Some(xgboost);
    let run = gang.start();
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], here["weights_sha256"]);
    assert_eq!(result["metrics"], here["metrics"]);
}

#[test]
fn a_script_runs_on_hosts_and_goes_on_after_a_kill() {
    let job = "name = \"script\"\n[train]\ncommand = [\"python3\", \"train.py\"]\nworkers = 3\n\
               [gang]\nlease_s = 3\n[run]\nstore = \"runs\"\n";
    let mut gang = Gang::new(job);
    std::fs::write(gang.place.path("train.py"), EIGHT_STEPS).unwrap();
    if Command::new("python3").arg("--version").output().is_err() {
        let python = lockstep_testkit::python("numpy", &["numpy"]);
        gang.place
            .write_job(&job.replace("python3", python.to_str().unwrap()));
    }
    let mut run = gang.start();
    run.wait_for("reported");
    run.wait_for("reported");
    gang.replace(2);
    let result = gang.succeed(run);
    assert_eq!(result["reported"]["step"], 7);
    assert_eq!(result["restarts"], 1, "{result}");
}
