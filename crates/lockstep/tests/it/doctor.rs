//! `lockstep doctor`: what is wrong is found by trying, and no secret is told.

use crate::common::{Place, Ran};
use serde_json::Value;
use std::fs;

fn doctor(place: &Place, args: &[&str]) -> Ran {
    doctor_with(place, args, ("NOTHING", ""))
}

fn doctor_with(place: &Place, args: &[&str], variable: (&str, &str)) -> Ran {
    let mut command = place.command(&[&["doctor", "--json"], args].concat());
    let output = command
        .env("HOME", place.path(""))
        .env_remove("KUBECONFIG")
        .env_remove("RAY_ADDRESS")
        .env_remove("RAY_API_SERVER_ADDRESS")
        .env(variable.0, variable.1)
        .output()
        .unwrap();
    Ran::from(output)
}

fn check(ran: &Ran, name: &str) -> Value {
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {report}")).clone()
}

#[test]
fn a_job_that_could_run_has_no_problem_and_leaves_no_trace() {
    let place = Place::new();
    let ran = doctor(&place, &["job.toml"]);
    // A test program is built without all optimisation, which is a warning.
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for name in ["memory", "cache", "store", "data"] {
        assert_eq!(check(&ran, name)["state"], "ok", "{name}: {}", ran.stdout);
    }
    let data = check(&ran, "data")["found"].to_string();
    assert!(data.contains("1,003 samples to train on"), "{data}");
    assert_eq!(check(&ran, "ray")["state"], "absent");
    assert!(!place.path("runs").exists(), "the store is as it was");
}

#[test]
fn what_does_not_work_is_a_problem_with_something_to_do() {
    let place = Place::new();
    fs::remove_file(place.path("train-labels")).unwrap();
    fs::write(place.path("runs"), "a file").unwrap();
    let ran = doctor(&place, &["job.toml", "--to", "http://127.0.0.1:1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for name in ["data", "store", "ray"] {
        let check = check(&ran, name);
        assert_eq!(check["state"], "problem", "{check}");
        assert!(check["what_to_do"].as_str().unwrap().len() > 20, "{check}");
    }
    assert!(
        check(&ran, "data")["found"]
            .to_string()
            .contains("train-labels")
    );
    let kube = doctor(&place, &["--to", "kube"]);
    assert_eq!(kube.code, Some(2), "{kube:?}");
    assert_eq!(check(&kube, "kubernetes")["state"], "problem");
}

#[test]
fn no_secret_is_told() {
    let place = Place::new();
    let server = ("MLFLOW_TRACKING_URI", "http://me:hunter2@127.0.0.1:1");
    let ran = doctor_with(&place, &["job.toml"], server);
    let mlflow = check(&ran, "mlflow");
    assert_eq!(mlflow["state"], "warning", "{mlflow}");
    assert!(
        mlflow["found"].to_string().contains("127.0.0.1:1"),
        "{mlflow}"
    );
    assert!(!ran.stdout.contains("hunter2") && !ran.stderr.contains("hunter2"));
}

#[test]
fn a_wrong_job_file_is_said_as_everywhere() {
    let place = Place::new();
    place.edit_job("epochs = 2", "epochs = \"two\"");
    let ran = doctor(&place, &["job.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("train.epochs"), "{}", ran.stderr);
}
