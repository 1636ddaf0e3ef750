//! Networks of images: dense, convolutional, ResNet-18, and one of every kind of layer.

use super::{holds_against_predict, train};
use crate::common::{JOB, Place, cifar};
use serde_json::json;
use std::fs;

/// The bytes of the images in an IDX file.
fn idx_images(place: &Place) -> Vec<f32> {
    let file = fs::read(place.path("test-images")).unwrap();
    file[16..].iter().map(|&byte| f32::from(byte)).collect()
}

/// A place with small files of CIFAR-10's form and a job on them, and the pixels of its test set, in PyTorch's order.
fn cifar(model: &str, train: usize) -> (Place, Vec<f32>) {
    let place = Place::new();
    let test = 24;
    cifar::write_folder(&place.path("cifar"), train, test, 3);
    place.write_job(&format!(
        r#"
name = "colours"

[data]
train = {{ cifar = "cifar", split = "train" }}
test = {{ cifar = "cifar", split = "test" }}
normalise = {{ mean = [0.49, 0.48, 0.44], std = [0.24, 0.2, 0.26] }}

[model]
{model}

[train]
epochs = 1
batch = 32
optimizer = {{ kind = "adam" }}
"#
    ));
    let records = fs::read(place.path("cifar/test_batch.bin")).unwrap();
    let images = records.chunks(1 + 3 * 32 * 32);
    let pixels = images.flat_map(|record| record[1..].iter().map(|&byte| f32::from(byte)));
    (place, pixels.collect())
}

#[test]
fn an_mlp_on_bytes_says_what_predict_says() {
    let place = Place::new();
    let normalise = "[data]\nnormalise = { mean = [0.3], std = [0.25] }";
    place.write_job(&JOB.replace("[data]", normalise));
    let run = train(&place, &[]);
    let run = run.to_str().unwrap();
    let found = holds_against_predict(&place, run, &[], &idx_images(&place));
    assert_eq!(found["inputs"][0]["shape"], json!(["N", 1, 8, 8]));
    assert_eq!(found["inputs"][0]["type"], "tensor(uint8)");
    assert_eq!(found["opset"], 17);
    let floats = holds_against_predict(&place, run, &["--floats"], &idx_images(&place));
    assert_eq!(floats["inputs"][0]["type"], "tensor(float)");
    let metadata = &found["metadata"];
    assert_eq!(metadata["lockstep.task"], "classes");
    assert_eq!(metadata["lockstep.input_shape"], "[1,8,8]");
    assert_eq!(
        metadata["lockstep.weights_sha256"].as_str().unwrap().len(),
        64
    );
}

#[test]
fn a_run_writes_the_model_beside_its_weights_when_asked() {
    let place = Place::new();
    let run = train(&place, &["--epochs", "1", "--set", "train.onnx=true"]);
    let export = ["export", run.to_str().unwrap(), "--onnx", "model.onnx"];
    assert_eq!(place.run(&export).code, Some(0));
    let exported = fs::read(place.path("model.onnx")).unwrap();
    assert!(fs::read(run.join("model/model.onnx")).unwrap() == exported);
    let run = train(&place, &["--epochs", "1"]);
    assert!(!run.join("model/model.onnx").exists());
}

#[test]
fn an_mlp_takes_the_channels_of_colour_images_one_after_the_other() {
    let (place, pixels) = cifar("kind = \"mlp\"\nhidden = [12]\nbatch_norm = true", 100);
    let run = train(&place, &[]);
    holds_against_predict(&place, run.to_str().unwrap(), &[], &pixels);
}

#[test]
fn a_cnn_says_what_predict_says() {
    let model = "kind = \"cnn\"\nchannels = [4, 6]\ndropout = [0.1, 0.2]\ndense = 8";
    let (place, pixels) = cifar(model, 100);
    let run = train(&place, &[]);
    holds_against_predict(&place, run.to_str().unwrap(), &[], &pixels);
}

#[test]
fn a_resnet18_says_what_predict_says() {
    let (place, pixels) = cifar("kind = \"resnet18\"\nsmall_stem = false", 40);
    let run = train(&place, &[]);
    holds_against_predict(&place, run.to_str().unwrap(), &[], &pixels);
}

#[test]
pub(crate) fn every_kind_of_layer_has_its_operation() {
    let layers = r#"
kind = "stack"
layers = [
  { kind = "conv2d", out = 6, kernel = [3, 5], stride = [2, 1], padding = [1, 2] },
  { kind = "batch-norm" },
  { kind = "gelu" },
  { kind = "max-pool", kernel = 3, stride = 2, padding = 1 },
  { kind = "residual", body = [
      { kind = "conv2d", out = 8, kernel = 3, padding = 1, bias = false },
      { kind = "batch-norm" },
      { kind = "relu" },
    ], shortcut = [{ kind = "conv2d", out = 8, kernel = 1 }] },
  { kind = "avg-pool", kernel = 3, stride = 2, padding = 1 },
  { kind = "dropout", p = 0.2 },
  { kind = "residual", body = [
      { kind = "flatten" },
      { kind = "linear", out = 8 },
    ], shortcut = [{ kind = "conv2d", out = 8, kernel = [4, 8] }] },
  { kind = "conv2d", out = 9, kernel = 1 },
  { kind = "global-pool" },
  { kind = "batch-norm" },
  { kind = "linear" },
]
"#;
    let (place, pixels) = cifar(layers, 100);
    let run = train(&place, &[]);
    holds_against_predict(&place, run.to_str().unwrap(), &[], &pixels);
}

#[test]
fn convolutions_of_sequences_say_what_predict_says() {
    let place = Place::new();
    let model = r#"[model]
layers = [
  { kind = "flatten" },
  { kind = "unflatten", shape = [4, 16] },
  { kind = "conv1d", out = 6, kernel = 5, padding = "same" },
  { kind = "batch-norm" },
  { kind = "relu" },
  { kind = "max-pool1d", kernel = 2 },
  { kind = "conv1d", out = 8, kernel = 3, stride = 2, groups = 2, bias = false },
  { kind = "avg-pool1d", kernel = 2, stride = 1 },
  { kind = "linear" },
]
"#;
    let (before, rest) = JOB.split_once("[model]").unwrap();
    let (_, after) = rest.split_once("[train]").unwrap();
    place.write_job(&format!("{before}{model}\n[train]{after}"));
    let run = train(&place, &["--epochs", "1"]);
    holds_against_predict(&place, run.to_str().unwrap(), &[], &idx_images(&place));
}

#[test]
fn further_layers_say_what_predict_says_of_images_and_of_vectors() {
    let layers = r#"
kind = "stack"
layers = [
  { kind = "conv2d", out = 6, kernel = 3, padding = "same" },
  { kind = "group-norm", groups = 2 },
  { kind = "leaky-relu", slope = 0.1 },
  { kind = "conv2d", out = 12, kernel = 3, stride = 2, groups = 6 },
  { kind = "layer-norm" },
  { kind = "silu" },
  { kind = "max-pool", kernel = 3 },
  { kind = "flatten" },
  { kind = "group-norm", groups = 3 },
  { kind = "sigmoid" },
  { kind = "linear", out = 8 },
  { kind = "layer-norm" },
  { kind = "tanh" },
  { kind = "linear" },
]
"#;
    let (place, pixels) = cifar(layers, 100);
    let run = train(&place, &[]);
    holds_against_predict(&place, run.to_str().unwrap(), &[], &pixels);
}
