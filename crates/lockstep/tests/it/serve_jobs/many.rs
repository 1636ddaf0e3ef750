//! Two hundred jobs at once, and a server that is killed while they run.

use crate::common::serve::Serve;
use crate::common::serve_jobs::{job, submit};
use crate::common::{LIMIT, Place};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

const JOBS: usize = 200;
/// How many of them run at a time.
const ROOM: usize = 4;
/// Who came first begins first, but two that begin in the same moment may write their lines in any order.
const JOSTLE: usize = 8 * ROOM;

#[test]
fn two_hundred_jobs_end_in_order_though_the_server_is_killed_twice() {
    let place = Place::new();
    let said = place.path("said");
    let limits = ["--cpus", "4"];
    let mut serve = Serve::start(&place, &limits);
    let port = serve.address.port();
    let command = |number: usize| {
        let said = said.display();
        format!("echo begin {number} >> {said}; sleep 0.05; echo end {number} >> {said}")
    };
    let next = Mutex::new(0..JOBS);
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    // One at a time is on its way, so that the order is known; four wait for their answers.
                    let mut range = next.lock().unwrap();
                    let Some(number) = range.next() else { return };
                    submit(&serve, &format!("job-{number}"), &command(number));
                    order.lock().unwrap().push(number);
                }
            });
        }
    });
    let ends = || {
        let text = fs::read_to_string(&said).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("end")).count()
    };
    let began = Instant::now();
    let limit = LIMIT;
    for part in [JOBS / 4, JOBS / 2] {
        while ends() < part {
            assert!(began.elapsed() < limit, "{} jobs ended", ends());
            thread::sleep(Duration::from_millis(5));
        }
        serve.kill();
        let before = ends();
        thread::sleep(Duration::from_millis(300));
        assert!(ends() >= before);
        serve = Serve::start_on(&place, port, &limits);
    }
    while ends() < JOBS {
        assert!(began.elapsed() < limit, "{} jobs ended", ends());
        thread::sleep(Duration::from_millis(20));
    }
    for number in 0..JOBS {
        let id = format!("job-{number}");
        let told = crate::common::serve_jobs::ended(&serve, &id);
        assert_eq!(told["status"], "SUCCEEDED", "{told}");
    }
    let list = serve.get("/api/jobs/").ok().json();
    let told = list.as_array().unwrap().iter();
    let told: Vec<&str> = told
        .filter_map(|job| job["submission_id"].as_str())
        .collect();
    let wanted: Vec<String> = order
        .lock()
        .unwrap()
        .iter()
        .map(|n| format!("job-{n}"))
        .collect();
    assert_eq!(told, wanted);
    check(&fs::read_to_string(&said).unwrap(), &order.lock().unwrap());
}

/// Each ran once, at most so many at a time, in the order in which they came.
fn check(said: &str, order: &[usize]) {
    let mut runs: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut began = Vec::new();
    let (mut running, mut most) = (0usize, 0);
    for line in said.lines() {
        let (what, number) = line.split_once(' ').unwrap();
        let number = number.parse().unwrap();
        let run = runs.entry(number).or_default();
        match what {
            "begin" => {
                run.0 += 1;
                running += 1;
                began.push(number);
            }
            _ => {
                run.1 += 1;
                running -= 1;
            }
        }
        most = most.max(running);
    }
    assert_eq!(runs.len(), JOBS);
    assert!(runs.values().all(|run| *run == (1, 1)), "{runs:?}");
    assert!(most <= ROOM, "{most} ran at a time");
    for (place, number) in began.iter().enumerate() {
        let wanted = order.iter().position(|n| n == number).unwrap();
        assert!(
            wanted.abs_diff(place) <= JOSTLE,
            "job {number} came as {wanted} and began as {place}"
        );
    }
}

#[test]
fn a_job_that_runs_does_not_notice_that_the_server_is_killed_and_can_be_stopped_by_the_next() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    let port = serve.address.port();
    submit(&serve, "long", "echo begun; sleep 600");
    crate::common::serve_jobs::until(&serve, "long", &["RUNNING"]);
    serve.kill();
    let serve = Serve::start_on(&place, port, &[]);
    assert_eq!(job(&serve, "long")["status"], "RUNNING");
    serve
        .post("/api/jobs/long/stop", &serde_json::json!({}))
        .ok();
    assert_eq!(
        crate::common::serve_jobs::ended(&serve, "long")["status"],
        "STOPPED"
    );
    let log = serve.get("/api/jobs/long/logs").ok().json();
    assert_eq!(log["logs"], "begun\n");
    drop(serve);
    place.assert_no_process_is_left();
}
