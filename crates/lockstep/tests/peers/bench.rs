//! `lockstep bench`: settings take turns, and what was measured is kept.

use crate::common::{Place, Ran, read_json};
use lockstep_testkit::Peer;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

fn bench(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["bench", "job.toml"], args].concat())
}

/// The folders of the store that have a comparison.
fn kept(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path("runs")).into_iter().flatten();
    let folders = entries.map(|entry| entry.unwrap().path());
    let mut kept: Vec<PathBuf> = folders
        .filter(|folder| folder.join("comparison.json").exists())
        .collect();
    kept.sort();
    kept
}

fn names(comparison: &Value) -> Vec<&str> {
    let turns = comparison["turns"].as_array().unwrap();
    turns
        .iter()
        .map(|turn| turn["setting"].as_str().unwrap())
        .collect()
}

#[test]
fn one_worker_is_held_against_two_in_turns_and_everything_is_written() {
    let place = Place::new();
    let args = [
        "--workers",
        "1,2",
        "--repeat",
        "2",
        "--epochs",
        "2",
        "--out",
        "results",
    ];
    let ran = bench(&place, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("the same weights to the bit"),
        "{}",
        ran.stdout
    );
    let comparison = read_json(&place.path("results/comparison.json"));
    let seconds = |side: &str| comparison[side]["training_time_seconds"].as_f64().unwrap();
    let speedup = comparison["comparison"]["speedup"].as_f64().unwrap();
    let efficiency = comparison["comparison"]["efficiency"].as_f64().unwrap();
    assert!(seconds("baseline") > 0.0 && seconds("distributed") > 0.0);
    assert!((efficiency - speedup / 2.0).abs() < 1e-9);
    assert_eq!(comparison["complete"], true);
    assert_eq!(comparison["comparison"]["same_weights"], true);
    assert!(comparison["baseline"]["test_accuracy"].as_f64().unwrap() > 0.2);
    assert!(comparison["comparison"]["limit_speedup"].as_f64().unwrap() > 0.0);
    let (one, two, apart) = (
        "1 worker, batch 32",
        "2 workers, batch 32",
        "2 runs apart, batch 32",
    );
    // Each round begins with another setting.
    assert_eq!(names(&comparison), [one, two, apart, two, apart, one]);
    // Shares of the time of a step are a whole.
    for row in comparison["steps"].as_array().unwrap() {
        let parts = [
            "data", "forward", "backward", "waiting", "exchange", "update",
        ];
        let sum: f64 = parts.iter().map(|part| row[part].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{row}");
        assert!(row["backward"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert_eq!(comparison["steps"].as_array().unwrap().len(), 2);
    let weights = place.weights(&["--epochs", "2"]);
    assert_eq!(
        comparison["distributed"]["weights_sha256"], weights,
        "as `run` does"
    );
    let report = fs::read_to_string(place.path("results/report.html")).unwrap();
    assert!(
        report.contains("efficiency") && !report.contains("http"),
        "one page, no network"
    );
    if Peer::Browser.is_here() {
        let report = serde_json::json!({
            "file": place.path("results/report.html"),
            "words": ["speedup", "efficiency", "SHA-256"],
            "pictures": 5,
        });
        lockstep_testkit::browse("report.mjs", &report);
    }
    let table = fs::read_to_string(place.path("results/comparison.md")).unwrap();
    assert!(table.contains("| 2 workers, batch 32 |"), "{table}");
    // The same is in the store, for the dashboard, and is no run.
    let kept = kept(&place);
    assert_eq!(kept.len(), 1);
    assert_eq!(read_json(&kept[0].join("comparison.json")), comparison);
    let listed = place.run(&["runs", "list", "--store", "runs", "--json"]);
    assert!(!listed.stdout.contains("bench-"), "{}", listed.stdout);
    place.assert_no_process_is_left();
}

#[test]
fn batches_are_compared_and_with_weak_scaling_each_worker_keeps_its_own() {
    let place = Place::new();
    let args = [
        "--workers",
        "1,2",
        "--batch",
        "16,32",
        "--epochs",
        "1",
        "--repeat",
        "1",
        "--weak",
        "--json",
    ];
    let ran = bench(&place, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let comparison: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(comparison["scaling"], "weak");
    let settings = comparison["settings"].as_array().unwrap();
    let batches: Vec<u64> = settings
        .iter()
        .map(|row| row["batch"].as_u64().unwrap())
        .collect();
    assert_eq!(batches, [16, 32, 32, 64, 32, 64]);
    let once = "measured once";
    let warned = comparison["warnings"].to_string();
    assert!(warned.contains(once), "{warned}");
}

#[test]
fn what_cannot_be_measured_is_said_before_anything_is() {
    let place = Place::new();
    for (args, words) in [
        (
            &["--workers", "1,0"][..],
            "--workers: found 0, and it must be at least 1",
        ),
        (&["--workers", "2"], "nothing to compare with"),
        (&["--workers", "1,3"], "train.lanes"),
        (&["--workers", "1,x"], "it must be a whole number"),
        (&["--repeat", "0"], "--repeat: found 0"),
        (&["--batch", "0"], "--batch: found 0"),
        (
            &["--workers", "1,2", "--against", "horovod"],
            "known are torch-threads, torch-ddp",
        ),
        (&["--set", "train.no_such_key=1"], "no_such_key"),
    ] {
        let ran = bench(&place, args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    assert!(kept(&place).is_empty());
}

#[test]
fn a_speedup_that_is_too_small_fails_and_is_kept() {
    let place = Place::new();
    let args = [
        "--workers",
        "1,2",
        "--epochs",
        "1",
        "--repeat",
        "1",
        "--no-limit",
        "--fail-below",
        "50",
    ];
    let ran = bench(&place, &args);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("--fail-below asks for at least 50"),
        "{}",
        ran.stderr
    );
    assert_eq!(kept(&place).len(), 1);
}

#[test]
fn a_job_that_fails_half_way_leaves_what_was_measured() {
    let place = Place::new();
    // Both settings are warmed up, the first is measured, and the fourth start fails.
    let script = "\
import os, sys
if os.environ['RANK'] == '0':
    with open('starts', 'a') as starts:
        starts.write('x')
    sys.exit(os.path.getsize('starts') >= 4)
";
    fs::write(place.path("train.py"), script).unwrap();
    place.write_job(
        "name = \"script\"\n[train]\nkind = \"script\"\ncommand = [\"python3\", \"train.py\"]\nworkers = 2\n\
         [recover]\nmax_restarts = 0\n[run]\nstore = \"runs\"\n",
    );
    let ran = bench(&place, &["--workers", "1,2", "--repeat", "1"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("what was measured before is kept"),
        "{}",
        ran.stderr
    );
    let comparison = read_json(&kept(&place)[0].join("comparison.json"));
    assert_eq!(names(&comparison), ["1 worker"]);
    assert_eq!(comparison["complete"], false);
    assert!(
        comparison["error"].as_str().unwrap().contains("worker 0"),
        "{comparison}"
    );
    place.assert_no_process_is_left();
}

#[test]
#[ignore = "installs PyTorch and Ray (6 GB): `make test-long`"]
fn other_systems_learn_the_same_job_about_as_well() {
    let place = Place::new();
    let args = [
        "--workers",
        "1,2",
        "--repeat",
        "1",
        "--epochs",
        "4",
        "--no-limit",
        "--out",
        "results",
    ];
    let peers = ["--against", "torch-threads,torch-ddp,ray-train"];
    let ran = bench(&place, &[&args[..], &peers].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let comparison = read_json(&place.path("results/comparison.json"));
    assert_eq!(names(&comparison).len(), 8);
    let settings = comparison["settings"].as_array().unwrap();
    let accuracy = |row: &Value| row["accuracy"].as_f64().unwrap();
    for row in settings {
        let difference = accuracy(row) - accuracy(&settings[0]);
        assert!(difference.abs() < 0.2, "{row}");
    }
}
