//! A run in a real notebook: what its reader sees, and whether the tutorial does what it says.

use super::{assert_nothing_is_left, in_python};
use crate::common::{JOB, Place};
use lockstep_testkit::succeed;
use serde_json::Value;
use std::fs;

/// Executes a notebook whose cells are the arguments, and prints their outputs.
const EXECUTE: &str = r#"
import json, sys, nbformat
from nbclient import NotebookClient

cells = [nbformat.v4.new_code_cell(code) for code in sys.argv[1:]]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"#;

/// The outputs of each cell of a notebook, which must come to its end.
fn executed(place: &Place, cells: &[String]) -> Vec<Vec<Value>> {
    let said = succeed(in_python(place).args(["-c", EXECUTE]).args(cells));
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

/// The outputs of a cell that are of this kind.
fn of<'a>(outputs: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let each = outputs.iter();
    each.filter(|output| output["output_type"] == kind)
        .collect()
}

/// The code blocks of a page of the documents, down to a heading.
fn code_blocks(page: &str, until: &str) -> Vec<String> {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let (text, _) = text.split_once(until).unwrap();
    text.split("```python\n")
        .skip(1)
        .map(|block| block.split_once("```").unwrap().0.trim_end().to_owned())
        .collect()
}

#[test]
fn the_tutorial_runs_in_a_notebook_as_it_is_written() {
    let place = Place::new();
    let cells = code_blocks("python.md", "\n## Scripts\n");
    assert!(cells.len() >= 7, "{cells:?}");
    let outputs = executed(&place, &cells);
    let mut pictures = 0;
    for (code, outputs) in cells.iter().zip(&outputs) {
        let text = Value::from(outputs.clone()).to_string();
        assert!(!text.contains("\"stderr\""), "{code}\n{text}");
        pictures += of(outputs, "display_data").len();
        let is_answer = |needle: &str| -> bool {
            let answers = of(outputs, "execute_result");
            answers
                .iter()
                .any(|answer| answer.to_string().contains(needle))
        };
        for (end, needle) in [
            ("result.metrics", "val.r2"),
            (".head()", "predicted_price"),
            ("metrics[\"r2\"]", "0.9"),
            ("tuning.trials", "train.optimizer.lr"),
            ("predict_proba(numbers)[:3]", "array"),
        ] {
            assert!(!code.ends_with(end) || is_answer(needle), "{code}\n{text}");
        }
    }
    // One of each run and search, and none of what is quiet.
    assert_eq!(pictures, 4);
    assert_nothing_is_left(&place);
}

#[test]
fn a_run_in_a_notebook_shows_its_curve_and_its_end_in_one_picture() {
    let place = Place::new();
    place.write_job(JOB);
    let code = "import lockstep\nlockstep.run('job.toml', epochs=3, workers=2).metrics";
    let outputs = executed(&place, &[code.to_owned()]).remove(0);
    // Drawn in place: however often it was drawn, it is one picture.
    let pictures = of(&outputs, "display_data");
    assert_eq!(pictures.len(), 1, "{outputs:?}");
    let picture = pictures[0]["data"]["text/html"].as_str().unwrap();
    for part in ["2 workers: succeeded", "<svg", "width:100.0%", "train.loss"] {
        assert!(picture.contains(part), "{part} is missing in {picture}");
    }
    let value = &of(&outputs, "execute_result")[0]["data"]["text/plain"];
    assert!(value.as_str().unwrap().contains("accuracy"), "{value}");
    assert!(
        of(&outputs, "stream").is_empty(),
        "nothing but the picture: {outputs:?}"
    );
    assert_nothing_is_left(&place);
}
