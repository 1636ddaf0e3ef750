//! Measuring on other data than the run's own.

use crate::common::own_data::{table, tables};
use crate::common::{read_json, run_folder, text};
use serde_json::Value;
use std::fs;
#[test]
fn paths_after_data_mean_the_current_folder_however_they_are_written() {
    let place = tables();
    let run = run_folder(&place.train(&[]));
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::write(place.path("elsewhere/other.csv"), table(31)).unwrap();
    let samples = |data: &str| {
        let mut command = place.command(&["evaluate", text(&run), "--json", "--data", data]);
        let output = command
            .current_dir(place.path("elsewhere"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{data}: {said}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["samples"].clone()
    };
    for data in [
        "other.csv",
        "{ csv = 'other.csv' }",
        "{ csv = '../elsewhere/other.csv', features = ['a', 'b'] }",
    ] {
        assert_eq!(samples(data), 31, "{data}");
    }
}

#[test]
fn measuring_on_other_data_leaves_what_the_run_says_of_its_own() {
    let place = tables();
    let run = run_folder(&place.train(&[]));
    fs::write(place.path("other.csv"), table(31)).unwrap();
    let own = ["evaluation.json", "confusion.svg"].map(|name| fs::read(run.join(name)).unwrap());
    let same = || {
        let now = ["evaluation.json", "confusion.svg"];
        now.map(|name| fs::read(run.join(name)).unwrap()) == own
    };
    let ran = place.succeeds(&["evaluate", text(&run), "--data", "other.csv"]);
    assert!(ran.stdout.contains("--out DIR"), "{}", ran.stdout);
    let set = "data.test='other.csv'";
    place.succeeds(&["evaluate", text(&run), "--set", set]);
    assert!(same());
    let out = ["--data", "other.csv", "--out", "beside"];
    place.succeeds(&[&["evaluate", text(&run)], &out[..]].concat());
    assert_eq!(
        read_json(&place.path("beside/evaluation.json"))["samples"],
        31
    );
    place.succeeds(&["evaluate", text(&run)]);
    assert!(same());
}
