//! What one stumbles over on a first day with data, folders and runs of one's own: each of these went wrong once, in
//! silence or with words that led astray. Tables are in `bad_input.rs` and `regression.rs`: labels that are decimals,
//! columns that cannot be meant, one class alone.

use crate::common::bitmap::bitmap;
use crate::common::{Place, Ran, embedding, read_json};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Rows of two numbers, of which the first decides the class.
fn table(rows: usize) -> String {
    let row = |row: usize| {
        let a = (row * 7 % 13) as f32 - 6.0;
        let class = if a > 0.0 { "high" } else { "low" };
        format!("{a},{},{class}\n", row % 5)
    };
    "a,b,label\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

const TABLE: &str = "name = 'table'\n[data]\ntrain = 'table.csv'\ntest = 'table.csv'\n\
    [model]\nkind = 'mlp'\nhidden = [8]\n[train]\nepochs = 2\nbatch = 8\noptimizer = { kind = 'adam' }\n";

const PHOTOS: &str = "name = 'photos'\n[data]\ntrain = 'photos/'\nval_split = 0.2\ntransform = { resize = 8 }\nmax_bad = 0.0\n\
    [model]\nkind = 'mlp'\nhidden = [8]\n[train]\nepochs = 2\nbatch = 8\noptimizer = { kind = 'adam' }\n";

/// A place with a table and a job on it.
fn tables() -> Place {
    let place = Place::new();
    fs::write(place.path("table.csv"), table(60)).unwrap();
    place.write_job(TABLE);
    place
}

/// A place with two classes of photos and a job on them.
fn photos() -> Place {
    let place = Place::new();
    for (class, name) in ["wide", "tall"].into_iter().enumerate() {
        let folder = place.path(&format!("photos/{name}"));
        fs::create_dir_all(&folder).unwrap();
        for number in 0..10 {
            let picture = bitmap(12 + number % 7, 10 + number % 5, class as u32, number);
            fs::write(folder.join(format!("{number}.bmp")), picture).unwrap();
        }
    }
    place.write_job(PHOTOS);
    place
}

fn folder(result: &Value) -> PathBuf {
    PathBuf::from(result["run_dir"].as_str().unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What a command that must succeed prints.
fn succeeds(place: &Place, args: &[&str]) -> Ran {
    let ran = place.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran
}

/// Fails unless a command is refused with all these words.
fn refused(place: &Place, args: &[&str], words: &[&str]) {
    let ran = place.run(args);
    assert!(matches!(ran.code, Some(1 | 2)), "{args:?}: {}", ran.stdout);
    for word in words {
        assert!(
            ran.stderr.contains(word),
            "{word} is missing in\n{}",
            ran.stderr
        );
    }
}

#[test]
fn a_bad_value_is_reported_on_the_line_that_an_editor_shows() {
    let place = tables();
    let mut lines: Vec<String> = table(60).lines().map(str::to_owned).collect();
    lines[50] = "1,so-so,low".to_owned();
    let columns = "{ csv = 'table.csv', features = ['a', 'b'], types = { b = 'number' } }";
    fs::write(place.path("table.csv"), lines.join("\n")).unwrap();
    let set = format!("data.train={columns}");
    refused(&place, &["run", "job.toml", "--set", &set], &["line 51"]);
}

#[test]
fn paths_after_data_mean_the_current_folder_however_they_are_written() {
    let place = tables();
    let run = folder(&place.train(&[]));
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::write(place.path("elsewhere/other.csv"), table(31)).unwrap();
    let samples = |data: &str| {
        let mut command = place.command(&["evaluate", text(&run), "--json", "--data", data]);
        let output = command
            .current_dir(place.path("elsewhere"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{data}: {said}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["samples"].clone()
    };
    for data in [
        "other.csv",
        "{ csv = 'other.csv' }",
        "{ csv = '../elsewhere/other.csv', features = ['a', 'b'] }",
    ] {
        assert_eq!(samples(data), 31, "{data}");
    }
}

#[test]
fn measuring_on_other_data_leaves_what_the_run_says_of_its_own() {
    let place = tables();
    let run = folder(&place.train(&[]));
    fs::write(place.path("other.csv"), table(31)).unwrap();
    let own = ["evaluation.json", "confusion.svg"].map(|name| fs::read(run.join(name)).unwrap());
    let same = || {
        let now = ["evaluation.json", "confusion.svg"];
        now.map(|name| fs::read(run.join(name)).unwrap()) == own
    };
    let ran = succeeds(&place, &["evaluate", text(&run), "--data", "other.csv"]);
    assert!(ran.stdout.contains("--out DIR"), "{}", ran.stdout);
    let set = "data.test='other.csv'";
    succeeds(&place, &["evaluate", text(&run), "--set", set]);
    assert!(same());
    let out = ["--data", "other.csv", "--out", "beside"];
    succeeds(&place, &[&["evaluate", text(&run)], &out[..]].concat());
    assert_eq!(
        read_json(&place.path("beside/evaluation.json"))["samples"],
        31
    );
    succeeds(&place, &["evaluate", text(&run)]);
    assert!(same());
}

#[test]
fn a_fork_begins_with_the_weights_that_were_kept_unless_the_last_are_asked_for() {
    let place = Place::new();
    let validated = ["--set", "data.val_split=0.2"];
    let wild = ["--epochs", "5", "--set", "train.optimizer.lr=0.4"];
    let old = place.train(&[&validated[..], &wild].concat());
    assert!(old["best_epoch"].as_u64() < Some(5), "{old}");
    let still = ["--set", "train.optimizer.lr=1e-30", "--epochs", "1"];
    let name = old["run"].as_str().unwrap();
    let fork = |which: &str| {
        let forked = [&validated[..], &still, &["--resume", name, which]].concat();
        let ran = succeeds(
            &place,
            &[&["run", "job.toml", "--json"], &forked[..]].concat(),
        );
        let said = ran.stdout.clone();
        (ran.result()["weights_sha256"].clone(), said)
    };
    let (best, said) = fork("--fork");
    assert_eq!(best, old["weights_sha256"]);
    let kept = format!("of epoch {}", old["best_epoch"]);
    assert!(said.contains(&kept), "{said}");
    assert_eq!(fork("--fork=best").0, best);
    let (last, said) = fork("--fork=last");
    assert_ne!(last, best);
    assert!(said.contains("the last weights of"), "{said}");
}

#[test]
fn a_model_keeps_how_pictures_become_samples_and_a_run_that_was_moved_predicts() {
    let place = photos();
    let run = folder(&place.train(&[]));
    let card = read_json(&run.join("model/model.json"));
    assert_eq!(card["pictures"]["transform"]["resize"], 8, "{card}");
    let predict = |run: &Path| {
        let args = ["predict", text(run), "--data", "photos/wide/1.bmp", "--out"];
        succeeds(&place, &[&args[..], &["-", "--probabilities"]].concat()).stdout
    };
    let before = predict(&run);
    let moved = place.path("moved");
    fs::rename(&run, &moved).unwrap();
    fs::rename(place.path("photos/tall"), place.path("gone")).unwrap();
    // What the job file says of pictures is not asked again.
    let job = fs::read_to_string(moved.join("job.toml")).unwrap();
    let other = job.replace("bicubic", "nearest");
    assert_ne!(job, other);
    fs::write(moved.join("job.toml"), other).unwrap();
    assert_eq!(predict(&moved), before);
}

#[test]
fn a_model_of_vectors_knows_its_encoder_and_says_what_is_missing() {
    let place = embedding::place();
    fs::create_dir(place.path("encoder")).unwrap();
    for file in fs::read_dir(embedding::CLIP).unwrap().flatten() {
        fs::copy(file.path(), place.path("encoder").join(file.file_name())).unwrap();
    }
    place.write_job(&embedding::JOB.replace("CLIP", "encoder"));
    let run = folder(&place.train(&[]));
    let predict = ["predict", text(&run), "--data", "photos/test/wide/01.bmp"];
    let predict = [&predict[..], &["--out", "-"]].concat();
    let before = succeeds(&place, &predict).stdout;
    fs::rename(place.path("encoder"), place.path("elsewhere")).unwrap();
    refused(&place, &predict, &["an encoder", "--set embed.model=PATH"]);
    let moved = [&predict[..], &["--set", "embed.model=elsewhere"]].concat();
    assert_eq!(succeeds(&place, &moved).stdout, before);
    let weights = place.path("elsewhere/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    refused(
        &place,
        &moved,
        &["is not the encoder that the model was trained with"],
    );
}

#[test]
fn what_is_wrong_with_data_and_layers_is_said_as_it_is() {
    let place = tables();
    let run = |set: &str| ["run", "job.toml", "--set", set].map(str::to_owned);
    let refused = |set: &str, words: &[&str]| {
        let args = run(set);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        refused(&place, &args, words);
    };
    refused("data.train='nowhere'", &["nowhere", "does not exist"]);
    fs::create_dir_all(place.path("empty")).unwrap();
    refused("data.train='empty'", &["a folder without pictures"]);
    fs::create_dir_all(place.path("photos/pug")).unwrap();
    fs::write(place.path("photos/pug/1.bmp"), bitmap(9, 9, 0, 0)).unwrap();
    refused(
        "data.train='photos'",
        &["data.transform: pictures must come out in one size"],
    );
    fs::write(place.path("notes.txt"), "a few words\n").unwrap();
    refused(
        "data.train='notes.txt'",
        &["a table's name ends in .csv or .parquet"],
    );
    let layers = "model={ layers = [{ kind = 'flatten' }, { kind = 'conv2d', out = 4, kernel = 3 }, \
                  { kind = 'linear' }] }";
    refused(
        layers,
        &["model.layers[1]", "a row of numbers, not an image"],
    );
}

#[test]
fn data_that_changed_before_a_resume_is_named_instead_of_hashes() {
    let place = tables();
    let result = place.train(&[]);
    let name = result["run"].as_str().unwrap();
    let resume = ["run", "job.toml", "--epochs", "3", "--resume", name];
    fs::write(place.path("table.csv"), table(61)).unwrap();
    let words = [
        "the samples of data.train",
        "table.csv has changed",
        "--fork",
    ];
    refused(&place, &resume, &words);
    let ran = place.run(&resume);
    assert!(!ran.stderr.contains("sha256"), "{}", ran.stderr);
}

#[test]
fn what_was_passed_over_in_silence_is_said() {
    let place = tables();
    let layers = "model={ layers = [{ kind = 'linear', out = 5 }] }";
    let ran = succeeds(&place, &["run", "job.toml", "--set", layers]);
    let words = "has 5 outputs, and the data has 2 classes";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);

    let place = photos();
    let frame = "data.transform={ resize = 8, crop = 12 }";
    refused(
        &place,
        &["run", "job.toml", "--set", frame],
        &["would be black"],
    );
    fs::create_dir(place.path("photos/square")).unwrap();
    fs::write(place.path("photos/square/notes.txt"), "none yet").unwrap();
    let words = ["the class `square`", "no picture"];
    refused(&place, &["run", "job.toml"], &words);
    fs::remove_dir_all(place.path("photos/square")).unwrap();
    fs::write(place.path("photos/wide/moving.gif"), b"GIF89a...").unwrap();
    let words = ["wide/moving.gif", "GIF is not read"];
    refused(&place, &["run", "job.toml"], &words);
    let ran = succeeds(&place, &["run", "job.toml", "--set", "data.max_bad=0.5"]);
    assert!(ran.stdout.contains("19"), "{}", ran.stdout);
}

#[test]
fn it_is_the_memory_that_decides_whether_a_photo_is_too_large() {
    let place = embedding::place();
    // Of 64 MiB, half is for one picture: this one takes 10 MB, though it has more than two megapixels.
    let large = bitmap(2000, 1250, 0, 3);
    fs::write(place.path("photos/train/wide/large.bmp"), large).unwrap();
    let less = ["--set", "data.memory='64 MiB'", "--set", "data.max_bad=0.0"];
    let ran = succeeds(&place, &[&["embed", "job.toml"], &less[..]].concat());
    assert!(
        ran.stdout.contains("35 pictures embedded"),
        "{}",
        ran.stdout
    );
}
