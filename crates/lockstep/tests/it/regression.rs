//! Numbers and labels of which a sample may have several, from a table to predictions: the same weights on any
//! number of workers and after a crash, and metrics that are what the predictions say.

use crate::common::{Place, read_json, run_folder, send, text};
use lockstep_testkit::{python_with_scikit_learn, succeed};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const JOB: &str = r#"
name = "numbers"

[data]
train = { csv = "train.csv", features = ["a", "b", "c"], label = "y" }
test = { csv = "test.csv", features = ["a", "b", "c"], label = "y" }
val_split = 0.1

[model]
kind = "mlp"
hidden = [16]

[train]
epochs = 12
batch = 24
optimizer = { kind = "adamw", lr = 1e-2 }
workers = 2
lanes = 3

[run]
store = "runs"
"#;

/// Numbers that look random: a fraction of -1..1 for every row and column.
fn noise(row: usize, column: usize) -> f64 {
    let mixed = (row * 7919 + column * 104_729 + 12_345) * 2_654_435_761 % 1_000_003;
    mixed as f64 / 500_001.5 - 1.0
}

/// Writes rows with three inputs, two numbers that follow from them, and two labels.
fn write_table(path: &Path, rows: std::ops::Range<usize>) {
    let mut text = "a,b,c,y,z,red,round\n".to_owned();
    for row in rows {
        let [a, b, c] = [0, 1, 2].map(|column| noise(row, column));
        let y = 250.0 + 30.0 * a - 20.0 * b + 5.0 * noise(row, 3);
        let z = (0.001 * (b + c) + 0.0001 * noise(row, 4)).abs();
        let (red, round) = (u8::from(a + b > 0.0), u8::from(c > 0.3));
        text += &format!("{a},{b},{c},{y},{z},{red},{round}\n");
    }
    fs::write(path, text).unwrap();
}

fn place() -> Place {
    let place = Place::new();
    write_table(&place.path("train.csv"), 0..700);
    write_table(&place.path("test.csv"), 700..1100);
    place.write_job(JOB);
    place
}

/// What was right and what was predicted in a column of a file of predictions.
fn predicted(path: &Path, column: &str) -> Vec<(f64, f64)> {
    let file = fs::read_to_string(path).unwrap();
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let of = |key: &str| line[key][column].as_f64().unwrap();
        (of("label"), of("predicted"))
    };
    file.lines().map(parse).collect()
}

fn r2(pairs: &[(f64, f64)]) -> f64 {
    let mean = pairs.iter().map(|(y, _)| y).sum::<f64>() / pairs.len() as f64;
    let spread: f64 = pairs.iter().map(|(y, _)| (y - mean) * (y - mean)).sum();
    let missed: f64 = pairs.iter().map(|(y, said)| (y - said) * (y - said)).sum();
    1.0 - missed / spread
}

fn near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    let off = (found - expected).abs() / expected.abs().max(1e-12);
    assert!(off < 1e-5, "{found} instead of {expected}");
}

#[test]
fn decimals_are_learned_as_numbers_and_the_metrics_are_what_the_predictions_say() {
    let place = place();
    let ran = place.run(&["run", "job.toml", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let note = ran
        .events()
        .into_iter()
        .find(|event| event["event"] == "note");
    let note = note.expect("a note")["message"].to_string();
    assert!(
        note.contains("decimals") && note.contains("train.loss"),
        "{note}"
    );
    let result = ran.result();
    let metrics = &result["metrics"];
    assert!(metrics["r2"].as_f64().unwrap() > 0.9, "{metrics}");
    assert!(metrics.get("accuracy").is_none(), "{metrics}");

    let run = run_folder(&result);
    let written = read_json(&run.join("evaluation.json"));
    for key in ["loss", "r2", "mae", "mse"] {
        assert_eq!(written[key], metrics[key], "{key}");
        assert_eq!(result["evaluation"][key], metrics[key], "{key}");
    }
    assert_eq!(written["samples"], 400);
    assert_eq!(written["columns"][0]["column"], "y");
    let out = place.path("said.jsonl");
    let ran = place.run(&["predict", text(&run), "--out", text(&out)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let pairs = predicted(&out, "y");
    assert_eq!(pairs.len(), 400);
    near(&metrics["r2"], r2(&pairs));
    let mae = pairs.iter().map(|(y, said)| (y - said).abs()).sum::<f64>() / 400.0;
    near(&metrics["mae"], mae);
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
        assert!(ran.stdout.contains("R²"), "{}", ran.stdout);
        assert_eq!(
            read_json(&out.join("evaluation.json")),
            written,
            "{workers} workers"
        );
    }
    let table = place.path("said.parquet");
    let ran = place.run(&["predict", text(&run), "--out", text(&table)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn numbers_and_labels_have_the_same_weights_on_any_number_of_workers() {
    let place = place();
    let several = |label: &str| {
        let set = |name: &str| {
            format!(
                "data.{name}={{csv=\"{name}.csv\", features=[\"a\",\"b\",\"c\"], label={label}}}"
            )
        };
        [
            "--set".to_owned(),
            set("train"),
            "--set".to_owned(),
            set("test"),
        ]
    };
    for (label, measure, least) in [
        ("\"y\"", "r2", 0.9),
        ("[\"y\",\"z\"]", "r2", 0.5),
        ("[\"red\",\"round\"]", "accuracy", 0.9),
    ] {
        let args = several(label);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let results = ["1", "2", "3"]
            .map(|workers| place.train(&[&args[..], &["--workers", workers]].concat()));
        let found = results[0]["metrics"][measure].as_f64().unwrap();
        assert!(found > least, "{label}: {}", results[0]["metrics"]);
        for result in &results[1..] {
            for same in ["weights_sha256", "metrics", "evaluation", "best_epoch"] {
                assert_eq!(result[same], results[0][same], "{label}: {same}");
            }
        }
        let run = run_folder(&results[0]);
        let evaluation = read_json(&run.join("evaluation.json"));
        assert_eq!(evaluation["loss"], results[0]["metrics"]["loss"]);
        let out = place.path("said.jsonl");
        let ran = place.run(&["predict", text(&run), "--out", text(&out)]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        if label.contains("red") {
            let right = |(is, said): &(f64, f64)| (*said > 0.5) == (*is > 0.5);
            let pairs = [predicted(&out, "red"), predicted(&out, "round")].concat();
            let accuracy = pairs.iter().filter(|pair| right(pair)).count() as f64 / 800.0;
            near(&results[0]["metrics"]["accuracy"], accuracy);
        }
        if label.contains('z') {
            let mean = (r2(&predicted(&out, "y")) + r2(&predicted(&out, "z"))) / 2.0;
            near(&results[0]["metrics"]["r2"], mean);
        }
    }
}

#[test]
fn a_regression_that_is_killed_and_resumed_has_the_weights_of_one_that_was_not() {
    let place = place();
    let epochs = ["--epochs", "300", "--set", "checkpoint.every=100 steps"];
    let whole = place.train(&epochs);
    place.cut_off(&epochs);
    let resumed = place.train(&[&epochs[..], &["--workers", "1", "--resume"]].concat());
    assert_eq!(resumed["weights_sha256"], whole["weights_sha256"]);
    assert_eq!(resumed["metrics"], whole["metrics"]);

    let mut run = place.start(&epochs);
    let victim = run.wait_for_worker(1);
    run.wait_for("epoch");
    send(victim, Signal::KILL);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["weights_sha256"], whole["weights_sha256"]);
}

#[test]
fn what_does_not_fit_is_refused_by_its_key() {
    let place = place();
    for (args, expected) in [
        (["--set", "train.loss=\"bce\""], "the column `y` holds"),
        (
            ["--set", "checkpoint.best=\"accuracy\""],
            "checkpoint.best: \"accuracy\"",
        ),
        (["--set", "train.loss=\"mes\""], "did you mean `mse`?"),
        (
            ["--set", "model={layers=[{kind=\"linear\", out=2}]}"],
            "has 2 outputs, but the data has 1 numbers to predict",
        ),
    ] {
        let ran = place.run(&[&["run", "job.toml"][..], &args].concat());
        assert_ne!(ran.code, Some(0), "{args:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
    let place = Place::new();
    let ran = place.run(&["run", "job.toml", "--set", "train.loss=\"mse\""]);
    assert_ne!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("train.loss: \"mse\" is for numbers"),
        "{}",
        ran.stderr
    );
}

#[test]
fn decimals_that_are_said_to_be_classes_are() {
    let place = place();
    fs::write(
        place.path("train.csv"),
        "a,b,c,y\n1,2,3,0.5\n3,2,1,1.5\n1,1,1,0.5\n",
    )
    .unwrap();
    fs::write(place.path("test.csv"), "a,b,c,y\n1,2,3,0.5\n").unwrap();
    let sets = [
        "--set",
        "train.loss=\"cross-entropy\"",
        "--set",
        "data.val_split=0",
    ];
    let result = place.train(&[&sets[..], &["--set", "train.batch=3"]].concat());
    assert!(result["metrics"]["accuracy"].is_number(), "{result}");
    let labels = read_json(&run_folder(&result).join("model/labels.json"));
    assert_eq!(labels, serde_json::json!({ "0.5": 0, "1.5": 1 }));
}

#[test]
fn the_example_runs_as_it_is_and_explains_as_much_as_scikit_learn() {
    let place = Place::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let python = python_with_scikit_learn();
    let script = examples.join("diabetes.py");
    succeed(Command::new(&python).arg(script).arg(place.path(".")));
    fs::copy(examples.join("diabetes.toml"), place.path("job.toml")).unwrap();
    let result = place.train(&[]);
    assert!(result["metrics"]["r2"].as_f64().unwrap() > 0.5, "{result}");

    // Least squares by gradient descent comes to what least squares is.
    let fit = "
import csv, sys
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
def load(name):
    rows = list(csv.reader(open(f'{sys.argv[1]}/diabetes-{name}.csv')))[1:]
    table = np.array(rows, float)
    return table[:, :-1], table[:, -1]
model = LinearRegression().fit(*load('train'))
inputs, actual = load('test')
print(r2_score(actual, model.predict(inputs)))
";
    let theirs = succeed(Command::new(&python).args(["-c", fit]).arg(place.path(".")));
    let theirs: f64 = theirs.trim().parse().unwrap();
    let linear = place.train(&[
        "--epochs",
        "300",
        "--set",
        "model={layers=[{kind=\"linear\"}]}",
        "--set",
        "data.val_split=0",
        "--set",
        "train.optimizer={kind=\"sgd\", lr=0.05, momentum=0.9}",
        "--set",
        "train.batch=353",
    ]);
    let ours = linear["metrics"]["r2"].as_f64().unwrap();
    assert!((ours - theirs).abs() < 0.01, "{ours} is not {theirs}");
}

#[test]
fn other_losses_predict_the_middle_or_a_quantile_alike_on_any_number_of_workers() {
    let place = place();
    // Errors that are never below 0 and sometimes large, so that mean, median and quantile differ.
    let table = |rows: std::ops::Range<usize>| {
        let row = |row: usize| {
            let mixed = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let share = (mixed >> 40) as f64 / f64::from(1_u32 << 24);
            let a = noise(row, 0);
            format!("{a},{:.6}\n", 10.0 * a + 8.0 * share.powi(4))
        };
        format!("a,y\n{}", rows.map(row).collect::<String>())
    };
    fs::write(place.path("train.csv"), table(0..1500)).unwrap();
    fs::write(place.path("test.csv"), table(1500..2500)).unwrap();
    place.write_job(&JOB.replace("\"a\", \"b\", \"c\"", "\"a\""));
    let plain = place.train(&[]);
    let cases: [(&[&str], f64); 3] = [
        (&["train.loss=mae"], 0.5),
        (&["train.loss=huber", "train.huber_delta=0.05"], 0.5),
        (&["train.loss=quantile", "train.quantile_alpha=0.9"], 0.9),
    ];
    for (keys, share) in cases {
        let keys: Vec<&str> = keys.iter().flat_map(|key| ["--set", key]).collect();
        let result = place.train(&keys);
        assert_ne!(
            result["weights_sha256"], plain["weights_sha256"],
            "{keys:?}"
        );
        let other = place.train(&[&keys[..], &["--workers", "3"]].concat());
        assert_eq!(
            other["weights_sha256"], result["weights_sha256"],
            "{keys:?}"
        );
        assert_eq!(other["metrics"], result["metrics"], "{keys:?}");
        let run = result["run_dir"].as_str().unwrap();
        let out = place.path("predicted.jsonl");
        place.succeeds(&["predict", run, "--out", text(&out)]);
        let pairs = predicted(&out, "y");
        let below = pairs.iter().filter(|(actual, said)| actual < said).count();
        let found = below as f64 / pairs.len() as f64;
        assert!((found - share).abs() < 0.12, "{keys:?}: {found}");
        // What was minimised is measured again, by the model alone.
        let again = place.succeeds(&["evaluate", run, "--json"]).stdout;
        let again: Value = serde_json::from_str(again.trim()).unwrap();
        near(&again["loss"], result["metrics"]["loss"].as_f64().unwrap());
    }
}
