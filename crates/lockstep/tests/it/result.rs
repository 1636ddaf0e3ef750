//! What a run leaves and says: events, files, and a result that learned something.

use crate::common::{Place, read_json};
use serde_json::Value;
use std::fs;

#[test]
fn json_is_one_event_a_line_and_the_last_is_the_whole_result() {
    let place = Place::new();
    let ran = place.run(&["run", "job.toml", "--json", "--epochs", "6"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let events = ran.events();
    let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(count("started"), 1);
    assert_eq!(count("worker"), 2);
    assert_eq!(count("first_step"), 1);
    assert_eq!(count("epoch"), 6);
    assert_eq!(count("result"), 1);

    let result = ran.result();
    assert_eq!(result["status"], "succeeded");
    assert_eq!(result["workers"], 2);
    assert_eq!(result["lanes"], 2);
    assert_eq!(result["epochs"], 6);
    assert_eq!(result["weights_sha256"].as_str().unwrap().len(), 64);
    let number = |pointer: &str| result.pointer(pointer).unwrap().as_f64().unwrap();
    assert!(number("/metrics/accuracy") > 0.9, "{result}");
    assert!(number("/metrics/loss") < 0.5, "{result}");
    let first_step = number("/timing/start_to_first_step_s");
    let (train, total) = (number("/timing/train_s"), number("/timing/total_s"));
    assert!(0.0 < first_step && first_step < total, "{result}");
    assert!(0.0 < train && train < total, "{result}");
    assert!(number("/timing/samples_per_s") > 0.0);
}

#[test]
fn a_runs_folder_holds_the_job_metrics_model_logs_and_result() {
    let place = Place::new();
    let result = place.train(&["--epochs", "3", "--name", "other"]);
    let folder = std::path::PathBuf::from(result["run_dir"].as_str().unwrap());
    assert_eq!(place.runs(), std::slice::from_ref(&folder));
    assert!(result["run"].as_str().unwrap().starts_with("other-"));

    let job = fs::read_to_string(folder.join("job.toml")).unwrap();
    assert!(job.contains("epochs = 3"), "{job}");
    let metrics = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let epochs: Vec<u64> = metrics
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["epoch"].as_u64().unwrap())
        .collect();
    assert_eq!(epochs, [1, 2, 3]);
    for file in ["model/weights.safetensors", "model/model.json"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    for file in ["logs/worker-0.log", "logs/worker-1.log"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let written = read_json(&folder.join("result.json"));
    assert_eq!(written["weights_sha256"], result["weights_sha256"]);

    let again = place.run(&["run", folder.join("job.toml").to_str().unwrap(), "--json"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(again.result()["weights_sha256"], result["weights_sha256"]);
}

#[test]
fn without_a_terminal_there_are_plain_lines_and_no_control_characters() {
    let place = Place::new();
    let ran = place.run(&["run", "job.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let control = ran.stdout.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(control, None, "{}", ran.stdout);
    let parts = [
        "train.optimizer.lr",
        "accuracy",
        "2 epochs in",
        "sha256",
        "weights.safetensors",
    ];
    for part in parts {
        assert!(
            ran.stdout.contains(part),
            "{part} is missing in\n{}",
            ran.stdout
        );
    }
}

#[test]
fn quiet_prints_one_line() {
    let place = Place::new();
    let ran = place.run(&["run", "job.toml", "-q", "--epochs", "1"]);
    assert_eq!(
        (ran.code, ran.stdout.lines().count()),
        (Some(0), 1),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("accuracy"), "{}", ran.stdout);
}

#[test]
fn the_best_epoch_is_chosen_on_validation_data() {
    let place = Place::new();
    let result = place.train(&["--set", "data.val_split=0.2", "--epochs", "4"]);
    assert!(
        (1..=4).contains(&result["best_epoch"].as_u64().unwrap()),
        "{result}"
    );
}

#[test]
fn a_dry_run_shows_the_plan_and_writes_nothing() {
    let place = Place::new();
    let ran = place.run(&["run", "job.toml", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // 64-24-16-4 with biases.
    for part in [
        "1,003",
        "2,028 parameters",
        "2 lanes on 2 workers: 1 + 1",
        "32 an epoch",
    ] {
        assert!(
            ran.stdout.contains(part),
            "{part} is missing in\n{}",
            ran.stdout
        );
    }
    assert!(!place.path("runs").exists());
}

#[test]
fn the_summary_says_what_the_kept_weights_are_worth_and_where_the_run_lies() {
    let place = Place::new();
    place.edit_job(
        "test = { images = \"test-images\", labels = \"test-labels\" }",
        "val_split = 0.2",
    );
    let told = place.said(&["run", "job.toml", "-q", "--epochs", "3"]);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("on validation data"), "{told}");
    let run = place.runs().pop().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    assert!(told.trim_end().ends_with(&format!("runs/{name}")), "{told}");
    let result = read_json(&run.join("result.json"));
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let best = metrics.lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["epoch"] == result["best_epoch"]).then(|| line["val"].clone())
    });
    assert_eq!(result["val"], best.unwrap());
}
