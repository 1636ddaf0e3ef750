//! Going on with a run: without its job file, after a kill, with other data, and as a fork.

use crate::common::own_data::{table, tables};
use crate::common::{Place, read_json, run_folder, text};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

#[test]
fn a_run_goes_on_without_its_job_file_and_says_where() {
    let place = Place::new();
    let long = place.weights(&["--epochs", "4"]);
    let short = place.train(&[]);
    fs::remove_file(place.path("job.toml")).unwrap();
    let name = short["run"].as_str().unwrap();
    let resume = ["run", "--resume", name, "--epochs", "4"];
    let told = place.said(&resume);
    let words = format!("going on with {name} after epoch 2, 64 steps done");
    assert!(told.contains(&words), "{told}");
    assert_eq!(
        read_json(&run_folder(&short).join("result.json"))["weights_sha256"],
        long
    );
    let ran = place.run(&["run", "--resume"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("folder or name"), "{}", ran.stderr);
    assert_eq!(place.run(&["run"]).code, Some(2));
}

/// Whether a checkpoint of the run is whole.
fn has_checkpoint(run: &Path) -> bool {
    let mut all = fs::read_dir(run.join("checkpoints")).into_iter().flatten();
    all.any(|checkpoint| checkpoint.unwrap().path().join("manifest.json").exists())
}

#[test]
fn a_run_that_was_killed_has_the_model_of_its_newest_checkpoint() {
    let place = Place::new();
    let kept = [
        "--set",
        "data.val_split=0.2",
        "--set",
        "checkpoint.every='8 steps'",
    ];
    let mut run = place.start_long_run(&kept);
    let started = run.wait_for("started");
    let folder = run_folder(&started);
    // Checkpoints are written beside the training, which need not wait for them.
    while !has_checkpoint(&folder) {
        run.wait_for("epoch");
    }
    let ran = place.run(&["predict", text(&folder), "--out", "-"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("has not ended"), "{}", ran.stderr);
    run.signal(Signal::KILL);
    run.finish();
    place.assert_no_process_is_left();
    assert!(!folder.join("model/model.json").exists());
    let told = place.said(&["evaluate", text(&folder)]);
    assert!(told.contains("its newest checkpoint"), "{told}");
    assert!(told.contains("accuracy"), "{told}");
    let onnx = place.path("model.onnx");
    let told = place.said(&["export", text(&folder), "--onnx", text(&onnx)]);
    assert!(!told.contains("checkpoint"), "{told}");
    // What was taken from it does not keep the run from going on.
    let epochs = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let more = (epochs.lines().count() + 2).to_string();
    place.said(&["run", "--resume", text(&folder), "--epochs", &more]);
}

#[test]
fn data_that_changed_before_a_resume_is_named_instead_of_hashes() {
    let place = tables();
    let result = place.train(&[]);
    let name = result["run"].as_str().unwrap();
    let resume = ["run", "job.toml", "--epochs", "3", "--resume", name];
    fs::write(place.path("table.csv"), table(61)).unwrap();
    let words = [
        "the samples of data.train",
        "table.csv has changed",
        "--fork",
    ];
    place.refused(&resume, &words);
    let ran = place.run(&resume);
    assert!(!ran.stderr.contains("sha256"), "{}", ran.stderr);
}

#[test]
fn a_fork_begins_with_the_weights_that_were_kept_unless_the_last_are_asked_for() {
    let place = Place::new();
    let validated = ["--set", "data.val_split=0.2"];
    let wild = ["--epochs", "5", "--set", "train.optimizer.lr=0.4"];
    let old = place.train(&[&validated[..], &wild].concat());
    assert!(old["best_epoch"].as_u64() < Some(5), "{old}");
    let still = ["--set", "train.optimizer.lr=1e-30", "--epochs", "1"];
    let name = old["run"].as_str().unwrap();
    let fork = |which: &str| {
        let forked = [&validated[..], &still, &["--resume", name, which]].concat();
        let ran = place.succeeds(&[&["run", "job.toml", "--json"], &forked[..]].concat());
        let said = ran.stdout.clone();
        (ran.result()["weights_sha256"].clone(), said)
    };
    let (best, said) = fork("--fork");
    assert_eq!(best, old["weights_sha256"]);
    let kept = format!("of epoch {}", old["best_epoch"]);
    assert!(said.contains(&kept), "{said}");
    assert_eq!(fork("--fork=best").0, best);
    let (last, said) = fork("--fork=last");
    assert_ne!(last, best);
    assert!(said.contains("the last weights of"), "{said}");
}
