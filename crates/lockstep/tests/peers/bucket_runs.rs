//! Runs that live in a bucket of a real S3 server, on a way to it that is cut, slow and refuses.

use crate::common::{JOB, Place, Ran, Running};
use lockstep_runs::RunDir;
use lockstep_testkit::Server;
use lockstep_testkit::faults::{Fault, Proxy, answer};
use std::time::Duration;

const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "hunter2"),
];
const EPOCHS: &str = "6";

/// A job whose runs are kept in the bucket behind `endpoint`.
fn job(endpoint: &str) -> String {
    let storage =
        format!("[storage]\nendpoint = \"{endpoint}\"\nretries = 8\ntimeout_s = 60\nstall_s = 5\n");
    let job = JOB.replace("store = \"runs\"", "store = \"s3://data/runs\"");
    format!("{job}\n{storage}\n[checkpoint]\nevery = \"10 steps\"\n")
}

fn command(place: &Place, args: &[&str]) -> std::process::Command {
    let mut command = place.command(args);
    command.envs(KEYS).env_remove("AWS_SESSION_TOKEN");
    command
}

/// Starts the job with steps that take so long that a slow bucket keeps up with them.
fn start(place: &Place, args: &[&str], failpoint: &str) -> Running {
    let mut command = command(
        place,
        &[&["run", "job.toml", "--json", "--epochs", EPOCHS], args].concat(),
    );
    command.env(
        "LOCKSTEP_FAILPOINTS",
        format!("step.begin=sleep:20{failpoint}"),
    );
    Running::new(command)
}

fn run(place: &Place, args: &[&str]) -> Ran {
    let output = command(place, args).output().unwrap();
    Ran::from(output)
}

/// A way on which every so many connections something goes wrong.
fn bad_way(server: &Server) -> Proxy {
    let mut connection = 0;
    Proxy::forever(server.address(), [], move || {
        connection += 1;
        let busy = || answer("503 Slow Down", "", b"<Error><Code>SlowDown</Code></Error>");
        match connection % 14 {
            3 => Fault::CutAnswer(0),
            6 => Fault::Say(busy()),
            9 => Fault::CutRequest(200),
            12 => Fault::Drip(64, Duration::from_millis(2)),
            _ => Fault::None,
        }
    })
}

#[test]
fn a_run_in_a_bucket_survives_a_crash_on_a_bad_way_and_has_one_owner() {
    let place = Place::new();
    let expected = place.weights(&["--epochs", EPOCHS]);
    let local = place.runs().len();
    let server = Server::moto(&[]).quiet();
    let proxy = bad_way(&server);
    place.write_job(&job(&proxy.endpoint()));

    // Everything ends at once when the second checkpoint is in the bucket.
    let mut first = start(&place, &[], ",checkpoint.after_manifest=cut@2");
    let run_dir = first.wait_for("started")["run_dir"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(run_dir.starts_with("s3://data/runs/small-"), "{run_dir}");
    let (code, ..) = first.finish();
    assert_eq!(code, None, "it was killed");
    place.assert_no_process_is_left();

    // The newest run is found in the bucket, and its dead owner is not waited for.
    let mut second = start(&place, &["--resume"], "");
    assert_eq!(second.wait_for("started")["run_dir"], run_dir.as_str());
    let name = run_dir.rsplit('/').next().unwrap();
    let third = run(
        &place,
        &["run", "job.toml", "--epochs", EPOCHS, "--resume", name],
    );
    assert_eq!(third.code, Some(1), "{}", third.stderr);
    let holder = format!("process {}", second.child.id());
    for part in ["in use by another", name, &holder] {
        assert!(third.stderr.contains(part), "{part}: {}", third.stderr);
    }
    let (code, result, stderr) = second.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["weights_sha256"], expected.as_str());
    assert_eq!(
        place.runs().len(),
        local,
        "something was written on this machine"
    );

    // Everything is there, and whole.
    let access = lockstep_place::Access {
        endpoint: Some(server.endpoint().parse().unwrap()),
        ..Default::default()
    };
    let variables = KEYS.into_iter().collect();
    let place_of = lockstep_place::Place::parse_with(&run_dir, &access, &variables).unwrap();
    let bucket_run = RunDir::open(&place_of).unwrap();
    let found = bucket_run.checkpoints().newest().unwrap().unwrap();
    assert!(found.skipped.is_empty(), "{:?}", found.skipped);
    let metrics = String::from_utf8(bucket_run.metrics().read().unwrap()).unwrap();
    assert_eq!(metrics.lines().count().to_string(), EPOCHS);
    for file in [
        bucket_run.weights(),
        bucket_run.model(),
        bucket_run.evaluation(),
        bucket_run.result(),
    ] {
        assert!(file.entry().unwrap().is_some(), "{file}");
    }

    // And can be used from there.
    let endpoint = format!("storage.endpoint={}", server.endpoint());
    let evaluated = run(
        &place,
        &["evaluate", &run_dir, "--set", &endpoint, "--json"],
    );
    assert_eq!(evaluated.code, Some(0), "{}", evaluated.stderr);
    let forked = run(
        &place,
        &[
            "run", "job.toml", "--json", "--epochs", "1", "--resume", &run_dir, "--fork",
        ],
    );
    assert_eq!(forked.code, Some(0), "{}", forked.stderr);
    assert_ne!(forked.result()["run_dir"], run_dir.as_str());
}

#[test]
fn a_bucket_that_refuses_is_told_before_anything_is_trained() {
    let place = Place::new();
    let server = Server::moto(&[]).quiet();
    let refusing = Proxy::forever(server.address(), [], || {
        Fault::Say(answer("503 Slow Down", "", b""))
    });
    place.write_job(&job(&refusing.endpoint()));
    let refused = run(&place, &["run", "job.toml", "--set", "storage.retries=1"]);
    assert_eq!(refused.code, Some(1));
    for part in ["s3://data/runs", "503"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let elsewhere = job("http://192.0.2.1:9000");
    place.write_job(&elsewhere);
    let refused = run(&place, &["run", "job.toml"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("allow_http"), "{}", refused.stderr);
}
