//! A run's model as a folder that MLflow, and through it Python, loads.
//!
//! | file | what it is for |
//! |---|---|
//! | `MLmodel` | what the model is: how to load it, what it takes and gives. It is JSON, which is YAML too |
//! | `data/model.onnx` or `data/model.ubj` | the network with its preprocessing, or boosted trees |
//! | `data/table.json` | of a model of a table: what its columns hold, and what is predicted |
//! | `code/` | two modules that load it in Python |
//! | `model/` | the files of the run's own `model/`, from which Lockstep goes on |
//! | `input_example.json`, `serving_input_example.json` | a sample; of a table, one of its rows |

use super::description::Description;
use super::parameters;
use super::signature::{Example, metadata, signature};
use crate::SinkError;
use lockstep_base::calendar;
use lockstep_runs::RunDir;
use serde_json::{Value, json};

/// The modules that Python loads.
const LOADER: &str = include_str!("lockstep_model.py");
const CELLS: &str = include_str!("lockstep_cells.py");
const PYTHON_ENV: &str =
    "python: '3.11'\nbuild_dependencies:\n- pip\ndependencies:\n- -r requirements.txt\n";

/// Makes an ONNX file of a run's model, or says why it cannot.
pub type Exporter = fn(&RunDir) -> Result<Vec<u8>, String>;

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
    if let Some(description) = description {
        match learned(run, &description, exporter)? {
            Ok(learned) => {
                files.push(learned);
                load_in_python(&description, &mut mlmodel, &mut files);
            }
            // Only Lockstep loads it, and whoever looks at it shall know why.
            Err(why) => mlmodel["flavors"]["lockstep"]["no_onnx"] = json!(why),
        }
    }
    let text = serde_json::to_string_pretty(&mlmodel).unwrap_or_default() + "\n";
    files.push(("MLmodel".to_owned(), text.into_bytes()));
    Ok(files)
}

/// The file of what was learned, or why Python can have none.
fn learned(
    run: &RunDir,
    description: &Description,
    exporter: Exporter,
) -> Result<Result<(String, Vec<u8>), String>, SinkError> {
    if description.is_of_trees() {
        let trees = run.trees().read()?;
        return Ok(Ok(("data/model.ubj".to_owned(), trees)));
    }
    Ok(exporter(run).map(|onnx| ("data/model.onnx".to_owned(), onnx)))
}

/// Adds all that Python needs to load a model, and what it can know of it before.
fn load_in_python(
    description: &Description,
    mlmodel: &mut Value,
    files: &mut Vec<(String, Vec<u8>)>,
) {
    let mut add = |name: &str, text: String| files.push((name.to_owned(), text.into_bytes()));
    mlmodel["flavors"]["python_function"] = json!({
        "loader_module": "lockstep_model", "code": "code", "data": "data",
        "env": { "virtualenv": "python_env.yaml" }, "python_version": "3.11.0",
    });
    mlmodel["signature"] = signature(description);
    mlmodel["metadata"] = metadata(description);
    let mut requirements = vec!["numpy"];
    requirements.push(match description.is_of_trees() {
        true => "xgboost>=3.0",
        false => "onnxruntime",
    });
    if let Some(table) = description.table() {
        requirements.push("pandas");
        add("data/table.json", json!(table).to_string());
    }
    add("code/lockstep_model.py", LOADER.to_owned());
    add("code/lockstep_cells.py", CELLS.to_owned());
    add("requirements.txt", requirements.join("\n") + "\n");
    add("python_env.yaml", PYTHON_ENV.to_owned());
    if let Some(example) = Example::of(description) {
        mlmodel["saved_input_example_info"] = example.info;
        add("input_example.json", example.input.to_string());
        add("serving_input_example.json", example.serving.to_string());
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

    #[test]
    fn times_are_written_as_mlflow_writes_them() {
        assert_eq!(utc(1_763_245_426_125), "2025-11-15 22:23:46.125000");
    }
}
