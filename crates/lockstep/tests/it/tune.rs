//! `lockstep tune`: the same trials by the same seed, whatever happens meanwhile.

use crate::common::{Place, Ran};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SEARCH: [&str; 6] = [
    "--search",
    "train.optimizer.lr=log(1e-4,1)",
    "--search",
    "model.hidden=[[8], [24, 16]]",
    "--set",
    "data.val_split=0.2",
];

fn words<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [
        &["tune", "job.toml", "--epochs", "3", "--json"][..],
        &SEARCH,
        args,
    ]
    .concat()
}

fn tune(place: &Place, args: &[&str]) -> Ran {
    place.run(&words(args))
}

fn found(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The folders of searches in the store.
fn searches(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path("runs")).into_iter().flatten();
    let folders = entries.map(|entry| entry.unwrap().path());
    folders
        .filter(|folder| folder.join("tuning.json").exists())
        .collect()
}

#[test]
fn the_same_seed_finds_the_same_best_whatever_runs_at_a_time() {
    let place = Place::new();
    let one = found(&tune(&place, &["--trials", "9"]));
    let other = Place::new();
    let two = found(&tune(
        &other,
        &["--trials", "9", "--parallel", "3", "--workers", "1"],
    ));
    assert_eq!(one["trials"], two["trials"]);
    let reached: Vec<usize> = one["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["reached"].as_array().unwrap().len())
        .collect();
    // Nine train for one epoch, three of them for all three.
    assert_eq!(
        reached.iter().filter(|n| **n == 2).count(),
        3,
        "{reached:?}"
    );
    // The best job is written, and comes to what the trial did.
    let folder = &searches(&place)[0];
    let best = folder.join("best.toml");
    let ran = place.run(&["run", best.to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut epochs = ran
        .events()
        .into_iter()
        .filter(|event| event["event"] == "epoch");
    let loss = epochs.next_back().unwrap()["val"]["loss"].clone();
    let trials = one["trials"].as_array().unwrap();
    let whole = trials
        .iter()
        .filter(|trial| trial["reached"].as_array().unwrap().len() == 2);
    let losses = whole.map(|trial| trial["reached"][1]["value"].as_f64().unwrap());
    assert_eq!(loss.as_f64().unwrap(), losses.fold(f64::MAX, f64::min));
    let report = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(report.contains("loss by epoch") && !report.contains("http"));
    place.assert_no_process_is_left();
}

#[test]
fn a_search_that_is_killed_and_resumed_tries_the_same() {
    let place = Place::new();
    let mut command = place.command(&words(&["--trials", "9", "--parallel", "2"]));
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    // In the middle: some trials are done, and some are not.
    loop {
        assert!(begin.elapsed() < crate::common::LIMIT, "nothing was tried");
        let done = searches(&place).first().map_or(0, |folder| {
            let known = fs::read_to_string(folder.join("tuning.json")).unwrap_or_default();
            known.matches("\"epochs\"").count()
        });
        if done >= 3 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    crate::common::send(i32::try_from(child.id()).unwrap(), Signal::KILL);
    child.wait().unwrap();
    place.assert_no_process_is_left();
    let resumed = found(&tune(&place, &["--trials", "9", "--resume"]));
    let whole = found(&tune(&Place::new(), &["--trials", "9"]));
    assert_eq!(resumed["trials"], whole["trials"]);
    assert_eq!(searches(&place).len(), 1);
    // One that was told something else is another search.
    let other = tune(&place, &["--trials", "9", "--seed", "1", "--resume"]);
    assert_eq!(other.code, Some(2), "{}", other.stderr);
    assert!(other.stderr.contains("--seed"), "{}", other.stderr);
}

#[test]
fn a_trial_that_diverges_counts_as_the_poorest() {
    let place = Place::new();
    let args = [
        "--search",
        "train.optimizer.momentum=[0.9, 0.99]",
        "--method",
        "grid",
    ];
    let diverge = [
        "--set",
        "train.optimizer.lr=1e30",
        "--set",
        "data.val_split=0.2",
    ];
    let all = [
        &["tune", "job.toml", "--epochs", "1", "--json"][..],
        &args,
        &diverge,
    ]
    .concat();
    let found = found(&place.run(&all));
    for trial in found["trials"].as_array().unwrap() {
        assert!(trial["failed"].is_string(), "{trial}");
    }
}

#[test]
fn what_cannot_be_searched_is_said_before_anything_is_trained() {
    let place = Place::new();
    let split = ["--set", "data.val_split=0.2"];
    for (args, words) in [
        (&["--search", "train.no_such_key=[1, 2]"][..], "no_such_key"),
        (&["--search", "train.batch=[32, 0]"], "train.batch"),
        (
            &["--search", "train.batch=normal(0,1)"],
            "none of log, uniform and int",
        ),
        (&[], "nothing is to be searched"),
        (
            &["--search", "train.batch=[16, 32]", "--trials", "0"],
            "--trials: found 0",
        ),
        (
            &["--search", "train.batch=[16, 32]", "--parallel", "0"],
            "--parallel: found 0",
        ),
    ] {
        let ran = place.run(&[&["tune", "job.toml"], args, &split[..]].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    let search = ["--search", "train.batch=[16, 32]"];
    let ran = place.run(&[&["tune", "job.toml"][..], &search].concat());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("data.val_split"), "{}", ran.stderr);
    let wrong = ["--metric", "beauty", "--trials", "2", "--epochs", "1"];
    let ran = place.run(&[&["tune", "job.toml"][..], &search, &split, &wrong].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("--metric beauty"), "{}", ran.stderr);
    assert!(ran.stderr.contains("accuracy"), "{}", ran.stderr);
}

#[test]
fn a_script_is_searched_by_its_variables_and_what_it_reports() {
    let place = Place::new();
    let script = r#"
import math, os
from lockstep import train
lr = float(os.environ["LR"])
for step in range(3):
    train.report({"score": step - abs(math.log10(lr) + 2), "width": os.environ["WIDTH"]})
"#;
    fs::write(place.path("train.py"), script).unwrap();
    let python = lockstep_testkit::python("numpy", &["numpy"]);
    place.write_job(&format!(
        "name = \"script\"\n[train]\ncommand = [{python:?}, \"train.py\"]\n[run]\nstore = \"runs\"\n"
    ));
    let search = [
        "tune",
        "job.toml",
        "--method",
        "grid",
        "--search",
        "train.env.LR=[1e-1, 1e-2]",
        "--search",
        "train.env.WIDTH=[\"narrow\", \"wide\"]",
        "--metric",
    ];
    let found = found(&place.run(&[&search[..], &["score", "--json"]].concat()));
    let trials = found["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4);
    let value = |trial: &Value| trial["reached"][0]["value"].as_f64().unwrap();
    let best = trials.iter().map(value).fold(f64::MIN, f64::max);
    assert_eq!(best, 2.0, "{found}");
    let best = fs::read_to_string(searches(&place)[0].join("best.toml")).unwrap();
    assert!(
        best.contains("LR = \"1e-2\"") || best.contains("LR = \"0.01\""),
        "{best}"
    );
    let ran = place.run(&[&search[..], &["beauty"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("reports score, width"),
        "{}",
        ran.stderr
    );
}
