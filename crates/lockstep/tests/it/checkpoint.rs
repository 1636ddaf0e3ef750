//! Checkpoints through the binary: whatever ends a run, another command goes on with it, to the
//! weights of a run that nothing happened to.

use crate::common::{Place, Ran, read_json};
use lockstep_runs::checkpoint::FAILPOINTS;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Steps of an epoch of the test job.
const EPOCH: u64 = 32;

/// A run with these failpoints.
fn with_failpoints(place: &Place, points: &str, args: &[&str]) -> (std::process::ExitStatus, Ran) {
    let mut command = place.command(&[&["run", "job.toml", "--json"], args].concat());
    let output = command.env("LOCKSTEP_FAILPOINTS", points).output().unwrap();
    let status = output.status;
    let ran = Ran::from(output);
    (status, ran)
}

fn folder(result: &Value) -> PathBuf {
    PathBuf::from(result["run_dir"].as_str().unwrap())
}

/// The folders of a run's checkpoints, from the oldest to the newest.
fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(run.join("checkpoints")) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// The header of a whole checkpoint.
fn header(checkpoint: &Path) -> Value {
    let text = fs::read_to_string(checkpoint.join("manifest.json")).unwrap();
    let line = text.lines().next().unwrap();
    serde_json::from_str::<Value>(line).unwrap()["header"].clone()
}

/// Asserts that nothing half done lies about.
fn assert_tidy(run: &Path, keep: usize) {
    let found = checkpoints(run);
    assert!(!found.is_empty() && found.len() <= keep, "{found:?}");
    for checkpoint in found {
        let files = fs::read_dir(&checkpoint).unwrap();
        let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        assert!(
            names.iter().any(|name| name == "manifest.json"),
            "{names:?}"
        );
        let hidden = |name: &std::ffi::OsString| name.to_string_lossy().starts_with('.');
        assert!(!names.iter().any(hidden), "{names:?}");
    }
}

fn metrics(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn recorded_epochs(run: &Path) -> Vec<u64> {
    let lines = metrics(run);
    lines
        .iter()
        .map(|line| line["epoch"].as_u64().unwrap())
        .collect()
}

#[cfg(debug_assertions)]
#[test]
fn a_power_cut_anywhere_in_a_checkpoint_is_survived_to_the_same_weights() {
    let place = Place::new();
    let args = [
        "--epochs",
        "3",
        "--set",
        "checkpoint.every=20 steps",
        "--set",
        "checkpoint.keep=1",
        "--set",
        crate::common::BY_COLUMNS,
    ];
    let whole = place.weights(&args);
    for (index, point) in FAILPOINTS.into_iter().enumerate() {
        // In the second checkpoint, which removes the first: its second part, if it is about parts.
        let time = match point {
            point if point.contains("part") => 5,
            point if point.contains("prune") => 1,
            _ => 2,
        };
        let (status, ran) = with_failpoints(&place, &format!("{point}=cut@{time}"), &args);
        assert_eq!(status.signal(), Some(9), "{point}: {}", ran.stderr);
        place.assert_no_process_is_left();
        let workers = ["1", "2"][index % 2];
        let resumed = place.train(&[&args[..], &["--workers", workers, "--resume"]].concat());
        assert_eq!(resumed["weights_sha256"], whole, "{point}");
        let run = folder(&resumed);
        assert_tidy(&run, 1);
        assert_eq!(recorded_epochs(&run), [1, 2, 3], "{point}");
    }
}

#[test]
fn kill_9_at_any_moment_is_survived_also_when_time_says_when_to_write() {
    let place = Place::new();
    let every = ["--set", "checkpoint.every=0.02 s"];
    let mut run = place.start_long_run(&every);
    let started = run.wait_for("started");
    let begin = Instant::now();
    // Numbers grow, though only three stay.
    let newest = loop {
        assert!(begin.elapsed() < crate::common::LIMIT);
        let found = checkpoints(&folder(&started));
        let name = found
            .last()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
        if let Some(name) = name.filter(|name| name.as_str() > "000005") {
            break name;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    run.signal(Signal::KILL);
    run.child.wait().unwrap();
    place.assert_no_process_is_left();
    assert!(!folder(&started).join("result.json").exists(), "{newest}");

    let found = checkpoints(&folder(&started));
    let whole = found
        .iter()
        .rev()
        .find(|path| path.join("manifest.json").exists());
    let epochs = header(whole.unwrap())["epochs"].as_u64().unwrap() + 1;
    let epochs = ["--epochs", &epochs.to_string()];
    let resumed = place.train(&[&epochs[..], &every, &["--workers", "1", "--resume"]].concat());
    assert_eq!(resumed["run"], started["run"]);
    assert_tidy(&folder(&resumed), 3);
    assert_eq!(
        resumed["weights_sha256"],
        place.weights(&[&epochs[..], &every].concat())
    );
}

#[test]
fn more_epochs_give_the_weights_and_the_record_of_one_long_run() {
    let place = Place::new();
    for best in ["loss", "accuracy"] {
        let best = format!("checkpoint.best={best}");
        let args = ["--set", "data.val_split=0.2", "--set", &best];
        let long = place.train(&[&args[..], &["--epochs", "4"]].concat());
        let short = place.train(&[&args[..], &["--epochs", "2"]].concat());
        let name = short["run"].as_str().unwrap();
        let more = [
            &args[..],
            &["--epochs", "4", "--workers", "1", "--resume", name],
        ]
        .concat();
        let resumed = place.train(&more);
        assert_eq!(resumed["run_dir"], short["run_dir"]);
        for same in ["weights_sha256", "best_epoch", "metrics", "epochs"] {
            assert_eq!(resumed[same], long[same], "{best}: {same}");
        }
        let run = folder(&resumed);
        let numbers = |run: &Path| -> Vec<_> {
            let told = ["epoch", "step", "train", "val", "test", "best"];
            let lines = metrics(run);
            lines
                .iter()
                .map(|line| told.map(|key| line[key].clone()))
                .collect()
        };
        assert_eq!(numbers(&run), numbers(&folder(&long)));
        // The job is written down as it ran last.
        let job = fs::read_to_string(run.join("job.toml")).unwrap();
        assert!(
            job.contains("epochs = 4") && job.contains("workers = 1"),
            "{job}"
        );
    }
}

#[test]
fn the_best_epoch_is_the_best_by_the_measure_that_the_job_names() {
    let place = Place::new();
    let args = ["--epochs", "12", "--set", "data.val_split=0.2"];
    for (measure, sign) in [("loss", -1.0), ("accuracy", 1.0)] {
        let best = format!("checkpoint.best={measure}");
        let result = place.train(&[&args[..], &["--set", &best]].concat());
        let (mut top, mut best_epoch) = (f64::NEG_INFINITY, 0);
        for line in metrics(&folder(&result)) {
            let value = sign * line["val"][measure].as_f64().unwrap();
            assert_eq!(line["best"], value > top, "{measure}: {line}");
            if value > top {
                (top, best_epoch) = (value, line["epoch"].as_u64().unwrap());
            }
        }
        assert_eq!(result["best_epoch"], best_epoch);
    }
}

#[test]
fn a_schedule_over_the_whole_run_refuses_more_epochs_until_its_steps_are_fixed() {
    let place = Place::new();
    let cosine = ["--set", "train.schedule.kind=cosine"];
    let short = place.train(&[&cosine[..], &["--epochs", "2"]].concat());
    let name = short["run"].as_str().unwrap();
    let resume = ["--epochs", "4", "--resume", name];
    let refused = place.run(&[&["run", "job.toml"], &cosine[..], &resume].concat());
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let steps = format!("train.schedule.steps = {}", 2 * EPOCH);
    assert!(refused.stderr.contains(&steps), "{}", refused.stderr);

    let fixed = ["--set", &steps.replace(' ', "")];
    let resumed = place.weights(&[&cosine[..], &fixed, &resume].concat());
    let long = place.weights(&[&cosine[..], &fixed, &["--epochs", "4"]].concat());
    assert_eq!(resumed, long);
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before_with_a_warning() {
    let place = Place::new();
    let whole = place.weights(&["--epochs", "4"]);
    let run = folder(&place.train(&["--epochs", "2"]));
    let name = run.file_name().unwrap().to_str().unwrap();
    // A run leaves one at its end, however slow the disk is.
    place.train(&["--epochs", "3", "--resume", name]);
    let found = checkpoints(&run);
    let [.., before, newest] = &found[..] else {
        panic!("{found:?}");
    };
    let state = newest.join("state");
    let mut bytes = fs::read(&state).unwrap();
    bytes[1000] ^= 1;
    fs::write(&state, bytes).unwrap();

    let ran = place.run(&[
        "run", "job.toml", "--json", "--epochs", "4", "--resume", name,
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.result()["weights_sha256"], whole);
    let events = ran.events();
    let warning = events
        .iter()
        .find(|event| event["event"] == "warning")
        .unwrap();
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains(state.to_str().unwrap()), "{message}");
    assert!(
        message.contains("hash") && message.contains(before.to_str().unwrap()),
        "{message}"
    );
    assert_eq!(recorded_epochs(&run), [1, 2, 3, 4]);

    for checkpoint in checkpoints(&run) {
        let manifest = checkpoint.join("manifest.json");
        fs::write(&manifest, "{").unwrap();
    }
    let refused = place.run(&["run", "job.toml", "--epochs", "5", "--resume", name]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("is whole"), "{}", refused.stderr);
}

#[test]
fn a_run_that_was_cut_off_after_its_last_checkpoint_only_says_what_came_out() {
    let place = Place::new();
    let result = place.train(&[]);
    let run = folder(&result);
    let name = run.file_name().unwrap().to_str().unwrap();
    // It has said so already.
    let refused = place.run(&["run", "job.toml", "--resume", name]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("2 epochs already"),
        "{}",
        refused.stderr
    );
    // It has not.
    fs::remove_file(run.join("result.json")).unwrap();
    fs::remove_file(run.join("metrics.jsonl")).unwrap();
    fs::remove_dir_all(run.join("model")).unwrap();
    fs::create_dir(run.join("model")).unwrap();
    let again = place.train(&["--resume", name]);
    for same in ["weights_sha256", "metrics", "epochs", "best_epoch", "run"] {
        assert_eq!(again[same], result[same], "{same}");
    }
    assert_eq!(read_json(&run.join("result.json"))["status"], "succeeded");
    assert_eq!(recorded_epochs(&run), [1, 2]);
    assert!(run.join("model/weights.safetensors").is_file());
}

#[test]
fn a_fork_is_a_new_run_with_the_old_ones_weights() {
    let place = Place::new();
    let old = place.train(&[]);
    let weights = folder(&old).join("model/weights.safetensors");
    let changed = [
        "--set",
        "train.batch=16",
        "--set",
        "train.optimizer.kind=adamw",
        "--set",
        "train.optimizer={ kind = \"adamw\" }",
        "--set",
        "train.seed=7",
    ];
    let name = old["run"].as_str().unwrap();
    let refused = place.run(&[&["run", "job.toml"], &changed[..], &["--resume", name]].concat());
    assert_eq!(refused.code, Some(2));
    for key in ["train.batch", "train.optimizer", "train.seed"] {
        assert!(refused.stderr.contains(key), "{key}: {}", refused.stderr);
    }
    let before = fs::read_dir(folder(&old).join("checkpoints"))
        .unwrap()
        .count();
    let forked = place.train(&[&changed[..], &["--resume", name, "--fork"]].concat());
    assert_ne!(forked["run"], old["run"]);
    assert_eq!(forked["epochs"], 2);
    assert_eq!(recorded_epochs(&folder(&forked)), [1, 2]);
    let begin = format!("model.weights={}", weights.display());
    let same = place.train(&[&changed[..], &["--set", &begin]].concat());
    assert_eq!(forked["weights_sha256"], same["weights_sha256"]);
    // The old run is as it was, and the new one can be resumed like any other, by its own job.
    assert_eq!(
        fs::read_dir(folder(&old).join("checkpoints"))
            .unwrap()
            .count(),
        before
    );
    let job = folder(&forked).join("job.toml");
    let job = job.to_str().unwrap();
    let new = forked["run"].as_str().unwrap();
    let ran = place.run(&["run", job, "--json", "--epochs", "3", "--resume", new]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.result()["epochs"], 3);

    // Weights that do not fit leave no run behind.
    let runs = place.runs().len();
    let wide = [
        "run",
        "job.toml",
        "--set",
        "model.hidden=[30, 16]",
        "--resume",
        name,
        "--fork",
    ];
    let refused = place.run(&wide);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("layers.0.weight"),
        "{}",
        refused.stderr
    );
    assert_eq!(place.runs().len(), runs);
    let alone = place.run(&["run", "job.toml", "--fork"]);
    assert_eq!(alone.code, Some(2));
    assert!(alone.stderr.contains("--resume"), "{}", alone.stderr);
}

#[cfg(debug_assertions)]
#[test]
fn a_full_disk_is_a_warning_while_training_goes_on_and_an_error_at_the_end() {
    let place = Place::new();
    // Long enough for the slowest of disks to say that it is full.
    let long = ["--epochs", "60"];
    let whole = place.weights(&long);
    let every = [&long[..], &["--set", "checkpoint.every=1 step"]].concat();
    // The first one fails at its second part, all others are written.
    let (_, ran) = with_failpoints(&place, "checkpoint.before_part=error:28@2", &every);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.result()["weights_sha256"], whole);
    let is_warning = |event: &Value| event["event"] == "warning";
    let warnings = ran
        .events()
        .into_iter()
        .filter(is_warning)
        .collect::<Vec<_>>();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let message = warnings[0]["message"].as_str().unwrap();
    assert!(message.contains("No space left"), "{message}");
    assert!(
        message.contains("checkpoints/000001-step-1/plane.0"),
        "{message}"
    );
    assert_tidy(&folder(&ran.result()), 3);

    // None can be written: it is said once, and at the end once more.
    let (_, ran) = with_failpoints(&place, "checkpoint.before_part=error:28", &every);
    assert_eq!(ran.code, Some(1));
    let warnings = ran.events().into_iter().filter(is_warning).count();
    assert_eq!(warnings, 1);
    let result = ran.result();
    assert!(
        result["error"].as_str().unwrap().contains("No space left"),
        "{result}"
    );
    assert_eq!(checkpoints(&folder(&result)), [] as [PathBuf; 0]);
}

#[test]
fn without_checkpoints_only_a_run_that_is_stopped_leaves_its_state() {
    let place = Place::new();
    let none = ["--set", "checkpoint.every=none"];
    let result = place.train(&none);
    assert_eq!(checkpoints(&folder(&result)), [] as [PathBuf; 0]);
    let name = result["run"].as_str().unwrap();
    let refused = place.run(
        &[
            &["run", "job.toml", "--epochs", "3"],
            &none[..],
            &["--resume", name],
        ]
        .concat(),
    );
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("no checkpoint"),
        "{}",
        refused.stderr
    );

    let mut run = place.start_long_run(&none);
    run.wait_for("epoch");
    run.signal(Signal::INT);
    let (code, result, _) = run.finish();
    assert_eq!(code, Some(130));
    assert_eq!(checkpoints(&folder(&result)).len(), 1);
}
