//! What cannot be written as ONNX is said before anything is.

use crate::common::Place;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Exports, which must fail, and gives what is said.
fn refused(place: &Place, words: &[&str]) -> String {
    let ran = place.run(&[&["export"], words].concat());
    assert_eq!(ran.code, Some(1), "{} {}", ran.stdout, ran.stderr);
    assert!(!place.path("model.onnx").exists());
    ran.stderr
}

#[test]
fn a_place_that_is_not_there_and_a_newer_model_are_named() {
    let place = Place::new();
    let run = PathBuf::from(place.train(&["--epochs", "1"])["run_dir"].as_str().unwrap());
    let text = run.to_str().unwrap();
    let said = refused(&place, &[text, "--onnx", "nowhere/model.onnx"]);
    assert!(said.contains("there is no folder nowhere"), "{said}");
    let said = refused(&place, &[text, "--onnx", "runs"]);
    assert!(said.contains("folder"), "{said}");
    let said = refused(&place, &[text, "--onnx", "model.onnx", "--with-encoder"]);
    assert!(said.contains("[embed]"), "{said}");

    let card = run.join("model/model.json");
    let known = fs::read_to_string(&card).unwrap();
    let mut newer: Value = serde_json::from_str(&known).unwrap();
    newer["version"] = 7.into();
    fs::write(&card, newer.to_string()).unwrap();
    let said = refused(&place, &[text, "--onnx", "model.onnx"]);
    assert!(
        said.contains("version 7") && said.contains("newer"),
        "{said}"
    );

    fs::remove_file(&card).unwrap();
    let said = refused(&place, &[text, "--onnx", "model.onnx"]);
    assert!(said.contains("there is none"), "{said}");
}

#[test]
fn a_file_that_is_there_is_replaced_whole_and_a_model_of_before_still_exports() {
    let place = Place::new();
    let run = PathBuf::from(place.train(&["--epochs", "1"])["run_dir"].as_str().unwrap());
    let export = ["export", run.to_str().unwrap(), "--onnx", "model.onnx"];
    assert_eq!(place.run(&export).code, Some(0));
    let first = fs::read(place.path("model.onnx")).unwrap();
    fs::write(place.path("model.onnx"), "something else").unwrap();
    // Models did not always say whether they take bytes.
    let card = run.join("model/model.json");
    let mut known: Value = serde_json::from_slice(&fs::read(&card).unwrap()).unwrap();
    assert_eq!(known["input"], "bytes");
    known.as_object_mut().unwrap().remove("input");
    fs::write(&card, known.to_string()).unwrap();
    assert_eq!(place.run(&export).code, Some(0));
    assert_eq!(fs::read(place.path("model.onnx")).unwrap(), first);
}

#[test]
fn the_run_of_a_script_is_named_as_such() {
    let place = Place::new();
    fs::write(place.path("train.py"), "print('hello')\n").unwrap();
    let ran = place.run(&["launch", "--json", "--", "python3", "train.py"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let run = ran.result()["run_dir"].as_str().unwrap().to_owned();
    let said = refused(&place, &[&run, "--onnx", "model.onnx"]);
    assert!(said.contains("the run of a script"), "{said}");
}
