//! A small job of trees, to run on any engine.

use super::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Trees on three workers.
pub(crate) const TREES: &str = r#"
name = "trees"

[data]
train = { csv = "train.csv" }
test = { csv = "train.csv" }

[model]
kind = "xgboost"
rounds = 5
depth = 3
subsample = 0.8

[train]
workers = 3

[run]
store = "runs"
"#;

/// Writes the job's table, and grows its trees on this machine with one worker.
pub(crate) fn trees_here(place: &Place, xgboost: &Path) -> Value {
    let rows = (0..600).map(|row| {
        let random =
            |salt: usize| (row * 7919 + salt * 104_729 + 17) * 2_654_435_761 % 1_000_003 % 1000;
        let label = random(1) + random(2) / 2 > 700;
        format!("{},{},{},{label}\n", random(1), random(2), random(3))
    });
    let table = "a,b,c,label\n".to_owned() + &rows.collect::<String>();
    fs::write(place.path("train.csv"), table).unwrap();
    let mut command = place.command(&["run", "job.toml", "--json", "--workers", "1"]);
    let output = command.env("LOCKSTEP_XGBOOST", xgboost).output().unwrap();
    let ran = super::Ran::from(output);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.result()
}
