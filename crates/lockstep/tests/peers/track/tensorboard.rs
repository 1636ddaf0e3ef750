//! Event files, read by TensorBoard's own reader.

use super::{ask, job, killed_in_the_middle, only_run, warnings};
use crate::common::Place;
use lockstep_testkit::python_with_tensorboard;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn read(folder: &Path) -> Value {
    ask(
        python_with_tensorboard(),
        "read_tensorboard.py",
        &[folder.to_str().unwrap()],
    )
}

/// The points of a scalar: each step once, and none before the one that it follows.
fn steps(board: &Value, tag: &str) -> Vec<u64> {
    let points = board["scalars"][tag].as_array();
    let points = points.unwrap_or_else(|| panic!("no {tag} in {}", board["scalars"]));
    let steps: Vec<u64> = points
        .iter()
        .map(|point| point[0].as_u64().unwrap())
        .collect();
    assert!(
        steps.windows(2).all(|two| two[0] < two[1]),
        "{tag}: {steps:?}"
    );
    steps
}

/// Checks that the board has the epochs that the run's folder has.
fn has_all_epochs(board: &Value, run: &Path) {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected: Vec<u64> = lines
        .iter()
        .map(|line| line["step"].as_u64().unwrap())
        .collect();
    for tag in ["train/loss", "val/accuracy", "test/loss"] {
        assert_eq!(steps(board, tag), expected, "{tag}");
    }
    let told = board["scalars"]["val/accuracy"].as_array().unwrap();
    for (line, point) in lines.iter().zip(told) {
        let off = line["val"]["accuracy"].as_f64().unwrap() - point[1].as_f64().unwrap();
        assert!(off.abs() < 1e-6, "{line} {point}");
    }
}

#[test]
pub(crate) fn all_of_a_run_is_read_by_tensorboard_itself() {
    let place = Place::new();
    let sections = "[track]\ntensorboard = true\nhistograms = true\nmlflow = \"none\"\n";
    place.write_job(&job(200, sections));
    let ran = place.run(&["run", "job.toml", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(warnings(&ran), Vec::<String>::new());
    let run = only_run(&place);
    let board = read(&run.join("tensorboard"));
    has_all_epochs(&board, &run);
    assert!(!steps(&board, "step/loss").is_empty());
    let picture = &board["images"]["test/confusion"][0];
    assert_eq!(picture[1], picture[3], "the PNG is as wide as it says");
    let weights = board["histograms"]["weights/layers.0.weight"].as_array();
    let weights = weights.unwrap_or_else(|| panic!("{}", board["histograms"]));
    assert!(!weights.is_empty());
    assert_eq!(board["hparams"]["values"]["train.optimizer.lr"], 0.05);
    assert_eq!(
        board["hparams"]["infos"]["train.optimizer.lr"], 3,
        "a number"
    );
    assert_eq!(board["hparams"]["status"], 1, "it succeeded");
    let metrics = board["hparams"]["metrics"].as_array().unwrap();
    assert!(metrics.contains(&json!("val/accuracy")), "{metrics:?}");
}

#[test]
fn a_run_that_was_killed_and_resumed_has_each_point_once() {
    let place = Place::new();
    let boards = place.path("boards");
    let sections = "[track]\ntensorboard = \"boards\"\n[checkpoint]\nevery = \"3 epochs\"\n";
    place.write_job(&job(100_000, sections));
    killed_in_the_middle(&place);
    let run = only_run(&place);
    let epochs = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let more = (epochs.lines().count() + 5).to_string();
    let ran = place.run(&["run", "job.toml", "--json", "--resume", "--epochs", &more]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let board = read(&boards.join(run.file_name().unwrap()));
    has_all_epochs(&board, &run);
    let progress = steps(&board, "step/loss");
    assert!(progress.len() > 10, "{progress:?}");
}
