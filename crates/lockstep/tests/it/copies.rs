//! Copies of the state in memory: a worker that is lost costs no step that was done.

use crate::common::{Place, Ran, files};
use serde_json::Value;
use std::path::Path;

/// Two epochs and validation, with a first layer that is computed by columns: so some weights have no other copy.
const ARGS: [&str; 6] = [
    "--set",
    crate::common::BY_COLUMNS,
    "--set",
    "data.val_split=0.1",
    "--set",
    "recover.max_restarts=20",
];

const EVERY_STEP: [&str; 2] = ["--set", "recover.copies=\"every-step\""];

/// With the vectors of Adam, an average, and the norm of the gradient.
const MORE_STATE: [&str; 6] = [
    "--set",
    "train.average=0.9",
    "--set",
    "train.optimizer={ kind = \"adam\", lr = 0.001 }",
    "--set",
    "train.clip_norm=1.0",
];

/// What training with these arguments ends with, and all that was told, if workers die at these points.
fn killed_at(place: &Place, points: &str, args: &[&str]) -> (Value, Vec<Value>) {
    let all = [&["run", "job.toml", "--json"], &ARGS[..], args].concat();
    let mut command = place.command(&all);
    let output = command.env("LOCKSTEP_FAILPOINTS", points).output();
    let ran = Ran::from(output.unwrap());
    assert_eq!(ran.code, Some(0), "{points}: {}{}", ran.stdout, ran.stderr);
    let events = ran.stdout.lines();
    let events = events.map(|line| serde_json::from_str(line).unwrap());
    (ran.result(), events.collect())
}

/// The epochs in the record, each with what it came to but for the time.
fn recorded(result: &Value) -> Vec<Value> {
    let path = Path::new(result["run_dir"].as_str().unwrap()).join("metrics.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        for key in ["seconds", "total_s", "samples_per_s"] {
            row.as_object_mut().unwrap().remove(key);
        }
        row
    };
    text.lines().map(row).collect()
}

#[test]
fn wherever_a_worker_dies_no_step_is_repeated_and_the_record_is_that_of_an_undisturbed_run() {
    let place = Place::new();
    let (whole, events) = killed_at(&place, "", &EVERY_STEP);
    let started = events.iter().find(|event| event["event"] == "started");
    let epoch = &started.unwrap()["steps_per_epoch"];
    // In the first epoch, at its end, and in the second.
    let points = [
        "step.begin@rank1@gen1=kill@5".to_owned(),
        "update.before@rank0@gen1=kill@40".to_owned(),
        "update.publish@rank1@gen1=kill@60".to_owned(),
        "copy.begin@rank1@gen1=kill@1".to_owned(),
        "copy.chunk@rank0@gen1=kill@20".to_owned(),
        "copy.chunk@rank1@gen1=kill@33".to_owned(),
        "copy.complete@rank0@gen1=kill@8".to_owned(),
        "copy.complete@rank1@gen1=kill@9".to_owned(),
        "copy.completed@rank1@gen1=kill@11".to_owned(),
        "copy.counts@rank0@gen1=kill@12".to_owned(),
        format!("copy.counts@rank0@gen1=kill@{epoch}"),
        format!("copy.completed@rank1@gen1=kill@{epoch}"),
        "copy.note@rank0@gen1=kill@2".to_owned(),
        "copy.noted@rank0@gen1=kill@2".to_owned(),
        "copy.noted@rank0@gen1=kill@3".to_owned(),
        "publish.weights@rank0@gen1=kill".to_owned(),
    ];
    for point in points {
        let (result, _) = killed_at(&place, &point, &EVERY_STEP);
        assert_eq!(result["restarts"], 1, "{point}");
        assert_eq!(result["steps_repeated"], 0, "{point}");
        assert_eq!(result["weights_sha256"], whole["weights_sha256"], "{point}");
        assert_eq!(result["metrics"], whole["metrics"], "{point}");
        assert_eq!(recorded(&result), recorded(&whole), "{point}");
    }
    place.assert_no_process_is_left();
}

#[test]
fn losses_one_after_the_other_repeat_nothing_on_one_two_and_three_workers() {
    let place = Place::new();
    let lanes = ["--set", "train.lanes=6"];
    for (workers, victims) in [("1", [0, 0, 0]), ("2", [1, 0, 1]), ("3", [2, 0, 1])] {
        let workers = ["--workers", workers];
        let args = [&lanes[..], &workers, &EVERY_STEP].concat();
        let (whole, _) = killed_at(&place, "", &args);
        let points: Vec<String> =
            (victims
                .iter()
                .zip(["begin=kill@3", "chunk=kill@30", "complete=kill@4"]))
            .enumerate()
            .map(|(generation, (rank, point))| {
                let (name, action) = point.split_once('=').unwrap();
                format!("copy.{name}@rank{rank}@gen{}={action}", generation + 1)
            })
            .collect();
        let points = points.join(",");
        let (result, _) = killed_at(&place, &points, &args);
        assert_eq!(result["restarts"], 3, "{points}");
        assert_eq!(result["steps_repeated"], 0, "{points}");
        assert_eq!(
            result["weights_sha256"], whole["weights_sha256"],
            "{points}"
        );
    }
}

/// Three workers who share no memory, and keep copies for each other.
const OVER_LINKS: [&str; 6] = [
    "--workers",
    "3",
    "--set",
    "train.lanes=6",
    "--set",
    "gang.transport=tcp",
];

#[test]
fn where_workers_keep_copies_for_each_other_no_step_is_repeated_either() {
    let place = Place::new();
    let args = [&OVER_LINKS[..], &EVERY_STEP].concat();
    let (whole, events) = killed_at(&place, "", &args);
    let started = events.iter().find(|event| event["event"] == "started");
    let epoch = &started.unwrap()["steps_per_epoch"];
    let points = [
        "step.begin@rank1@gen1=kill@5".to_owned(),
        "copy.begin@rank1@gen1=kill@1".to_owned(),
        "copy.chunk@rank0@gen1=kill@20".to_owned(),
        "copy.complete@rank2@gen1=kill@9".to_owned(),
        "keeper.part@rank1@gen1=kill@30".to_owned(),
        "keeper.complete@rank0@gen1=kill@7".to_owned(),
        "ward.kept@rank2@gen1=kill@9".to_owned(),
        format!("copy.counts@rank0@gen1=kill@{epoch}"),
        "copy.noted@rank0@gen1=kill@3".to_owned(),
        "publish.weights@rank0@gen1=kill".to_owned(),
    ];
    for point in points {
        let (result, _) = killed_at(&place, &point, &args);
        assert_eq!(result["restarts"], 1, "{point}");
        assert_eq!(result["steps_repeated"], 0, "{point}");
        assert_eq!(result["weights_sha256"], whole["weights_sha256"], "{point}");
        assert_eq!(recorded(&result), recorded(&whole), "{point}");
    }
    // One after the other, Adam and an average among what is kept.
    let args = [&MORE_STATE[..], &args].concat();
    let (whole, _) = killed_at(&place, "", &args);
    let points =
        "copy.chunk@rank1@gen1=kill@50,keeper.part@rank0@gen2=kill@40,step.begin@rank2@gen3=kill@2";
    let (result, _) = killed_at(&place, points, &args);
    assert_eq!(result["restarts"], 3);
    assert_eq!(result["steps_repeated"], 0);
    assert_eq!(result["weights_sha256"], whole["weights_sha256"]);
    assert_eq!(recorded(&result), recorded(&whole));
}

#[test]
fn a_worker_and_its_keeper_that_are_lost_cost_the_steps_since_a_checkpoint() {
    let place = Place::new();
    let checkpoints = ["--set", "checkpoint.every=6 steps"];
    let args = [&OVER_LINKS[..], &EVERY_STEP, &checkpoints].concat();
    let (whole, _) = killed_at(&place, "", &args);
    // The keeper of rank 0 dies before it has given to others what it keeps.
    let points = "step.begin@rank0@gen1=kill@11,mesh.begin@rank1@gen2=kill";
    let (result, events) = killed_at(&place, points, &args);
    let restarts = events.iter().filter(|event| event["event"] == "restart");
    let from: Vec<u64> = restarts
        .map(|event| event["step"].as_u64().unwrap())
        .collect();
    assert_eq!((from.len(), from[0]), (2, 10));
    // The checkpoint of the sixth step may be on its way still.
    assert!(from[1] <= 6, "{from:?}");
    assert!(result["steps_repeated"].as_u64().unwrap() > 0);
    assert_eq!(result["weights_sha256"], whole["weights_sha256"]);
}

#[test]
fn copies_hold_averages_the_vectors_of_adam_and_the_norm_of_the_gradient() {
    let place = Place::new();
    let options = ["--workers", "3", "--set", "train.lanes=6"];
    let args = [&options[..], &MORE_STATE, &EVERY_STEP].concat();
    let (whole, _) = killed_at(&place, "", &args);
    let points = "copy.chunk@rank1@gen1=kill@50,copy.complete@rank0@gen2=kill@3";
    let (result, _) = killed_at(&place, points, &args);
    assert_eq!(
        (&result["restarts"], &result["steps_repeated"]),
        (&2.into(), &0.into())
    );
    assert_eq!(result["weights_sha256"], whole["weights_sha256"]);
    assert_eq!(recorded(&result), recorded(&whole));
}

#[test]
fn copies_are_said_by_a_dry_run_and_can_be_turned_off() {
    let place = Place::new();
    let plan = |args: &[&str]| {
        let all = [&["run", "job.toml", "--dry-run", "--json"], args].concat();
        let ran = place.succeeds(&all);
        serde_json::from_str::<Value>(ran.stdout.lines().last().unwrap()).unwrap()
    };
    let plan_bytes = plan(&[])["memory"]["copies_bytes"].as_u64().unwrap();
    let model = plan(&[])["model_bytes"].as_u64().unwrap();
    // Two of the weights and of the momentum, and a little beside.
    assert!(
        (4 * model..4 * model + (128 << 10)).contains(&plan_bytes),
        "{plan_bytes} of {model}"
    );
    let off = [
        "--set",
        "recover.copies=\"off\"",
        "--set",
        "checkpoint.every=1000 steps",
    ];
    assert_eq!(plan(&off)["memory"]["copies_bytes"], Value::Null);
    let (result, _) = killed_at(&place, "step.begin@rank1@gen1=kill@20", &off);
    assert_eq!(result["steps_repeated"], 19, "there is no checkpoint yet");
}

#[test]
fn nothing_of_copies_is_left_in_the_run() {
    let place = Place::new();
    let (result, events) = killed_at(&place, "copy.chunk@rank1@gen1=kill@60", &EVERY_STEP);
    let restart = events
        .iter()
        .find(|event| event["event"] == "restart")
        .unwrap();
    assert_eq!(restart["from"], Value::Null);
    assert!(restart["step"].as_u64().unwrap() > 0, "{restart}");
    let run = Path::new(result["run_dir"].as_str().unwrap());
    let names = files(run)
        .into_keys()
        .map(|path| path.to_string_lossy().into_owned());
    assert!(!names.into_iter().any(|name| name.contains("cop")));
}
