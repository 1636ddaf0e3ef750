//! Whoever is killed in mid-training: started again, the run comes to the same weights.

use super::{Gang, job};
use lockstep_job::pod::AGAIN;
use rustix::process::Signal;
use std::time::Instant;

/// The job, with a copy of the state after every step.
fn copied() -> String {
    format!("{}\n[recover]\ncopies = \"every-step\"\n", job())
}

#[test]
fn a_killed_host_that_is_started_again_takes_its_seat_and_no_step_is_repeated() {
    let mut gang = Gang::slow(&copied());
    let undisturbed = gang.place.weights(&[]);
    let mut run = gang.start();
    run.wait_for("epoch");
    gang.replace(1);
    let restart = run.wait_for("restart");
    let reason = restart["reason"].as_str().unwrap();
    assert!(
        reason.contains("worker 1") && reason.contains("host 1 ("),
        "{reason}"
    );
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(result["restarts"], 1);
    assert_eq!(result["steps_repeated"], 0);
    println!("{} s were lost by a killed host", result["seconds_lost"]);
}

#[test]
fn a_killed_worker_is_started_again_by_its_host_and_no_step_is_repeated() {
    let mut gang = Gang::slow(&copied());
    let undisturbed = gang.place.weights(&[]);
    let mut run = gang.start();
    let worker = run.wait_for_worker(2);
    run.wait_for("epoch");
    crate::common::send(worker, Signal::KILL);
    let restart = run.wait_for("restart");
    assert!(
        restart["reason"].as_str().unwrap().contains("SIGKILL"),
        "{restart}"
    );
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(result["steps_repeated"], 0);
    println!("{} s were lost by a killed worker", result["seconds_lost"]);
}

#[test]
fn a_killed_coordinator_that_is_started_again_goes_on_and_its_hosts_come_back() {
    let mut gang = Gang::slow(&job());
    let undisturbed = gang.place.weights(&[]);
    let mut run = gang.start();
    run.wait_for("epoch");
    run.wait_for("epoch");
    run.signal(Signal::KILL);
    assert_eq!(run.finish().0, None);
    let killed = Instant::now();
    let mut run = gang.coordinate();
    run.wait_for("first_step");
    println!(
        "{:.2} s from the kill of host 0 to a step of its successor",
        killed.elapsed().as_secs_f64()
    );
    let resumed = run.wait_for("epoch");
    assert!(resumed["epoch"].as_u64().unwrap() > 1, "{resumed}");
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(
        gang.place.runs().len(),
        2,
        "that of one machine, and this one"
    );
}

#[test]
fn a_coordinator_that_is_killed_before_it_left_a_state_begins_anew() {
    let mut gang = Gang::slow(&job());
    let undisturbed = gang.place.weights(&[]);
    let mut run = gang.start();
    run.wait_for("started");
    run.signal(Signal::KILL);
    assert_eq!(run.finish().0, None);
    let run = gang.coordinate();
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
}

#[test]
fn a_coordinator_that_is_to_leave_writes_its_state_and_its_successor_goes_on() {
    let mut gang = Gang::slow(&job());
    let undisturbed = gang.place.weights(&[]);
    let mut run = gang.start();
    run.wait_for("epoch");
    run.signal(Signal::TERM);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(AGAIN.into()), "{stderr}");
    assert_eq!(result["status"], "interrupted");
    let run = gang.coordinate();
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
}

#[test]
fn a_host_that_stands_still_for_longer_than_its_lease_is_waited_for_and_takes_its_place_again() {
    // Its worker trains on meanwhile, and must not be done before that is noticed.
    let mut gang = Gang::slow(&job().replace("epochs = 16", "epochs = 60"));
    let undisturbed = gang.place.weights(&[]);
    let mut run = gang.start();
    run.wait_for("epoch");
    gang.signal(1, Signal::STOP);
    let warning = run.wait_for("warning");
    let message = warning["message"].as_str().unwrap();
    for words in [
        "host 1",
        "was not heard for",
        "waiting for another in its place, for 30 s at the most",
    ] {
        assert!(message.contains(words), "{message}");
    }
    gang.signal(1, Signal::CONT);
    let restart = run.wait_for("restart");
    assert_eq!(restart["workers"], 3, "{restart}");
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
}
