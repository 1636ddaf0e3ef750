//! The cache folder: what is in it, and room for something else.

use crate::common::Place;
use serde_json::Value;
use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Writes a file of the cache that was last used so many days ago.
fn keep(place: &Place, name: &str, days: u32) {
    let path = place.path("cache").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, [7; 9000]).unwrap();
    let used = SystemTime::now() - Duration::from_secs(86_400) * days;
    let times = FileTimes::new().set_accessed(used).set_modified(used);
    let file = File::options().write(true).open(path).unwrap();
    file.set_times(times).unwrap();
}

fn listed(place: &Place) -> Vec<String> {
    let listed = place.run(&["cache", "list", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let items: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let names = items.iter().map(|item| item["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn what_was_not_used_for_long_is_removed_and_nothing_else() {
    let place = Place::new();
    keep(&place, "datasets/mine/train", 1);
    keep(&place, "decoded/old", 50);
    keep(&place, "decoded/new", 2);
    keep(&place, "something of others/file", 90);
    let shown = place.run(&["cache", "list"]).stdout;
    assert!(
        shown.contains("50 days ago") && shown.contains("data set"),
        "{shown}"
    );
    assert_eq!(listed(&place), ["mine", "new", "old"]);
    let tried = place.run(&["cache", "clean", "--older", "30d", "--dry-run"]);
    assert!(
        tried.stdout.contains("old") && !tried.stdout.contains("new"),
        "{}",
        tried.stdout
    );
    assert_eq!(listed(&place).len(), 3);
    let refused = place.run(&["cache", "clean", "--older", "30d"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    let cleaned = place.run(&["cache", "clean", "--older", "30d", "--yes"]);
    assert!(
        cleaned.stdout.starts_with("removed 1 item"),
        "{}",
        cleaned.stdout
    );
    assert_eq!(listed(&place), ["mine", "new"]);
    let cleaned = place.run(&["cache", "clean", "--keep", "15kB", "--yes"]);
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
    assert_eq!(listed(&place), ["mine"]);
    assert_eq!(place.run(&["cache", "clean", "--yes"]).code, Some(0));
    assert_eq!(listed(&place), Vec::<String>::new());
    assert!(place.path("cache/something of others/file").exists());
    for (option, wrong, right) in [("--older", "30", "30d"), ("--keep", "5", "GiB")] {
        let refused = place.run(&["cache", "clean", option, wrong]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.stderr.contains(right), "{}", refused.stderr);
    }
}

#[test]
fn a_limit_of_the_cache_holds_whenever_something_is_decoded() {
    let place = Place::new();
    std::fs::write(place.path("a.csv"), "x,label\n1,a\n2,b\n").unwrap();
    keep(&place, "decoded/old", 50);
    let show = |limit: &str| {
        let mut command = place.command(&["data", "show", "a.csv"]);
        command.env("LOCKSTEP_CACHE_LIMIT", limit);
        command.output().unwrap()
    };
    let is_there = || Path::new(&place.path("cache/decoded/old")).exists();
    let refused = show("much");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("LOCKSTEP_CACHE_LIMIT") && said.contains("GiB"),
        "{said}"
    );
    assert!(is_there());
    std::fs::write(place.path("a.csv"), "x,label\n1,a\n3,b\n").unwrap();
    let shown = show("1 kB");
    assert!(
        shown.status.success(),
        "{}",
        String::from_utf8_lossy(&shown.stderr)
    );
    assert!(!is_there());
    assert_eq!(listed(&place).len(), 1, "what was decoded is there");
}
