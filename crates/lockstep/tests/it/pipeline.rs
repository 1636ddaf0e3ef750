//! The whole way of the doggos tutorial with a real encoder: pictures by class, vectors as Parquet, a classifier,
//! its measures, predictions; held against scikit-learn and pyarrow.

use crate::common::{Place, fashion_mnist, read_json};
use lockstep_testkit::{python, succeed};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pictures.py");
const PACKAGES: &[&str] = &[
    "numpy",
    "pillow==12.3.0",
    "scikit-learn==1.9.0",
    "pyarrow==26.0.1",
];
/// A real encoder: the weights of EfficientNet-Lite0, trained on ImageNet.
const ENCODER: &str = "efficientnet-lite0";

const JOB: &str = r#"
name = "shop"

[data]
train = "photos/train"
val = "photos/val"
test = "photos/test"

[embed]
model = "ENCODER"
store = "vectors"
part = 64

[model]
kind = "head"

[train]
epochs = 30
batch = 50
optimizer = { kind = "adam", lr = 1e-3 }
workers = 2

[checkpoint]
best = "accuracy"
"#;

fn ask(question: &str, argument: &std::path::Path) -> Value {
    let mut command = Command::new(python("pipeline", PACKAGES));
    let said = succeed(command.args([SCRIPT, question]).arg(argument));
    serde_json::from_str(&said).unwrap()
}

#[test]
fn the_pipeline_reaches_the_accuracy_of_a_linear_probe_on_the_same_vectors() {
    let place = Place::new();
    place.write_job(&JOB.replace("ENCODER", ENCODER));
    // Brought once, for all runs of the tests.
    let cache = lockstep_testkit::cache();
    let mut get = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    succeed(
        get.args(["data", "get", ENCODER])
            .env("LOCKSTEP_CACHE", &cache),
    );
    fs::create_dir(place.path("cache")).unwrap();
    symlink(cache.join("encoders"), place.path("cache/encoders")).unwrap();
    let mut make = Command::new(python("pipeline", PACKAGES));
    make.args([SCRIPT, "make"])
        .arg(fashion_mnist())
        .arg(place.path("photos"));
    succeed(make.args(["20", "5", "12"]));

    let result = place.train(&[]);
    let accuracy = result["metrics"]["accuracy"].as_f64().unwrap();
    let probe = ask("probe", &place.path("vectors"))["accuracy"]
        .as_f64()
        .unwrap();
    assert!(probe > 0.8, "the vectors tell the classes apart: {probe}");
    assert!(
        (accuracy - probe).abs() <= 0.0201,
        "{accuracy} and the probe's {probe}"
    );

    let types = ask("types", &place.path("vectors"));
    assert_eq!(types["rows"], 120);
    assert_eq!(types["path"], "string");
    assert_eq!(types["label"], "string");
    let embedding = types["embedding"].as_str().unwrap();
    assert!(
        embedding.starts_with("fixed_size_list<") && embedding.ends_with("[1280]"),
        "{embedding}"
    );

    // The run's own evaluation, and the same asked for later, from the pictures.
    let run = place.runs().pop().unwrap();
    let evaluation = read_json(&run.join("evaluation.json"));
    assert_eq!(evaluation["accuracy"].as_f64(), Some(accuracy));
    assert!(
        fs::read_to_string(run.join("confusion.svg"))
            .unwrap()
            .contains("ankle boot")
    );
    let later = place.run(&[
        "evaluate",
        run.to_str().unwrap(),
        "--json",
        "--workers",
        "1",
    ]);
    assert_eq!(later.code, Some(0), "{}", later.stderr);
    let later: Value = serde_json::from_str(&later.stdout).unwrap();
    assert_eq!(later["accuracy"], evaluation["accuracy"]);

    let photos = place.path("photos/test");
    let out = place.path("classes.jsonl");
    let predict = [
        "predict",
        run.to_str().unwrap(),
        "--data",
        photos.to_str().unwrap(),
        "--out",
    ];
    let predicted = place.run(&[&predict[..], &[out.to_str().unwrap()]].concat());
    assert_eq!(predicted.code, Some(0), "{}", predicted.stderr);
    let rows = fs::read_to_string(out).unwrap();
    let rows: Vec<Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(rows.len(), 120);
    let right = |row: &&Value| {
        let path = row["path"].as_str().unwrap();
        path.starts_with(&format!("{}/", row["predicted"].as_str().unwrap()))
    };
    let share = rows.iter().filter(right).count() as f64 / 120.0;
    assert_eq!(share, accuracy, "what is predicted is what was measured");
}
