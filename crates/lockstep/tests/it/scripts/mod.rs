//! A user's own script as a gang: it finds the others, its reports and checkpoints are kept, no sample is seen twice
//! or missed whatever is killed, and nothing is left of it however it ends.

mod ends;
mod samples;
mod tables;

use crate::common::{Place, Ran, logged};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A Python that has numpy.
fn python() -> PathBuf {
    lockstep_testkit::python("numpy", &["numpy"])
}

/// A place with a script, started by the keys of a job file.
fn place(script: &str, train: &str) -> Place {
    let place = Place::new();
    std::fs::write(place.path("train.py"), script).unwrap();
    let python = python();
    place.write_job(&format!(
        "name = \"script\"\n[train]\ncommand = [{python:?}, \"train.py\"]\n{train}\n[run]\nstore = \"runs\"\n"
    ));
    place
}

fn run(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["run", "job.toml", "--json"], args].concat())
}

/// The error that a run ended with.
fn error(ran: &Ran) -> String {
    assert_eq!(ran.code, Some(1), "{}\n{}", ran.stdout, ran.stderr);
    let last = ran.stdout.lines().last().unwrap_or_default();
    let last: Value = serde_json::from_str(last).unwrap();
    last["error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_script_finds_what_frameworks_expect_and_the_package() {
    let script = "import json, os, lockstep\n\
        c = lockstep.get_context()\n\
        names = ['RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT', 'TF_CONFIG', 'JAX_PROCESS_ID', 'MINE']\n\
        print('env ' + json.dumps({**{n: os.environ[n] for n in names}, 'world': c.get_world_size(), 'me': c.get_world_rank()}))\n";
    let place = place(script, "workers = 2\nenv = { MINE = \"yes\" }");
    let ran = run(&place, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut found: Vec<Value> = logged(&ran)
        .iter()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("env ")?).ok())
        .collect();
    found.sort_by_key(|env| env["RANK"].as_str().unwrap_or_default().to_owned());
    assert_eq!(found.len(), 2, "{:?}", logged(&ran));
    for (rank, env) in found.iter().enumerate() {
        assert_eq!(env["RANK"], rank.to_string());
        assert_eq!((&env["me"], &env["world"]), (&rank.into(), &2.into()));
        assert_eq!(env["WORLD_SIZE"], "2");
        assert_eq!(env["MASTER_PORT"], found[0]["MASTER_PORT"]);
        assert_eq!(env["MINE"], "yes");
    }
    place.assert_no_process_is_left();
}

#[test]
fn a_command_is_started_as_a_gang_without_a_job_file() {
    let place = place("", "");
    let command = [
        "launch",
        "--workers",
        "3",
        "--json",
        "--",
        "sh",
        "-c",
        "echo rank $RANK",
    ];
    let ran = place.run(&command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut lines = logged(&ran);
    lines.sort();
    assert_eq!(lines, ["rank 0", "rank 1", "rank 2"]);
    assert_eq!(ran.result()["status"], "succeeded");
    assert_eq!(ran.result()["workers"], 3);
    place.assert_no_process_is_left();
}

#[test]
fn a_run_is_started_from_python() {
    let place = place("", "");
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../lockstep-script/python");
    let code = "import json, lockstep\n\
        result = lockstep.run('network.toml', epochs=3, workers=2, quiet=True)\n\
        print(json.dumps([result.weights_sha256, result.metrics, len(result.events)]))\n\
        try:\n    lockstep.run('network.toml', **{'train.bach': 3})\n\
        except lockstep.RunFailed as error:\n    print(error)\n";
    let here = {
        place.write_job(crate::common::JOB);
        std::fs::copy(place.path("job.toml"), place.path("network.toml")).unwrap();
        place.train(&["--epochs", "3"])
    };
    let mut command = Command::new(python());
    command
        .args(["-c", code])
        .current_dir(place.path(""))
        .env("PYTHONPATH", package)
        .env("LOCKSTEP_CACHE", place.path("cache"))
        .env("LOCKSTEP_BINARY", env!("CARGO_BIN_EXE_lockstep"));
    let said = lockstep_testkit::succeed(&mut command);
    let mut lines = said.lines();
    let result: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(result[0], here["weights_sha256"]);
    assert_eq!(result[1]["accuracy"], here["metrics"]["accuracy"]);
    assert!(said.contains("train.bach"), "{said}");
}

#[test]
fn the_python_package_passes_its_own_tests() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../lockstep-script/python");
    let mut command = Command::new(python());
    command
        .args(["-m", "unittest", "discover", "--start-directory", "tests"])
        .current_dir(folder);
    lockstep_testkit::succeed(&mut command);
}
