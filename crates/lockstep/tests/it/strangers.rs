//! A folder that somebody else packed is a folder like any other: nothing in it is run, and what is written down of it
//! holds no secret.

use crate::common::{Place, Ran, files, read_json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn git(place: &Place, words: &[&str]) -> String {
    let done = Command::new("git")
        .current_dir(place.path(""))
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(words)
        .output()
        .unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A place whose job is committed.
fn committed() -> Place {
    let place = Place::new();
    git(&place, &["init", "--quiet", "--initial-branch=trunk"]);
    git(&place, &["add", "job.toml"]);
    git(&place, &["commit", "--quiet", "-m", "x"]);
    place
}

/// The folder of the run that a command ended with.
fn run_of(ran: &Ran) -> PathBuf {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    PathBuf::from(ran.result()["run_dir"].as_str().unwrap())
}

fn assert_unseen(secret: &str, run: &Path, ran: &Ran) {
    for (path, bytes) in files(run) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(secret), "{}: {text}", path.display());
    }
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains(secret), "{said}");
}

#[test]
fn no_program_that_a_folder_names_in_its_git_configuration_is_run() {
    let outside = tempfile::tempdir().unwrap();
    let trace = outside.path().join("it-ran");
    let program = outside.path().join("trap");
    fs::write(
        &program,
        format!("#!/bin/sh\ntouch {}\ncat\n", trace.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    let place = committed();
    fs::write(place.path(".gitattributes"), "* filter=x diff=x\n").unwrap();
    for key in ["filter.x.clean", "core.fsmonitor", "diff.external"] {
        git(&place, &["config", key, program]);
    }
    fs::write(
        place.path("job.toml"),
        crate::common::JOB.to_owned() + "# changed\n",
    )
    .unwrap();
    let _ = fs::remove_file(&trace);
    let ran = place.run(&["run", "job.toml", "--json"]);
    let run = run_of(&ran);
    assert!(!trace.exists(), "a program of the folder's was run");
    let origin = read_json(&run.join("origin.json"));
    assert_eq!(origin["git"]["branch"], "trunk");
    assert_eq!(origin["git"]["commit"].as_str().map(str::len), Some(40));
    assert_eq!(origin["git"]["uncommitted"], true);
    let diff = run.join("uncommitted.diff");
    assert!(fs::read_to_string(&diff).unwrap().contains("+# changed"));
    let mode = diff.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn secrets_of_the_command_and_of_changes_are_written_down_nowhere() {
    let place = committed();
    fs::write(place.path(".env"), "TOKEN=hunter2\n").unwrap();
    git(&place, &["add", ".env"]);
    let job = crate::common::JOB.to_owned() + "# api_key = 'hunter2'\n";
    fs::write(place.path("job.toml"), job).unwrap();
    let hook = "notify={webhook=\"http://127.0.0.1:9/services/hunter2\", on=[]}";
    let ran = place.run(&["run", "job.toml", "--json", "--set", hook]);
    assert_unseen("hunter2", &run_of(&ran), &ran);
}

#[test]
fn secrets_of_a_scripts_command_are_given_to_it_and_written_down_nowhere() {
    let place = Place::new();
    let script = "import sys; assert sys.argv[1:] == ['--api-key=hunter2', '--token', 'hunter2']";
    fs::write(place.path("script.py"), script).unwrap();
    let words = [
        "launch",
        "--json",
        "--",
        "python3",
        "script.py",
        "--api-key=hunter2",
        "--token",
        "hunter2",
    ];
    let ran = place.run(&words);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains("hunter2"), "{said}");
    // A script that reports nothing may leave nothing.
    let left = place
        .path("runs")
        .exists()
        .then(|| files(&place.path("runs")));
    for (path, bytes) in left.into_iter().flatten() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("hunter2"), "{}: {text}", path.display());
    }
}
