//! Jobs through KubeRay's real operator and a real Ray. Pods have networks of their own here, as in a cluster.

use super::forwarded::Forwarded;
use super::real::{programs, submit, succeeded};
use crate::common::Place;
use crate::common::kube::{job, kube};
use lockstep_testkit::{KubeCluster, KubeParts, python_with_ray, ray_version};
use std::time::{Duration, Instant};

/// How long a cluster of Ray may take to be there.
const PATIENCE: Duration = Duration::from_secs(180);

/// A cluster with the operator, whose pods have Ray in their PATH.
fn cluster() -> KubeCluster {
    let ray = python_with_ray();
    let path = format!("{}:{}", programs(), ray.parent().unwrap().display());
    let parts = KubeParts {
        kuberay: true,
        network: true,
        gangs: false,
    };
    KubeCluster::start(&path, parts)
}

/// A place with a job for KubeRay, and with `more` in its job file.
fn place(more: &str) -> Place {
    let place = Place::new();
    let version = ray_version();
    let engine = format!("engine = \"kuberay\"\nray_version = \"{version}\"\n{more}");
    place.write_job(&job(&place, &engine));
    place
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn a_job_through_kuberay_has_the_bits_of_one_that_runs_here() {
    let place = place("");
    let here = place.weights(&[]);
    let cluster = cluster();
    let config = cluster.kubeconfig();
    let began = Instant::now();
    let run = submit(&place, &cluster, "onray", &[]);
    assert_eq!(succeeded(run), here);
    println!(
        "through KubeRay and Ray {}: {:.1} s",
        ray_version(),
        began.elapsed().as_secs_f64()
    );
    let status = kube(&place, config, &["kube", "status", "onray", "--json"]);
    assert!(status.stdout.contains("\"succeeded\""), "{}", status.stdout);
    let gone = kube(&place, config, &["kube", "delete", "onray"]);
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    // One here and one there.
    assert_eq!(place.runs().len(), 2);
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn a_worker_of_ray_that_is_killed_and_a_server_that_is_restarted_change_no_bit() {
    let place = place("[checkpoint]\nevery = \"20 steps\"\n");
    let epochs = ["--epochs", "2000"];
    let here = place.weights(&epochs);
    let mut cluster = cluster();
    let mut run = submit(&place, &cluster, "hurt", &epochs);
    run.wait_for("first_step");
    run.wait_for("epoch");
    let worker = "lockstep.dev/run=hurt,ray.io/node-type=worker";
    let first = "jsonpath={.items[0].metadata.name}";
    let pod = cluster.kubectl(&["get", "pods", "-l", worker, "-o", first]);
    cluster.order(&format!("kill {pod}"));
    run.wait_for("restart");
    run.wait_for("epoch");
    cluster.order("restart apiserver");
    assert_eq!(succeeded(run), here);
}

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn a_cluster_that_stands_is_started_looked_at_reached_and_removed() {
    let place = place("");
    let cluster = cluster();
    let config = cluster.kubeconfig();
    let kube = |words: &[&str]| {
        let ran = kube(&place, config, &[&["kube", "cluster"], words].concat());
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
        ran.stdout
    };
    kube(&["start", "job.toml", "--id", "stand"]);
    let began = Instant::now();
    while !kube(&["inspect", "stand"]).contains("ready") {
        assert!(
            began.elapsed() < PATIENCE,
            "{}",
            kube(&["inspect", "stand"])
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    let secret = "go-template={{ .data.auth_token | base64decode }}";
    let token = cluster.kubectl(&["get", "secret", "stand", "-o", secret]);
    let forwarded = Forwarded::start(&place, &cluster, &["cluster", "forward", "stand"]);
    let version = forwarded.get_at_last("/api/version", &token);
    assert!(version.contains(&ray_version()), "{version}");
    let refused = forwarded.get("/api/version", "wrong");
    assert!(!refused.starts_with("HTTP/1.1 200"), "{refused}");
    kube(&["stop", "stand"]);
    let began = Instant::now();
    while !cluster.kubectl(&["get", "pods", "-o", "name"]).is_empty() {
        assert!(began.elapsed() < PATIENCE, "pods are left");
        std::thread::sleep(Duration::from_millis(500));
    }
}
