//! Searches whose trials are to run on Kubernetes: what cannot work is refused before anything is made.

use super::scripted::{SENT, server};
use crate::common::Place;
use crate::common::kube::{job, kube};

/// What `tune --to kube` says of a job with `more` in its `[kube]`, on a cluster that would take everything.
fn refusal(more: &str, args: &[&str], runs: bool) -> String {
    let place = Place::new();
    place.write_job(&job(&place, more));
    if runs {
        std::fs::create_dir_all(place.path("runs")).unwrap();
    }
    let config = server(&place, |method, _| match method {
        "POST" => (201, r#"{"metadata":{"uid":"u"}}"#),
        _ => (404, "{}"),
    });
    let tune = [
        "tune",
        "job.toml",
        "--to",
        "kube",
        "--set",
        "data.val_split=0.2",
        "--search",
        "train.optimizer.lr=log(1e-4,1)",
    ];
    let ran = kube(&place, config, &[&tune, args].concat());
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    assert!(!place.path(SENT).exists(), "something was made");
    ran.stderr
}

#[test]
fn trials_that_could_not_run_there_are_refused_before_anything_is_made() {
    let long = ["--name", "a-name-of-a-job-that-is-long"];
    for (more, args, runs, why) in [
        (
            "engine = \"kuberay\"\nray_version = \"2.60.0\"",
            &[][..],
            true,
            "kube.engine is \"kuberay\"",
        ),
        ("kueue_queue = \"q\"", &[], true, "--no-halving"),
        ("", &[], false, "there is no such folder here"),
        ("", &long, true, "at most 47 fit"),
        (
            "",
            &["--set", "run.store=\"elsewhere\""],
            true,
            "there is no such folder here",
        ),
        ("", &["--engine", "ray"], true, "cannot be used with"),
    ] {
        let said = refusal(more, args, runs);
        assert!(said.contains(why), "{why}: {said}");
    }
}
