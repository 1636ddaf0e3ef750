//! Hosts come and leave in mid-training, and no step is repeated.

use super::{Gang, job};
use lockstep_job::pod::AGAIN;
use rustix::process::Signal;

fn elastic() -> String {
    job().replace("workers = 3", "workers = { min = 2, max = 3 }")
}

#[test]
fn a_run_begins_with_the_fewest_hosts_whichever_they_are_and_takes_in_a_late_one() {
    let mut gang = Gang::slow(&elastic());
    let undisturbed = gang.place.weights(&["--workers", "3"]);
    gang.host(2);
    let mut run = gang.coordinate();
    run.wait_for("epoch");
    gang.host(1);
    let resized = run.wait_for("resized");
    assert_eq!(resized["workers"], 3, "{resized}");
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(
        (&result["restarts"], &result["steps_repeated"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn a_host_that_is_to_leave_does_so_between_two_steps_and_may_come_back() {
    let mut gang = Gang::slow(&elastic());
    let undisturbed = gang.place.weights(&["--workers", "3"]);
    let mut run = gang.start();
    run.wait_for("epoch");
    gang.signal(1, Signal::TERM);
    let (code, stderr) = gang.ended(1);
    assert_eq!(code, Some(AGAIN.into()), "{stderr}");
    let resized = run.wait_for("resized");
    assert_eq!(resized["workers"], 2, "{resized}");
    let reason = resized["reason"].as_str().unwrap();
    assert!(reason.contains("leaves"), "{reason}");
    gang.host(1);
    run.wait_for("resized");
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(
        (&result["restarts"], &result["steps_repeated"]),
        (&0.into(), &0.into())
    );
    println!("{} s for two changes", result["seconds_resizing"]);
}

#[test]
fn a_gang_of_a_fixed_size_waits_for_the_host_that_comes_after_one_that_leaves() {
    let mut gang = Gang::slow(&job());
    let undisturbed = gang.place.weights(&[]);
    let mut run = gang.start();
    run.wait_for("epoch");
    gang.signal(2, Signal::TERM);
    assert_eq!(gang.ended(2).0, Some(AGAIN.into()));
    gang.host(2);
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(
        (&result["restarts"], &result["steps_repeated"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn hosts_that_are_lost_and_do_not_come_back_cost_no_step() {
    let every_step = "[recover]\ncopies = \"every-step\"\nmin_workers = 1\n";
    let job = elastic().replace("min = 2", "min = 1");
    let mut gang = Gang::slow(&format!("{job}\n{every_step}"));
    let undisturbed = gang.place.weights(&["--workers", "3"]);
    let mut run = gang.start();
    for (host, left) in [(2, 2), (1, 1)] {
        run.wait_for("epoch");
        gang.signal(host, Signal::KILL);
        assert_eq!(gang.ended(host).0, None);
        let restart = run.wait_for("restart");
        assert_eq!(restart["workers"], left, "{restart}");
    }
    let result = gang.succeed(run);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(
        (&result["restarts"], &result["steps_repeated"]),
        (&2.into(), &0.into())
    );
}
