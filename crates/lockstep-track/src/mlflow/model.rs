//! A run's model as a folder that MLflow, and through it Python, loads.
//!
//! | file | what it is for |
//! |---|---|
//! | `MLmodel` | what the model is: how to load it, what it takes and gives. It is JSON, which is YAML too |
//! | `data/model.onnx` | the network with its preprocessing |
//! | `code/lockstep_model.py` | loads it with numpy and onnxruntime alone |
//! | `model/` | the files of the run's own `model/`, from which Lockstep goes on |
//! | `input_example.json`, `serving_input_example.json` | a sample |

use super::parameters;
use crate::SinkError;
use lockstep_base::calendar;
use lockstep_runs::RunDir;
use serde::Deserialize;
use serde_json::{Value, json};

/// The module that Python loads.
const LOADER: &str = include_str!("lockstep_model.py");
/// What Python needs for it.
const REQUIREMENTS: &str = "numpy\nonnxruntime\n";
const PYTHON_ENV: &str =
    "python: '3.11'\nbuild_dependencies:\n- pip\ndependencies:\n- -r requirements.txt\n";
/// The most numbers that a sample may have to be written as an example.
const LARGEST_EXAMPLE: usize = 1 << 20;

/// Makes an ONNX file of a run's model, or says why it cannot.
pub type Exporter = fn(&RunDir) -> Result<Vec<u8>, String>;

/// What is needed of a run's `model.json`.
#[derive(Debug, Default, Deserialize)]
struct Description {
    #[serde(default)]
    input_shape: Vec<usize>,
    normalise: Option<Normalise>,
    #[serde(default)]
    classes: Vec<String>,
    targets: Option<Targets>,
}

#[derive(Debug, Deserialize)]
struct Normalise {
    mean: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct Targets {
    columns: Vec<String>,
    #[serde(default)]
    loss: String,
}

/// What MLflow knows of a model before its files are there.
pub(super) struct Identity<'a> {
    /// Empty for what is not a logged model.
    pub(super) model_id: &'a str,
    pub(super) run_id: &'a str,
    /// Milliseconds since 1970.
    pub(super) time: i64,
}

/// The folder that MLflow's clients load a version of Lockstep's own registry from.
///
/// # Errors
/// When the run's files cannot be read.
pub fn registered_files(
    run: &RunDir,
    exporter: Exporter,
) -> Result<Vec<(String, Vec<u8>)>, SinkError> {
    let identity = Identity {
        model_id: "",
        run_id: &run.name,
        time: (calendar::now() * 1000.0) as i64,
    };
    files(run, &identity, exporter)
}

/// The files beside those of the run's own `model/`.
pub(super) fn files(
    run: &RunDir,
    identity: &Identity<'_>,
    exporter: Exporter,
) -> Result<Vec<(String, Vec<u8>)>, SinkError> {
    let description = run.model().read().ok();
    let description: Option<Description> =
        description.and_then(|text| serde_json::from_slice(&text).ok());
    let onnx = description.as_ref().map(|_| exporter(run));
    let mut mlmodel = json!({
        "flavors": { "lockstep": { "run": run.name } },
        "run_id": identity.run_id,
        "utc_time_created": utc(identity.time),
    });
    if !identity.model_id.is_empty() {
        // A logged model has the run's own files too.
        mlmodel["flavors"]["lockstep"]["data"] = json!("model");
        for key in ["model_id", "model_uuid"] {
            mlmodel[key] = json!(identity.model_id);
        }
    }
    let mut files = Vec::new();
    if let Some(Err(why)) = &onnx {
        // Only Lockstep loads it, and whoever looks at it shall know why.
        mlmodel["flavors"]["lockstep"]["no_onnx"] = json!(why);
    }
    if let (Some(Ok(onnx)), Some(description)) = (onnx, description) {
        mlmodel["flavors"]["python_function"] = json!({
            "loader_module": "lockstep_model", "code": "code", "data": "data",
            "env": { "virtualenv": "python_env.yaml" }, "python_version": "3.11.0",
        });
        mlmodel["signature"] = signature(&description);
        files.push(("data/model.onnx".to_owned(), onnx));
        for (name, text) in [
            ("code/lockstep_model.py", LOADER),
            ("requirements.txt", REQUIREMENTS),
            ("python_env.yaml", PYTHON_ENV),
        ] {
            files.push((name.to_owned(), text.as_bytes().to_vec()));
        }
        if let Some(example) = example(&description) {
            mlmodel["saved_input_example_info"] = json!({
                "artifact_path": "input_example.json", "type": "ndarray",
                "serving_input_path": "serving_input_example.json",
            });
            let serving = json!({ "inputs": example }).to_string();
            for (name, text) in [
                ("input_example.json", example.to_string()),
                ("serving_input_example.json", serving),
            ] {
                files.push((name.to_owned(), text.into_bytes()));
            }
        }
    }
    let text = serde_json::to_string_pretty(&mlmodel).unwrap_or_default() + "\n";
    files.push(("MLmodel".to_owned(), text.into_bytes()));
    Ok(files)
}

/// The shape of a sample as the network takes it: rows of a table are flat.
fn sample_shape(description: &Description) -> Vec<usize> {
    match description.input_shape.as_slice() {
        [width, 1, 1] => vec![*width],
        shape => shape.to_vec(),
    }
}

fn signature(description: &Description) -> Value {
    let tensor = |name: Option<&str>, dtype: &str, shape: &[usize]| {
        let shape: Vec<i64> = std::iter::once(-1)
            .chain(shape.iter().map(|size| *size as i64))
            .collect();
        let mut tensor =
            json!({ "type": "tensor", "tensor-spec": { "dtype": dtype, "shape": shape } });
        if let Some(name) = name {
            tensor["name"] = json!(name);
        }
        tensor
    };
    let inputs = json!([tensor(None, "float32", &sample_shape(description))]);
    let outputs = match &description.targets {
        Some(targets) => {
            let name = match targets.loss.as_str() {
                "bce" => "probabilities",
                _ => "values",
            };
            json!([tensor(Some(name), "float32", &[targets.columns.len()])])
        }
        None => json!([
            tensor(
                Some("probabilities"),
                "float32",
                &[description.classes.len()]
            ),
            tensor(Some("class"), "int64", &[]),
        ]),
    };
    json!({ "inputs": inputs.to_string(), "outputs": outputs.to_string(), "params": null })
}

/// The mean sample, as far as that is known: one that looks like the data.
fn example(description: &Description) -> Option<Value> {
    let shape = sample_shape(description);
    let numbers: usize = shape.iter().product();
    if numbers == 0 || numbers > LARGEST_EXAMPLE {
        return None;
    }
    let channels = shape[0];
    let mean = description
        .normalise
        .as_ref()
        .map(|scale| scale.mean.as_slice());
    // Pictures are bytes, and their scale is that of bytes divided by 255.
    let scale = if shape.len() == 3 { 255.0 } else { 1.0 };
    let of_channel = |channel: usize| match mean {
        Some([one]) => (one * scale).round(),
        Some(mean) => mean.get(channel).map_or(0.0, |mean| mean * scale),
        None => 0.0,
    };
    let values: Vec<Value> = (0..channels)
        .map(|channel| nested(&shape[1..], of_channel(channel)))
        .collect();
    Some(json!([values]))
}

/// An array of this shape, full of one value.
fn nested(shape: &[usize], value: f64) -> Value {
    match shape {
        [] => json!(value),
        [first, rest @ ..] => Value::Array(vec![nested(rest, value); *first]),
    }
}

/// A time as MLflow writes it.
fn utc(milliseconds: i64) -> String {
    let (seconds, part) = (milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000));
    format!("{}.{part:03}000", calendar::show(seconds))
}

/// A name for a model: MLflow does not take all letters.
pub(super) fn model_name(name: &str) -> String {
    let plain = parameters::name(name);
    plain.replace(['/', '.', ':'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(text: &str) -> Description {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_example_has_the_shape_that_the_signature_says() {
        let pictures = description(
            r#"{"input_shape":[1,2,3],"normalise":{"mean":[0.5],"std":[1]},"classes":["a","b"]}"#,
        );
        let row = [128.0, 128.0, 128.0];
        assert_eq!(example(&pictures).unwrap(), json!([[[row, row]]]));
        let said = signature(&pictures);
        assert!(said["inputs"].as_str().unwrap().contains("[-1,1,2,3]"));
        assert!(said["outputs"].as_str().unwrap().contains("[-1,2]"));
        let table = description(
            r#"{"input_shape":[3,1,1],"normalise":{"mean":[1,2,3],"std":[1,1,1]},
                "targets":{"columns":["y"]}}"#,
        );
        assert_eq!(example(&table).unwrap(), json!([[1.0, 2.0, 3.0]]));
        assert!(
            signature(&table)["outputs"]
                .as_str()
                .unwrap()
                .contains("values")
        );
    }

    #[test]
    fn times_are_written_as_mlflow_writes_them() {
        assert_eq!(utc(1_763_245_426_125), "2025-11-15 22:23:46.125000");
    }
}
