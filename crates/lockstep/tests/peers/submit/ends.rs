//! How a job ends that does not succeed.

use super::heads::{assert_says, command, head, run, status, submit, submit_long};
use crate::common::{Place, Running};
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn one_interrupt_leaves_the_job_and_two_stop_it_in_good_order() {
    let place = Place::new();
    let id = submit_long(&place, "long");
    assert_eq!(id, "long", "--detach prints the id and nothing else");
    let wait = || {
        Running::new(command(
            &place,
            &["jobs", "wait", "long", "--to", head(), "--json"],
        ))
    };

    let mut first = wait();
    first.wait_for("progress");
    first.signal(Signal::INT);
    let (code, _, stderr) = first.finish();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stderr.contains("lockstep jobs stop long"), "{stderr}");
    assert_eq!(status(&place, "long")["status"], "RUNNING");
    let rm = run(&place, &["jobs", "rm", "long", "--to", head()]);
    assert_says(&rm, 1, &["is running; stop it first"]);

    let mut second = wait();
    second.wait_for("progress");
    second.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(600));
    second.signal(Signal::INT);
    let (code, last, stderr) = second.finish();
    assert_eq!(code, Some(130), "{stderr}");
    assert_eq!(last["status"], "interrupted", "{last}");
    assert_eq!(status(&place, "long")["status"], "STOPPED");
    let stop = run(&place, &["jobs", "stop", "long", "--to", head()]);
    assert!(
        stop.stdout.contains("had stopped before"),
        "{}",
        stop.stdout
    );
}

#[test]
fn a_run_that_fails_there_fails_here_with_its_words_and_code() {
    let place = Place::new();
    let missing = "data.train={ images = \"/nowhere/images\", labels = \"/nowhere/labels\" }";
    let ran = submit(&place, head(), &["--json", "--set", missing]);
    assert_says(&ran, 1, &["/nowhere/images"]);
    assert_eq!(ran.result()["status"], "failed");
    // What is wrong with the job file is found before anything is sent.
    let wrong = submit(&place, "http://127.0.0.1:1", &["--set", "train.batch=0"]);
    assert_says(&wrong, 2, &["train.batch"]);
    let relative = submit(
        &place,
        "http://127.0.0.1:1",
        &["--set", "model.weights=w.bin"],
    );
    assert_says(
        &relative,
        1,
        &["model.weights", "does not exist", "absolute"],
    );
}

#[test]
fn a_job_whose_workers_are_actors_is_stopped_in_good_order() {
    let place = Place::new();
    let args = [
        "submit",
        "job.toml",
        "--to",
        head(),
        "--json",
        "--id",
        "actors",
    ];
    let mut running = Running::new(command(
        &place,
        &[&args[..], &["--epochs", "1000000"]].concat(),
    ));
    running.wait_for("epoch");
    let stop = run(&place, &["jobs", "stop", "actors", "--to", head()]);
    assert!(
        stop.stdout.contains("has stopped"),
        "{}{}",
        stop.stdout,
        stop.stderr
    );
    let (code, last, stderr) = running.finish();
    assert_eq!(code, Some(130), "{stderr}");
    assert_eq!(last["status"], "interrupted", "{last}");
}
