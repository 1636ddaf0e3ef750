//! What is computed on a cluster is what is computed here.

use super::{assert_nothing_is_left, cluster, on, place, run};
use crate::common::trees::{TREES, trees_here};
use crate::common::{Place, Ran, cifar, embedding, fashion_mnist, files};
use std::path::Path;

#[test]
pub(crate) fn workers_on_nodes_of_their_own_come_to_the_weights_of_this_machine() {
    let mut cluster = cluster();
    let place = place();
    let here = place.train(&[]);
    let there = run(&cluster, &place, &["run", "job.toml", "--json"]);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    let result = there.result();
    assert_eq!(result["weights_sha256"], here["weights_sha256"]);
    assert_eq!(result["metrics"], here["metrics"]);
    let started = there.events().into_iter().find(|e| e["event"] == "started");
    assert_eq!(started.unwrap()["transport"], "tcp");
    assert_nothing_is_left(&mut cluster, &place);

    // Each node decoded what its worker read into a cache of its own.
    let decoded = (0..3).filter(|node| cluster.cache(*node).is_dir()).count();
    assert!(decoded >= 2, "{decoded} caches");

    // A crew on the cluster measures the same.
    let name = result["run"].as_str().unwrap();
    let here = place.run(&["evaluate", name, "--json"]);
    let there = run(&cluster, &place, &["evaluate", name, "--json"]);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.stdout, here.stdout);
    assert_nothing_is_left(&mut cluster, &place);
}

#[test]
fn trees_on_three_nodes_are_those_of_this_machine() {
    let mut cluster = cluster();
    let place = Place::new();
    place.write_job(&format!(
        "{TREES}\n[resources]\nplace = \"strict-spread\"\n"
    ));
    let xgboost = lockstep_testkit::xgboost_library();
    let here = trees_here(&place, &xgboost);
    let there = on(&cluster, &place, &["run", "job.toml", "--json"])
        .env("LOCKSTEP_XGBOOST", &xgboost)
        .output();
    let there = Ran::from(there.unwrap());
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.result()["weights_sha256"], here["weights_sha256"]);
    assert_nothing_is_left(&mut cluster, &place);
}

/// Runs an example of this repository for an epoch here and on the cluster.
fn example_is_the_same(example: &str, place: &Place, args: &[&str]) {
    let mut cluster = cluster();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let job = std::fs::read_to_string(examples.join(example)).unwrap();
    let spread = "\n[resources]\nplace = \"strict-spread\"\n";
    place.write_job(&(job + spread));
    let args = [args, &["--epochs", "1"]].concat();
    let here = place.weights(&args);
    let there = [&["run", "job.toml", "--json"], &args[..]].concat();
    let there = run(&cluster, place, &there);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.result()["weights_sha256"], here);
    assert_nothing_is_left(&mut cluster, place);
}

#[test]
fn fashion_mnist_on_two_nodes_comes_to_the_weights_of_this_machine() {
    let place = Place::new();
    let files = fashion_mnist();
    let set = |set: &str, name: &str| {
        let file = |kind: &str| files.join(format!("{name}-{kind}-ubyte.gz"));
        let (images, labels) = (file("images-idx3"), file("labels-idx1"));
        format!("data.{set}={{ images = {images:?}, labels = {labels:?} }}")
    };
    let (train, test) = (set("train", "train"), set("test", "t10k"));
    let sets = ["--set", &train, "--set", &test];
    let args = [&sets[..], &["--workers", "2"]].concat();
    example_is_the_same("fashion-mnist.toml", &place, &args);
}

#[test]
fn a_convolutional_network_on_three_nodes_comes_to_the_weights_of_this_machine() {
    let place = Place::new();
    cifar::write_folder(&place.path("cifar"), 603, 100, 1);
    let set = |name: &str| format!("data.{name}={{ cifar = \"cifar\", split = \"{name}\" }}");
    let (train, test) = (set("train"), set("test"));
    let sets = ["--set", &train, "--set", &test];
    let lanes = ["--set", "train.lanes=3", "--workers", "3"];
    example_is_the_same("cifar10-cnn.toml", &place, &[&sets[..], &lanes].concat());
}

#[test]
fn pictures_are_embedded_and_predicted_on_the_cluster_as_here() {
    let mut cluster = cluster();
    let place = embedding::place();
    let vectors = place.path("vectors");
    let embed = ["embed", "job.toml", "--json"];
    assert_eq!(place.run(&embed).code, Some(0));
    let here = files(&vectors);
    std::fs::remove_dir_all(&vectors).unwrap();
    let there = run(&cluster, &place, &embed);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert!(files(&vectors) == here, "other vectors");

    let trained = place.train(&[]);
    let predict = ["predict", trained["run"].as_str().unwrap(), "--out", "-"];
    let here = place.run(&predict);
    let there = run(&cluster, &place, &predict);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(there.stdout, here.stdout);
    assert_nothing_is_left(&mut cluster, &place);
}
