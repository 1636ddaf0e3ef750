//! What onnxruntime says of a model.

use crate::{python, succeed};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What ONNX models are held against.
const PACKAGES: &[&str] = &["onnxruntime==1.31.1", "onnx==1.23.2", "numpy"];

/// What onnxruntime says of samples, and what it sees of the model, which must pass ONNX's own checker:
/// `inputs`, `outputs`, `metadata`, `opset`, and under `answers` the numbers of each output.
///
/// # Panics
/// When onnxruntime cannot be brought, or does not take the model.
pub fn onnx_answers(model: &Path, samples: &[f32]) -> Value {
    let bytes: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
    answers(model, "f32", &bytes)
}

/// The same of a table: an object with the cells of each column by its name. Dates are texts, and gaps are null.
///
/// # Panics
/// When onnxruntime cannot be brought, or does not take the model.
pub fn onnx_answers_of_table(model: &Path, columns: &Value) -> Value {
    answers(model, "json", columns.to_string().as_bytes())
}

fn answers(model: &Path, form: &str, samples: &[u8]) -> Value {
    let folder = tempfile::tempdir().expect("a folder for the samples");
    let file = folder.path().join(format!("samples.{form}"));
    std::fs::write(&file, samples).expect("room for the samples");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/onnx_answers.py");
    let mut command = Command::new(python("onnx", PACKAGES));
    let said = succeed(command.arg(script).arg(model).arg(file));
    serde_json::from_str(&said).expect("JSON")
}

/// The largest difference between the numbers of an output and what is expected of it, as a share of the largest
/// of these if that is above 1.
///
/// # Panics
/// When there are not as many, or one is no number.
pub fn onnx_distance(answer: &Value, expected: &[f32]) -> f64 {
    let found = numbers(answer);
    assert_eq!(found.len(), expected.len(), "numbers of an output");
    let largest = expected
        .iter()
        .fold(1.0, |most: f64, &x| most.max(f64::from(x).abs()));
    let pairs = found.iter().zip(expected);
    let distances = pairs.map(|(found, &expected)| (found - f64::from(expected)).abs());
    let most = distances.fold(0.0, |most: f64, x| if x <= most { most } else { x });
    assert!(most.is_finite(), "not a number");
    most / largest
}

/// All numbers of nested lists, in their order.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().expect("a number")],
    }
}
