//! A store that other clients write to as well: their names are theirs, and a run is there once.

use super::choosing::{json, ok};
use crate::common::serve::Serve;
use crate::common::{Place, Ran};
use serde_json::json as object;

#[test]
fn a_client_of_mlflow_changes_nothing_of_what_is_said_of_other_runs() {
    let place = Place::new();
    let serve = Serve::start(&place, &[]);
    // The server shows the very store that the run is written into.
    let mut command = place.command(&["run", "job.toml", "--json"]);
    let output = command.env("MLFLOW_TRACKING_URI", serve.url()).output();
    let ran = Ran::from(output.unwrap());
    let own = ran.result()["run"].as_str().unwrap().to_owned();
    let events = ran.events().into_iter();
    let warnings: Vec<String> = events
        .filter(|event| event["event"] == "warning")
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("has the run already"),
        "{warnings:?}"
    );

    let api = |path: &str, body| {
        let path = format!("/api/2.0/mlflow/runs/{path}");
        serve.post(&path, &body).ok().json()
    };
    let made = api("create", object!({"run_name": "lovely-lark-7"}));
    let theirs = made["run"]["info"]["run_id"].as_str().unwrap().to_owned();
    let param = |key: &str| object!({"key": key, "value": "0.001"});
    let batch = object!({
        "run_id": theirs,
        "params": [param("lr"), param("optimizer.lr")],
        "metrics": [{"key": "lr", "value": 0.001, "timestamp": 1, "step": 0}],
    });
    api("log-batch", batch);
    api("update", object!({"run_id": theirs, "status": "FINISHED"}));
    serve.stop();

    let listed = |filter: &str| {
        let all = json(&place, &["runs", "list", filter]);
        let names = all.as_array().unwrap().iter();
        names
            .map(|run| run["run"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("age < 1d").len(), 2);
    let lr = "lr > 0.002";
    assert_eq!(listed(lr), [own.as_str()]);
    assert_eq!(listed("optimizer.lr > 0.002"), [own.as_str()]);
    assert_eq!(listed("lr = 0.001"), [theirs.as_str()]);
    assert_eq!(listed("run_name = lovely-lark-7"), [theirs.as_str()]);
    assert!(ok(&place, &["runs", "list"]).contains("lovely-lark-7"));
    let shown = json(&place, &["runs", "show", "lovely-lark-7"]);
    assert_eq!(shown["run"], theirs);
    assert_eq!(shown["run_name"], "lovely-lark-7");
}

#[test]
fn a_run_is_named_by_a_part_of_its_name_or_by_its_folder_in_every_command() {
    let place = Place::new();
    let result = place.train(&[]);
    let name = result["run"].as_str().unwrap();
    let end = &name[name.len() - 4..];
    let evaluated = ok(&place, &["evaluate", end, "--json"]);
    assert!(evaluated.contains("accuracy"), "{evaluated}");
    ok(&place, &["export", end, "--onnx", "model.onnx"]);
    ok(&place, &["replay", end, "--json"]);
    let more = ["--epochs", "3", "--resume", end];
    assert_eq!(place.train(&more)["run"], name);
    // From elsewhere, by the folder.
    let folder = place.path("runs").join(name);
    let folder = folder.to_str().unwrap();
    let elsewhere = ["--store", "elsewhere"];
    for command in [
        ["runs", "show", folder].as_slice(),
        &["runs", "tag", folder, "good"],
        &["runs", "export", folder],
        &["models", "register", "digits", folder],
        &["evaluate", folder],
    ] {
        place.succeeds(&[command, &elsewhere].concat());
    }
}
