//! What is wrong with data and with layers on them is said as it is, and nothing is passed over in silence. Tables are also
//! in `bad_input.rs` and `regression.rs`: labels that are decimals, columns that cannot be meant, one class alone.

use crate::common::bitmap::bitmap;
use crate::common::embedding;
use crate::common::own_data::{photos, table, tables};
use std::fs;
#[test]
fn a_bad_value_is_reported_on_the_line_that_an_editor_shows() {
    let place = tables();
    let mut lines: Vec<String> = table(60).lines().map(str::to_owned).collect();
    lines[50] = "1,so-so,low".to_owned();
    let columns = "{ csv = 'table.csv', features = ['a', 'b'], types = { b = 'number' } }";
    fs::write(place.path("table.csv"), lines.join("\n")).unwrap();
    let set = format!("data.train={columns}");
    place.refused(&["run", "job.toml", "--set", &set], &["line 51"]);
}

#[test]
fn what_is_wrong_with_data_and_layers_is_said_as_it_is() {
    let place = tables();
    let run = |set: &str| ["run", "job.toml", "--set", set].map(str::to_owned);
    let refused = |set: &str, words: &[&str]| {
        let args = run(set);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        place.refused(&args, words);
    };
    refused("data.train='nowhere'", &["nowhere", "does not exist"]);
    fs::create_dir_all(place.path("empty")).unwrap();
    refused("data.train='empty'", &["a folder without pictures"]);
    fs::create_dir_all(place.path("tables")).unwrap();
    fs::write(place.path("tables/a.csv"), "a,label\n1,2\n").unwrap();
    let by_kind = ["a folder of CSV files", "{ csv = \"FOLDER\""];
    refused("data.train='tables'", &by_kind);
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
fn what_was_passed_over_in_silence_is_said() {
    let place = tables();
    let layers = "model={ layers = [{ kind = 'linear', out = 5 }] }";
    let ran = place.succeeds(&["run", "job.toml", "--set", layers]);
    let words = "has 5 outputs, and the data has 2 classes";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);

    let place = photos();
    let frame = "data.transform={ resize = 8, crop = 12 }";
    place.refused(&["run", "job.toml", "--set", frame], &["would be black"]);
    fs::create_dir(place.path("photos/square")).unwrap();
    fs::write(place.path("photos/square/notes.txt"), "none yet").unwrap();
    let words = ["the class `square`", "no picture"];
    place.refused(&["run", "job.toml"], &words);
    fs::remove_dir_all(place.path("photos/square")).unwrap();
    fs::write(place.path("photos/wide/moving.gif"), b"GIF89a...").unwrap();
    let words = ["wide/moving.gif", "GIF is not read"];
    place.refused(&["run", "job.toml"], &words);
    let ran = place.succeeds(&["run", "job.toml", "--set", "data.max_bad=0.5"]);
    assert!(ran.stdout.contains("19"), "{}", ran.stdout);
}

#[test]
fn it_is_the_memory_that_decides_whether_a_photo_is_too_large() {
    let place = embedding::place();
    // Of 64 MiB, half is for one picture: this one takes 10 MB, though it has more than two megapixels.
    let large = bitmap(2000, 1250, 0, 3);
    fs::write(place.path("photos/train/wide/large.bmp"), large).unwrap();
    let less = ["--set", "data.memory='64 MiB'", "--set", "data.max_bad=0.0"];
    let ran = place.succeeds(&[&["embed", "job.toml"], &less[..]].concat());
    assert!(
        ran.stdout.contains("35 pictures embedded"),
        "{}",
        ran.stdout
    );
}
