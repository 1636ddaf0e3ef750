//! Gangs that become larger and smaller with the cluster.

use super::{assert_nothing_is_left, cluster, place, start};
use crate::common::{Place, Running};
use lockstep_testkit::RayCluster;
use serde_json::Value;

/// Three lanes for two or three workers, each on a node of its own: nodes 5, 6 and 7.
fn elastic() -> Place {
    let place = place();
    let job = std::fs::read_to_string(place.path("job.toml")).unwrap();
    let workers = "workers = { min = 2, max = 3 }\nlanes = 3";
    let job = job.replace("workers = 2\nlanes = 2", workers);
    place.write_job(&format!(
        "{job}\n[resources.labels]\nnode = \"in(5,6,7)\"\n"
    ));
    place
}

/// The result of the rest of a run, at full speed, that changed its size so many times, without a failure.
fn resized(cluster: &RayCluster, run: Running, times: usize) -> Value {
    cluster.wake();
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["restarts"], 0, "{result}");
    assert_eq!(result["steps_repeated"], 0, "{result}");
    assert_eq!(result["resizes"], times, "{result}");
    result
}

#[test]
fn a_run_begins_with_the_least_and_grows_when_a_node_is_added_and_leaves_one_that_drains() {
    let mut cluster = cluster();
    let place = elastic();
    let long = ["--epochs", "100"];
    let undisturbed = place.weights(&[&long[..], &["--workers", "3"]].concat());
    cluster.add(5);
    cluster.add(6);
    cluster.slow_down();
    let mut run = start(&cluster, &place, &long);
    run.wait_for("first_step");
    cluster.add(7);
    let grown = run.wait_for("resized");
    assert_eq!(grown["workers"], 3);
    let reason = grown["reason"].as_str().unwrap();
    assert!(reason.contains("has come"), "{reason}");

    cluster.drain(6);
    let smaller = run.wait_for("resized");
    assert_eq!(smaller["workers"], 2);
    let reason = smaller["reason"].as_str().unwrap();
    assert!(
        reason.contains("leaves: its node") && reason.contains("is drained"),
        "{reason}"
    );
    let result = resized(&cluster, run, 2);
    assert_eq!(result["weights_sha256"], undisturbed);
    let standstill = result["seconds_resizing"].as_f64().unwrap();
    assert!(standstill < 40.0, "it stood still for {standstill} s");
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn a_worker_of_a_fixed_gang_moves_from_a_node_that_drains_to_another() {
    let mut cluster = cluster();
    let place = place();
    let long = ["--epochs", "100"];
    let undisturbed = place.weights(&long);
    cluster.add(8);
    cluster.add(9);
    let labels = ["--set", "resources.labels.node=\"in(8,9,10)\""];
    cluster.slow_down();
    let mut run = start(&cluster, &place, &[long, labels].concat());
    run.wait_for("epoch");
    cluster.add(10);
    cluster.drain(9);
    let moved = run.wait_for("resized");
    assert_eq!(moved["workers"], 2);
    let result = resized(&cluster, run, 1);
    assert_eq!(result["weights_sha256"], undisturbed);
    assert_nothing_is_left(&mut cluster, &place);
}
