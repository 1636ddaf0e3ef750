//! However a run ends, it says why, and no process is left.

use crate::common::{AT_ONCE, Place, read_json, send};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn ctrl_c_finishes_the_step_writes_the_state_and_exits_with_130() {
    let place = Place::new();
    let mut run = place.start_long_run(&[]);
    run.wait_for("epoch");
    run.signal(Signal::INT);
    run.wait_for("stopping");
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(130), "{stderr}");
    assert_eq!(result["status"], "interrupted");
    let folder = Path::new(result["run_dir"].as_str().unwrap());
    assert!(newest_state(folder).is_file());
    assert_eq!(
        read_json(&folder.join("result.json"))["status"],
        "interrupted"
    );
    place.assert_no_process_is_left();
}

/// The weights in a run's newest checkpoint.
fn newest_state(run: &Path) -> std::path::PathBuf {
    let place =
        lockstep_place::Place::parse(run.to_str().unwrap(), &lockstep_place::Access::default())
            .unwrap();
    let found = lockstep_runs::RunDir::open(&place)
        .unwrap()
        .checkpoints()
        .newest();
    let state = found.unwrap().unwrap().checkpoint.place().join("state");
    state.unwrap().local().unwrap().to_owned()
}

#[test]
fn a_stop_is_heard_when_every_epoch_is_a_single_step() {
    let place = Place::new();
    let mut run = place.start_long_run(&["--set", "train.batch=2000"]);
    run.wait_for("epoch");
    run.signal(Signal::INT);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(130), "{stderr}");
    assert_eq!(result["status"], "interrupted");
}

#[test]
fn a_damaged_state_and_changed_data_are_refused() {
    let place = Place::new();
    let mut run = place.start_long_run(&["--set", "checkpoint.every=none"]);
    run.wait_for("epoch");
    run.signal(Signal::INT);
    let (_, result, _) = run.finish();
    let folder = result["run_dir"].as_str().unwrap();
    let resume = ["run", "job.toml", "--epochs", "1000000", "--resume", folder];
    let state = newest_state(Path::new(folder));
    let whole = fs::read(&state).unwrap();

    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&state, damaged).unwrap();
    let refused = place.run(&resume);
    assert!(refused.stderr.contains("damaged"), "{}", refused.stderr);
    assert_ne!(refused.code, Some(0));

    fs::write(&state, whole).unwrap();
    crate::common::idx::write_set(
        &place.path("train-images"),
        &place.path("train-labels"),
        1003,
        9,
    );
    let refused = place.run(&resume);
    assert!(refused.stderr.contains("samples"), "{}", refused.stderr);
    assert_ne!(refused.code, Some(0));
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_does_to_the_same_weights() {
    let place = Place::new();
    let args = [
        "run",
        "job.toml",
        "--epochs",
        "30",
        "--set",
        "model.hidden=[28, 28]",
    ];
    let whole = place.weights(&args[2..]);
    let child = place
        .command(&args)
        .env("LOCKSTEP_FAILPOINTS", "step.begin=sleep:10")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while place.runs().len() < 2 || !metrics_begun(&place) {
        assert!(begin.elapsed() < crate::common::LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
    send(i32::try_from(child.id()).unwrap(), Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let line = stdout
        .lines()
        .find(|line| line.contains("go on with"))
        .expect(&stdout);
    let resume = line.split("--resume ").nth(1).unwrap();
    assert!(line.contains("lockstep run job.toml --set 'model.hidden=[28, 28]' --epochs 30"));

    // On another number of workers, which changes nothing.
    let on_one = [&args[2..], &["--workers", "1", "--resume", resume]].concat();
    let result = place.train(&on_one);
    assert_eq!(result["weights_sha256"], whole);
    assert_eq!(result["epochs"], 30);
    let metrics = Path::new(result["run_dir"].as_str().unwrap()).join("metrics.jsonl");
    let recorded = fs::read_to_string(metrics).unwrap();
    let epochs: Vec<u64> = recorded
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["epoch"].as_u64().unwrap())
        .collect();
    assert_eq!(epochs, (1..=30).collect::<Vec<_>>());
}

/// Whether a run that has no result yet recorded an epoch.
fn metrics_begun(place: &Place) -> bool {
    let begun =
        |run: &Path| run.join("metrics.jsonl").exists() && !run.join("result.json").exists();
    place.runs().iter().any(|run| begun(run))
}

#[test]
fn a_run_whose_store_is_removed_fails_at_the_next_checkpoint_and_says_what_is_gone() {
    for every in ["1 epoch", "none"] {
        let place = Place::new();
        let mut run = place.start_long_run(&["--set", &format!("checkpoint.every={every}")]);
        run.wait_for("epoch");
        let begin = Instant::now();
        let has_origin = |run: &std::path::PathBuf| run.join("origin.json").exists();
        while !place.runs().iter().any(has_origin) {
            assert!(begin.elapsed() < crate::common::LIMIT);
            std::thread::sleep(Duration::from_millis(5));
        }
        // The workers may be writing into it.
        while fs::remove_dir_all(place.path("runs")).is_err() {
            assert!(begin.elapsed() < crate::common::LIMIT);
        }
        if every == "none" {
            // Then the only checkpoint is the one of a stop.
            run.signal(Signal::INT);
        }
        let (code, result, stderr) = run.finish();
        assert_eq!(code, Some(1), "{stderr}");
        assert_eq!(result["status"], "failed");
        let error = result["error"].as_str().unwrap();
        assert!(
            error.contains("is gone") && error.contains("runs"),
            "{error}"
        );
        if place.path("runs").exists() {
            let left = crate::common::files(&place.path("runs"));
            assert!(left.is_empty(), "{:?}", left.keys());
        }
        place.assert_no_process_is_left();
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let place = Place::new();
    let mut run = place.start_long_run(&[]);
    // A stopped worker cannot finish its step, so only the second one helps.
    let worker = run.wait_for_worker(1);
    run.wait_for("first_step");
    send(worker, Signal::STOP);
    run.signal(Signal::INT);
    run.wait_for("stopping");
    let begin = Instant::now();
    run.signal(Signal::INT);
    let (code, result, _) = run.finish();
    assert_eq!(code, Some(130));
    assert_eq!(result["status"], "interrupted");
    assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
    place.assert_no_process_is_left();
}

#[test]
fn kill_9_of_the_coordinator_leaves_no_worker() {
    let place = Place::new();
    let mut run = place.start_long_run(&[]);
    run.wait_for("first_step");
    run.signal(Signal::KILL);
    run.child.wait().unwrap();
    place.assert_no_process_is_left();
}

#[test]
fn kill_9_of_a_worker_fails_the_run_and_names_the_worker_and_the_signal() {
    for transport in ["gang.transport=shm", "gang.transport=tcp"] {
        let place = Place::new();
        let args = [
            "--set",
            "train.lanes=3",
            "--workers",
            "3",
            "--set",
            transport,
            "--set",
            "recover.max_restarts=0",
        ];
        let mut run = place.start_long_run(&args);
        let worker = run.wait_for_worker(1);
        run.wait_for("first_step");
        send(worker, Signal::KILL);
        let begin = Instant::now();
        let (code, result, stderr) = run.finish();
        assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
        assert_eq!(code, Some(1));
        let cause = format!("worker 1 (pid {worker}) failed first: killed by signal 9 (SIGKILL)");
        assert_eq!(result["error"], cause.as_str());
        assert!(stderr.contains(&cause), "{stderr}");
        assert_eq!(result["status"], "failed");
        let folder = Path::new(result["run_dir"].as_str().unwrap());
        assert_eq!(
            read_json(&folder.join("result.json"))["error"],
            cause.as_str()
        );
        // The others were told, and had the time to say so.
        let log = fs::read_to_string(folder.join("logs/worker-2.log")).unwrap();
        let told = ["was lost", "aborted"];
        assert!(
            told.iter().any(|words| log.contains(words)),
            "{transport}: {log}"
        );
        place.assert_no_process_is_left();
    }
}

#[test]
fn a_result_that_cannot_be_written_hides_neither_the_first_failure_nor_what_was_trained() {
    let place = Place::new();
    let mut run = place.start_long_run(&["--set", "recover.max_restarts=0"]);
    let folder = run.wait_for("started")["run_dir"].clone();
    let folder = Path::new(folder.as_str().unwrap());
    let worker = run.wait_for_worker(1);
    run.wait_for("epoch");
    fs::create_dir(folder.join("result.json")).unwrap();
    send(worker, Signal::KILL);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(1), "{stderr}");
    let error = result["error"].as_str().unwrap();
    assert!(error.starts_with("worker 1 "), "{error}");
    assert!(error.contains("; after that: ") && error.contains("result.json"));
    assert!(folder.join("metrics.jsonl").is_file());
}

#[test]
fn a_stopped_worker_is_named_and_not_the_one_that_waits_for_it() {
    for transport in ["gang.transport=shm", "gang.transport=tcp"] {
        let place = Place::new();
        let args = [
            "--set",
            "gang.deadline_s=5",
            "--set",
            transport,
            "--set",
            "recover.max_restarts=0",
        ];
        let mut run = place.start_long_run(&args);
        let worker = run.wait_for_worker(1);
        run.wait_for("first_step");
        send(worker, Signal::STOP);
        let (code, result, _) = run.finish();
        assert_eq!(code, Some(1));
        let error = result["error"].as_str().unwrap();
        let cause = format!("worker 1 (pid {worker}) failed first: it is silent");
        assert!(error.starts_with(&cause), "{transport}: {error}");
        place.assert_no_process_is_left();
    }
}

#[test]
fn a_run_is_trained_by_one_command_at_a_time() {
    let place = Place::new();
    let mut run = place.start_long_run(&[]);
    let name = run.wait_for("started")["run"].clone();
    run.wait_for("first_step");
    let ran = place.run(&["run", "job.toml", "--resume", name.as_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    let stderr = ran.stderr;
    assert!(stderr.contains("in use") && stderr.contains(name.as_str().unwrap()));
    run.signal(Signal::INT);
    assert_eq!(run.finish().0, Some(130));
}

#[test]
fn a_refused_resume_leaves_the_run_as_it_was() {
    let place = Place::new();
    let mut run = place.start_long_run(&[]);
    run.wait_for("epoch");
    run.signal(Signal::INT);
    let (_, result, _) = run.finish();
    let folder = Path::new(result["run_dir"].as_str().unwrap());
    let before = fs::read(folder.join("result.json")).unwrap();
    let changed = [
        "run",
        "job.toml",
        "--epochs",
        "1000000",
        "--set",
        "train.batch=16",
    ];
    // Without a name, the job's newest run is meant.
    let ran = place.run(&[&changed[..], &["--resume"]].concat());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("train.batch"), "{}", ran.stderr);
    assert_eq!(fs::read(folder.join("result.json")).unwrap(), before);
    assert!(newest_state(folder).is_file());
}

#[test]
fn a_reader_that_goes_away_ends_the_run_without_a_panic() {
    let place = Place::new();
    let mut run = place.start_long_run(&[]);
    run.wait_for("started");
    assert_eq!(run.hang_up(), Some(141));
    place.assert_no_process_is_left();
}
