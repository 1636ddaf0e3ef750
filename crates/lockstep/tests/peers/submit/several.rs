//! A job whose workers are on several nodes.

use super::heads::{folder, run};
use crate::common::{JOB, Place};
use lockstep_testkit::Server;
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn workers_on_nodes_of_their_own_come_to_the_weights_of_this_machine() {
    let place = Place::new();
    let store = place.path("kept");
    let job = JOB.replace("\"runs\"", &format!("{store:?}"));
    place.write_job(&format!("{job}\n[resources]\nplace = \"strict-spread\"\n"));
    let here = place.weights(&["--set", "run.store=\"runs\""]);

    // As on Kubernetes, no work is done on the head.
    let without = [("LOCKSTEP_TEST_HEAD_CPUS", "0")];
    let head = Server::ray_head_of(3, &folder("c"), &without);
    let to = head.endpoint();
    let there = run(&place, &["submit", "job.toml", "--to", to, "--json"]);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.result()["weights_sha256"], here.as_str());
    let events = there.events();
    let ranks: BTreeSet<u64> = events
        .iter()
        .filter(|event| event["event"] == "worker")
        .map(|event| event["rank"].as_u64().unwrap())
        .collect();
    assert_eq!(ranks, BTreeSet::from([0, 1]));
    let told = |event: &Value| event["message"].as_str().unwrap_or_default().to_owned();
    let notes: Vec<String> = events.iter().map(told).collect();
    let placed = notes
        .iter()
        .find(|note| note.contains("3 nodes: worker 0 on "));
    assert!(placed.is_some(), "{notes:?}");
    // The run lies where both nodes wrote it.
    let name = there.result()["run"].as_str().unwrap().to_owned();
    assert!(
        store.join(name).join("model/weights.safetensors").exists(),
        "{notes:?}"
    );

    // More workers than nodes cannot be on nodes of their own.
    let args = [
        "submit",
        "job.toml",
        "--to",
        to,
        "--workers",
        "3",
        "--set",
        "train.lanes=3",
    ];
    let args = [&args[..], &["--set", "gang.start_deadline_s=12"]].concat();
    let refused = run(&place, &args);
    super::heads::assert_says(&refused, 1, &["each on a node of its own", "no room"]);

    // A store that only one node has: all workers run there, or nothing is sent.
    let beside = [
        "submit",
        "job.toml",
        "--to",
        to,
        "--json",
        "--set",
        "run.store='runs'",
    ];
    let refused = run(&place, &beside);
    super::heads::assert_says(&refused, 1, &["run.store", "on a node of its own"]);
    let together = [&beside[..], &["--set", "resources.place='pack'"]].concat();
    let there = run(&place, &together);
    super::heads::assert_says(&there, 0, &["all workers run on one node"]);
    assert_eq!(there.result()["weights_sha256"], here.as_str());
    let many = ["--workers", "5", "--set", "train.lanes=5"];
    let refused = run(&place, &[&together[..], &many].concat());
    super::heads::assert_says(&refused, 1, &["all 5 workers", "the largest node has 4"]);
}
