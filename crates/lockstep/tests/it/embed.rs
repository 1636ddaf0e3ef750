//! Pictures become vectors through the binary: only what is missing is made, whatever happened before, and
//! pictures that cannot be read are told apart from those that can.

use crate::common::bitmap::bitmap;
use crate::common::embedding::place;
use crate::common::{Place, Ran, Running, files, read_json};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

fn embed(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["embed", "job.toml", "--json"], args].concat())
}

/// What `embed` says of a set when it is done.
fn embedded(ran: &Ran, set: &str) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let of_set = |event: &Value| event["event"] == "embedded" && event["set"] == set;
    ran.events()
        .into_iter()
        .find(of_set)
        .expect("an event of the set")
}

#[test]
fn the_vectors_do_not_depend_on_the_workers_or_the_batch_and_are_made_once() {
    let place = place();
    let first = embed(&place, &[]);
    let train = embedded(&first, "train");
    assert_eq!(
        (&train["parts"], &train["parts_made"]),
        (&4.into(), &4.into())
    );
    assert_eq!(train["pictures"], 34);
    let made = files(&place.path("vectors"));
    assert_eq!(made.len(), 4 + 2, "{:?}", made.keys());

    let again = embedded(&embed(&place, &[]), "train");
    assert_eq!(again["parts_made"], 0);
    assert_eq!(files(&place.path("vectors")), made);

    fs::remove_dir_all(place.path("vectors")).unwrap();
    embedded(
        &embed(&place, &["--set", "embed.batch=3", "--workers", "1"]),
        "test",
    );
    assert_eq!(
        files(&place.path("vectors")),
        made,
        "one worker, other batches"
    );
}

#[test]
fn only_what_has_changed_is_made_again() {
    let place = place();
    embedded(&embed(&place, &[]), "train");
    let picture = place.path("photos/train/wide/03.bmp");
    fs::write(&picture, bitmap(80, 50, 0, 9)).unwrap();
    let changed = embed(&place, &[]);
    assert_eq!(
        embedded(&changed, "train")["parts_made"],
        1,
        "one picture, one part"
    );
    assert_eq!(embedded(&changed, "test")["parts_made"], 0);

    let scale = ["--set", "embed.normalise=half"];
    assert_eq!(
        embedded(&embed(&place, &scale), "train")["parts_made"],
        4,
        "another scale"
    );

    for number in 5..17 {
        fs::remove_file(place.path(&format!("photos/train/wide/{number:02}.bmp"))).unwrap();
    }
    assert_eq!(embedded(&embed(&place, &scale), "train")["parts"], 3);
    let left = files(&place.path("vectors/train"));
    assert_eq!(
        left.len(),
        3,
        "a part that is no longer needed is gone: {:?}",
        left.keys()
    );
}

#[test]
fn whenever_it_is_killed_the_next_run_finishes_it_with_the_same_bytes() {
    let place = place();
    // Many small parts, so that there is time between the first and the last.
    let many = ["--set", "embed.part=1"];
    embedded(&embed(&place, &many), "train");
    let whole = files(&place.path("vectors"));
    fs::remove_dir_all(place.path("vectors")).unwrap();

    let mut killed = 0;
    for round in 0..12 {
        let command = place.command(&[&["embed", "job.toml", "--json"], &many[..]].concat());
        let mut running = Running::new(command);
        // The coordinator, and with it every worker, is killed a moment after a part is done.
        let mut done = 0;
        while let Some(event) = running.next() {
            done += usize::from(event["event"] == "embedding");
            if done > round % 3 {
                std::thread::sleep(Duration::from_micros(round as u64 % 4 * 500));
                running.signal(Signal::KILL);
                break;
            }
        }
        let (code, ..) = running.finish();
        place.assert_no_process_is_left();
        killed += usize::from(code.is_none());
    }
    assert!(killed > 1, "the test must disturb something");
    embedded(&embed(&place, &many), "train");
    let made = files(&place.path("vectors"));
    assert_eq!(
        made.keys().collect::<Vec<_>>(),
        whole.keys().collect::<Vec<_>>()
    );
    assert!(made == whole, "the bytes are those of an undisturbed run");
}

#[test]
fn two_at_once_into_one_store_both_succeed() {
    let place = place();
    let many = ["--set", "embed.part=1"];
    embedded(&embed(&place, &many), "train");
    let whole = files(&place.path("vectors"));
    for _ in 0..3 {
        fs::remove_dir_all(place.path("vectors")).unwrap();
        let start = || {
            let args = [&["embed", "job.toml", "--json"], &many[..]].concat();
            Running::new(place.command(&args))
        };
        let (first, second) = (start(), start());
        for running in [first, second] {
            let (code, _, stderr) = running.finish();
            assert_eq!(code, Some(0), "{stderr}");
        }
        assert!(files(&place.path("vectors")) == whole);
    }
}

#[test]
fn a_killed_worker_costs_its_part_only() {
    let place = place();
    embedded(&embed(&place, &[]), "train");
    let whole = files(&place.path("vectors"));
    fs::remove_dir_all(place.path("vectors")).unwrap();
    let mut running = Running::new(place.command(&["embed", "job.toml", "--json"]));
    running.wait_for("preparing");
    let coordinator = running.child.id();
    let worker = loop {
        let children =
            fs::read_to_string(format!("/proc/{coordinator}/task/{coordinator}/children"));
        if let Some(pid) = children.unwrap().split_whitespace().next() {
            break pid.parse().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    crate::common::send(worker, Signal::KILL);
    let (code, _, stderr) = running.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("killed"), "the loss is told: {stderr}");
    assert!(files(&place.path("vectors")) == whole);
}

#[test]
fn unreadable_pictures_are_listed_and_too_many_of_them_fail() {
    let place = place();
    let photo = |name: &str| place.path(&format!("photos/train/wide/{name}"));
    fs::write(photo("empty.jpg"), b"").unwrap();
    fs::write(photo("words.png"), b"this is no picture").unwrap();
    let whole = bitmap(40, 36, 0, 1);
    fs::write(photo("cut.bmp"), &whole[..whole.len() / 2]).unwrap();
    fs::write(photo("notes.txt"), b"not looked at").unwrap();
    // What these are, only their content says; a text beside the folders of classes is none of the photos.
    fs::write(photo("0017"), &whole).unwrap();
    fs::write(photo("old.jfif"), &whole).unwrap();
    fs::write(photo("LICENSE"), b"none of the bad ones").unwrap();
    fs::write(place.path("photos/train/README"), b"photos").unwrap();

    let ran = embed(&place, &[]);
    let train = embedded(&ran, "train");
    assert_eq!(
        (&train["pictures"], &train["skipped"]),
        (&39.into(), &3.into())
    );
    let list = fs::read_to_string(place.path("vectors/train/skipped.jsonl")).unwrap();
    let list: Vec<Value> = list
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kind = |name: &str| {
        let path = match name.strip_prefix("../") {
            Some(name) => place.path(&format!("photos/train/{name}")),
            None => photo(name),
        };
        let path = path.display().to_string();
        let found = list.iter().find(|one| one["path"] == path.as_str());
        found.unwrap_or_else(|| panic!("{name} is not in {list:?}"))["kind"].clone()
    };
    assert_eq!(kind("empty.jpg"), "empty");
    assert_eq!(kind("words.png"), "not-an-image");
    assert_eq!(kind("cut.bmp"), "truncated");
    assert_eq!(kind("notes.txt"), "not-looked-at");
    assert_eq!(kind("../README"), "not-looked-at");
    assert_eq!(kind("LICENSE"), "not-an-image");
    assert_eq!(list.len(), 6);
    assert!(!place.path("vectors/test/skipped.jsonl").exists());

    // The same files, seen without a job.
    let shown = place.run(&["data", "show", "photos/train", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(
        (&shown["samples"], &shown["formats"]["BMP"]),
        (&36.into(), &36.into())
    );
    assert_eq!(
        shown["classes"][1],
        json!({ "name": "wide", "pictures": 19, "bad": 3 })
    );
    assert_eq!(shown["sizes"], json!([[40, 36], [46, 39]]));
    let said = place.run(&["data", "show", "photos/train"]).stdout;
    for part in [
        "36 pictures",
        "wide",
        "wide/cut.bmp cannot be read: ",
        "40 x 36 to 46 x 39 pixels",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }

    let strict = embed(&place, &["--set", "data.max_bad=0.05"]);
    assert_eq!(strict.code, Some(1));
    for part in [
        "3 of 39 pictures",
        "photos/train",
        "data.max_bad = 0.05",
        "skipped.jsonl",
    ] {
        assert!(strict.stderr.contains(part), "{part}: {}", strict.stderr);
    }
}

#[test]
fn a_run_embeds_first_and_trains_on_the_vectors() {
    let place = place();
    // One photo in both classes: one of the two is a mistake, whatever is learned.
    fs::copy(
        place.path("photos/test/wide/00.bmp"),
        place.path("photos/test/tall/wide.bmp"),
    )
    .unwrap();
    let result = place.train(&[]);
    assert_eq!(result["status"], "succeeded");
    let run = Path::new(result["run_dir"].as_str().unwrap());
    let mistakes = read_json(&run.join("evaluation.json"))["mistakes"]
        .as_array()
        .unwrap()
        .len();
    let pictures = fs::File::open(run.join("mistakes.png")).unwrap();
    let pictures = png::Decoder::new(std::io::BufReader::new(pictures))
        .read_info()
        .unwrap();
    let (width, height) = pictures.info().size();
    assert_eq!(
        height as usize,
        mistakes * width as usize,
        "squares below each other"
    );
    let one = place.weights(&["--workers", "1"]);
    assert_eq!(result["weights_sha256"], one.as_str(), "on one worker");
}

#[test]
fn a_job_that_cannot_be_embedded_says_why() {
    let place = place();
    let refused = |args: &[&str], parts: &[&str]| {
        let ran = embed(&place, args);
        assert_ne!(ran.code, Some(0), "{args:?}");
        for part in parts {
            assert!(
                ran.stderr.contains(part),
                "{part} is not in: {}",
                ran.stderr
            );
        }
        assert!(!place.path("vectors").exists(), "{args:?}");
    };
    refused(&["--set", "embed.model=nowhere"], &["nowhere"]);
    refused(&["--set", "embed.model=job.toml"], &["job.toml"]);
    refused(
        &["--set", "data.train=nothing"],
        &["nothing", "does not exist"],
    );
    fs::create_dir_all(place.path("flat")).unwrap();
    fs::write(place.path("flat/a.jpg"), b"x").unwrap();
    refused(
        &["--set", "data.train=flat"],
        &["flat", "a.jpg is in no folder"],
    );
    let crop = "data.transform={ resize = 64, crop = 48 }";
    refused(&["--set", crop], &["data.transform", "48 x 48"]);
}

#[test]
fn a_picture_that_found_no_room_is_tried_again_with_more_memory() {
    let place = place();
    let large = place.path("photos/train/wide/large.bmp");
    fs::write(large, bitmap(2000, 2000, 0, 1)).unwrap();
    let little = ["--set", "data.memory=64 MiB"];
    assert_eq!(embedded(&embed(&place, &little), "train")["skipped"], 1);
    let again = embedded(&embed(&place, &little), "train");
    assert_eq!(
        (&again["skipped"], &again["parts_made"]),
        (&1.into(), &0.into())
    );
    let more = embedded(&embed(&place, &[]), "train");
    assert_eq!(
        (&more["skipped"], &more["parts_made"]),
        (&0.into(), &1.into())
    );
}

#[test]
fn a_dry_run_plans_with_vectors_that_are_not_there_yet_and_says_what_would_be_embedded() {
    let place = place();
    let dry = |args: &[&str]| place.run(&[&["run", "job.toml", "--dry-run"], args].concat());
    let before = dry(&["--json"]);
    assert_eq!(before.code, Some(0), "{}", before.stderr);
    let plan = before.events().pop().unwrap();
    assert_eq!(
        (&plan["train_samples"], &plan["test_samples"]),
        (&34.into(), &12.into())
    );
    let train = &plan["embed"][0];
    assert_eq!(
        (&train["set"], &train["pictures"]),
        (&"train".into(), &34.into())
    );
    assert_eq!(
        (&train["parts"], &train["parts_missing"]),
        (&4.into(), &4.into())
    );
    assert!(!place.path("vectors").exists() && !place.path("runs").exists());
    let words = dry(&[]);
    assert!(
        words.stdout.contains("4 of 4 parts to make"),
        "{}",
        words.stdout
    );

    // What was foreseen is what a run finds.
    embedded(&embed(&place, &[]), "test");
    let after = dry(&["--json"]).events().pop().unwrap();
    assert_eq!(after["embed"][0]["parts_missing"], 0);
    for key in [
        "parameters",
        "layers",
        "steps_per_epoch",
        "memory",
        "test_samples",
    ] {
        assert_eq!(after[key], plan[key], "{key}");
    }
}

#[test]
fn an_encoder_that_is_not_there_is_named_with_the_command_that_brings_one() {
    let place = place();
    let model = ["--set", "embed.model=clip-vit-base-patch32"];
    let ran = place.run(&[&["run", "job.toml"], &model[..]].concat());
    assert_ne!(ran.code, Some(0));
    let words = [
        "embed.model",
        "clip-vit-base-patch32",
        "hf download openai/",
    ];
    for word in words {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
    assert!(place.runs().is_empty());
}

#[test]
fn pictures_without_classes_are_embedded_and_predicted_as_those_with_them() {
    let place = place();
    let run = place.train(&[])["run_dir"].as_str().unwrap().to_owned();
    fs::create_dir(place.path("flat")).unwrap();
    for class in ["wide", "tall"] {
        for number in 0..6 {
            let picture = place.path(&format!("photos/test/{class}/{number:02}.bmp"));
            fs::copy(
                picture,
                place.path(&format!("flat/{class}-{number:02}.bmp")),
            )
            .unwrap();
        }
    }
    // By class and number, however they were named and in whatever order they come.
    let predict = |data: &[&str]| {
        let ran = place.run(&[&["predict", &run, "--out", "-"], data].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let said = |row: Value| {
            let path = row["path"].as_str().unwrap().replace('-', "/");
            let key = path
                .rsplitn(3, '/')
                .take(2)
                .collect::<Vec<_>>()
                .join(" of ");
            let known = row.get("label").is_some();
            (
                key,
                (row["predicted"].clone(), row["probability"].clone(), known),
            )
        };
        ran.events()
            .into_iter()
            .map(said)
            .collect::<BTreeMap<_, _>>()
    };
    let known = predict(&[]);
    assert_eq!(known.len(), 12);
    assert!(known.values().all(|(.., known)| *known));
    let unknown = |(key, (class, probability, _)): (&String, &(Value, Value, bool))| {
        (key.clone(), (class.clone(), probability.clone(), false))
    };
    let unknown: BTreeMap<_, _> = known.iter().map(unknown).collect();
    assert_eq!(predict(&["--data", "flat"]), unknown);
    let paths = |data: &[&str]| {
        let ran = place.run(&[&["predict", &run, "--out", "-"], data].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let rows = ran.events();
        assert!((0..).zip(&rows).all(|(number, row)| row["row"] == number));
        let path = |row: &Value| row["path"].as_str().unwrap().to_owned();
        rows.iter().map(path).collect::<Vec<_>>()
    };
    let sorted = |between: char| {
        let names = |class| (0..6).map(move |number| format!("{class}{between}{number:02}.bmp"));
        names("tall").chain(names("wide")).collect::<Vec<_>>()
    };
    assert_eq!(paths(&[]), sorted('/'));
    assert_eq!(paths(&["--data", "flat"]), sorted('-'));
    let single = ["flat/wide-03.bmp", "flat/tall-01.bmp", "flat/wide-03.bmp"];
    assert_eq!(paths(&[&["--data"], &single[..]].concat()), single);
    let both = paths(&["--data", "flat/wide-03.bmp", "photos/test"]);
    assert_eq!(both[..2], ["flat/wide-03.bmp", "photos/test/tall/00.bmp"]);

    let some = predict(&["--data", "flat/wide-03.bmp", "flat/tall-01.bmp"]);
    let keys: Vec<_> = some.keys().map(String::as_str).collect();
    assert_eq!(keys, ["01.bmp of tall", "03.bmp of wide"]);
    assert!(some.iter().all(|(key, said)| unknown[key] == *said));
}
