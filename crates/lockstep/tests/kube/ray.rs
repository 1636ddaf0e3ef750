//! Jobs through KubeRay's real operator and a real Ray. Pods have networks of their own here, as in a cluster.

use crate::common::Place;
use crate::real::{programs, submit, succeeded};
use crate::{job, kube};
use lockstep_testkit::{KubeCluster, KubeParts, python_with_ray, ray_version};
use std::time::Instant;

#[test]
#[ignore = "builds a control plane: make test-kube"]
fn a_job_through_kuberay_has_the_bits_of_one_that_runs_here() {
    let place = Place::new();
    let version = ray_version();
    let engine = format!("engine = \"kuberay\"\nray_version = \"{version}\"\n");
    place.write_job(&job(&place, &engine));
    let here = place.weights(&[]);
    let ray = python_with_ray();
    let path = format!("{}:{}", programs(), ray.parent().unwrap().display());
    let parts = KubeParts {
        kuberay: true,
        network: true,
    };
    let cluster = KubeCluster::start(&path, parts);
    let config = cluster.kubeconfig();
    let began = Instant::now();
    let run = submit(&place, &cluster, "onray", &[]);
    assert_eq!(succeeded(run), here);
    println!(
        "through KubeRay and Ray {version}: {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let status = kube(&place, config, &["kube", "status", "onray", "--json"]);
    assert!(status.stdout.contains("\"succeeded\""), "{}", status.stdout);
    let gone = kube(&place, config, &["kube", "delete", "onray"]);
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    // One here and one there.
    assert_eq!(place.runs().len(), 2);
}
