//! Every way to train that the job file offers comes to the same weights on one worker and on two, and after a power
//! cut in the middle of an epoch.

use crate::common::{Place, read_json, tensors};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// What every run here has: validation data, and a checkpoint in the middle of the second and of the third epoch.
const ALWAYS: [&str; 4] = [
    "train.epochs=4",
    "data.val_split=0.2",
    "checkpoint.every=35 steps",
    "checkpoint.keep=2",
];

/// Arguments that set these keys.
fn sets<'a>(keys: &[&'a str]) -> Vec<&'a str> {
    keys.iter().flat_map(|key| ["--set", *key]).collect()
}

/// Trains with these keys on one worker, on two, and on two with a power cut: the result, the same of all.
fn trained(place: &Place, keys: &[&str]) -> Value {
    let keys = [&ALWAYS[..], keys].concat();
    let args = sets(&keys);
    let whole = place.train(&[&args[..], &["--workers", "1"]].concat());
    let two = [&args[..], &["--workers", "2"]].concat();
    let mut others = vec![place.train(&two)];
    // Points to fail at are in such builds alone.
    if cfg!(debug_assertions) {
        place.cut_off(&two);
        others.push(place.train(&[&two[..], &["--resume"]].concat()));
    }
    for other in others {
        for same in [
            "weights_sha256",
            "best_epoch",
            "metrics",
            "epochs",
            "stopped_early",
        ] {
            assert_eq!(other[same], whole[same], "{keys:?}: {same}");
        }
    }
    whole
}

/// Trains with each of some keys, which must make a difference.
fn each_makes_a_difference(place: &Place, means: &[&[&str]]) {
    let plain = place.weights(&sets(&ALWAYS));
    for keys in means {
        assert_ne!(trained(place, keys)["weights_sha256"], plain, "{keys:?}");
    }
}

/// What the epochs of a run came to.
fn epochs(result: &Value) -> Vec<Value> {
    let run = PathBuf::from(result["run_dir"].as_str().unwrap());
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn shaped_losses_are_the_same_on_any_number_of_workers_and_after_a_cut() {
    each_makes_a_difference(
        &Place::new(),
        &[
            &["train.label_smoothing=0.2"],
            &["train.class_weights=[1.0, 0.25, 3.0, 1.5]", "train.lanes=3"],
            &["train.class_weights=balanced", "train.label_smoothing=0.1"],
            &["data.stratify=true"],
            &["data.balance=true", "train.lanes=3"],
        ],
    );
}

#[test]
fn optimizers_are_the_same_on_any_number_of_workers_and_after_a_cut() {
    each_makes_a_difference(
        &Place::new(),
        &[
            &["train.optimizer={ kind = 'rmsprop', momentum = 0.9, lr = 1e-3 }"],
            &["train.optimizer={ kind = 'rmsprop', lr = 1e-3 }"],
            &["train.optimizer={ kind = 'lion', weight_decay = 0.1 }"],
            &["train.schedule={ kind = 'one-cycle', pct_start = 0.4 }"],
            // Wide enough that its weights would stay with their owners if they were not averaged.
            &["train.average=0.95", crate::common::BY_COLUMNS],
        ],
    );
}

#[test]
fn the_rate_falls_where_validation_does_not_get_better_also_after_a_cut() {
    let place = Place::new();
    // Nothing gets better by so much: every other epoch is a plateau.
    let result = trained(
        &place,
        &["train.schedule={ kind = 'plateau', patience = 2, min_change = 10, factor = 0.5 }"],
    );
    let rates: Vec<f64> = epochs(&result)
        .iter()
        .map(|epoch| epoch["lr"].as_f64().unwrap())
        .collect();
    let base = f64::from(0.05f32);
    assert_eq!(rates, [base, base, base, base / 2.0]);
}

#[test]
fn a_run_stops_when_it_gets_no_better_at_the_same_epoch_whatever_happens() {
    let place = Place::new();
    let keys = [
        "train.epochs=50",
        "train.patience=2",
        "train.min_change=10",
        "checkpoint.best=f1",
    ];
    let result = trained(&place, &keys);
    // The first epoch is the best that there is by so much.
    assert_eq!(
        (&result["stopped_early"], &result["epochs"]),
        (&true.into(), &3.into())
    );
    let values: Vec<f64> = epochs(&result)
        .iter()
        .map(|epoch| epoch["val"]["f1"].as_f64().unwrap())
        .collect();
    let best = (1..=3).max_by(|&a, &b| values[a - 1].total_cmp(&values[b - 1]).then(b.cmp(&a)));
    assert_eq!(result["best_epoch"], best.unwrap());

    // It is at its end until it is asked for more patience.
    let name = result["run"].as_str().unwrap();
    let all = [&ALWAYS[..], &keys].concat();
    let again = place.train(&[&sets(&all)[..], &["--resume", name]].concat());
    assert_eq!(again["weights_sha256"], result["weights_sha256"]);
    assert_eq!(again["epochs"], 3);
    let more = [&all[..], &["train.patience=4"]].concat();
    let longer = place.train(&[&sets(&more)[..], &["--resume", name]].concat());
    assert_eq!(
        (&longer["epochs"], &longer["stopped_early"]),
        (&5.into(), &true.into())
    );
}

#[test]
fn what_waits_for_validation_data_or_is_for_classes_is_refused_without() {
    let place = Place::new();
    let refused = |keys: &[&str], words: &[&str]| {
        let ran = place.run(&[&["run", "job.toml"], &sets(keys)[..]].concat());
        assert_ne!(ran.code, Some(0), "{keys:?}");
        for word in words {
            assert!(ran.stderr.contains(word), "{keys:?}: {}", ran.stderr);
        }
    };
    refused(&["train.patience=3"], &["train.patience", "val_split"]);
    refused(
        &["train.schedule.kind=plateau"],
        &["train.schedule", "val_split"],
    );
    refused(
        &["checkpoint.best=auc"],
        &["\"auc\"", "4 classes", "f1, top5"],
    );
    refused(
        &["train.class_weights=[1, 2]"],
        &["train.class_weights", "2 numbers", "4 classes"],
    );
}

#[test]
fn the_average_of_the_weights_is_what_is_measured_and_saved() {
    let place = Place::new();
    let args = sets(&["train.average=0.9", "train.epochs=3", "train.clip_norm=1.0"]);
    let result = place.train(&args);
    // The model says of the test set what the run measured.
    let run = result["run_dir"].as_str().unwrap();
    let evaluated = place.run(&["evaluate", run, "--json"]);
    assert_eq!(evaluated.code, Some(0), "{}", evaluated.stderr);
    let told: Value = serde_json::from_str(evaluated.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(told["accuracy"], result["metrics"]["accuracy"]);
    assert_eq!(told["loss"], result["metrics"]["loss"]);
    let model = read_json(&PathBuf::from(run).join("model/model.json"));
    assert_eq!(model["weights_sha256"], result["weights_sha256"]);
    for epoch in epochs(&result) {
        assert!(epoch["gradient_norm"].as_f64().unwrap() > 0.0, "{epoch}");
    }
}

#[test]
fn further_layers_are_the_same_on_any_number_of_workers_and_after_a_cut() {
    let stacks = [
        "{ kind = 'conv2d', out = 6, kernel = 3, padding = 'same' }, { kind = 'group-norm', groups = 2 }, \
         { kind = 'silu' }, { kind = 'conv2d', out = 6, kernel = 3, groups = 6 }, { kind = 'layer-norm' }, \
         { kind = 'leaky-relu' }, { kind = 'conv2d', out = 4, kernel = 1, groups = 2 }",
        "{ kind = 'linear', out = 20 }, { kind = 'layer-norm' }, { kind = 'tanh' }, { kind = 'linear', out = 12 }, \
         { kind = 'sigmoid' }",
        "{ kind = 'flatten' }, { kind = 'unflatten', shape = [4, 16] }, { kind = 'conv1d', out = 8, kernel = 5, \
         padding = 'same' }, { kind = 'batch-norm' }, { kind = 'relu' }, { kind = 'max-pool1d', kernel = 2 }, \
         { kind = 'conv1d', out = 8, kernel = 3, groups = 2 }, { kind = 'relu' }",
    ];
    let place = Place::new();
    for layers in stacks {
        let model = format!("model={{ layers = [{layers}, {{ kind = 'linear' }}] }}");
        let result = trained(&place, &[&model]);
        let accuracy = result["metrics"]["accuracy"].as_f64().unwrap();
        assert!(accuracy > 0.3, "{layers} learns: {accuracy}");
    }
}

#[test]
fn frozen_layers_do_not_change_by_one_bit_and_others_learn_at_rates_of_their_own() {
    let place = Place::new();
    let layers = "layers = [{ kind = 'conv2d', out = 6, kernel = 3, padding = 1 }, { kind = 'batch-norm' }, \
                  { kind = 'relu' }, { kind = 'linear', out = 20 }, { kind = 'relu' }, { kind = 'linear' }]";
    let whole = place.train(&sets(&[&format!("model={{ {layers} }}"), "train.epochs=1"]));
    let weights = |run: &Value| {
        let run = PathBuf::from(run["run_dir"].as_str().unwrap());
        run.join("model/weights.safetensors")
    };
    fs::copy(weights(&whole), place.path("before.safetensors")).unwrap();
    let before = tensors::read(&place.path("before.safetensors"));
    let model = format!("model={{ weights = 'before.safetensors', {layers} }}");
    let decaying = "train.optimizer={ kind = 'adamw', lr = 1e-2, weight_decay = 0.1 }";
    let means: [(&[&str], &[&str]); 3] = [
        // From below, with all that touches weights otherwise.
        (
            &[
                "train.freeze=['layers.0', 'layers.1']",
                "train.average=0.9",
                "train.clip_norm=1.0",
            ],
            &["layers.0", "layers.1"],
        ),
        // In the middle: gradients go through.
        (
            &["train.freeze=['layers.1', 'layers.3']", "train.lanes=3"],
            &["layers.1", "layers.3"],
        ),
        (&["train.rates={ 'layers.0' = 0.1, 'layers.3' = 0.5 }"], &[]),
    ];
    let mut hashes = vec![place.weights(&sets(&[&ALWAYS[..], &[&model, decaying]].concat()))];
    for (keys, frozen) in means {
        let result = trained(&place, &[&[&*model, decaying], keys].concat());
        let after = tensors::read(&weights(&result));
        for (name, tensor) in &after {
            let is_frozen = frozen.iter().any(|layer| name.starts_with(layer));
            assert_eq!(tensor == &before[name], is_frozen, "{keys:?}: {name}");
        }
        hashes.push(result["weights_sha256"].as_str().unwrap().to_owned());
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 4, "each makes a difference");

    let refused = |key: &str| {
        let ran = place.run(&[&["run", "job.toml"], &sets(&[&model, key])[..]].concat());
        assert_ne!(ran.code, Some(0), "{key}");
        ran.stderr
    };
    let planned = ["run", "job.toml", "--dry-run"];
    let ran = place.run(&[&planned[..], &sets(&[&model, "train.freeze=['layers.3']"])].concat());
    let said = "7700 of 7856 parameters are frozen";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    assert!(refused("train.freeze=['layer.0']").contains("did you mean `layers.0`?"));
    assert!(refused("train.freeze=['layers']").contains("nothing is left to train"));
    assert!(refused("train.rates={ 'layers.0' = 0 }").contains("train.rates"));
}

#[test]
fn changed_images_are_the_same_on_any_number_of_workers_and_after_a_cut() {
    each_makes_a_difference(
        &Place::new(),
        &[
            &[
                "data.augment.resized_crop=[0.5, 1.0]",
                "data.augment.flip=true",
            ],
            &["data.augment.rotation=15"],
            &[
                "data.augment={ mixup = 0.4 }",
                "train.class_weights=[1, 2, 3, 4]",
            ],
            &[
                "data.augment={ mixup = 0.2, cutmix = 1.0, flip = true }",
                crate::common::BY_COLUMNS,
            ],
            &["data.augment={ brightness = 0.4, contrast = 0.4, erase = 0.5, crop_padding = 1 }"],
        ],
    );
}
