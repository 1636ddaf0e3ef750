//! `lockstep models` through the binary: versions of what runs learned, and predictions with them.

use crate::common::Place;
use serde_json::Value;
use std::fs;

fn ok(place: &Place, args: &[&str]) -> String {
    let ran = place.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&ok(place, &[args, &["--json"]].concat())).unwrap()
}

#[test]
fn a_version_predicts_as_its_run_did_also_when_the_run_is_gone() {
    let place = Place::new();
    let result = place.train(&[]);
    let run = result["run"].as_str().unwrap();
    let of_run = ok(&place, &["predict", run, "--out", "-"]);
    let said = ok(
        &place,
        &["models", "register", "digits", run, "--alias", "champion"],
    );
    assert!(
        said.contains("digits@1") && said.contains("champion"),
        "{said}"
    );
    let version = json(&place, &["models", "show", "digits@champion"]);
    let lineage = &version["lineage"];
    assert_eq!(lineage["run"], run);
    assert_eq!(lineage["weights_sha256"], result["weights_sha256"]);
    assert_eq!(
        lineage["metrics"]["test.accuracy"],
        result["metrics"]["accuracy"]
    );
    assert_eq!(lineage["data"][0]["set"], "train");
    assert_eq!(lineage["data"][0]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(lineage["job_sha256"].as_str().unwrap().len(), 64);

    fs::remove_dir_all(place.path("runs").join(run)).unwrap();
    for model in ["digits@champion", "digits@1", "digits"] {
        assert_eq!(
            ok(&place, &["predict", "--model", model, "--out", "-"]),
            of_run
        );
    }
    let files = crate::common::files(&place.path("runs/models"));
    let measured = json(&place, &["evaluate", "--model", "digits@champion"]);
    assert_eq!(measured["accuracy"], result["evaluation"]["accuracy"]);
    // A version stays as it is.
    assert!(crate::common::files(&place.path("runs/models")) == files);
    let text = ok(&place, &["models", "show", "digits@1"]);
    assert!(text.contains(run) && text.contains("champion"), "{text}");
}

#[test]
fn aliases_move_versions_are_listed_and_mistakes_are_told_with_what_there_is() {
    let place = Place::new();
    let empty = ok(&place, &["models", "list"]);
    assert!(empty.contains("no models in runs yet"), "{empty}");
    // A job may register its runs itself.
    place.train(&["--epochs", "1", "--set", "run.register=digits"]);
    place.train(&["--epochs", "1", "--set", "run.register=digits"]);
    let said = ok(&place, &["models", "promote", "digits@1"]);
    assert!(said.contains("digits@champion is version 1 now"), "{said}");
    let said = ok(&place, &["models", "promote", "digits"]);
    assert!(said.contains("version 2 now, it was version 1"), "{said}");
    ok(&place, &["models", "alias", "digits@1", "old"]);
    let models = json(&place, &["models", "list"]);
    assert_eq!(models[0]["aliases"]["champion"], 2);
    assert_eq!(models[0]["versions"].as_array().unwrap().len(), 2);
    let text = ok(&place, &["models", "list"]);
    assert!(text.contains("champion=2 old=1"), "{text}");
    let text = ok(&place, &["models", "show", "digits"]);
    assert!(
        text.contains("test.accuracy") && text.contains("small-"),
        "{text}"
    );

    let refused = place.run(&["models", "rm", "digits@2", "--yes"]);
    assert!(refused.stderr.contains("`champion`"), "{}", refused.stderr);
    ok(&place, &["models", "alias", "digits", "old", "--remove"]);
    ok(&place, &["models", "rm", "digits@1", "--yes"]);
    for (model, said) in [
        ("digits@1", "has no version 1; it has 2"),
        ("digits@best", "has no alias `best`; it has champion"),
        ("letters", "there is no model `letters`"),
        ("digits@", "names no version"),
    ] {
        let ran = place.run(&["predict", "--model", model, "--out", "-"]);
        assert_eq!(ran.code, Some(1), "{model}");
        assert!(ran.stderr.contains(said), "{model}: {}", ran.stderr);
    }
}
