//! Kubernetes' own gang scheduling, with its real scheduler: all pods of a job are placed at once, or none.

use super::real::{programs, submit, succeeded};
use crate::common::kube::{job, kube};
use crate::common::{LIMIT, Place};
use lockstep_testkit::{KubeCluster, KubeParts};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A worker that takes most of a node, so that two need two nodes.
const LARGE: [&str; 2] = ["--set", "resources.cpus=40"];

/// The pods of a run, and the nodes that they were placed on.
fn nodes(cluster: &KubeCluster, run: &str) -> Vec<Option<String>> {
    let label = format!("lockstep.dev/run={run}");
    let pods = cluster.kubectl(&["get", "pods", "-l", &label, "-o", "json"]);
    let pods: Value = serde_json::from_str(&pods).unwrap();
    let node = |pod: &Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
    pods["items"].as_array().unwrap().iter().map(node).collect()
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn pods_are_placed_all_at_once_or_not_at_all_and_replaced_one_by_one() {
    let place = Place::new();
    place.write_job(&job(&place, "[checkpoint]\nevery = \"20 steps\"\n"));
    let epochs = ["--epochs", "600"];
    let here = place.weights(&epochs);
    let gangs = KubeParts {
        gangs: true,
        ..KubeParts::default()
    };
    let mut cluster = KubeCluster::start(&programs(), gangs);
    cluster.order("drain node-1");
    cluster.order("drain node-2");

    // Without it, one pod takes the only node, and waits there for the other.
    let off = ["--set", "kube.gang_scheduling=\"off\""];
    let apply = ["kube", "apply", "job.toml", "--id", "alone"];
    let applied = kube(
        &place,
        cluster.kubeconfig(),
        &[&apply[..], &LARGE, &off].concat(),
    );
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    until("one pod is placed", || {
        nodes(&cluster, "alone").iter().flatten().count() == 1
    });
    let deleted = kube(&place, cluster.kubeconfig(), &["kube", "delete", "alone"]);
    assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
    until("it is gone", || nodes(&cluster, "alone").is_empty());

    // With it, none does, and the scheduler says why.
    let mut run = submit(&place, &cluster, "gang", &[&epochs[..], &LARGE].concat());
    let refused = || {
        let group = cluster.kubectl(&[
            "get",
            "podgroup",
            "gang",
            "--ignore-not-found",
            "-o",
            "json",
        ]);
        group.contains("Unschedulable")
    };
    until("the scheduler has tried", refused);
    assert_eq!(nodes(&cluster, "gang"), [None, None]);
    let status = kube(&place, cluster.kubeconfig(), &["kube", "status", "gang"]);
    println!("{}", status.stdout);

    // Room for the other lets both begin.
    cluster.order("undrain node-1");
    run.wait_for("first_step");
    run.wait_for("epoch");
    // One that is lost is placed again beside the one that is left.
    cluster.order("kill gang-1");
    assert_eq!(succeeded(run), here);

    let deleted = kube(&place, cluster.kubeconfig(), &["kube", "delete", "gang"]);
    assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
    until("its group goes with it", || {
        cluster
            .kubectl(&["get", "podgroups", "-o", "name"])
            .is_empty()
    });
}
