//! Clients of others ask `lockstep serve-model`: MLflow's of its scoring server, `requests` with pandas, and Triton's.

use crate::common::Place;
use crate::common::avocados::avocados;
use crate::common::serve::Serve;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Triton's client, which speaks the Open Inference Protocol.
const TRITON: [&str; 1] = ["tritonclient[http]==2.73.0"];

fn python(python: PathBuf, script: &str, words: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers/serve_model")
        .join(script);
    let said = lockstep_testkit::succeed(
        Command::new(python)
            .arg(script)
            .args(words)
            .env("MLFLOW_DISABLE_TELEMETRY", "true")
            .env("DO_NOT_TRACK", "true"),
    );
    serde_json::from_str(said.lines().last().unwrap()).unwrap_or_else(|_| panic!("{said}"))
}

/// A place with a table and a network on it that is served; what `lockstep predict` says of the rows without labels.
fn served() -> (Place, Serve, Vec<f64>) {
    let (place, _) = avocados();
    let run = place.train(&[])["run"].as_str().unwrap().to_owned();
    place.succeeds(&[
        "models", "register", "avocados", &run, "--alias", "champion",
    ]);
    let said = place.succeeds(&["predict", &run, "--data", "new.csv", "--out", "-"]);
    let price = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["predicted"]["price"].as_f64().unwrap()
    };
    let right = said.stdout.lines().map(price).collect();
    let words = [
        "serve-model",
        "avocados@champion",
        "--store",
        "runs",
        "--port",
        "0",
    ];
    let serve = Serve::of(place.command(&words));
    (place, serve, right)
}

#[test]
fn mlflows_own_client_and_pandas_with_requests_have_what_predict_says() {
    let (place, serve, right) = served();
    let table = place.path("new.csv");
    let port = serve.address.port().to_string();
    let said = python(
        lockstep_testkit::python_with_mlflow(),
        "ask_mlflow.py",
        &[&port, table.to_str().unwrap()],
    );
    for way in [
        "scoring_client",
        "split",
        "records",
        "lists",
        "columns",
        "csv",
    ] {
        assert_eq!(said[way], json!(right), "{way}");
    }
    assert_eq!(said["refused"]["status"], 400);
    let message = said["refused"]["message"].as_str().unwrap();
    assert!(message.contains("no column `region`"), "{message}");
}

#[test]
fn tritons_client_has_what_predict_says() {
    let (place, serve, right) = served();
    let table = place.path("new.csv");
    let address = serve.address.to_string();
    let environment = lockstep_testkit::python("tritonclient", &TRITON);
    let said = python(
        environment,
        "ask_triton.py",
        &[&address, table.to_str().unwrap()],
    );
    assert_eq!(said["ready"], json!([true, true, true]));
    assert_eq!(
        said["inputs"],
        json!(["date", "region", "organic", "volume"])
    );
    for way in ["json", "binary"] {
        assert_eq!(said[way], json!(right), "{way}");
    }
}
