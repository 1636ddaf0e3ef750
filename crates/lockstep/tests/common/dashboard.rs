//! What a dashboard shows: runs and jobs.

use super::Place;
use super::serve::Serve;
use serde_json::{Value, json};

/// Trains two runs that differ in one parameter and in the length of their names, the first with these failpoints, and makes a model of it; their names.
pub(crate) fn two_runs(place: &Place, failpoints: &str) -> Vec<String> {
    let name = |args: &[&str]| place.train(args)["run"].as_str().unwrap().to_owned();
    let mut first = place.command(&["run", "job.toml", "--json"]);
    let output = first
        .env("LOCKSTEP_FAILPOINTS", failpoints)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let result: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let runs = vec![
        result["run"].as_str().unwrap().to_owned(),
        name(&[
            "--set",
            "train.optimizer.lr=0.1",
            "--epochs",
            "3",
            "--name",
            "small-with-a-name-that-says-all-of-its-settings",
        ]),
    ];
    let ran = place.run(&["models", "register", "stripes", &runs[0], "--store", "runs"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    runs
}

/// Submits a job; its id.
pub(crate) fn submit(server: &Serve, entrypoint: &str) -> String {
    let answer = server.post("/api/jobs/", &json!({ "entrypoint": entrypoint }));
    answer.ok().json()["submission_id"]
        .as_str()
        .unwrap()
        .to_owned()
}
