//! A run in a real notebook: what its reader sees.

use crate::common::{JOB, Place};
use lockstep_testkit::{python, succeed};
use serde_json::Value;
use std::process::Command;

/// Executes a notebook with one cell, and prints its outputs.
const EXECUTE: &str = r#"
import json, nbformat
from nbclient import NotebookClient

cell = nbformat.v4.new_code_cell("import lockstep\nlockstep.run('job.toml', epochs=3, workers=2).metrics")
notebook = nbformat.v4.new_notebook(cells=[cell])
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(json.dumps(notebook.cells[0].outputs))
"#;

#[test]
#[ignore = "brings IPython"]
fn a_run_in_a_notebook_shows_its_curve_and_its_end_in_one_picture() {
    let place = Place::new();
    place.write_job(JOB);
    let mut execute = Command::new(python("notebook", &["ipykernel", "nbclient", "nbformat"]));
    execute
        .args(["-c", EXECUTE])
        .current_dir(place.path(""))
        .env(
            "PYTHONPATH",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../lockstep-script/python"),
        )
        .env("LOCKSTEP_CACHE", place.path("cache"))
        .env("LOCKSTEP_BINARY", env!("CARGO_BIN_EXE_lockstep"));
    let said = succeed(&mut execute);
    let outputs: Vec<Value> = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let of = |kind: &str| -> Vec<&Value> {
        let each = outputs.iter();
        each.filter(|output| output["output_type"] == kind)
            .collect()
    };
    // Drawn in place: however often it was drawn, it is one picture.
    let pictures = of("display_data");
    assert_eq!(pictures.len(), 1, "{said}");
    let picture = pictures[0]["data"]["text/html"].as_str().unwrap();
    for part in ["2 workers: succeeded", "<svg", "width:100.0%", "train.loss"] {
        assert!(picture.contains(part), "{part} is missing in {picture}");
    }
    let value = &of("execute_result")[0]["data"]["text/plain"];
    assert!(value.as_str().unwrap().contains("accuracy"), "{value}");
    assert!(of("stream").is_empty(), "nothing but the picture: {said}");
    place.assert_no_process_is_left();
}
