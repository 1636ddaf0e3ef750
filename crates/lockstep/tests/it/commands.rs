//! The small commands.

use crate::common::Place;
use std::fs;

#[test]
fn init_writes_a_job_that_is_right_and_never_overwrites_one() {
    let place = Place::new();
    let ran = place.run(&["init", "digits.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let written = fs::read_to_string(place.path("digits.toml")).unwrap();
    assert!(written.contains("name = \"digits\""), "{written}");
    assert_eq!(place.run(&["job", "check", "digits.toml"]).code, Some(0));

    fs::write(place.path("digits.toml"), "mine").unwrap();
    let ran = place.run(&["init", "digits.toml"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("digits.toml") && ran.stderr.contains("--force"));
    assert_eq!(
        fs::read_to_string(place.path("digits.toml")).unwrap(),
        "mine"
    );
    assert_eq!(place.run(&["init", "digits.toml", "--force"]).code, Some(0));
    let ran = place.run(&["init", "/dev/null", "--force"]);
    assert!(ran.stderr.contains("/dev/null is not a file"));
    assert_eq!(
        fs::read_to_string(place.path("digits.toml")).unwrap(),
        written
    );
}

#[test]
fn job_show_prints_a_job_file_with_every_default_and_override() {
    let place = Place::new();
    let ran = place.run(&["job", "show", "job.toml", "--set", "train.seed=7"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("seed = 7") && ran.stdout.contains("lanes = 2"));
    fs::write(place.path("shown.toml"), &ran.stdout).unwrap();
    let again = place.run(&["job", "show", "shown.toml"]);
    assert_eq!(again.stdout, ran.stdout);
}

#[test]
fn job_check_tells_right_from_wrong() {
    let place = Place::new();
    assert_eq!(place.run(&["job", "check", "job.toml"]).code, Some(0));
    place.edit_job("batch = 32", "batch = 0");
    let ran = place.run(&["job", "check", "job.toml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("batch"), "{}", ran.stderr);
}

#[test]
fn job_schema_prints_a_schema_and_nothing_else() {
    let ran = Place::new().run(&["job", "schema"]);
    assert_eq!(ran.code, Some(0));
    let schema: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    for kind in ["Job", "ScriptJob"] {
        let train = format!("/$defs/{kind}/properties/train");
        assert!(schema.pointer(&train).is_some(), "{kind}: {schema}");
    }
}

#[test]
fn data_list_names_what_data_get_can_bring() {
    let place = Place::new();
    let ran = place.run(&["data", "list"]);
    assert!(ran.stdout.contains("fashion-mnist:train"), "{}", ran.stdout);
    let encoder = ran
        .stdout
        .lines()
        .find(|line| line.starts_with("efficientnet-lite0"));
    assert!(
        encoder.unwrap().contains("Apache-2.0, SHA-256 57934424"),
        "{}",
        ran.stdout
    );
    let ran = place.run(&["data", "get", "nothing"]);
    assert_eq!(ran.code, Some(1));
    for known in ["nothing", "fashion-mnist", "efficientnet-lite1", "xgboost"] {
        assert!(ran.stderr.contains(known), "{}", ran.stderr);
    }
}

#[test]
fn completions_are_for_this_program() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = Place::new().run(&["completions", shell]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("lockstep"), "{shell}");
        assert!(!ran.stdout.contains("worker)"), "{shell}");
    }
}

#[test]
fn wrong_usage_exits_with_2_and_a_worker_is_not_started_by_hand() {
    let place = Place::new();
    assert_eq!(place.run(&["run"]).code, Some(2));
    assert_eq!(
        place.run(&["run", "job.toml", "--workers", "x"]).code,
        Some(2)
    );
    assert_eq!(
        place
            .run(&["run", "job.toml", "--set", "train.epochs"])
            .code,
        Some(2)
    );
    let ran = place.run(&["run", "job.toml", "--set", "data.train"]);
    assert!(ran.stderr.contains("data.train=VALUE"), "{}", ran.stderr);
    let ran = place.run(&["worker"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("lockstep run"), "{}", ran.stderr);
}

#[test]
fn determinism_is_verified_on_two_numbers_of_workers_and_nothing_is_kept() {
    let place = Place::new();
    let ran = place.run(&["run", "job.toml", "--epochs", "20", "--verify-determinism"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let hashes: Vec<_> = ran.stdout.lines().map(|line| &line[..64]).collect();
    assert_eq!(hashes.len(), 2, "{}", ran.stdout);
    assert_eq!(hashes[0], hashes[1]);
    assert!(ran.stdout.contains("on 2 workers") && ran.stdout.contains("on 1 worker\n"));
    assert!(place.runs().is_empty());
}

#[test]
fn latest_and_a_jobs_name_are_runs_for_every_command() {
    let place = Place::new();
    let run = |name: &str| {
        let result = place.train(&["--name", name, "--epochs", "1"]);
        result["run"].as_str().unwrap().to_owned()
    };
    let (first, second) = (run("first"), run("second"));
    for (given, meant) in [("latest", &second), ("second", &second), ("first", &first)] {
        for words in [
            &["runs", "show", given][..],
            &["runs", "tag", given, "seen"],
            &["evaluate", given],
            &["replay", given],
        ] {
            let said = place.said(words);
            assert!(said.contains(meant.as_str()), "{words:?}: {said}");
        }
        place.succeeds(&["export", given, "--onnx", "model.onnx"]);
        place.succeeds(&["predict", given, "--out", "said.csv"]);
    }
    let more = place.train(&["--name", "first", "--resume", "first", "--epochs", "2"]);
    assert_eq!(more["run"], *first);
    place.refused(&["evaluate", "oldest"], &["oldest"]);
}

#[test]
fn a_run_shows_the_keys_that_were_chosen_and_all_of_them_with_v() {
    let place = Place::new();
    let said = place.said(&["run", "job.toml", "--epochs", "1"]);
    for shown in ["model.hidden", "model.dropout", "train.lanes"] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    assert!(!said.contains("gang.transport"), "{said}");
    assert!(
        said.contains("more keys have their defaults (-v shows them)"),
        "{said}"
    );
    let all = place.said(&["run", "job.toml", "--epochs", "1", "-v"]);
    assert!(
        all.contains("gang.transport") && !all.contains("defaults"),
        "{all}"
    );
}

#[test]
fn quiet_commands_print_nothing_but_results() {
    let place = Place::new();
    place.train(&["--epochs", "1"]);
    for words in [
        &["predict", "latest", "--out", "said.csv", "-q"][..],
        &["export", "latest", "--onnx", "model.onnx", "--quiet"],
        &["init", "new.toml", "-q"],
    ] {
        assert_eq!(place.said(words), "", "{words:?}");
    }
    let said = place.succeeds(&["evaluate", "latest", "-q"]);
    assert!(
        said.stdout.contains("accuracy") && said.stderr.is_empty(),
        "{said:?}"
    );
}
