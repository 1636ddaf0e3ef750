//! What one wants of a run on the second day: to go on without looking for its job file, to know where it stands and
//! where it lies, to use what a killed run left, and to begin the next job.

use crate::common::bitmap::bitmap;
use crate::common::{Place, embedding, read_json, resnet18, tensors};
use lockstep_place::{Access, Place as Location};
use lockstep_table::{ColumnNames, TableFormat, TableReader};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(result: &Value) -> PathBuf {
    PathBuf::from(result["run_dir"].as_str().unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What a command that must succeed prints, also on standard error.
fn said(place: &Place, args: &[&str]) -> String {
    let ran = place.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stdout + &ran.stderr
}

#[test]
fn a_run_goes_on_without_its_job_file_and_says_where() {
    let place = Place::new();
    let long = place.weights(&["--epochs", "4"]);
    let short = place.train(&[]);
    fs::remove_file(place.path("job.toml")).unwrap();
    let name = short["run"].as_str().unwrap();
    let resume = ["run", "--resume", name, "--epochs", "4"];
    let told = said(&place, &resume);
    let words = format!("going on with {name} after epoch 2, 64 steps done");
    assert!(told.contains(&words), "{told}");
    assert_eq!(
        read_json(&folder(&short).join("result.json"))["weights_sha256"],
        long
    );
    let ran = place.run(&["run", "--resume"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("folder or name"), "{}", ran.stderr);
    assert_eq!(place.run(&["run"]).code, Some(2));
}

#[test]
fn the_summary_says_what_the_kept_weights_are_worth_and_where_the_run_lies() {
    let place = Place::new();
    place.edit_job(
        "test = { images = \"test-images\", labels = \"test-labels\" }",
        "val_split = 0.2",
    );
    let told = said(&place, &["run", "job.toml", "-q", "--epochs", "3"]);
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
    let folder = folder(&started);
    for _ in 0..3 {
        run.wait_for("epoch");
    }
    let ran = place.run(&["predict", text(&folder), "--out", "-"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("has not ended"), "{}", ran.stderr);
    run.signal(Signal::KILL);
    run.finish();
    place.assert_no_process_is_left();
    assert!(!folder.join("model/model.json").exists());
    let told = said(&place, &["evaluate", text(&folder)]);
    assert!(told.contains("its newest checkpoint"), "{told}");
    assert!(told.contains("accuracy"), "{told}");
    let onnx = place.path("model.onnx");
    let told = said(&place, &["export", text(&folder), "--onnx", text(&onnx)]);
    assert!(!told.contains("checkpoint"), "{told}");
    // What was taken from it does not keep the run from going on.
    let epochs = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let more = (epochs.lines().count() + 2).to_string();
    said(
        &place,
        &["run", "--resume", text(&folder), "--epochs", &more],
    );
}

#[test]
fn probabilities_of_all_classes_are_written_in_every_format() {
    let place = Place::new();
    let run = folder(&place.train(&[]));
    let predict = |out: &str| {
        let args = ["predict", text(&run), "--probabilities", "--out", out];
        said(&place, &args)
    };
    let lines: Vec<Value> = predict("-")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (table, parquet) = (place.path("said.csv"), place.path("said.parquet"));
    predict(text(&table));
    predict(text(&parquet));
    let table = fs::read_to_string(table).unwrap();
    let mut rows = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let classes: Vec<String> = (0..4).map(|class| format!("probability_{class}")).collect();
    assert_eq!(rows.next().unwrap()[5..], classes);
    let columns = ColumnNames {
        features: classes,
        label: None,
        ..ColumnNames::default()
    };
    let parquet = Location::parse(text(&parquet), &Access::default()).unwrap();
    let mut parquet = TableReader::open(&parquet, TableFormat::Parquet, &columns, 1 << 20).unwrap();
    let numbers = parquet.next_batch().unwrap().unwrap().features;
    assert_eq!((lines.len(), numbers.len()), (203, 4 * 203));
    for (at, (line, row)) in lines.iter().zip(rows).enumerate() {
        for class in 0..4 {
            let said = line["probabilities"][class.to_string()].as_f64().unwrap() as f32;
            assert_eq!(row[5 + class].parse::<f32>().unwrap(), said);
            assert_eq!(numbers[4 * at + class], said);
        }
    }
}

/// Photos of two classes below `photos/train`.
fn photos(place: &Place) {
    for (class, name) in ["wide", "tall"].into_iter().enumerate() {
        let folder = place.path(&format!("photos/train/{name}"));
        fs::create_dir_all(&folder).unwrap();
        for number in 0..5 {
            let picture = bitmap(40 + number % 7, 36 + number % 5, class as u32, number);
            fs::write(folder.join(format!("{number}.bmp")), picture).unwrap();
        }
    }
}

#[test]
fn each_kind_of_job_that_init_writes_runs() {
    let place = Place::new();
    let rows = (0..40).map(|row| format!("{},{},{}\n", row % 7, row % 5, row % 2));
    let table = "a,b,label\n".to_owned() + &rows.collect::<String>();
    fs::write(place.path("train.csv"), table).unwrap();
    photos(&place);
    fs::create_dir(place.path("encoder")).unwrap();
    for file in fs::read_dir(embedding::CLIP).unwrap().flatten() {
        fs::copy(file.path(), place.path("encoder").join(file.file_name())).unwrap();
    }
    let mut state = 1u32;
    let weights = resnet18::random(1000, || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    });
    tensors::write(&place.path("weights.safetensors"), &weights);
    // Small pictures and one epoch: what takes long is no part of what is checked.
    let small = [
        "--set",
        "data.transform={ resize = 32 }",
        "--set",
        "train.batch=4",
    ];
    let tiny = small.map(|word| match word.contains("resize") {
        true => "data.transform={ resize = 12 }",
        false => word,
    });
    let weights = ["--set", "model.weights=weights.safetensors"];
    let images = [
        "--set",
        "data.train={ images = 'train-images', labels = 'train-labels' }",
        "--set",
        "data.test={ images = 'test-images', labels = 'test-labels' }",
    ];
    let kinds: [(&str, Vec<&str>); 7] = [
        ("table", vec!["--epochs", "1"]),
        ("photos", [&["--epochs", "1"], &tiny[..]].concat()),
        (
            "embeddings",
            vec!["--epochs", "1", "--set", "train.batch=4"],
        ),
        ("images", [&["--epochs", "1"], &images[..]].concat()),
        (
            "fine-tuning",
            [&["--epochs", "1"], &small[..], &weights].concat(),
        ),
        ("trees", vec!["--set", "model.rounds=2"]),
        ("script", vec![]),
    ];
    for (kind, changes) in kinds {
        let file = format!("{kind}.toml");
        let told = said(&place, &["init", &file, "--kind", kind]);
        assert!(told.contains(&format!("lockstep run {file}")), "{told}");
        let args = [&["run", &file, "-q"], &changes[..]].concat();
        let mut command = place.command(&args);
        if kind == "trees" {
            command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
            let plan = [&args[..], &["--dry-run"]].concat();
            let mut plan = place.command(&plan);
            plan.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
            let plan = plan.output().unwrap();
            let words = String::from_utf8_lossy(&plan.stdout).into_owned();
            assert!(words.contains("32 to train on, 8 to validate"), "{words}");
            assert!(words.contains("nothing was started"), "{words}");
        }
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{kind}: {errors}");
    }
    assert!(said(&place, &["run", "script.toml", "--dry-run"]).contains("python3 train.py"));
    place.assert_no_process_is_left();
}
