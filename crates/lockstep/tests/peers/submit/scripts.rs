//! A job that is a user's own script, from its submission to its end.

use super::heads::{assert_says, head, run};
use crate::common::Place;
use serde_json::json;
use std::fs;

const SCRIPT: &str = r#"
import json, os, sys
sys.path.insert(0, "lib")
import helper
import lockstep

config = json.load(open(sys.argv[1].partition("=")[2]))
samples = sum(len(batch["x"]) for batch in lockstep.get_dataset_shard("train").iter_batches())
everyone = lockstep.collective.broadcast_from_rank_zero(os.getcwd())
lockstep.report({"lr": config["lr"], "said": helper.SAID, "count": samples, "folder": everyone})
"#;

#[test]
fn a_script_travels_with_what_its_command_and_its_job_name() {
    let place = Place::new();
    let python = lockstep_testkit::python("numpy", &["numpy"]);
    fs::create_dir_all(place.path("jobs/lib/deep")).unwrap();
    for (name, content) in [
        ("jobs/train.py", SCRIPT),
        ("jobs/config.json", "{\"lr\": 0.25}"),
        ("jobs/lib/helper.py", "from deep.words import SAID"),
        ("jobs/lib/deep/words.py", "SAID = 'hello'"),
        ("rows.csv", "x,y\n1,a\n2,b\n3,c\n4,d\n"),
        ("other.txt", "stays here"),
    ] {
        fs::write(place.path(name), content).unwrap();
    }
    let job = format!(
        "name = \"travels\"\n[data]\ntrain = \"../rows.csv\"\n[train]\n\
         command = [{python:?}, \"train.py\", \"--config=config.json\"]\nfiles = [\"lib\"]\nworkers = 2\n"
    );
    fs::write(place.path("jobs/job.toml"), &job).unwrap();
    let submit = ["submit", "jobs/job.toml", "--to", head(), "--json"];
    let there = run(&place, &submit);
    assert_eq!(there.code, Some(0), "{}\n{}", there.stdout, there.stderr);
    let reported = &there.result()["reported"];
    let found = (&reported["lr"], &reported["said"], &reported["count"]);
    assert_eq!(found, (&json!(0.25), &json!("hello"), &json!(2)));
    // It ran where its package was unpacked, and not here.
    let folder = reported["folder"].as_str().unwrap();
    assert!(folder.ends_with("/jobs"), "{folder}");
    assert!(
        !folder.starts_with(place.path("").to_str().unwrap()),
        "{folder}"
    );
    assert!(!place.path("jobs/runs").exists());

    let lost = job.replace("\"train.py\"", "\"lost.py\"");
    fs::write(place.path("jobs/job.toml"), lost).unwrap();
    let refused = run(&place, &submit[..4]);
    assert_says(&refused, 1, &["train.command", "lost.py does not exist"]);
}
