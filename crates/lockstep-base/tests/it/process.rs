//! What points do to a real process: this binary, started again.
#![cfg(debug_assertions)]

use lockstep_base::failpoint::{VARIABLE, check, reach, set_worker};
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::time::{Duration, Instant};

/// What the child process does: reaches a point three times, and says so.
#[test]
fn a_child_process() {
    if std::env::var_os(VARIABLE).is_none() {
        // Without the variable nothing happens.
        reach("p");
        check("p").unwrap();
        return;
    }
    set_worker(1, 1);
    for time in 1..=3 {
        match check("p") {
            Ok(()) => println!("passed {time}"),
            Err(error) => println!("failed {time}: {:?}", error.raw_os_error()),
        }
    }
}

fn child(points: &str) -> Output {
    let mut command = lockstep_testkit::child!(a_child_process);
    command.env(VARIABLE, points).output().unwrap()
}

fn said(output: &Output) -> Vec<&str> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let lines = text.lines();
    lines
        .filter(|l| l.starts_with("passed") || l.starts_with("failed"))
        .collect()
}

#[test]
fn a_process_is_killed_at_the_time_that_was_asked_for() {
    let killed = child("p=kill@2");
    assert_eq!(killed.status.signal(), Some(9));
    assert_eq!(said(&killed), ["passed 1"]);
}

#[test]
fn an_error_is_the_systems_own() {
    let failed = child("p@rank1=error:28@3,p@rank2=kill");
    assert!(failed.status.success());
    assert_eq!(
        said(&failed),
        ["passed 1", "passed 2", "failed 3: Some(28)"]
    );
}

#[test]
fn a_delay_delays() {
    let begin = Instant::now();
    assert!(child("p=sleep:100@1").status.success());
    assert!(begin.elapsed() >= Duration::from_millis(100));
}

#[test]
fn a_misspelt_variable_is_no_silent_success() {
    let wrong = child("p=die");
    assert!(!wrong.status.success());
    assert!(
        String::from_utf8_lossy(&wrong.stdout).contains("p=die")
            || String::from_utf8_lossy(&wrong.stderr).contains("p=die")
    );
}
