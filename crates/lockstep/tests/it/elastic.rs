//! A gang that becomes larger and smaller in mid-training does so between two steps, repeats none, and ends with
//! the weights of a run that nothing happened to.

use crate::common::{JOB, Place, Running, send};
use rustix::process::Signal;
use serde_json::Value;

/// Long enough for somebody to come or leave in the middle.
const EPOCHS: &str = "12";

/// Three lanes, which two or three workers share.
fn elastic(transport: &str) -> String {
    let workers = "workers = { min = 2, max = 3 }\nlanes = 3";
    let job = JOB.replace("workers = 2\nlanes = 2", workers);
    format!("{job}\n[gang]\ntransport = \"{transport}\"\n")
}

/// Trains with steps that take a while, so that there is a middle of an epoch to come or leave in.
fn start(place: &Place, failpoints: &str) -> Running {
    let slow = format!("step.begin=sleep:10{failpoints}");
    let command = place.command(&["run", "job.toml", "--json", "--epochs", EPOCHS]);
    place.start_slow(command, &slow)
}

/// The result of the rest, at full speed, which must be a success without a failure.
fn undisturbed(place: &Place, run: Running) -> Value {
    place.wake();
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["restarts"], 0, "{result}");
    assert_eq!(result["steps_repeated"], 0, "{result}");
    result
}

#[test]
fn a_run_begins_with_the_least_and_takes_in_a_worker_that_comes_late() {
    let place = Place::new();
    for transport in ["shm", "tcp"] {
        place.write_job(&elastic(transport));
        let expected = place.weights(&["--epochs", EPOCHS, "--workers", "3"]);
        let mut run = start(&place, ",link.connect@rank1=sleep:2000");
        run.wait_for("first_step");
        let resized = run.wait_for("resized");
        assert_eq!(resized["workers"], 3);
        let reason = resized["reason"].as_str().unwrap();
        assert!(reason.starts_with("worker 1 "), "{reason}");
        let result = undisturbed(&place, run);
        assert_eq!(result["weights_sha256"], expected, "{transport}");
        assert_eq!(result["resizes"], 1);
    }
}

#[test]
fn a_worker_that_is_taken_away_leaves_between_two_steps_and_another_takes_its_seat() {
    let place = Place::new();
    for transport in ["shm", "tcp"] {
        place.write_job(&elastic(transport));
        let expected = place.weights(&["--epochs", EPOCHS, "--workers", "3"]);
        let mut run = start(&place, "");
        let victim = run.wait_for_worker(0);
        run.wait_for("epoch");
        send(victim, Signal::TERM);
        let resized = run.wait_for("resized");
        let reason = resized["reason"].as_str().unwrap();
        assert!(reason.contains("leaves"), "{reason}");
        let result = undisturbed(&place, run);
        assert_eq!(result["weights_sha256"], expected, "{transport}");
        assert!(result["resizes"].as_u64().unwrap() >= 1, "{result}");
    }
    place.assert_no_process_is_left();
}

#[test]
fn a_gang_of_a_fixed_size_waits_for_the_successor_of_one_that_leaves() {
    let place = Place::new();
    let expected = place.weights(&["--epochs", EPOCHS]);
    let mut run = start(&place, "");
    let victim = run.wait_for_worker(1);
    run.wait_for("progress");
    send(victim, Signal::TERM);
    let resized = run.wait_for("resized");
    assert_eq!(resized["workers"], 2, "{resized}");
    let result = undisturbed(&place, run);
    assert_eq!(result["weights_sha256"], expected);
    assert_eq!(result["resizes"], 1);
}

#[test]
fn a_loss_in_an_elastic_gang_is_a_restart_and_the_bits_are_the_same() {
    let place = Place::new();
    place.write_job(&elastic("shm"));
    let expected = place.weights(&["--epochs", EPOCHS, "--workers", "3"]);
    let mut run = start(&place, "");
    let victim = run.wait_for_worker(2);
    run.wait_for("epoch");
    send(victim, Signal::KILL);
    run.wait_for("restart");
    place.wake();
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["restarts"], 1);
    assert_eq!(result["weights_sha256"], expected);
}

#[test]
fn on_a_full_disk_a_gang_stays_as_it_is_and_trains_to_the_end() {
    let place = Place::new();
    let expected = place.weights(&["--epochs", EPOCHS, "--set", "checkpoint.every=none"]);
    let job = format!("{JOB}\n[checkpoint]\nevery = \"none\"\n");
    place.write_job(&job);
    let mut run = start(&place, ",checkpoint.before_part=error:28");
    let victim = run.wait_for_worker(1);
    run.wait_for("progress");
    send(victim, Signal::TERM);
    let warning = run.wait_for("warning");
    let words = warning["message"].as_str().unwrap();
    assert!(words.contains("the gang stays as it is"), "{words}");
    let result = undisturbed(&place, run);
    assert_eq!(result["weights_sha256"], expected);
    assert_eq!(result["resizes"], 0);
}

#[test]
fn a_range_of_workers_that_is_none_is_refused() {
    let place = Place::new();
    let range = "workers = { min = 4, max = 3 }\nlanes = 4";
    place.edit_job("workers = 2\nlanes = 2", range);
    let ran = place.run(&["run", "job.toml"]);
    assert_eq!(ran.code, Some(2));
    let expected = "`min` must not be larger than `max`";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}
