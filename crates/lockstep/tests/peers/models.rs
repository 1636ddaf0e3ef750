//! Runs and models in a bucket of a real S3 server.

use crate::common::{JOB, Place, Ran};
use lockstep_testkit::Server;
use serde_json::Value;

const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "hunter2"),
];

fn run(place: &Place, args: &[&str]) -> Ran {
    let mut command = place.command(args);
    let output = command
        .envs(KEYS)
        .env_remove("AWS_SESSION_TOKEN")
        .output()
        .unwrap();
    Ran::from(output)
}

fn ok(place: &Place, args: &[&str]) -> String {
    let ran = run(place, args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

#[test]
pub(crate) fn in_a_bucket_runs_are_found_tagged_registered_and_used() {
    let server = Server::moto(&[]).quiet();
    let place = Place::new();
    let endpoint = format!("storage.endpoint=\"http://{}\"", server.address());
    let job = JOB.replace("store = \"runs\"", "store = \"s3://data/runs\"");
    place.write_job(&job);
    let train = || {
        let args = [
            "run", "job.toml", "--json", "--epochs", "1", "--set", &endpoint,
        ];
        let result = run(&place, &args).result();
        assert_eq!(result["status"], "succeeded", "{result}");
        result["run"].as_str().unwrap().to_owned()
    };
    let (first, second) = (train(), train());
    let there = ["--store", "s3://data/runs", "--set", &endpoint];
    let at = |args: &[&str]| ok(&place, &[args, &there[..]].concat());
    let list = |args: &[&str]| -> Value {
        let args = [&["runs", "list", "--json"], args].concat();
        serde_json::from_str(&at(&args)).unwrap()
    };
    let all = list(&[]);
    assert_eq!(
        (all[0]["run"].as_str(), all[1]["run"].as_str()),
        (Some(&*second), Some(&*first))
    );
    assert_eq!(all[0]["status"], "succeeded");
    assert!(all[0]["metrics"]["test.accuracy"].is_f64(), "{all}");
    at(&["runs", "tag", &first, "good"]);
    assert_eq!(list(&["tag.good"])[0]["run"], first);
    assert!(at(&["runs", "compare", &first, &second]).contains("parameters are the same"));

    at(&["models", "register", "digits", &first]);
    at(&["models", "register", "digits", &second]);
    at(&["models", "promote", "digits@1"]);
    let of_run = at(&["predict", &first, "--out", "-"]);
    assert_eq!(
        at(&["predict", "--model", "digits@champion", "--out", "-"]),
        of_run
    );
    let refused = run(
        &place,
        &[&["runs", "rm", &first, "--yes"], &there[..]].concat(),
    );
    assert!(refused.stderr.contains("digits@1"), "{}", refused.stderr);
    at(&["models", "rm", "digits@2", "--yes"]);
    at(&["runs", "rm", &second, "--yes"]);
    assert_eq!(list(&[]).as_array().unwrap().len(), 1);
    // Another machine, whose cache is empty, says the same.
    std::fs::remove_dir_all(place.path("cache/index")).unwrap();
    assert_eq!(list(&["tag.good"])[0]["run"], first);
}
