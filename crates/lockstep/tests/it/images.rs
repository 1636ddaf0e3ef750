//! Convolutional networks through the binary: the same bits however the work is spread, and plain words
//! for shapes that do not fit.

use crate::common::{Place, cifar};

/// Every kind of layer, dropout and augmentation, at batches of which the last is short.
const JOB: &str = r#"
name = "images"

[data]
train = { cifar = "cifar", split = "train" }
test = { cifar = "cifar", split = "test" }
normalise = { mean = [0.3, 0.3, 0.3], std = [0.25, 0.25, 0.25] }
augment = { crop_padding = 2, flip = true }

[model]
layers = [
  { kind = "conv2d", out = 6, kernel = 3, stride = 2, padding = 1, bias = false },
  { kind = "batch-norm" },
  { kind = "relu" },
  { kind = "residual", body = [
    { kind = "conv2d", out = 6, kernel = 3, padding = 1 },
    { kind = "batch-norm" },
    { kind = "gelu" },
    { kind = "conv2d", out = 6, kernel = [1, 3], padding = [0, 1] },
  ] },
  { kind = "max-pool", kernel = 3, stride = 2, padding = 1 },
  { kind = "dropout", p = 0.1 },
  { kind = "residual", body = [
    { kind = "conv2d", out = 9, kernel = 3, stride = 2, padding = 1 },
    { kind = "batch-norm" },
  ], shortcut = [
    { kind = "conv2d", out = 9, kernel = 1, stride = 2 },
  ] },
  { kind = "relu" },
  { kind = "avg-pool", kernel = 2 },
  { kind = "flatten" },
  { kind = "linear", out = 12 },
  { kind = "batch-norm" },
  { kind = "relu" },
  { kind = "dropout", p = 0.2 },
  { kind = "linear" },
]

[train]
epochs = 34
batch = 24
optimizer = { kind = "sgd", lr = 0.05, momentum = 0.9, weight_decay = 1e-4 }
lanes = 6
workers = 2

[run]
store = "runs"
"#;

/// With 132 images to train on, six steps an epoch, and 30 to test on.
fn place() -> Place {
    let place = Place::new();
    cifar::write_folder(&place.path("cifar"), 132, 30, 1);
    place.write_job(JOB);
    place
}

/// The hash of the weights that training on these workers ends with, by this instruction set.
fn weights(place: &Place, workers: &str, isa: &str) -> String {
    let mut command = place.command(&["run", "job.toml", "--json", "--workers", workers]);
    let output = command.env("LOCKSTEP_ISA", isa).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let result: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert!(
        result["metrics"]["accuracy"].as_f64().unwrap() > 0.3,
        "nothing was learned: {result}"
    );
    result["weights_sha256"].as_str().unwrap().to_owned()
}

#[test]
fn two_hundred_steps_give_the_same_weights_again_on_any_workers_and_instruction_set() {
    let place = place();
    let first = weights(&place, "1", "avx512");
    for (workers, isa) in [("1", "avx512"), ("2", "avx512"), ("3", "avx2")] {
        assert_eq!(
            weights(&place, workers, isa),
            first,
            "{workers} workers, {isa}"
        );
    }
}

#[test]
fn eight_lanes_give_the_same_weights_on_one_to_eight_workers() {
    let place = place();
    let eight = [
        "--set",
        "train.lanes=8",
        "--set",
        "train.batch=33",
        "--epochs",
        "8",
    ];
    let train = |workers| place.weights(&[&eight[..], &["--workers", workers]].concat());
    let one = train("1");
    for workers in ["3", "5", "8"] {
        assert_eq!(train(workers), one, "{workers} workers");
    }
}

#[test]
fn a_cnn_and_a_resnet_give_the_same_weights_on_any_workers() {
    let place = place();
    // A whole step and a short one.
    cifar::write_folder(&place.path("cifar"), 30, 6, 1);
    for model in [
        "model={ kind = \"cnn\", channels = [4, 6], dense = 8 }",
        "model={ kind = \"resnet18\" }",
    ] {
        let few = ["--set", model, "--set", "train.lanes=3", "--epochs", "1"];
        let train = |workers| place.weights(&[&few[..], &["--workers", workers]].concat());
        let one = train("1");
        assert_eq!(train("3"), one, "{model}");
    }
}

#[test]
fn the_plan_shows_the_shapes_of_images() {
    let ran = place().run(&["run", "job.toml", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in [
        "│ layers.0           │ conv2d     │ 16 x 16 x 6 │        162 │",
        "│ layers.6.body.0    │ conv2d     │   4 x 4 x 9 │        495 │",
        "│ layers.6.shortcut.0 │",
        "│ layers.9           │ flatten    │          36 │          0 │",
    ] {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let plan = squeezed(&ran.stdout);
        assert!(plan.contains(&squeezed(line)), "{line}\n{}", ran.stdout);
    }
}

#[test]
fn a_layer_that_does_not_fit_is_named_by_its_key_with_the_shapes() {
    let place = place();
    for (right, wrong, key, words) in [
        (
            "kernel = 3, stride = 2, padding = 1 },\n  { kind = \"dropout\"",
            "kernel = 20, stride = 2 },\n  { kind = \"dropout\"",
            "model.layers[4]",
            ["20 x 20", "16 x 16 x 6"],
        ),
        (
            "{ kind = \"conv2d\", out = 9, kernel = 1, stride = 2 }",
            "{ kind = \"conv2d\", out = 8, kernel = 1, stride = 2 }",
            "model.layers[6]",
            ["4 x 4 x 9", "4 x 4 x 8"],
        ),
        (
            "{ kind = \"conv2d\", out = 6, kernel = 3, padding = 1 },",
            "{ kind = \"linear\", out = 6 }, { kind = \"conv2d\", out = 6, kernel = 3 },",
            "model.layers[3].body[1]",
            ["3 x 3", "its input is 6"],
        ),
    ] {
        let job = JOB.replace(right, wrong);
        assert_ne!(job, JOB, "{right}");
        place.write_job(&job);
        let ran = place.run(&["run", "job.toml"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("{key}: ")),
            "{key}: {}",
            ran.stderr
        );
        for word in words {
            assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
        }
        assert!(place.runs().is_empty(), "nothing is left behind");
    }
}
