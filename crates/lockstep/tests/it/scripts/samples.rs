//! Data that scripts are handed: each sample once an epoch, whatever is killed, comes or leaves, on any number of
//! workers.

use super::{place, run};
use crate::common::{AT_ONCE, Place, Running, send};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::time::Instant;

/// Three epochs over the training set; after every second batch, a checkpoint in which each rank writes down which
/// samples it has seen in all. What was seen after the last checkpoint is lost with it.
const SCRIPT: &str = r#"
import json, os, tempfile, time
from lockstep import train

context = train.get_context()
rank = context.get_world_rank()
seen = {}
checkpoint = train.get_checkpoint()
if checkpoint:
    with checkpoint.as_directory() as folder:
        state = json.load(open(os.path.join(folder, "epoch.json")))
        if rank == 0:
            for name in os.listdir(folder):
                if name.startswith("seen-"):
                    for epoch, samples in json.load(open(os.path.join(folder, name))).items():
                        seen.setdefault(epoch, []).extend(samples)
else:
    state = {"epoch": 0}
print("pid", os.getpid(), flush=True)

def save(epoch):
    with tempfile.TemporaryDirectory() as folder:
        json.dump(seen, open(os.path.join(folder, f"seen-{rank}.json"), "w"))
        if rank == 0:
            json.dump({"epoch": epoch}, open(os.path.join(folder, "epoch.json"), "w"))
        train.report({"epoch": epoch}, checkpoint=train.Checkpoint.from_directory(folder))

shard = train.get_dataset_shard("train")
for epoch in range(state["epoch"], 3):
    for step, batch in enumerate(shard.iter_batches(batch_size=7)):
        assert list(batch) == ["number", "other", "label"], list(batch)
        # The first column is the sample's number, the label its remainder.
        numbers = batch["number"]
        assert numbers.dtype == "int64" and (numbers % 3 == batch["label"]).all()
        seen.setdefault(str(epoch), []).extend(numbers.tolist())
        time.sleep(float(os.environ.get("STEP_S", 0.1)))
        if step % 2 == 1:
            save(epoch)
    save(epoch + 1)
"#;

/// 150 rows, whose first column is their number.
fn with_rows(train: &str) -> Place {
    let place = place(SCRIPT, train);
    let rows: String = (0..150)
        .map(|row| format!("{row},1.5,{}\n", row % 3))
        .collect();
    fs::write(
        place.path("rows.csv"),
        format!("number,other,label\n{rows}"),
    )
    .unwrap();
    let job = fs::read_to_string(place.path("job.toml")).unwrap();
    place.write_job(&format!(
        "{job}\n[data]\ntrain = {{ csv = \"rows.csv\" }}\n"
    ));
    place
}

/// What all ranks together have seen, by epoch, sorted.
fn seen(place: &Place, result: &Value) -> Vec<Vec<u64>> {
    let model = place
        .path("runs")
        .join(result["run"].as_str().unwrap())
        .join("model");
    let mut epochs = vec![Vec::new(); 3];
    for entry in fs::read_dir(model).unwrap().flatten() {
        if !entry.file_name().to_string_lossy().starts_with("seen-") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        let of: Value = serde_json::from_str(&text).unwrap();
        for (epoch, samples) in of.as_object().unwrap() {
            let samples = samples
                .as_array()
                .unwrap()
                .iter()
                .map(|sample| sample.as_u64().unwrap());
            epochs[epoch.parse::<usize>().unwrap()].extend(samples);
        }
    }
    epochs.iter_mut().for_each(|epoch| epoch.sort_unstable());
    epochs
}

fn assert_each_once(place: &Place, result: &Value) {
    let all: Vec<u64> = (0..150).collect();
    for (epoch, seen) in seen(place, result).iter().enumerate() {
        assert_eq!(seen, &all, "epoch {epoch}");
    }
}

/// The process ids that scripts print when they begin.
fn next_pid(run: &mut Running) -> i32 {
    loop {
        let line = run.wait_for("log")["line"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if let Some(pid) = line.strip_prefix("pid ") {
            return pid.parse().unwrap();
        }
    }
}

#[test]
fn each_sample_is_seen_once_an_epoch() {
    for workers in ["1", "3"] {
        let place = with_rows("");
        let ran = run(&place, &["--workers", workers]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_each_once(&place, &ran.result());
        place.assert_no_process_is_left();
    }
}

/// Lets `harm` do what it does to a run of two, by the ids of a worker and of a script, after three reports. Whatever
/// that is, the run succeeds, each sample is seen once an epoch, and no process is left. Gives the result.
fn harmed(train: &str, harm: impl FnOnce(&mut Running, i32, i32)) -> Value {
    let place = with_rows(train);
    let mut run = place.start(&[]);
    let worker = run.wait_for_worker(1);
    next_pid(&mut run);
    let script = next_pid(&mut run);
    for _ in 0..3 {
        run.wait_for("reported");
    }
    harm(&mut run, worker, script);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_each_once(&place, &result);
    assert_reports_are_in_order(&place, &result);
    place.assert_no_process_is_left();
    result
}

#[test]
fn a_killed_script_costs_no_sample_and_is_back_soon() {
    let result = harmed("workers = 2", |run, _, script| {
        let killed = Instant::now();
        send(script, Signal::KILL);
        run.wait_for("restart");
        next_pid(run);
        next_pid(run);
        let back = killed.elapsed();
        assert!(back < AT_ONCE, "{back:?}");
        println!("both run again {back:?} after the kill, imports included");
    });
    assert_eq!(result["restarts"], 1);
}

#[test]
fn a_killed_worker_takes_its_script_along_and_costs_no_sample() {
    let result = harmed("workers = 2", |_, worker, _| send(worker, Signal::KILL));
    assert_eq!(result["restarts"], 1);
}

#[test]
fn a_worker_that_is_taken_away_costs_no_sample_and_no_restart() {
    let result = harmed("workers = 2\nstop_s = 1", |run, worker, _| {
        send(worker, Signal::TERM);
        let resized = run.wait_for("resized");
        assert_eq!(resized["workers"], 2, "another took its place: {resized}");
    });
    let counts = (&result["restarts"], &result["resizes"]);
    assert_eq!(counts, (&0.into(), &1.into()));
}

#[test]
fn an_elastic_gang_that_one_joins_late_and_one_leaves_misses_no_sample() {
    // Slow enough that there is a middle of an epoch to come and leave in.
    let train = "workers = { min = 2, max = 3 }\nstop_s = 1\nenv = { STEP_S = \"0.4\" }";
    let place = with_rows(train);
    let mut command = place.command(&["run", "job.toml", "--json"]);
    command.env("LOCKSTEP_FAILPOINTS", "link.connect@rank1=sleep:4000");
    let mut run = Running::new(command);
    let worker = run.wait_for_worker(0);
    run.wait_for("reported");
    let joined = run.wait_for("resized");
    assert_eq!(joined["workers"], 3, "{joined}");
    run.wait_for("reported");
    send(worker, Signal::TERM);
    let left = run.wait_for("resized");
    let reason = left["reason"].as_str().unwrap();
    assert!(reason.contains("leaves"), "{left}");
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["restarts"], 0, "{result}");
    assert!(result["resizes"].as_u64().unwrap() >= 2, "{result}");
    assert_each_once(&place, &result);
    assert_reports_are_in_order(&place, &result);
    place.assert_no_process_is_left();
}

#[test]
fn after_a_power_cut_a_run_goes_on_with_other_workers_and_misses_no_sample() {
    let place = with_rows("workers = 2");
    let mut run = place.start(&[]);
    for _ in 0..4 {
        run.wait_for("reported");
    }
    run.signal(Signal::KILL);
    assert_eq!(run.finish().0, None);
    place.assert_no_process_is_left();
    let resumed = super::run(&place, &["--resume", "--workers", "3"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_each_once(&place, &resumed.result());
    assert_reports_are_in_order(&place, &resumed.result());
    place.assert_no_process_is_left();
}

/// What was reported again after a failure is recorded once.
fn assert_reports_are_in_order(place: &Place, result: &Value) {
    let run = place.path("runs").join(result["run"].as_str().unwrap());
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let reports: Vec<u64> = metrics
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["report"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert!(
        reports.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{reports:?}"
    );
}
