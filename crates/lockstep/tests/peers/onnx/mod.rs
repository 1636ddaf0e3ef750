//! Models as ONNX: a real onnxruntime says of the same samples what `lockstep predict` says.

pub(crate) mod networks;
mod vectors;

use crate::common::Place;
use lockstep_testkit::{onnx_answers, onnx_distance};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// How far an answer may be from that of `predict`.
const NEAR: f64 = 1e-5;

/// Runs the job of a place, and gives the folder of its run.
fn train(place: &Place, words: &[&str]) -> PathBuf {
    let ran = place.run(&[&["run", "job.toml", "--json"], words].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    PathBuf::from(ran.result()["run_dir"].as_str().unwrap())
}

/// Writes the model of a run, and lets onnxruntime answer.
fn answers(place: &Place, run: &str, words: &[&str], samples: &[f32]) -> Value {
    let ran = place.run(&[&["export", run, "--onnx", "model.onnx"], words].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("opset 17"), "{}", ran.stdout);
    onnx_answers(&place.path("model.onnx"), samples)
}

/// What `predict` says of the job's test set, a line a sample.
fn predicted(place: &Place, run: &str) -> Vec<Value> {
    let words = ["predict", run, "--out", "said.jsonl", "--probabilities"];
    let ran = place.run(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = fs::read_to_string(place.path("said.jsonl")).unwrap();
    let parse = |line| serde_json::from_str(line).unwrap();
    lines.lines().map(parse).collect()
}

/// The numbers under `key` of each line, in the order of the columns `names`.
fn numbers(lines: &[Value], key: &str, names: &[&str]) -> Vec<f32> {
    let of = |line: &Value| {
        let number = |name: &&str| line[key][*name].as_f64().unwrap() as f32;
        names.iter().map(number).collect::<Vec<_>>()
    };
    lines.iter().flat_map(of).collect()
}

/// Checks that the probabilities and classes are those of `predict`.
fn holds_against_predict(place: &Place, run: &str, words: &[&str], samples: &[f32]) -> Value {
    let found = answers(place, run, words, samples);
    let classes = found["metadata"]["lockstep.classes"].as_str().unwrap();
    let classes: Vec<String> = serde_json::from_str(classes).unwrap();
    let names: Vec<&str> = classes.iter().map(String::as_str).collect();
    let lines = predicted(place, run);
    let expected = numbers(&lines, "probabilities", &names);
    let off = onnx_distance(&found["answers"]["probabilities"], &expected);
    println!("{}: {off:e}", found["inputs"]);
    assert!(off < NEAR, "{off}");
    let picked = found["answers"]["class"].as_array().unwrap();
    assert_eq!(picked.len(), lines.len());
    for (class, line) in picked.iter().zip(&lines) {
        let class = class.as_f64().unwrap() as usize;
        assert_eq!(line["predicted"], names[class]);
    }
    found
}
