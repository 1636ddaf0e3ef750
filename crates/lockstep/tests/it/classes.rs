//! Two classes of which one is looked for, through the real binary: which it is, how much its rows count, what epochs and
//! rounds are chosen by, and when it is predicted.

use crate::common::serve::Serve;
use crate::common::{Place, Ran, read_json};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const DATA: &str = r#"
name = "classes"

[data]
train = { csv = "train.csv", features = ["a", "b"] }
val = { csv = "val.csv" }
test = { csv = "val.csv" }
"#;

const NETWORK: &str = r#"
[model]
kind = "mlp"
hidden = [8]

[train]
epochs = 4
batch = 32
optimizer = { kind = "adamw", lr = 1e-2 }
lanes = 3
"#;

const TREES: &str = r#"
[model]
kind = "xgboost"
rounds = 8
depth = 3
base_score = 0.5
"#;

/// Two numbers, how much a row counts, and a class. The rarer class is the first in the order of names, and overlaps the
/// other, so that no model tells them apart for certain.
fn table(rows: std::ops::Range<usize>) -> String {
    let mut text = "a,b,w,label\n".to_owned();
    for row in rows {
        let random = |salt: u64| {
            let mixed = (row as u64 * 4 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (mixed >> 40) as f64 / f64::from(1_u32 << 24)
        };
        let (a, b) = (random(1), random(2));
        let is_fraud = a + 0.4 * b + 0.5 * random(3) > 1.25;
        let (weight, label) = if is_fraud {
            (4, "fraud")
        } else {
            (1, "normal")
        };
        text += &format!("{a:.4},{b:.4},{weight},{label}\n");
    }
    text
}

fn place(learner: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("train.csv"), table(0..700)).unwrap();
    fs::write(place.path("val.csv"), table(700..1000)).unwrap();
    place.write_job(&format!("{DATA}{learner}"));
    place
}

fn run(place: &Place, args: &[&str]) -> Ran {
    let mut command = place.command(args);
    command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
    Ran::from(command.output().unwrap())
}

/// Trains with these keys set.
fn train(place: &Place, keys: &[&str]) -> Value {
    let set = keys.iter().flat_map(|key| ["--set", key]);
    let args: Vec<&str> = ["run", "job.toml", "--json"]
        .into_iter()
        .chain(set)
        .collect();
    let ran = run(place, &args);
    assert_eq!(ran.code, Some(0), "{keys:?}: {}", ran.stderr);
    ran.result()
}

fn folder(result: &Value) -> PathBuf {
    PathBuf::from(result["run_dir"].as_str().unwrap())
}

fn evaluation(result: &Value) -> Value {
    read_json(&folder(result).join("evaluation.json"))
}

/// What each epoch or round came to.
fn rounds(result: &Value) -> Vec<Value> {
    let text = fs::read_to_string(folder(result).join("metrics.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_positive_class_is_the_rarer_or_the_one_that_is_named_and_changes_no_weight() {
    for learner in [NETWORK, TREES] {
        let place = place(learner);
        let plain = train(&place, &[]);
        let said = run(&place, &["run", "job.toml", "--dry-run"]);
        let note = "the positive class is `fraud`, the rarer of the two: ";
        assert!(
            said.stdout.contains(note) || said.stderr.contains(note),
            "{}{}",
            said.stdout,
            said.stderr
        );
        let named = train(&place, &["train.positive=normal"]);
        assert_eq!(named["weights_sha256"], plain["weights_sha256"]);
        let (plain, named) = (evaluation(&plain), evaluation(&named));
        for (of, class, number) in [(&plain, "fraud", 0), (&named, "normal", 1)] {
            assert_eq!(of["positive_class"], class);
            for score in ["precision", "recall", "f1"] {
                assert_eq!(
                    of["positive"][score], of["classes"][number][score],
                    "{class}"
                );
            }
        }
        assert!(named["average_precision"].as_f64() > plain["average_precision"].as_f64());
        let areas = [&plain, &named].map(|of| of["auc"].as_f64().unwrap());
        assert!((areas[0] - areas[1]).abs() < 1e-6, "{areas:?}");

        let wrong = ["run", "job.toml", "--set", "train.positive=nobody"];
        let said = run(&place, &wrong);
        assert_ne!(said.code, Some(0));
        for words in [
            "train.positive: `nobody` is no class of ",
            "train.csv; its classes are `fraud` and `normal`",
        ] {
            assert!(said.stderr.contains(words), "{}", said.stderr);
        }
    }
}

#[test]
fn rows_of_the_positive_class_and_of_each_class_count_as_rows_of_such_a_weight_do() {
    let place = place(TREES);
    let weights = |keys: &[&str]| train(&place, keys)["weights_sha256"].clone();
    let column = "data.train={ csv = 'train.csv', features = ['a', 'b'], weight = 'w' }";
    let plain = weights(&[]);
    for exact in ["model.exact=true", "model.exact=false"] {
        let by_row = weights(&[exact, column]);
        assert_ne!(by_row, plain);
        assert_eq!(weights(&[exact, "train.class_weights=[4.0, 1.0]"]), by_row);
        assert_eq!(weights(&[exact, "model.scale_pos_weight=4.0"]), by_row);
        let other = weights(&[exact, "model.scale_pos_weight=4.0", "train.positive=normal"]);
        assert_ne!(other, by_row);
    }
    let balanced = weights(&["train.class_weights=balanced"]);
    assert_ne!(balanced, plain);
    for (keys, words) in [
        (
            "train.class_weights=[1.0]",
            "it has 1 numbers, but the data has 2 classes: fraud, normal",
        ),
        ("train.class_weights=even", "balanced"),
    ] {
        let said = run(&place, &["run", "job.toml", "--set", keys]);
        assert_ne!(said.code, Some(0));
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
}

#[test]
fn the_best_is_chosen_by_every_measure_that_is_reported() {
    for learner in [NETWORK, TREES] {
        let place = place(learner);
        for measure in ["auc", "weighted.precision"] {
            let best = format!("checkpoint.best={measure}");
            let result = train(&place, &[&best]);
            let values: Vec<f64> = (rounds(&result).iter())
                .map(|round| round["val"][measure].as_f64().unwrap())
                .collect();
            let top = values.iter().copied().fold(f64::MIN, f64::max);
            let first = values.iter().position(|&value| value == top).unwrap() + 1;
            assert_eq!(result["best_epoch"], first, "{measure}: {values:?}");
            // The test set has the same rows.
            let path = format!("/{}", measure.replace('.', "/"));
            let of_test = evaluation(&result)
                .pointer(&path)
                .unwrap()
                .as_f64()
                .unwrap();
            assert!((of_test - top).abs() < 1e-12, "{measure}: {of_test}, {top}");
            let divided = train(&place, &[&best, "train.workers=3"]);
            assert_eq!(
                divided["weights_sha256"], result["weights_sha256"],
                "{measure}"
            );
        }
        let patient = ["checkpoint.best=auc", "train.patience=1"];
        let result = train(&place, &patient);
        let best = result["best_epoch"].as_u64().unwrap();
        if result["stopped_early"] == true {
            assert_eq!(result["epochs"], best + 1);
        }
        let said = run(&place, &["run", "job.toml", "--set", "checkpoint.best=r2"]);
        assert!(said.stderr.contains("average_precision"), "{}", said.stderr);
    }
}

/// What a learner counts, and a key of which a small value learns less.
fn units(learner: &str) -> (&'static str, &'static str) {
    match learner {
        TREES => ("rounds", "model.eta=[1e-4, 0.3]"),
        _ => ("epochs", "train.optimizer.lr=[1e-6, 1e-2]"),
    }
}

#[test]
fn a_metric_of_ones_own_is_measured_by_epoch_and_in_the_end_and_can_be_chosen_by() {
    const COST: &str = "metrics.cost={ formula = \"mean(5 * (label == 'fraud' and predicted != label) + \
                        (predicted == 'fraud' and label != predicted))\", best = \"lowest\" }";
    for learner in [NETWORK, TREES] {
        let place = place(learner);
        let keys = [COST, "checkpoint.best=cost", "train.threshold=0.2"];
        let result = train(&place, &keys);
        let rows = predicted(&place, &folder(&result));
        let cost = |(is_fraud, _, said): &(bool, f64, bool)| match (*is_fraud, *said) {
            (true, false) => 5.0,
            (false, true) => 1.0,
            _ => 0.0,
        };
        let cost = rows.iter().map(cost).sum::<f64>() / rows.len() as f64;
        assert_eq!(result["metrics"]["cost"], cost);
        assert_eq!(evaluation(&result)["metrics"]["cost"], cost);
        // The validation rows are those of the test set, and the threshold is known from the beginning.
        let costs: Vec<f64> = (rounds(&result).iter())
            .map(|round| round["val"]["cost"].as_f64().unwrap())
            .collect();
        let best = costs.iter().copied().fold(f64::MAX, f64::min);
        let first = costs.iter().position(|&cost| cost == best).unwrap() + 1;
        assert_eq!((&result["best_epoch"], best), (&first.into(), cost));
        let divided = train(&place, &[&keys[..], &["train.workers=3"]].concat());
        assert_eq!(divided["weights_sha256"], result["weights_sha256"]);
        assert_eq!(divided["metrics"], result["metrics"]);

        let name = result["run"].as_str().unwrap();
        let listed = place.said(&["runs", "list", "test.cost < 9 and val.cost < 9"]);
        assert!(listed.contains(name), "{listed}");
        let best = place.said(&["runs", "best", "--metric", "test.cost"]);
        let (unit, _) = units(learner);
        assert!(best.lines().next().unwrap().contains(unit), "{best}");
        // One more, of a run that is there.
        let share = "metrics.share=\"mean(predicted == 'fraud')\"";
        let of = run(&place, &["evaluate", name, "--set", share]);
        let said = rows.iter().filter(|row| row.2).count() as f64 / 300.0;
        assert!(of.stdout.contains("cost "), "{}", of.stdout);
        assert!(
            of.stdout.contains(&format!("share {said:.4}")),
            "{}",
            of.stdout
        );

        let grid = [
            "tune",
            "job.toml",
            "--method",
            "grid",
            "--no-halving",
            "--metric",
            "cost",
            "--set",
            COST,
        ];
        let (_, key) = units(learner);
        let said = run(&place, &[&grid[..], &["--search", key]].concat());
        let table: Vec<Vec<&str>> = (said.stdout.lines().take(3))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            table[0][2..],
            [unit, "cost"],
            "{}{}",
            said.stdout,
            said.stderr
        );
        // The lower cost is the better one.
        let costs = [&table[1], &table[2]].map(|row| row[3].parse::<f64>().unwrap());
        assert!(costs[0] < costs[1], "{}", said.stdout);

        let wrong = [
            "run",
            "job.toml",
            "--set",
            "metrics.cost=\"mean(label == 'fruad')\"",
        ];
        let said = run(&place, &wrong);
        assert_ne!(said.code, Some(0));
        let words = "metrics.cost: at `'fruad'`: there is no such class; did you mean 'fraud'?";
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
}

/// Whether each row is of the rarer class, how probable that is, and whether it was predicted.
fn predicted(place: &Place, run_dir: &Path) -> Vec<(bool, f64, bool)> {
    let args = [
        "predict",
        run_dir.to_str().unwrap(),
        "--data",
        "val.csv",
        "--out",
        "-",
        "--probabilities",
    ];
    let ran = run(place, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let rows = ran.stdout.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        let probability = row["probabilities"]["fraud"].as_f64().unwrap();
        (
            row["label"] == "fraud",
            probability,
            row["predicted"] == "fraud",
        )
    });
    rows.collect()
}

/// What a server of the run's model predicts for each row.
fn served(place: &Place, result: &Value) -> Vec<String> {
    let run = result["run"].as_str().unwrap();
    let mut command = place.command(&["serve-model", run, "--store", "runs", "--port", "0"]);
    command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
    let serve = Serve::of(command);
    let rows = fs::read(place.path("val.csv")).unwrap();
    let kind = [("Content-Type", "text/csv")];
    let answer = serve.send("POST", "/invocations", &kind, &rows).ok().json();
    let rows = answer["predictions"].as_array().unwrap().iter();
    rows.map(|row| row["predicted"].as_str().unwrap().to_owned())
        .collect()
}

/// The F1 of the rarer class if it is predicted from this probability on.
fn f1(rows: &[(bool, f64, bool)], threshold: f64) -> f64 {
    let count = |holds: &dyn Fn(&(bool, f64, bool)) -> bool| {
        rows.iter().filter(|row| holds(row)).count() as f64
    };
    let right = count(&|row| row.0 && row.1 >= threshold);
    2.0 * right / (count(&|row| row.0) + count(&|row| row.1 >= threshold))
}

#[test]
fn a_threshold_that_is_set_or_chosen_decides_what_is_predicted_and_measured() {
    for learner in [NETWORK, TREES] {
        let place = place(learner);
        let plain = train(&place, &[]);
        assert_eq!(evaluation(&plain).get("threshold"), None);
        for (threshold, set) in [
            ("train.threshold=0.2", Some(0.2)),
            ("train.threshold=f1", None),
        ] {
            let result = train(&place, &[threshold]);
            assert_eq!(result["weights_sha256"], plain["weights_sha256"]);
            let of = evaluation(&result);
            let at = of["threshold"].as_f64().unwrap();
            let rows = predicted(&place, &folder(&result));
            assert_eq!(rows.len(), 300);
            for (_, probability, is_predicted) in &rows {
                assert_eq!(*probability >= at, *is_predicted, "{probability} and {at}");
            }
            let found = of["positive"]["f1"].as_f64().unwrap();
            assert!((f1(&rows, at) - found).abs() < 1e-12, "{found}");
            assert_eq!(result["metrics"]["accuracy"], of["accuracy"]);
            match set {
                Some(set) => assert_eq!(at, set),
                // It was chosen on the same rows: no other is better.
                None => {
                    let others = rows.iter().map(|row| f1(&rows, row.1));
                    assert!(others.fold(0.0, f64::max) <= found + 1e-12);
                }
            }
            if set.is_some() {
                let served = served(&place, &result);
                let wanted = rows
                    .iter()
                    .map(|row| ["normal", "fraud"][usize::from(row.2)]);
                assert_eq!(served, wanted.collect::<Vec<_>>());
            }
            let again = ["evaluate", result["run_dir"].as_str().unwrap(), "--json"];
            let again: Value = serde_json::from_str(run(&place, &again).stdout.trim()).unwrap();
            for same in [
                "threshold",
                "positive",
                "confusion",
                "accuracy",
                "positive_class",
            ] {
                assert_eq!(again[same], of[same], "{same}");
            }
        }
        let unvalidated = DATA.replace("val = { csv = \"val.csv\" }\n", "");
        place.write_job(&format!("{unvalidated}{learner}"));
        let said = run(&place, &["run", "job.toml", "--set", "train.threshold=f1"]);
        assert_ne!(said.code, Some(0));
        assert!(
            said.stderr
                .contains("it is chosen on validation data, and there is none"),
            "{}",
            said.stderr
        );
    }
}

#[test]
fn the_focal_loss_learns_alike_on_any_number_of_workers_and_is_measured_by_the_cross_entropy() {
    let place = place(NETWORK);
    let plain = train(&place, &[]);
    assert_eq!(
        train(&place, &["train.loss=focal", "train.focal_gamma=0.0"])["weights_sha256"],
        plain["weights_sha256"]
    );
    let keys = ["train.loss=focal", "train.class_weights=balanced"];
    let focal = train(&place, &keys);
    assert_ne!(focal["weights_sha256"], plain["weights_sha256"]);
    let divided = train(&place, &[&keys[..], &["train.workers=3"]].concat());
    assert_eq!(divided["weights_sha256"], focal["weights_sha256"]);
    let again = ["evaluate", focal["run_dir"].as_str().unwrap(), "--json"];
    let again: Value = serde_json::from_str(run(&place, &again).stdout.trim()).unwrap();
    assert_eq!(again["loss"], evaluation(&focal)["loss"]);
    assert_eq!(again["loss"], focal["metrics"]["loss"]);
    let smoothed = [
        "run",
        "job.toml",
        "--set",
        "train.loss=focal",
        "--set",
        "train.label_smoothing=0.1",
    ];
    let said = run(&place, &smoothed);
    assert_ne!(said.code, Some(0));
    assert!(
        said.stderr.contains("looks at one class of each sample"),
        "{}",
        said.stderr
    );
}
