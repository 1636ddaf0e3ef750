//! `lockstep run --profile`: what each thread of each worker did, and when.

use crate::common::Place;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn a_profile_tells_what_every_thread_did_in_some_steps_layer_by_layer() {
    let place = Place::new();
    let wide = [
        "model.hidden=[300, 300]",
        "train.batch=256",
        "train.threads=2",
    ];
    let mut args = vec![
        "--epochs",
        "2",
        "--workers",
        "2",
        "--profile",
        "profile.json",
    ];
    args.extend(["--profile-steps", "3..5"]);
    args.extend(wide.iter().flat_map(|change| ["--set", change]));
    place.train(&args);
    let text = fs::read_to_string(place.path("profile.json")).unwrap();
    let events: Vec<Value> = serde_json::from_str(&text).unwrap();
    let names = |worker: u64| -> BTreeSet<&str> {
        let own = events.iter().filter(|event| event["pid"] == worker);
        own.map(|event| event["name"].as_str().unwrap()).collect()
    };
    for worker in [0, 1] {
        let found = names(worker);
        for name in [
            "process_name",
            "thread_name",
            "step 3",
            "step 5",
            "layers.0 forward",
            "layers.2 backward",
            "exchange",
            "data",
        ] {
            assert!(
                found.contains(name),
                "{name} of worker {worker} in {found:?}"
            );
        }
        assert!(!found.contains("step 2") && !found.contains("step 6"));
    }
    // Which of the workers updates a part of the weights is decided by who comes first.
    let updates = |name: &&str| name.ends_with("update");
    assert!(
        [0, 1]
            .into_iter()
            .any(|worker| names(worker).iter().any(updates))
    );
    // What threads do follows each other.
    let mut ends = std::collections::BTreeMap::new();
    let spans = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["cat"] != "step");
    for span in spans {
        let thread = (span["pid"].as_u64(), span["tid"].as_u64());
        let number = |key: &str| span[key].as_f64().unwrap();
        let end = ends.entry(thread).or_insert(f64::MIN);
        assert!(number("ts") > *end - 1.0 && number("dur") >= 0.0, "{span}");
        *end = number("ts") + number("dur");
    }
    let threads = ends.keys().filter(|thread| thread.0 == Some(0)).count();
    assert!(threads >= 1, "{threads}");

    let ran = place.run(&["run", "job.toml", "--profile", "no/such/folder.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr
            .contains("cannot write the profile no/such/folder.json"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&[
        "run",
        "job.toml",
        "--profile",
        "p.json",
        "--profile-steps",
        "5..3",
    ]);
    assert!(
        ran.stderr.contains("two steps such as 11..20"),
        "{}",
        ran.stderr
    );
}
