//! The nodes of a cluster.

use super::heads::{head, run, submit_long};
use crate::common::serve::Serve;
use crate::common::{self, Place};
use lockstep_testkit::ray_version;
use serde_json::Value;
use std::time::{Duration, Instant};

#[test]
fn a_cluster_is_shown_with_what_is_free() {
    let place = Place::new();
    let until = |enough: &dyn Fn(&Value) -> bool| {
        let begin = Instant::now();
        loop {
            let ran = run(&place, &["cluster", "status", "--to", head(), "--json"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let cluster: Value = serde_json::from_str(&ran.stdout).unwrap();
            if enough(&cluster) {
                return cluster;
            }
            assert!(begin.elapsed() < common::LIMIT, "{}", ran.stdout);
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    // A head that has only just begun does not know itself yet.
    let cluster = until(&|cluster| cluster["nodes"][0]["cpus"]["total"] == 4.0);
    assert_eq!(cluster["ray_version"], ray_version());
    let nodes = cluster["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0]["head"], true);
    assert_eq!(nodes[0]["state"], "alive");
    assert!(nodes[0]["memory"]["total"].as_f64().unwrap() > 1e9);
    let ran = run(&place, &["cluster", "status", "--to", head()]);
    for part in ["cores free", "of 4", "head", "1 node: "] {
        assert!(
            ran.stdout.contains(part),
            "{part} is missing in {}",
            ran.stdout
        );
    }
    let doctor = run(&place, &["doctor", "--to", head(), "--json"]);
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let ray: Vec<_> = checks.filter(|check| check["name"] == "ray").collect();
    assert_eq!(ray[0]["state"], "ok", "{report}");
    let found = ray[0]["found"].as_str().unwrap();
    // Jobs of other tests may have some of them.
    assert!(
        found.contains("1 node, ") && found.contains(" free"),
        "{found}"
    );
    let serve = Serve::start(&place, &["--ray", head()]);
    let shown = serve.get("/api/v1/cluster/elsewhere").ok().json();
    assert_eq!(shown[0]["error"], Value::Null, "{shown}");
    assert_eq!(shown[0]["nodes"][0]["state"], "alive");
    assert_eq!(shown[0]["nodes"][0]["cpus"]["total"], 4.0);
    // What a job takes is not free.
    submit_long(&place, "taker");
    until(&|cluster| cluster["nodes"][0]["cpus"]["free"].as_f64() < Some(4.0));
    let stop = run(&place, &["jobs", "stop", "taker", "--to", head()]);
    assert!(
        stop.stdout.contains("has stopped"),
        "{}{}",
        stop.stdout,
        stop.stderr
    );
}
