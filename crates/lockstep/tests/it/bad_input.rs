//! Whatever is wrong with the input is said with its place, and leaves nothing behind.

use crate::common::{Place, Ran, idx};
use std::fs;

/// Fails unless training ends with this code and a message that has all these parts, and leaves
/// neither a run nor a process.
fn assert_refused(place: &Place, args: &[&str], code: i32, parts: &[&str]) -> Ran {
    let ran = place.run(&[&["run", "job.toml"], args].concat());
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    for part in parts {
        assert!(
            ran.stderr.contains(part),
            "{part} is missing in\n{}",
            ran.stderr
        );
    }
    assert_eq!(place.runs(), Vec::<std::path::PathBuf>::new());
    place.assert_no_process_is_left();
    ran
}

#[test]
fn a_missing_data_file_is_named() {
    let place = Place::new();
    fs::remove_file(place.path("train-images")).unwrap();
    assert_refused(&place, &[], 1, &["train-images", "does not exist"]);
}

#[test]
fn a_truncated_data_file_is_named_with_what_it_lacks() {
    let place = Place::new();
    let bytes = fs::read(place.path("train-images")).unwrap();
    fs::write(place.path("train-images"), &bytes[..bytes.len() - 10]).unwrap();
    assert_refused(&place, &[], 1, &["train-images", "truncated"]);
}

#[test]
fn a_corrupt_data_file_is_named() {
    let place = Place::new();
    fs::write(place.path("test-images"), b"this is no IDX file").unwrap();
    assert_refused(&place, &[], 1, &["test-images", "not an IDX file"]);
    fs::write(
        place.path("test-images"),
        b"\x1f\x8b\x08\0garbage in a gzip file",
    )
    .unwrap();
    assert_refused(&place, &[], 1, &["test-images", "gzip"]);
}

#[test]
fn a_label_out_of_range_is_named_with_its_sample() {
    let place = Place::new();
    let mut labels = fs::read(place.path("test-labels")).unwrap();
    labels[8 + 17] = 200;
    fs::write(place.path("test-labels"), labels).unwrap();
    assert_refused(&place, &[], 1, &["test-images", "sample 17", "200"]);
}

#[test]
fn nan_in_the_data_is_named_with_its_sample() {
    let place = Place::new();
    let mut values = vec![0.5f32; 1003 * 64];
    values[3 * 64 + 5] = f32::NAN;
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    fs::write(
        place.path("train-images"),
        idx::file(0x0d, &[1003, 8, 8], &bytes),
    )
    .unwrap();
    assert_refused(&place, &[], 1, &["train-images", "sample 3", "NaN"]);
}

#[test]
fn more_workers_than_samples_is_refused_with_the_key() {
    let place = Place::new();
    idx::write_set(
        &place.path("train-images"),
        &place.path("train-labels"),
        3,
        1,
    );
    let args = ["--set", "train.lanes=4", "--workers", "4"];
    assert_refused(&place, &args, 1, &["train.workers", "3"]);
}

#[test]
fn a_batch_smaller_than_the_lanes_is_refused_with_the_key() {
    let place = Place::new();
    let args = ["--set", "train.batch=3", "--set", "train.lanes=4"];
    assert_refused(&place, &args, 2, &["train.batch", "train.lanes"]);
}

#[test]
fn more_workers_than_lanes_is_refused_with_the_key() {
    let place = Place::new();
    assert_refused(
        &place,
        &["--workers", "3"],
        2,
        &["train.lanes", "--workers 3"],
    );
}

#[test]
fn a_store_that_cannot_be_written_is_named_with_its_key() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    let args = ["--set", "run.store=file/runs"];
    assert_refused(&place, &args, 1, &["run.store", "file/runs"]);
}

#[test]
fn an_unknown_key_is_shown_with_its_line_and_the_nearest_right_one() {
    let place = Place::new();
    place.edit_job("epochs = 2", "epoch = 2");
    assert_refused(&place, &[], 2, &["job.toml:", "epoch = 2", "`epochs`"]);
    place.write_job(crate::common::JOB);
    assert_refused(
        &place,
        &["--set", "train.epoch=2"],
        2,
        &["train.epoch=2", "`epochs`"],
    );
}

#[test]
fn a_type_error_is_shown_with_its_line() {
    let place = Place::new();
    place.edit_job("epochs = 2", "epochs = \"two\"");
    assert_refused(&place, &[], 2, &["job.toml:", "\"two\"", "integer"]);
}

#[test]
fn a_job_file_that_is_not_there_is_named() {
    let place = Place::new();
    let ran = place.run(&["run", "none.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("none.toml"), "{}", ran.stderr);
}

#[test]
fn a_failure_in_json_ends_with_a_result_that_says_why() {
    let place = Place::new();
    fs::remove_file(place.path("train-images")).unwrap();
    let ran = assert_refused(&place, &["--json"], 1, &["train-images"]);
    let result = ran.result();
    assert_eq!(result["status"], "failed");
    assert_eq!(result["run_dir"], serde_json::Value::Null);
    assert!(result["error"].as_str().unwrap().contains("train-images"));
}

#[test]
fn in_json_there_is_a_result_however_early_it_fails() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    for args in [
        &["--set", "train.epochs=0"][..],
        &["--dry-run", "--set", "run.store=file/runs"],
        &["--resume"],
    ] {
        let ran = place.run(&[&["run", "job.toml", "--json"], args].concat());
        let result = ran.result();
        assert_eq!(result["status"], "failed", "{args:?}");
        assert_eq!(result["run"], serde_json::Value::Null);
        let error = result["error"].as_str().unwrap();
        assert!(ran.stderr.contains(error), "{args:?}: {}", ran.stderr);
    }
    let mut command = place.command(&["run", "job.toml", "--json"]);
    let output = command.env("LOCKSTEP_CACHE", place.path("file/cache"));
    let stdout = String::from_utf8(output.output().unwrap().stdout).unwrap();
    assert!(stdout.contains("LOCKSTEP_CACHE"), "{stdout}");
}

#[test]
fn a_run_that_is_complete_or_not_there_cannot_be_resumed() {
    let place = Place::new();
    let result = place.train(&["--epochs", "1"]);
    let run = result["run"].as_str().unwrap();
    let ran = place.run(&["run", "job.toml", "--epochs", "1", "--resume", run]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains(run) && ran.stderr.contains("ask for more"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["run", "job.toml", "--resume", "nowhere"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("nowhere"), "{}", ran.stderr);
}

#[test]
fn training_that_diverges_fails_with_the_step() {
    let place = Place::new();
    let args = [
        "run",
        "job.toml",
        "--json",
        "--set",
        "train.optimizer.lr=1e30",
    ];
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("step"), "{}", ran.stderr);
    // The worker's message is the error, and no log line besides.
    assert!(ran.events().iter().all(|event| event["event"] != "log"));
    assert_eq!(ran.result()["status"], "failed");
    place.assert_no_process_is_left();
}

/// What is said of a job that trains on this table.
fn said_of_table(table: &str, data: &str, args: &[&str]) -> Ran {
    let place = Place::new();
    fs::write(place.path("table.csv"), table).unwrap();
    place.write_job(&format!(
        "name = \"table\"\n[data]\ntrain = {data}\n[model]\nkind = \"mlp\"\nhidden = [4]\n[train]\nepochs = 1\n\
         batch = 8\noptimizer = {{ kind = \"sgd\", lr = 0.1 }}\n"
    ));
    let ran = place.run(&[&["run", "job.toml", "--set", "run.store=runs"], args].concat());
    match ran.code {
        Some(0) => (),
        _ => assert_eq!(place.runs(), Vec::<std::path::PathBuf>::new()),
    }
    ran
}

#[test]
fn columns_that_cannot_be_meant_are_refused() {
    let table = "a,b,label\n".to_owned() + &"1,2,x\n3,4,y\n".repeat(20);
    let wrong = [
        ("features = ['a', 'a']", "names `a` twice"),
        (
            "features = ['a', 'label']",
            "names `label`, which is to be predicted",
        ),
        (
            "features = ['a', 'b'], label = ['b', 'label']",
            "names `b`, which is to be predicted",
        ),
    ];
    for (columns, words) in wrong {
        let ran = said_of_table(&table, &format!("{{ csv = 'table.csv', {columns} }}"), &[]);
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn a_column_without_a_name_is_no_input() {
    let rows = (0..40).map(|row| format!("{row},{},2,{}\n", row % 7, row % 2));
    let table = ",a,b,label\n".to_owned() + &rows.collect::<String>();
    let ran = said_of_table(&table, "'table.csv'", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = ran.stdout + &ran.stderr;
    let words = "a sample has 2 numbers, the columns a, b";
    assert!(all.contains(words), "{all}");
}

#[test]
fn data_that_nothing_can_be_learned_from_is_refused() {
    let rows =
        |class: fn(usize) -> usize| (0..40).map(move |row| format!("{row},{}\n", class(row)));
    let one = "a,label\n".to_owned() + &rows(|_| 3).collect::<String>();
    let ran = said_of_table(&one, "'table.csv'", &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let words = "all samples are of the class `3`";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let two = "a,label\n".to_owned() + &rows(|row| row % 2).collect::<String>();
    let ran = said_of_table(&two, "'table.csv'", &["--set", "data.val_split=0.001"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let words = "0.001 of 40 samples is none";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let odd = [
        "--set",
        "train.batch=64",
        "--set",
        "train.schedule={ kind = 'constant', warmup_steps = 9 }",
    ];
    let ran = said_of_table(&two, "'table.csv'", &odd);
    let all = ran.stdout + &ran.stderr;
    for words in ["only 40 training samples", "training ends after step 1"] {
        assert!(all.contains(words), "{all}");
    }
}

#[test]
fn data_that_are_not_there_or_of_no_known_kind_are_told_so() {
    let ran = said_of_table("", "'nowhere/'", &[]);
    assert!(
        ran.stderr.contains("nowhere") && ran.stderr.contains("does not exist"),
        "{}",
        ran.stderr
    );
    let ran = said_of_table("", "'job.toml'", &[]);
    assert!(
        ran.stderr.contains("ends in .csv or .parquet"),
        "{}",
        ran.stderr
    );
}
