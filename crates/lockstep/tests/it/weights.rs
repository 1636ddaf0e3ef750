//! Weights that come from elsewhere and go elsewhere: a run begins with a file of PyTorch's tensors, and
//! what it leaves is one.

use crate::common::tensors::{self, Tensors};
use crate::common::{Place, cifar, read_json, resnet18};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;

/// A rate that is too small to change a weight, though not a running statistic.
const STILL: [&str; 2] = ["--set", "train.optimizer.lr=1e-30"];

/// The only run's weights.
fn weights_of(place: &Place) -> PathBuf {
    let runs = place.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].join("model/weights.safetensors")
}

/// A place where one run has been, and its weights, moved aside.
fn trained() -> (Place, String) {
    let place = Place::new();
    let sha256 = place.weights(&["--epochs", "1"]);
    fs::copy(weights_of(&place), place.path("before.safetensors")).unwrap();
    fs::remove_dir_all(place.path("runs")).unwrap();
    (place, sha256)
}

const BEFORE: [&str; 2] = ["--set", "model.weights=before.safetensors"];

#[test]
fn a_run_begins_with_the_weights_that_another_one_left() {
    let (place, sha256) = trained();
    let begin = [&BEFORE[..], &STILL, &["--epochs", "1"]].concat();
    assert_eq!(place.weights(&begin), sha256);
    let further = [&BEFORE[..], &["--epochs", "1"]].concat();
    let one = place.weights(&[&further[..], &["--workers", "1"]].concat());
    assert_ne!(one, sha256);
    assert_eq!(place.weights(&further), one);
}

#[test]
fn another_number_of_classes_gets_a_new_last_layer_and_that_is_said() {
    let (place, _) = trained();
    let more = "model={ weights = \"before.safetensors\", layers = [{ kind = \"linear\", out = 24 }, \
                { kind = \"relu\" }, { kind = \"dropout\", p = 0.25 }, { kind = \"linear\", out = 16 }, \
                { kind = \"relu\" }, { kind = \"dropout\", p = 0.25 }, { kind = \"linear\", out = 7 }] }";
    let set = [
        &["run", "job.toml", "--epochs", "1", "--set", more],
        &STILL[..],
    ]
    .concat();
    for flag in [None, Some("--dry-run")] {
        let ran = place.run(&[&set[..], flag.as_slice()].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let said = "is of 4 classes, this model of 7: its last layer, `layers.6`, begins anew";
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    }
    let before = tensors::read(&place.path("before.safetensors"));
    let after = tensors::read(&weights_of(&place));
    for (name, tensor) in &after {
        match name.as_str() {
            "layers.6.weight" => assert_eq!(tensor.shape, [7, 16]),
            "layers.6.bias" => assert_eq!(tensor.shape, [7]),
            _ => assert_eq!(tensor, &before[name], "{name}"),
        }
    }
}

#[test]
fn weights_that_do_not_fit_are_refused_before_anything_is_written() {
    let (place, _) = trained();
    let refused = |args: &[&str]| {
        let ran = place.run(&[&["run", "job.toml"], args].concat());
        assert_eq!(ran.code, Some(1), "{args:?}: {}", ran.stdout);
        assert!(
            ran.stderr.contains("model.weights: cannot begin with"),
            "{}",
            ran.stderr
        );
        assert!(place.runs().is_empty(), "nothing is left behind");
        ran.stderr
    };
    let wider = [&BEFORE[..], &["--set", "model.hidden=[24, 17]"]].concat();
    let shown = refused(&wider);
    assert!(
        shown.contains("`layers.3.weight` has the shape [16, 24]"),
        "{shown}"
    );
    assert!(shown.contains("the model's has [17, 24]"), "{shown}");
    let deeper = [&BEFORE[..], &["--set", "model.hidden=[24, 16, 8]"]].concat();
    assert!(refused(&deeper).contains("no tensor `layers.9.weight` (and 1 more)"));
    assert!(refused(&["--set", "model.weights=nothing"]).contains("No such file"));
    assert!(refused(&["--set", "model.weights=job.toml"]).contains("neither a safetensors file"));
}

#[test]
fn an_interrupted_run_goes_on_without_the_file_and_not_with_another_one() {
    let (place, _) = trained();
    let mut run = place.start_long_run(&BEFORE);
    run.wait_for("epoch");
    run.signal(Signal::INT);
    let (code, _, stderr) = run.finish();
    assert_eq!(code, Some(130), "{stderr}");
    let state = place.runs()[0].join("metrics.jsonl");
    let before = fs::read(&state).unwrap();
    let resume = |more: &[&str]| {
        let args = ["run", "job.toml", "--resume", "--json", "--epochs"];
        place.run(&[&args, more].concat())
    };
    let file = place.path("before.safetensors");
    let good = fs::read(&file).unwrap();

    let mut other = good.clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(&file, other).unwrap();
    let ran = resume(&["1000000", "--set", "model.weights=before.safetensors"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("model.weights was \"sha256:"),
        "{}",
        ran.stderr
    );
    let ran = resume(&["1000000"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("model.weights was \"sha256:"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        fs::read(&state).unwrap(),
        before,
        "a refusal changes nothing"
    );

    fs::remove_file(&file).unwrap();
    let epochs = read_json(&place.runs()[0].join("result.json"))["epochs"]
        .as_u64()
        .unwrap();
    let epochs = (epochs + 1).to_string();
    let ran = resume(&[&epochs, "--set", "model.weights=before.safetensors"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    fs::write(&file, good).unwrap();
    let whole = [&BEFORE[..], &["--epochs", &epochs]].concat();
    assert_eq!(ran.result()["weights_sha256"], place.weights(&whole));
}

const RESNET: &str = r#"
name = "resnet"

[data]
train = { cifar = "cifar", split = "train" }
test = { cifar = "cifar", split = "test" }
normalise = { mean = [0.5, 0.4, 0.3], std = [0.2, 0.25, 0.3] }

[model]
kind = "resnet18"
weights = "torchvision.safetensors"

[train]
epochs = 1
batch = 10
optimizer = { kind = "sgd", lr = 1e-30 }

[run]
store = "runs"
"#;

/// The mean loss of the images of a CIFAR file as PyTorch would compute it with these weights.
fn reference_loss(weights: &Tensors, records: &[u8]) -> f64 {
    let (mean, std) = ([0.5, 0.4, 0.3], [0.2, 0.25, 0.3]);
    let images = records.chunks(1 + 3 * 32 * 32);
    let count = images.len() as f64;
    let losses = images.map(|record| {
        let pixels = record[1..].iter().enumerate();
        let pixels = pixels.map(|(i, &x)| (f32::from(x) / 255.0 - mean[i / 1024]) / std[i / 1024]);
        let scores = resnet18::scores(weights, 32, pixels.collect());
        let sum: f64 = scores.iter().map(|&x| f64::from(x).exp()).sum();
        sum.ln() - f64::from(scores[usize::from(record[0])])
    });
    losses.sum::<f64>() / count
}

#[test]
fn torchvisions_resnet18_goes_in_and_comes_out_and_means_the_same() {
    let place = Place::new();
    cifar::write_folder(&place.path("cifar"), 20, 2, 1);
    place.write_job(RESNET);
    let mut noise = 1u32;
    let before = resnet18::random(10, || {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 8) as f32 / (1 << 24) as f32
    });
    tensors::write(&place.path("torchvision.safetensors"), &before);
    let result = place.train(&[]);

    // In: every parameter is where it was; only the statistics have seen the data.
    let after = tensors::read(&weights_of(&place));
    assert!(before.keys().eq(after.keys()));
    for (name, tensor) in &after {
        let moved = name.contains("running");
        assert_eq!(*tensor != before[name], moved, "{name}");
    }
    // Out: they mean to others what they mean to us.
    let records = fs::read(place.path("cifar/test_batch.bin")).unwrap();
    let expected = reference_loss(&after, &records);
    let found = result["metrics"]["loss"].as_f64().unwrap();
    assert!(
        (found - expected).abs() < 1e-4 * expected,
        "{found} instead of {expected}"
    );
    assert!(
        (found - reference_loss(&before, &records)).abs() > 1e-3,
        "statistics matter"
    );
}
