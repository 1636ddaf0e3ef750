//! Listing, filters, showing, tags, and that the index can be made again.

use crate::common::{Place, Ran, Running};
use serde_json::Value;
use std::fs;

/// Three runs with three learning rates; the last one has one epoch.
pub(crate) fn trained() -> (Place, Vec<String>) {
    let place = Place::new();
    let mut names = Vec::new();
    for args in [
        ["--set", "train.optimizer.lr=0.05"],
        ["--set", "train.optimizer.lr=0.01"],
        ["--epochs", "1"],
    ] {
        let result = place.train(&args);
        names.push(result["run"].as_str().unwrap().to_owned());
    }
    (place, names)
}

pub(crate) fn ok(place: &Place, args: &[&str]) -> String {
    let Ran {
        code,
        stdout,
        stderr,
    } = place.run(args);
    assert_eq!(code, Some(0), "{args:?}: {stderr}");
    assert!(
        !stderr.contains("warning") && !stderr.contains("note"),
        "{args:?}: {stderr}"
    );
    stdout
}

pub(crate) fn json(place: &Place, args: &[&str]) -> Value {
    let text = ok(place, &[args, &["--json"]].concat());
    serde_json::from_str(&text).unwrap()
}

fn listed(place: &Place, args: &[&str]) -> Vec<String> {
    let all = json(place, &[&["runs", "list"], args].concat());
    let names = all.as_array().unwrap().iter();
    names
        .map(|run| run["run"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn runs_are_listed_filtered_and_sorted_and_the_index_is_written_while_they_train() {
    let (place, names) = trained();
    let [first, second, third] = [0, 1, 2].map(|run| names[run].as_str());
    // The coordinators have written it; nobody has looked yet.
    assert!(place.path("runs/index.sqlite").exists());
    assert_eq!(listed(&place, &[]), [third, second, first]);
    assert_eq!(listed(&place, &["optimizer.lr < 0.03"]), [second]);
    assert_eq!(listed(&place, &["lr = 0.05 and epochs = 2"]), [first]);
    assert_eq!(
        listed(&place, &["accuracy >= 0 and status = succeeded"]).len(),
        3
    );
    assert_eq!(listed(&place, &["not (job = small)"]), [] as [&str; 0]);
    assert_eq!(listed(&place, &["age < 1d", "-n", "1"]), [third]);
    assert_eq!(listed(&place, &["started > 2100-01-01"]), [] as [&str; 0]);
    assert_eq!(listed(&place, &["--sort", "lr", "--ascending"])[0], second);

    let run = &json(&place, &["runs", "list", "epochs = 1"])[0];
    assert_eq!(
        (run["status"].as_str(), run["workers"].as_u64()),
        (Some("succeeded"), Some(2))
    );
    assert_eq!(run["params"]["train.optimizer.lr"], 0.05);
    assert!(run["metrics"]["test.accuracy"].is_f64(), "{run}");
    assert_eq!(run["data"][0]["set"], "train");

    let text = ok(
        &place,
        &["runs", "list", "--columns", "lr,test.loss,accuracy"],
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[0].starts_with("run ") && lines[0].contains("lr"),
        "{text}"
    );
    assert!(
        lines[1].contains(third) && lines[1].contains("succeeded"),
        "{text}"
    );
    let csv = ok(&place, &["runs", "list", "--csv"]);
    assert!(csv.starts_with("run,job,status,started,"), "{csv}");
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .contains("param.train.optimizer.lr"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 4);
    let best = json(&place, &["runs", "best", "--metric", "loss", "-n", "3"]);
    let losses: Vec<f64> = best
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["metrics"]["test.loss"].as_f64().unwrap())
        .collect();
    assert!(losses.is_sorted(), "{losses:?}");
}

#[test]
fn a_filter_that_is_wrong_is_marked_and_ends_with_2() {
    let place = Place::new();
    place.train(&["--epochs", "1"]);
    for (filter, said) in [
        ("acuracy > 0.9", "did you mean `accuracy`?"),
        ("accuracy > ", "there is no value after `>`"),
        ("status = done", "succeeded, interrupted, failed, lost"),
    ] {
        let ran = place.run(&["runs", "list", filter]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(said) && ran.stderr.contains('^'),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn an_empty_store_and_an_unknown_run_are_said_kindly() {
    let place = Place::new();
    let text = ok(&place, &["runs", "list"]);
    assert!(
        text.contains("no runs in runs yet") && text.contains("lockstep run"),
        "{text}"
    );
    assert_eq!(
        ok(&place, &["runs", "list", "accuracy > 1", "--json"]).trim(),
        "[]"
    );
    assert!(!place.path("runs").exists());
    let result = place.train(&["--epochs", "1"]);
    let name = result["run"].as_str().unwrap();
    let near = name.replace("small", "smal");
    let ran = place.run(&["runs", "show", &near]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains(&format!("did you mean {name}?")),
        "{}",
        ran.stderr
    );
    // A part of a name does, and its folder.
    let end = name.rsplit('-').next().unwrap();
    for given in [end, &format!("runs/{name}/")] {
        assert!(ok(&place, &["runs", "show", given]).contains(name));
    }
}

#[test]
fn a_run_is_shown_with_all_that_is_known_of_it() {
    let place = Place::new();
    let result = place.train(&[]);
    let name = result["run"].as_str().unwrap();
    let text = ok(&place, &["runs", "show", name]);
    for wanted in [
        "train.optimizer.lr",
        "0.05",
        "test.accuracy",
        result["weights_sha256"].as_str().unwrap(),
        "model/weights.safetensors",
        "2 workers, 2 lanes",
        "test.accuracy by step",
        "┤",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let shown = json(&place, &["runs", "show", name]);
    assert_eq!(shown["result"]["weights_sha256"], result["weights_sha256"]);
    assert!(shown["origin"]["lockstep"].is_string(), "{shown}");
    let exported = ok(
        &place,
        &["runs", "export", name, "--metric", "test.accuracy"],
    );
    assert_eq!(exported.lines().count(), 3, "{exported}");
    let points = json(&place, &["runs", "export", name]);
    assert!(
        points
            .as_array()
            .unwrap()
            .iter()
            .any(|point| point["name"] == "train.loss")
    );
}

#[test]
fn tags_stay_with_a_run_and_a_new_index_says_the_same() {
    let (place, names) = trained();
    let [first, second] = [0, 1].map(|run| names[run].as_str());
    ok(
        &place,
        &[
            "runs",
            "tag",
            first,
            "good",
            "paper=figure 3",
            "--note",
            "a <note>",
        ],
    );
    ok(&place, &["runs", "tag", second, "good"]);
    assert_eq!(listed(&place, &["tag.good"]).len(), 2);
    assert_eq!(listed(&place, &["tag.paper ~ figure"]), [first]);
    ok(&place, &["runs", "tag", second, "--remove", "good"]);
    assert_eq!(
        place.run(&["runs", "tag", second, "--remove", "good"]).code,
        Some(1)
    );
    assert_eq!(listed(&place, &["tag.good"]), [first]);

    let strip = |mut all: Value| {
        for run in all.as_array_mut().unwrap() {
            run["duration_s"] = Value::Null;
        }
        all
    };
    let before = strip(json(&place, &["runs", "list"]));
    assert_eq!(before[2]["note"], "a <note>");
    let said = ok(&place, &["runs", "reindex"]);
    assert!(said.contains("3 runs"), "{said}");
    assert_eq!(strip(json(&place, &["runs", "list"])), before);
    fs::write(place.path("runs/index.sqlite"), "nonsense".repeat(999)).unwrap();
    let again: Value =
        serde_json::from_str(&place.run(&["runs", "list", "--json"]).stdout).unwrap();
    assert_eq!(strip(again), before);
}

#[test]
fn a_run_that_was_killed_is_lost_and_one_that_trains_is_running() {
    let place = Place::new();
    let mut running: Running = place.start_long_run(&[]);
    running.wait_for("progress");
    let state = |place: &Place| {
        let all = json(place, &["runs", "list"]);
        all[0]["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(&place), "running");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert_eq!(state(&place), "lost");
    place.assert_no_process_is_left();
}

#[test]
fn an_index_that_cannot_be_written_never_fails_a_run() {
    let place = Place::new();
    fs::create_dir_all(place.path("runs/index.sqlite")).unwrap();
    let ran = place.run(&["run", "job.toml", "--epochs", "1", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let warnings = ran
        .events()
        .into_iter()
        .filter(|event| event["event"] == "warning");
    let warnings: Vec<Value> = warnings.collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0]["message"].as_str().unwrap().contains("index"),
        "{warnings:?}"
    );
    // Those who look are told so too, and see the run all the same.
    let ran = place.run(&["runs", "list", "--json"]);
    assert!(ran.stderr.contains("note: "), "{}", ran.stderr);
    let all: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 1);
}
