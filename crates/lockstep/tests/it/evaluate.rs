//! What a model is worth: the same numbers at the end of its run and later, on any number of workers, and
//! predictions that come whole or not at all.

use crate::common::{LIMIT, Place, idx, read_json, send, text};
use lockstep_place::{Access, Place as Location};
use lockstep_table::{ColumnNames, TableFormat, TableReader};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The folder of a run of `job.toml`.
fn train(place: &Place, args: &[&str]) -> (PathBuf, Value) {
    let result = place.train(args);
    let folder = PathBuf::from(result["run_dir"].as_str().unwrap());
    (folder, result)
}

/// The lines of a file of predictions.
fn rows(path: &Path) -> Vec<Value> {
    let file = fs::read_to_string(path).unwrap();
    let parse = |line| serde_json::from_str(line).unwrap();
    file.lines().map(parse).collect()
}

#[test]
fn a_run_ends_with_its_evaluation_and_evaluate_says_the_same_to_the_byte() {
    let place = Place::new();
    for args in [&["--epochs", "3"][..], &["--set", "data.val_split=0.2"]] {
        let (run, result) = train(&place, args);
        let written = read_json(&run.join("evaluation.json"));
        let summary = &result["evaluation"];
        for key in ["accuracy", "top5", "macro", "weighted", "samples", "loss"] {
            assert_eq!(summary[key], written[key], "{key}");
        }
        assert_eq!(summary["accuracy"], result["metrics"]["accuracy"]);
        assert_eq!(summary["loss"], result["metrics"]["loss"]);
        assert_eq!(summary["samples"], 203);
        let result = read_json(&run.join("result.json"));
        assert_eq!(&result["evaluation"], summary);
        let labels = read_json(&run.join("model/labels.json"));
        assert_eq!(labels, json!({ "0": 0, "1": 1, "2": 2, "3": 3 }));

        let evaluation = fs::read(run.join("evaluation.json")).unwrap();
        let picture = fs::read(run.join("confusion.svg")).unwrap();
        assert!(picture.starts_with(b"<svg"));
        for workers in ["1", "2", "3"] {
            let out = place.path("out");
            let ran = place.run(&[
                "evaluate",
                text(&run),
                "--workers",
                workers,
                "--out",
                text(&out),
            ]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!(fs::read(out.join("evaluation.json")).unwrap(), evaluation);
            assert_eq!(fs::read(out.join("confusion.svg")).unwrap(), picture);
        }
    }
    place.assert_no_process_is_left();
}

#[test]
fn the_numbers_follow_from_the_confusion() {
    let place = Place::new();
    let (run, _) = train(&place, &["--epochs", "1"]);
    let name = run.file_name().unwrap().to_str().unwrap();
    let ran = place.run(&["evaluate", name, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let evaluation: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(evaluation, read_json(&run.join("evaluation.json")));
    let count = |row: usize, column: usize| evaluation["confusion"][row][column].as_u64().unwrap();
    let right: u64 = (0..4).map(|class| count(class, class)).sum();
    let all: u64 = (0..16).map(|cell| count(cell / 4, cell % 4)).sum();
    assert_eq!(all, 203);
    assert_eq!(evaluation["accuracy"], json!(right as f64 / all as f64));
    let recall = count(2, 2) as f64 / (0..4).map(|column| count(2, column)).sum::<u64>() as f64;
    assert_eq!(evaluation["classes"][2]["recall"], json!(recall));
    let mistakes = evaluation["mistakes"].as_array().unwrap();
    assert_eq!(mistakes.len() as u64, (all - right).min(20));
    let sure = |mistake: &Value| mistake["probability"].as_f64().unwrap();
    assert!(
        mistakes.is_sorted_by(|a, b| sure(a) >= sure(b)),
        "{mistakes:?}"
    );
}

#[test]
fn the_table_names_every_class_and_the_files() {
    let place = Place::new();
    let (run, _) = train(&place, &["--epochs", "1"]);
    let ran = place.run(&["evaluate", text(&run)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let parts = [
        "accuracy 0.",
        "top-5 1.0000",
        "203 samples",
        "precision",
        "macro average",
        "weighted average",
        "hardest mistakes",
        "taken for",
        "evaluation.json",
        "confusion.svg",
    ];
    for part in parts {
        assert!(
            ran.stdout.contains(part),
            "{part} is missing in\n{}",
            ran.stdout
        );
    }
    let control = ran.stdout.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(control, None, "{}", ran.stdout);
}

#[test]
fn predictions_come_in_the_order_of_the_data_and_are_those_that_were_measured() {
    let place = Place::new();
    let (run, result) = train(&place, &[]);
    let mut files = Vec::new();
    for workers in ["1", "3"] {
        let out = place.path(&format!("{workers}.jsonl"));
        let ran = place.run(&[
            "predict",
            text(&run),
            "--out",
            text(&out),
            "-w",
            workers,
            "--probabilities",
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("203 rows"), "{}", ran.stdout);
        files.push(fs::read(&out).unwrap());
    }
    assert_eq!(files[0], files[1]);
    let rows = rows(&place.path("1.jsonl"));
    assert!((0..).zip(&rows).all(|(number, row)| row["row"] == number));
    let labels = fs::read(place.path("test-labels")).unwrap();
    let labels = &labels[labels.len() - 203..];
    let right = rows.iter().zip(labels);
    let right = right.filter(|(row, label)| row["predicted"] == label.to_string());
    assert_eq!(
        json!(right.count() as f64 / 203.0),
        result["metrics"]["accuracy"]
    );
    for row in &rows {
        let all = row["probabilities"].as_object().unwrap();
        let sum: f64 = all.values().map(|p| p.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{row}");
        assert_eq!(all[row["predicted"].as_str().unwrap()], row["probability"]);
        assert!(
            all.values()
                .all(|p| p.as_f64() <= row["probability"].as_f64())
        );
    }
}

#[test]
fn parquet_and_json_lines_say_the_same() {
    let place = Place::new();
    let (run, _) = train(&place, &["--epochs", "1"]);
    let files = ["said.jsonl", "said.parquet"].map(|name| place.path(name));
    for file in &files {
        let ran = place.run(&["predict", text(&run), "--out", text(file)]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let columns = ColumnNames {
        features: ["probability", "row"].map(str::to_owned).into(),
        label: Some("predicted".to_owned()),
        path: Some("path".to_owned()),
        ..ColumnNames::default()
    };
    let table = Location::parse(text(&files[1]), &Access::default()).unwrap();
    let mut table = TableReader::open(&table, TableFormat::Parquet, &columns, 1 << 20).unwrap();
    let batch = table.next_batch().unwrap().unwrap();
    let lines = rows(&files[0]);
    assert_eq!((batch.rows, lines.len()), (203, 203));
    let (classes, paths) = (batch.labels.unwrap(), batch.paths.unwrap());
    for (row, line) in lines.iter().enumerate() {
        let numbers = &batch.features[2 * row..2 * row + 2];
        let probability = line["probability"].as_f64().unwrap() as f32;
        assert_eq!(probability, numbers[0], "{line}");
        assert_eq!(line["row"], json!(numbers[1] as u64), "{line}");
        assert_eq!(line["predicted"], json!(classes[row]), "{line}");
        assert_eq!(paths[row], row.to_string());
        assert!(line["path"].is_null(), "{line}");
    }
}

#[test]
fn classes_that_the_model_does_not_know_are_named_and_counted_and_in_no_other_number() {
    let place = Place::new();
    let (run, _) = train(&place, &[]);
    let known = read_json(&run.join("evaluation.json"));
    let mut labels = fs::read(place.path("test-labels")).unwrap();
    let first = labels.len() - 203;
    let strangers = [first, first + 7, first + 202];
    for at in strangers {
        labels[at] = if at == first { 9 } else { 5 };
    }
    fs::write(place.path("strange-labels"), labels).unwrap();
    let data = r#"{ images = "IMAGES", labels = "LABELS" }"#
        .replace("IMAGES", text(&place.path("test-images")))
        .replace("LABELS", text(&place.path("strange-labels")));
    let out = place.path("out");
    let ran = place.run(&["evaluate", text(&run), "--data", &data, "--out", text(&out)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("does not know: 5 (2), 9 (1)"),
        "{}",
        ran.stdout
    );
    let evaluation = read_json(&out.join("evaluation.json"));
    assert_eq!(evaluation["samples"], 200);
    assert_eq!(evaluation["unseen_samples"], 3);
    let unseen = json!([{ "class": "5", "count": 2 }, { "class": "9", "count": 1 }]);
    assert_eq!(evaluation["unseen"], unseen);
    assert_eq!(evaluation["classes"].as_array().unwrap().len(), 4);
    // The run's own stays as it was.
    assert_eq!(read_json(&run.join("evaluation.json")), known);
}

#[test]
fn a_worker_that_is_killed_costs_nothing_but_time() {
    let place = Place::new();
    let (run, _) = train(&place, &["--epochs", "1"]);
    let (images, labels) = (place.path("many-images"), place.path("many-labels"));
    idx::write_set(&images, &labels, 100_000, 3);
    let data = format!("{{ images = {images:?}, labels = {labels:?} }}");
    let predict = |out: &Path| {
        let args = [
            "predict",
            text(&run),
            "--data",
            &data,
            "--out",
            text(out),
            "-w",
            "2",
        ];
        let mut command = place.command(&args);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let (calm, disturbed) = (place.path("calm.jsonl"), place.path("disturbed.jsonl"));
    assert!(predict(&calm).wait().unwrap().success());
    let child = predict(&disturbed);
    send(worker_of(child.id()), Signal::KILL);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("killed by signal 9"), "{stderr}");
    assert!(fs::read(&calm).unwrap() == fs::read(&disturbed).unwrap());

    // And the coordinator: nothing is left, and nothing half-written has the file's name.
    let killed = place.path("killed.jsonl");
    let mut child = predict(&killed);
    worker_of(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    place.assert_no_process_is_left();
    assert!(!killed.exists());
}

/// The first child of a process, as soon as it has one that is a task worker.
fn worker_of(parent: u32) -> i32 {
    let begin = Instant::now();
    loop {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let command = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if command.ends_with(b"task-worker\0") {
                return child.parse().unwrap();
            }
        }
        assert!(begin.elapsed() < LIMIT, "no worker");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason_and_writes_nothing() {
    let place = Place::new();
    let (run, _) = train(&place, &["--epochs", "1"]);
    let refused = |args: &[&str]| {
        let ran = place.run(args);
        assert!(matches!(ran.code, Some(1 | 2)), "{args:?}: {}", ran.stdout);
        ran.stderr
    };
    let error = refused(&["evaluate", "nothing"]);
    assert!(error.contains("nothing"), "{error}");
    let out = place.path("out.txt");
    let error = refused(&["predict", text(&run), "--out", text(&out)]);
    assert!(
        error.contains("must end in .parquet, .jsonl or .csv") && !out.exists(),
        "{error}"
    );
    let wide = place.path("wide-images");
    fs::write(&wide, idx::file(0x08, &[2, 2, 3], &[0; 12])).unwrap();
    fs::write(place.path("wide-labels"), idx::file(0x08, &[2], &[0, 1])).unwrap();
    let error = refused(&["evaluate", text(&run), "--data", text(&wide)]);
    assert!(
        error.contains("[1, 8, 8]") && error.contains("[1, 2, 3]"),
        "{error}"
    );

    let weights = run.join("model/weights.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&weights, bytes).unwrap();
    let error = refused(&["evaluate", text(&run)]);
    assert!(error.contains("holds other weights"), "{error}");
    fs::remove_file(run.join("model/model.json")).unwrap();
    fs::remove_dir_all(run.join("checkpoints")).unwrap();
    let error = refused(&["evaluate", text(&run)]);
    assert!(error.contains("has not ended, or it failed"), "{error}");

    place.edit_job(
        "test = { images = \"test-images\", labels = \"test-labels\" }",
        "",
    );
    let (run, result) = train(&place, &["--epochs", "1"]);
    assert_eq!(result["evaluation"], Value::Null);
    assert!(!run.join("evaluation.json").exists());
    let error = refused(&["evaluate", text(&run)]);
    assert!(
        error.contains("no data.test; name a set with --data"),
        "{error}"
    );
}
