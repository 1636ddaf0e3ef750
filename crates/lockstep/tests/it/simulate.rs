//! `lockstep simulate`: what a job would do on many hosts.

use crate::common::Place;
use serde_json::Value;

#[test]
fn more_hosts_are_lost_more_often_and_nothing_of_the_measurement_is_kept() {
    let place = Place::new();
    let ran = place.succeeds(&[
        "simulate",
        "job.toml",
        "--hosts",
        "1,8,64",
        "--network",
        "25gbit,50us",
        "--failures",
        "1/h",
        "--json",
    ]);
    let simulated: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let here = &simulated["here"];
    assert_eq!(here["batch"], 32);
    // An epoch of 1,003 samples.
    assert_eq!(here["checkpoint_steps"], 32.0);
    let hosts = simulated["hosts"].as_array().unwrap();
    let numbers = |key: &str| -> Vec<f64> {
        hosts
            .iter()
            .map(|host| host[key].as_f64().unwrap())
            .collect()
    };
    assert_eq!(numbers("batch"), [32.0, 8.0 * 32.0, 64.0 * 32.0]);
    let losses = numbers("losses_per_hour");
    assert!(
        losses
            .iter()
            .zip([1.0, 8.0, 64.0])
            .all(|(found, right)| (found - right).abs() < 1e-9)
    );
    assert_eq!(numbers("exchange_ms")[0], 0.0);
    assert!(numbers("goodput").is_sorted_by(|a, b| a > b), "{hosts:?}");
    // One host has nobody to keep copies; of several, each keeps some for another.
    let between = numbers("steps_between");
    assert_eq!(between[0], 32.0);
    assert!(
        between[1..].iter().all(|steps| *steps < 32.0),
        "{between:?}"
    );
    assert!(place.runs().is_empty());
    let said = place.said(&["simulate", "job.toml", "--hosts", "2"]);
    assert!(said.contains("goodput") && said.contains("none"), "{said}");
    place.refused(
        &["simulate", "job.toml", "--failures", "often"],
        &["such as 1/h"],
    );
}
