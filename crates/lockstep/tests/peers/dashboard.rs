//! The dashboard in a real Chromium: every page, both colour schemes and a phone, a curve that grows, a log that is
//! followed, jobs that are stopped, runs that are compared. The script is
//! `crates/lockstep-testkit/browser/dashboard.mjs`.

use crate::common::Place;
use crate::common::dashboard::{submit, two_runs};
use crate::common::serve::Serve;
use lockstep_testkit::Peer;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Makes a run of 64 steps last until its workers have said twice what they take of the machine, which they do every five
/// seconds.
const LONG: &str = "step.begin=sleep:170";

/// A comparison, and what it says.
const BENCH: &str = "bench-small-20261118-044436-66bc";
const COMPARISON: &str = r#"{
  "job": "small", "created": "2026-11-18 04:44:36", "lockstep": "0.1.0", "command": "lockstep bench job.toml",
  "measured_on": "a machine", "scaling": "strong", "rounds": 1, "parameters": 100, "complete": true,
  "load_at_the_end": 0.1, "warnings": [{ "warning": "the shortest training took 0.33 s" }],
  "baseline": { "name": "1 worker, batch 32", "workers": 1, "batch": 32, "test_accuracy": 0.9 },
  "distributed": { "name": "2 workers, batch 32", "workers": 2, "batch": 32, "test_accuracy": 0.9 },
  "comparison": { "speedup": 1.9000001, "efficiency": 0.95, "share_of_limit": null, "same_weights": true },
  "settings": [
    { "setting": "1 worker, batch 32", "workers": 1, "batch": 32, "turns": 1, "training_time_seconds": 1.9,
      "least_seconds": 1.9, "most_seconds": 1.9, "start_seconds": 0.1, "total_time_seconds": 2.0,
      "samples_per_second": 1000.4, "speedup": null, "accuracy": 0.9, "weights_sha256": "abc" },
    { "setting": "2 workers, batch 32", "workers": 2, "batch": 32, "turns": 1, "training_time_seconds": 1.0,
      "least_seconds": 1.0, "most_seconds": 1.0, "start_seconds": 0.1, "total_time_seconds": 1.1,
      "samples_per_second": 1900.2, "speedup": 1.9000001, "least_speedup": 1.9, "most_speedup": 1.9,
      "efficiency": 0.95, "share_of_limit": null, "accuracy": 0.9, "weights_sha256": "abc" }
  ],
  "steps": [], "epochs": [], "turns": [], "machine": { "load": 0.1 }
}"#;

fn settled(server: &Serve, id: &str) -> Value {
    for _ in 0..600 {
        let job = server.get(&format!("/api/v1/jobs/{id}")).ok().json();
        if job["status"] != "PENDING" && job["status"] != "RUNNING" {
            return job;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("job {id} does not end");
}

#[test]
pub(crate) fn people_see_runs_and_jobs_in_a_real_browser() {
    if !Peer::Browser.is_here() {
        return;
    }
    let place = Place::new();
    let runs = two_runs(&place, LONG);
    let bench = place.path("runs").join(BENCH);
    std::fs::create_dir_all(&bench).unwrap();
    std::fs::write(bench.join("comparison.json"), COMPARISON).unwrap();
    let server = Serve::start(&place, &["--cpus", "4"]);
    let events = place.path("runs").join(&runs[0]).join("events.jsonl");
    let events = events.display();
    let said = format!("cat {events}; echo hello; echo 'ERROR: not really' >&2; exit 3");
    let job = submit(&server, &said);
    assert_eq!(settled(&server, &job)["exit_code"], 3);
    let file = place.path("job.toml");
    let told = json!({
        "url": server.url(),
        "runs": runs,
        "model": "stripes",
        "bench": BENCH,
        "job": job,
        "slow": format!("lockstep run {} --epochs 100000", file.display()),
        "only": std::env::var("ONLY").ok(),
    });
    print!("{}", lockstep_testkit::browse("dashboard.mjs", &told));
    assert_eq!(server.stop(), Some(0));
}

/// Fashion-MNIST, as far as a picture needs it.
const FASHION: &str = r#"
name = "fashion"

[data]
train = "fashion-mnist:train"
test = "fashion-mnist:test"
val_split = 0.1

[model]
kind = "mlp"
hidden = [256, 128]
dropout = 0.2

[train]
epochs = 6
batch = 128
optimizer = { kind = "sgd", lr = 0.02, momentum = 0.9 }
workers = 2
lanes = 2

[run]
store = "runs"
"#;

#[test]
#[ignore = "takes pictures of real runs: `make screenshots`"]
fn screenshots() {
    let place = Place::new();
    let sets = crate::common::fashion_mnist();
    std::fs::create_dir_all(place.path("cache")).unwrap();
    std::os::unix::fs::symlink(sets.parent().unwrap(), place.path("cache/datasets")).unwrap();
    place.write_job(FASHION);
    let name = |args: &[&str]| place.train(args)["run"].as_str().unwrap().to_owned();
    let runs = vec![
        name(&[]),
        name(&["--set", "train.optimizer.lr=0.1"]),
        name(&[
            "--set",
            "train.batch=32",
            "--set",
            "train.optimizer.lr=0.005",
        ]),
    ];
    for run in &runs[..2] {
        let ran = place.run(&["models", "register", "fashion", run, "--store", "runs"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    place.run(&["models", "promote", "fashion@2", "--store", "runs"]);
    place.run(&["runs", "tag", &runs[1], "good", "--store", "runs"]);
    let args = [
        "bench",
        "job.toml",
        "--epochs",
        "2",
        "--workers",
        "1,2",
        "--predict",
        "4,8",
    ];
    assert_eq!(place.run(&args).code, Some(0));
    let bench = std::fs::read_dir(place.path("runs")).unwrap();
    let bench = bench
        .map(|found| found.unwrap().file_name().into_string().unwrap())
        .find(|name| name.starts_with("bench-"))
        .unwrap();
    let server = Serve::start(&place, &["--cpus", "3"]);
    settled(&server, &submit(&server, "echo failing; exit 3"));
    settled(&server, &submit(&server, "echo done"));
    let file = place.path("job.toml");
    let long = |lr: &str| {
        let file = file.display();
        format!("lockstep run {file} --json --epochs 60 --set train.optimizer.lr={lr}")
    };
    let job = submit(&server, &long("0.02"));
    submit(&server, &long("0.05"));
    for _ in 0..4 {
        submit(&server, &long("0.01"));
    }
    let live = (0..600)
        .find_map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            let job = server.get(&format!("/api/v1/jobs/{job}")).ok().json();
            job["runs"][0].as_str().map(str::to_owned)
        })
        .expect("a run that was submitted");
    std::thread::sleep(Duration::from_secs(20));
    let out = std::env::var("OUT").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures"),
        PathBuf::from,
    );
    std::fs::create_dir_all(&out).unwrap();
    let told = json!({
        "url": server.url(), "runs": runs, "live": live, "job": job, "model": "fashion", "bench": bench, "out": out,
        "only": std::env::var("ONLY").ok(),
    });
    print!("{}", lockstep_testkit::browse("screenshots.mjs", &told));
    for job in server.get("/api/v1/jobs").ok().json()["jobs"]
        .as_array()
        .unwrap()
    {
        let ids = json!({ "action": "stop", "ids": [job["id"]] });
        server.post("/api/v1/jobs/actions", &ids).ok();
    }
    settled(&server, &job);
}
