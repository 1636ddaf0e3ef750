//! Where workers are put, what is looked at first, and what is said when they cannot be put anywhere.

use super::{assert_nothing_is_left, cluster, place, run, start};
use lockstep_testkit::RayCluster;
use rustix::process::Signal;
use std::time::{Duration, Instant};

#[test]
fn what_only_one_node_sees_is_named_before_anything_is_trained() {
    let mut cluster = cluster();
    let place = place();
    // A path that leads every process to another folder.
    let refused = |set: &str| {
        let ran = run(&cluster, &place, &["run", "job.toml", "--set", set]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert!(ran.stderr.contains("on node "), "{}", ran.stderr);
        ran.stderr
    };
    let said = refused("run.store=\"/proc/self/cwd/runs\"");
    assert!(
        said.contains("run.store: what the coordinator wrote to"),
        "{said}"
    );
    let images = "images = \"/proc/self/cwd/test-images\"";
    let labels = "labels = \"/proc/self/cwd/test-labels\"";
    let said = refused(&format!("data.test={{ {images}, {labels} }}"));
    assert!(
        said.contains("data.test: /proc/self/cwd/test-images"),
        "{said}"
    );
    assert!(place.runs().is_empty(), "{:?}", place.runs());
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn what_cannot_be_placed_is_explained() {
    let mut cluster = cluster();
    let place = place();
    let args = ["run", "job.toml", "--set", "resources.cpus=99", "--set"];
    let ran = run(
        &cluster,
        &place,
        &[&args[..], &["gang.start_deadline_s=15"]].concat(),
    );
    assert_eq!(ran.code, Some(1));
    for words in [
        "asked for 2 workers with 99 CPUs each, each on a node of its own",
        "has 2 CPUs",
        "it would hold 0 of them",
        "gang.start_deadline_s",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert!(place.runs().is_empty(), "{:?}", place.runs());
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn a_run_begins_on_a_node_that_the_autoscaler_brings() {
    let mut cluster = RayCluster::start_autoscaled();
    let place = place();
    let here = place.weights(&[]);
    let there = run(&cluster, &place, &["run", "job.toml", "--json"]);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.result()["weights_sha256"], here);
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn an_autoscaler_that_is_still_bringing_nodes_is_waited_for_with_its_words() {
    let mut cluster = RayCluster::start_with_hanging_autoscaler();
    let place = place();
    let deadline = ["--set", "gang.start_deadline_s=12"];
    let mut run = start(&cluster, &place, &deadline);
    let began = Instant::now();
    // Its words are there, and are heard for longer than the deadline.
    loop {
        let message = run.wait_for("preparing")["message"].to_string();
        let words = message.contains("the autoscaler brings small, 1 launching");
        if words && began.elapsed() > Duration::from_secs(13) {
            break;
        }
    }
    run.signal(Signal::KILL);
    assert_eq!(run.finish().0, None);
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn without_ray_or_a_cluster_it_is_said_what_to_do() {
    let place = place();
    let refused = |python: &str, address: &str| {
        let mut command = place.command(&["run", "job.toml", "--engine", "ray"]);
        command
            .env("LOCKSTEP_PYTHON", python)
            .env("RAY_ADDRESS", address);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused("/no/such/python", "");
    assert!(
        said.contains("cannot start `/no/such/python`") && said.contains("LOCKSTEP_PYTHON"),
        "{said}"
    );
    let bare = lockstep_testkit::python("bare", &["pip"]);
    let said = refused(bare.to_str().unwrap(), "");
    assert!(said.contains("cannot import Ray"), "{said}");
    let ray = lockstep_testkit::python_with_ray();
    let said = refused(ray.to_str().unwrap(), "127.0.0.1:1");
    assert!(
        said.contains("cannot reach a Ray cluster at 127.0.0.1:1 (RAY_ADDRESS)"),
        "{said}"
    );
    assert!(place.runs().is_empty());
    place.assert_no_process_is_left();
}
