//! The engine with workers that misbehave: what they write arrives with their rank and pid, identical
//! lines folded and nothing lost, and whoever fails is named.
mod common;

use common::Place;
use lockstep_engine::{LocalLauncher, RunRequest, StopFlag, run};
use lockstep_events::event::{Event, LogLine, Status};
use lockstep_fs::CacheDir;
use lockstep_job::Job;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// An executable that stands for a worker and does what the script says, `$EXE` being the real one.
///
/// A script cannot be executed while any process has it open for writing, which a fork in another
/// test would inherit from this one: so a shell writes it.
fn script(place: &Place, body: &str) -> PathBuf {
    let path = place.path("worker.sh");
    let exe = env!("CARGO_BIN_EXE_lockstep");
    let text = format!("#!/bin/sh\nEXE='{exe}'\n{body}\n");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        r#"printf %s "$1" > "$2" && chmod +x "$2""#,
        "sh",
        &text,
    ]);
    assert!(shell.arg(&path).status().unwrap().success());
    path
}

fn launcher(place: &Place, program: PathBuf) -> LocalLauncher {
    LocalLauncher::new(program).with("LOCKSTEP_CACHE", place.path("cache"))
}

fn request(place: &Place, worker_exe: PathBuf) -> RunRequest {
    RunRequest {
        job: Job::load(&place.path("job.toml"), &[], None).unwrap(),
        started_at: Instant::now(),
        resume: None,
        fork: false,
        max_steps: None,
        stop: StopFlag::new(),
        cache: CacheDir::at(&place.path("cache")).unwrap(),
        launcher: Box::new(launcher(place, worker_exe)),
    }
}

#[test]
fn identical_lines_are_folded_with_a_count_and_others_are_not() {
    let place = Place::new();
    // A worker that has something to say before it begins.
    let talkative = script(
        &place,
        r#"printf 'the same\rfor all\n'; echo "only $$" >&2; exec "$EXE" "$@""#,
    );
    let mut lines: Vec<LogLine> = Vec::new();
    let mut pids = Vec::new();
    let result = run(request(&place, talkative), &mut |event| match event {
        Event::Log(line) => lines.push(line),
        Event::Worker { rank, pid } => pids.push((rank, pid)),
        _ => (),
    })
    .unwrap();
    assert_eq!(result.status, Status::Succeeded);

    let said = |text: &str| -> usize {
        let same = lines.iter().filter(|line| line.line == text);
        same.map(|line| line.count).sum()
    };
    assert_eq!(said("the same"), 2, "{lines:?}");
    assert_eq!(said("for all"), 2, "{lines:?}");
    pids.sort_unstable();
    for (rank, pid) in pids {
        let own = format!("only {pid}");
        let line = lines
            .iter()
            .find(|line| line.line == own)
            .expect("its own line");
        assert_eq!((line.rank, line.pid, line.count), (rank, pid, 1));
        let log = result
            .run_dir
            .as_ref()
            .unwrap()
            .join(format!("logs/worker-{rank}.log"));
        assert_eq!(
            fs::read_to_string(log).unwrap(),
            format!("the same\nfor all\n{own}\n")
        );
    }
}

#[test]
fn a_worker_that_dies_before_it_joins_is_blamed_with_its_last_line_and_leaves_no_folder() {
    let place = Place::new();
    let unlucky = script(&place, "echo out of luck; exit 3");
    let mut last = None;
    let error = run(request(&place, unlucky), &mut |event| last = Some(event)).unwrap_err();
    let error = error.to_string();
    let reason = "failed first: exited with code 3; the last it wrote was: out of luck";
    assert!(error.contains(reason), "{error}");
    assert!(place.runs().is_empty());
    match last {
        Some(Event::Result(result)) => assert_eq!(result.error, Some(error)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_worker_that_ends_early_without_an_error_is_still_a_failure() {
    let place = Place::new();
    let idle = script(&place, "exit 0");
    let error = run(request(&place, idle), &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("ended before its work was done"), "{error}");
}

#[test]
fn a_worker_that_cannot_be_executed_is_named() {
    let place = Place::new();
    let error = run(request(&place, place.path("nothing")), &mut |_| ()).unwrap_err();
    assert!(
        error.to_string().contains("cannot start worker 0"),
        "{error}"
    );
    assert!(place.runs().is_empty());
}
