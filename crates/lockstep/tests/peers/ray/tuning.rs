//! A search whose trials are trained on the cluster.

use super::{assert_nothing_is_left, cluster, run};
use crate::common::Place;
use serde_json::Value;

#[test]
fn a_search_on_the_cluster_tries_what_it_tries_here() {
    let mut cluster = cluster();
    let place = Place::new();
    let search = [
        "tune",
        "job.toml",
        "--json",
        "--epochs",
        "2",
        "--trials",
        "2",
        "--set",
        "data.val_split=0.2",
        "--search",
        "train.optimizer.lr=log(1e-3,1)",
    ];
    let there = run(&cluster, &place, &search);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    let here = Place::new().run(&search);
    assert_eq!(here.code, Some(0), "{}", here.stderr);
    let trials = |text: &str| serde_json::from_str::<Value>(text).unwrap()["trials"].clone();
    assert_eq!(trials(&there.stdout), trials(&here.stdout));
    assert_nothing_is_left(&mut cluster, &place);
}
