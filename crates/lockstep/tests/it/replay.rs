//! `lockstep replay`: a run is trained again from its record, and every step of it compared.

use crate::common::{BY_COLUMNS, EIGHT_STEPS, Place, Ran, idx, read_json};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The last line of `replay --json`.
fn verdict(ran: &Ran) -> Value {
    let last = ran.stdout.lines().last();
    let last = last.unwrap_or_else(|| panic!("{}", ran.stderr));
    serde_json::from_str(last).unwrap()
}

fn replay(place: &Place, run: &Path, args: &[&str]) -> Ran {
    place.run(&[&["replay", run.to_str().unwrap(), "--json"], args].concat())
}

fn folder(result: &Value) -> PathBuf {
    PathBuf::from(result["run_dir"].as_str().unwrap())
}

#[test]
fn a_run_that_was_killed_and_resumed_replays_to_the_same_bits_on_any_number_of_workers() {
    let place = Place::new();
    let args = [
        "--epochs",
        "6",
        "--set",
        "checkpoint.every=20 steps",
        "--set",
        BY_COLUMNS,
    ];
    place.cut_off(&args);
    let resumed = place.train(&[&args[..], &["--workers", "1", "--resume"]].concat());
    for workers in ["2", "1"] {
        let ran = replay(&place, &folder(&resumed), &["--workers", workers]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let verdict = verdict(&ran);
        assert_eq!(verdict["same"], true, "{verdict}");
        assert_eq!(verdict["weights_sha256"], resumed["weights_sha256"]);
        // Steps between the last that was written and the cut may be missing where a checkpoint was newer.
        assert!(verdict["steps"].as_u64().unwrap() > 150, "{verdict}");
    }
    let runs = place.runs();
    assert_eq!(runs.len(), 1, "what was trained again is gone: {runs:?}");
}

#[test]
fn an_interrupted_run_is_replayed_as_far_as_it_came() {
    let place = Place::new();
    let mut run = place.start_long_run(&[]);
    run.wait_for("epoch");
    run.signal(Signal::INT);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(130), "{stderr}");
    let ran = replay(&place, &folder(&result), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(verdict(&ran)["weights_sha256"], result["weights_sha256"]);
}

#[test]
fn data_that_were_changed_are_named_before_anything_is_trained() {
    let place = Place::new();
    let run = folder(&place.train(&[]));
    idx::write_set(
        &place.path("train-images"),
        &place.path("train-labels"),
        1003,
        7,
    );
    let ran = replay(&place, &run, &[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("data.train"), "{}", ran.stderr);
    assert!(ran.stderr.contains("other samples"), "{}", ran.stderr);
    let verdict = verdict(&ran);
    assert_eq!(verdict["difference"]["kind"], "data", "{verdict}");
    assert!(!ran.stdout.contains("\"event\":\"epoch\""));
}

/// Changes the mark of a tensor after a step in `trace.jsonl`, and returns the tensor's name.
fn tamper(run: &Path, step: u64, tensor: usize) -> String {
    let path = run.join("trace.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names = lines[0]["tensors"].as_array().unwrap().clone();
    // Eight digits are a mark; before the tensors' marks of a step comes the loss's.
    let of_step = 8 * (names.len() + 1);
    let steps_of = |line: &Value| {
        let (first, marks) = (line["step"].as_u64(), line["marks"].as_str());
        let steps = marks.map_or(0, |marks| marks.len() / of_step);
        first.unwrap_or(0)..first.unwrap_or(0) + steps as u64
    };
    let line = lines.iter_mut().find(|line| steps_of(line).contains(&step));
    let line = line.expect("a line that has the step");
    let at = (step - steps_of(line).start) as usize * of_step + 8 * (1 + tensor);
    let mut marks = line["marks"].as_str().unwrap().to_owned();
    let other = if &marks[at..=at] == "0" { "1" } else { "0" };
    marks.replace_range(at..=at, other);
    line["marks"] = marks.into();
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(path, lines.join("\n") + "\n").unwrap();
    names[tensor].as_str().unwrap().to_owned()
}

#[test]
fn the_first_step_and_the_layer_that_differ_are_named() {
    let place = Place::new();
    let run = folder(&place.train(&[]));
    let name = tamper(&run, 5, 3);
    let ran = replay(&place, &run, &["--workers", "1"]);
    assert_eq!(ran.code, Some(1));
    let verdict = verdict(&ran);
    assert_eq!(verdict["difference"]["step"], 5, "{verdict}");
    let tensors = verdict["difference"]["tensors"].as_array().unwrap();
    assert_eq!(tensors[..], [Value::from(name.as_str())], "{verdict}");
    let words = format!("after step 5 these differ: {name}");
    assert!(ran.stderr.contains(&words), "{}", ran.stderr);
}

#[test]
fn a_kept_replay_is_a_run_like_any_other() {
    let place = Place::new();
    let run = folder(&place.train(&[]));
    let ran = place.run(&["replay", run.to_str().unwrap(), "--keep", "again"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("to the bit"), "{}", ran.stdout);
    let kept = fs::read_dir(place.path("again")).unwrap().next();
    let kept = kept.unwrap().unwrap().path();
    let hash = |run: &Path| read_json(&run.join("result.json"))["weights_sha256"].clone();
    assert_eq!(hash(&kept), hash(&run));
}

#[test]
fn a_script_is_replayed_and_its_reports_compared() {
    let place = Place::new();
    fs::write(place.path("train.py"), EIGHT_STEPS).unwrap();
    place.write_job(
        "name = 'script'\n[train]\ncommand = ['python3', 'train.py']\nworkers = 1\n[run]\nstore = 'runs'\n",
    );
    let run = folder(&place.train(&[]));
    let ran = replay(&place, &run, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(verdict(&ran)["same"], true);
    let path = run.join("metrics.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    rows[2]["metrics"]["step"] = 99.into();
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    fs::write(path, rows.join("\n") + "\n").unwrap();
    let ran = replay(&place, &run, &[]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(verdict(&ran)["difference"]["report"], 3);
}

#[test]
fn a_secret_that_was_not_kept_must_be_given_again() {
    let place = Place::new();
    fs::write(place.path("train.py"), EIGHT_STEPS).unwrap();
    let command = "['python3', 'train.py', '--api-key=hunter2']";
    place.write_job(&format!(
        "name = 'script'\n[train]\ncommand = {command}\nworkers = 1\nenv = {{ MY_TOKEN = 'hunter2' }}\n[run]\nstore = 'runs'\n",
    ));
    let run = folder(&place.train(&[]));
    let command = format!("train.command={command}");
    let mut given = vec!["--set", &command];
    for lacking in ["train.command", "train.env.MY_TOKEN"] {
        let set = if lacking == "train.command" {
            &[][..]
        } else {
            &given
        };
        let name = run.to_str().unwrap();
        for words in [&["replay", name][..], &["run", "--resume", name]] {
            let ran = place.run(&[words, set].concat());
            assert_ne!(ran.code, Some(0), "{lacking}");
            let says = format!("the job had one in `{lacking}`");
            assert!(ran.stderr.contains(&says), "{}", ran.stderr);
        }
    }
    given.extend(["--set", "train.env.MY_TOKEN=hunter2"]);
    let ran = replay(&place, &run, &given);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(verdict(&ran)["same"], true);
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_reason() {
    let place = Place::new();
    let run = folder(&place.train(&["--epochs", "1"]));
    let ran = place.run(&["replay", "nowhere"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("nowhere"), "{}", ran.stderr);
    let ran = replay(&place, &run, &["--workers", "3"]);
    assert_eq!(ran.code, Some(2), "more workers than lanes");
    for gone in ["trace.jsonl", "result.json"] {
        fs::remove_file(run.join(gone)).unwrap();
    }
    let ran = place.run(&["replay", run.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("nothing to compare"), "{}", ran.stderr);
}
