//! A worker that is lost is replaced, and the weights are those of a run that nothing happened to.

use crate::common::{JOB, LIMIT, Place, Running, send};
use crate::learners;
use lockstep_base::fs::CacheDir;
use lockstep_engine::{RunRequest, StopFlag, run};
use lockstep_events::event::Event;
use lockstep_job::Job;
use lockstep_launch::LocalLauncher;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// Kills these workers, one after each epoch, while steps take long. Returns the result with the pids that each rank had.
fn disturbed(
    place: &Place,
    args: &[&str],
    victims: &[u64],
    signal: Signal,
) -> (Value, BTreeMap<u64, Vec<i64>>) {
    let command = place.command(&[&["run", "job.toml", "--json"], args].concat());
    let mut run = place.start_slow(command, "step.begin=sleep:10");
    let mut pids: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    let mut victims = victims.iter().peekable();
    while let Some(event) = run.next() {
        if event["event"] == "worker" {
            let rank = event["rank"].as_u64().unwrap();
            let pid = event["pid"].as_i64().unwrap();
            pids.entry(rank).or_default().push(pid);
        }
        if event["event"] == "epoch"
            && let Some(victim) = victims.next()
        {
            send(*pids[victim].last().unwrap() as i32, signal);
            if victims.peek().is_none() {
                place.wake();
            }
        }
    }
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    (result, pids)
}

#[test]
fn a_killed_worker_is_replaced_and_the_healthy_ones_keep_their_processes() {
    let place = Place::new();
    for transport in ["shm", "tcp"] {
        let transport = format!("gang.transport=\"{transport}\"");
        let args = [
            "--epochs",
            "6",
            "--workers",
            "3",
            "--set",
            "train.lanes=3",
            "--set",
            crate::common::BY_COLUMNS,
            "--set",
            &transport,
        ];
        let undisturbed = place.weights(&args);
        let (result, pids) = disturbed(&place, &args, &[1, 0, 1], Signal::KILL);
        assert_eq!(result["weights_sha256"], undisturbed, "{transport}");
        assert_eq!(result["restarts"], 3, "{transport}");
        assert_eq!(pids[&0].len(), 2);
        assert_eq!(pids[&1].len(), 3);
        assert_eq!(pids[&2].len(), 1);
    }
    place.assert_no_process_is_left();
}

#[test]
fn a_single_worker_is_replaced_too() {
    let place = Place::new();
    let args = ["--epochs", "6", "--workers", "1"];
    let undisturbed = place.weights(&args);
    let (result, _) = disturbed(&place, &args, &[0], Signal::KILL);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_eq!(result["restarts"], 1);
}

#[test]
fn a_stopped_worker_is_named_killed_and_replaced() {
    let place = Place::new();
    for workers in ["1", "2"] {
        let args = [
            "--epochs",
            "6",
            "--workers",
            workers,
            "--set",
            "gang.deadline_s=1",
        ];
        let undisturbed = place.weights(&args);
        let (result, pids) = disturbed(&place, &args, &[0], Signal::STOP);
        assert_eq!(result["weights_sha256"], undisturbed);
        assert_eq!(result["restarts"], 1);
        assert_eq!(pids[&0].len(), 2);
        place.assert_no_process_is_left();
    }
}

#[test]
fn a_gang_whose_workers_cannot_be_replaced_goes_on_with_fewer() {
    let place = Place::new();
    let job = JOB.replace("epochs = 2", "epochs = 40");
    place.write_job(&job.replace("workers = 2\nlanes = 2", "workers = 4\nlanes = 8"));
    let undisturbed = place.weights(&[]);
    // The workers' program is gone when the first of them dies.
    let exe = place.path("program");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lockstep"), &exe).unwrap();
    let request = RunRequest {
        coordinator: learners::coordinator,
        job: Job::load(&place.path("job.toml"), &[], None).unwrap(),
        folder: place.path(""),
        started_at: Instant::now(),
        resume: None,
        fork: None,
        max_steps: None,
        step_times: false,
        profile: None,
        name: None,
        stop: StopFlag::new(),
        cache: CacheDir::at(&place.path("cache")).unwrap(),
        launcher: Box::new(LocalLauncher::new(&exe).with("LOCKSTEP_CACHE", place.path("cache"))),
    };
    let mut pids = BTreeMap::new();
    let mut victims = [1, 3].into_iter();
    let mut killed = 0;
    let mut workers = Vec::new();
    let result = run(request, &mut |event| match event {
        Event::Worker { rank, pid } => drop(pids.insert(rank, pid)),
        // The second dies when the gang goes on without the first, not together with it.
        Event::Epoch(_) if killed == workers.len() => {
            if let Some(victim) = victims.next() {
                let _ = fs::remove_file(&exe);
                send(pids[&victim] as i32, Signal::KILL);
                killed += 1;
            }
        }
        Event::Restart(restart) => workers.push(restart.workers),
        _ => (),
    })
    .unwrap();
    assert_eq!(workers, [3, 2]);
    assert_eq!(result.weights_sha256.as_ref(), Some(&undisturbed));
    assert_eq!(result.restarts, 2);
    place.assert_no_process_is_left();
}

#[test]
fn a_run_gives_up_after_so_many_restarts_and_says_why() {
    let place = Place::new();
    let mut run = place.start_long_run(&[]);
    let mut victim = None;
    while let Some(event) = run.next() {
        if event["event"] == "worker" && event["rank"] == 1 {
            let pid = event["pid"].as_i64().unwrap() as i32;
            victim = Some(pid);
        }
        if (event["event"] == "epoch" || event["event"] == "restart")
            && let Some(pid) = victim.take()
        {
            send(pid, Signal::KILL);
        }
    }
    let (code, result, _) = run.finish();
    assert_eq!(code, Some(1));
    assert_eq!(result["status"], "failed");
    assert_eq!(result["restarts"], 3);
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("SIGKILL"), "{error}");
}

/// Runs with failpoints and returns the result, which must be a success.
fn with_failpoints(place: &Place, points: &str, args: &[&str]) -> Value {
    let mut command = place.command(&[&["run", "job.toml", "--json"], args].concat());
    command.env("LOCKSTEP_FAILPOINTS", points);
    let (code, result, stderr) = Running::new(command).finish();
    assert_eq!(code, Some(0), "{result} {stderr}");
    result
}

#[test]
fn a_worker_whose_training_hangs_while_its_heart_beats_is_replaced() {
    let place = Place::new();
    for (workers, rank) in [("1", 0), ("2", 1)] {
        let args = ["--workers", workers, "--set", "gang.deadline_s=5"];
        let undisturbed = place.weights(&args);
        // In the second epoch; the replacement begins there, and makes too few steps to hang again.
        let hang = format!("step.begin@rank{rank}=sleep:1000000@50");
        let result = with_failpoints(&place, &hang, &args);
        assert_eq!(result["weights_sha256"], undisturbed);
        assert_eq!(result["restarts"], 1);
        let lost = result["seconds_lost"].as_f64().unwrap();
        assert!(lost < LIMIT.as_secs_f64(), "{lost}");
    }
    place.assert_no_process_is_left();
}

#[test]
fn what_rank_0_does_alone_on_a_slow_disk_counts_against_nobody() {
    let place = Place::new();
    for transport in ["shm", "tcp"] {
        let transport = format!("gang.transport=\"{transport}\"");
        let args = ["--set", "gang.deadline_s=4", "--set", &transport];
        let undisturbed = place.weights(&args);
        let result = with_failpoints(&place, "fs.sync@rank0=sleep:1000", &args);
        assert_eq!(result["weights_sha256"], undisturbed);
        assert_eq!(result["restarts"], 0);
    }
}

#[test]
fn a_rank_0_that_dies_while_it_publishes_is_replaced_and_publishes_again() {
    let place = Place::new();
    let undisturbed = place.weights(&[]);
    let mut command = place.command(&["run", "job.toml", "--json"]);
    command.env(
        "LOCKSTEP_FAILPOINTS",
        "publish.weights@rank0@gen1=sleep:100000",
    );
    let mut run = Running::new(command);
    let mut victim = None;
    while let Some(event) = run.next() {
        if event["event"] == "worker" && event["rank"] == 0 && victim.is_none() {
            victim = event["pid"].as_i64();
        }
        if event["event"] == "epoch"
            && event["epoch"] == 2
            && let Some(pid) = victim.filter(|pid| *pid != 0)
        {
            // All that ranks do together is done by then; its peers have said that they are finished.
            std::thread::sleep(Duration::from_secs(3));
            send(pid as i32, Signal::KILL);
            victim = Some(0);
        }
    }
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{result} {stderr}");
    assert_eq!(result["restarts"], 1, "{result}");
    assert_eq!(result["weights_sha256"], undisturbed);
    let folder = std::path::PathBuf::from(result["run_dir"].as_str().unwrap());
    assert!(folder.join("model").join("weights.safetensors").is_file());
    place.assert_no_process_is_left();
}
