//! A search whose trials are Jobs of a real control plane.

use super::real::cluster;
use crate::common::Place;
use crate::common::kube::{job, kube};
use serde_json::Value;

const SEARCH: [&str; 11] = [
    "tune",
    "job.toml",
    "--json",
    "--epochs",
    "360",
    "--trials",
    "9",
    "--set",
    "data.val_split=0.2",
    "--search",
    "train.optimizer.lr=log(1e-3,1)",
];

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn a_search_on_kubernetes_tries_what_it_tries_here_and_leaves_no_stopped_job() {
    let place = Place::new();
    place.write_job(&job(&place, ""));
    std::fs::create_dir_all(place.path("runs")).unwrap();
    let here = place.run(&SEARCH);
    assert_eq!(here.code, Some(0), "{}", here.stderr);
    let cluster = cluster();
    let on_kube = [&SEARCH[..], &["--to", "kube", "--parallel", "3"]].concat();
    let there = kube(&place, cluster.kubeconfig(), &on_kube);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    let trials = |text: &str| serde_json::from_str::<Value>(text).unwrap()["trials"].clone();
    assert_eq!(trials(&there.stdout), trials(&here.stdout));
    println!("{}", there.stderr);

    // Those that were stopped would stay for ever; the others go by their time to live.
    let jobs = cluster.kubectl(&["get", "jobs", "-o", "json"]);
    println!(
        "{} Jobs have ended by themselves",
        jobs.matches("\"Complete\"").count()
    );
    let jobs: Value = serde_json::from_str(&jobs).unwrap();
    for job in jobs["items"].as_array().unwrap() {
        assert_ne!(job["spec"]["suspend"], true, "{}", job["metadata"]["name"]);
    }
}
