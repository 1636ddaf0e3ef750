//! Removing runs: what was meant goes, what goes on or is a version of a model stays.

use super::choosing::{json, ok, trained};
use crate::common::Place;
use serde_json::Value;

fn left(place: &Place) -> Vec<String> {
    let all = json(place, &["runs", "list"]);
    let names = all.as_array().unwrap().iter();
    names
        .map(|run: &Value| run["run"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn runs_go_when_that_is_meant_and_not_when_a_model_was_made_from_them() {
    let (place, names) = trained();
    let [first, second, third] = [0, 1, 2].map(|run| names[run].as_str());
    let asked = place.run(&["runs", "rm", first]);
    assert_eq!(asked.code, Some(1));
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(left(&place).len(), 3);
    ok(&place, &["models", "register", "digits", first]);
    let refused = place.run(&["runs", "rm", first, second, "--yes"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("digits@1"), "{}", refused.stderr);
    assert_eq!(left(&place).len(), 3);
    let said = ok(&place, &["runs", "rm", second, "--yes"]);
    assert!(said.contains("removed 1 run"), "{said}");
    assert_eq!(left(&place), [third, first]);
    assert!(!place.path("runs").join(second).exists());
    // What rules would remove stays for the same reason.
    let kept = place.run(&["runs", "rm", "--keep", "1", "--yes"]);
    assert!(kept.stderr.contains("digits@1"), "{}", kept.stderr);
    assert_eq!(left(&place), [third, first]);
    let wrong = place.run(&["runs", "rm", "--keep", "{ best = 2 }", "--yes"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("`best` and `by` together"),
        "{}",
        wrong.stderr
    );
    ok(&place, &["models", "rm", "digits", "--yes"]);
    ok(
        &place,
        &[
            "runs",
            "rm",
            "--keep",
            "{ best = 1, by = \"accuracy\" }",
            "--yes",
        ],
    );
    assert_eq!(left(&place).len(), 1);
}

#[test]
fn a_run_that_goes_on_is_not_removed() {
    let place = Place::new();
    let mut running = place.start_long_run(&[]);
    running.wait_for("progress");
    let refused = place.run(&["runs", "rm", "small", "--yes"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("goes on"), "{}", refused.stderr);
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    ok(&place, &["runs", "rm", "small", "--yes"]);
    assert_eq!(left(&place), [] as [&str; 0]);
}

#[test]
fn a_job_keeps_as_many_runs_as_it_says() {
    let place = Place::new();
    let keep = ["--epochs", "1", "--set", "run.keep=2"];
    let tagged = place.train(&keep);
    ok(
        &place,
        &["runs", "tag", tagged["run"].as_str().unwrap(), "keep"],
    );
    let names: Vec<String> = (0..4)
        .map(|_| place.train(&keep)["run"].as_str().unwrap().to_owned())
        .collect();
    let left = left(&place);
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(
        left.contains(&names[3]) && left.contains(&names[2]),
        "{left:?}"
    );
    assert!(
        left.contains(&tagged["run"].as_str().unwrap().to_owned()),
        "{left:?}"
    );
}
