//! A model carries all that it needs to predict, so that its run can be moved.

use crate::common::own_data::photos;
use crate::common::{embedding, read_json, run_folder, text};
use std::fs;
use std::path::Path;
#[test]
fn a_model_keeps_how_pictures_become_samples_and_a_run_that_was_moved_predicts() {
    let place = photos();
    let run = run_folder(&place.train(&[]));
    let card = read_json(&run.join("model/model.json"));
    assert_eq!(card["pictures"]["transform"]["resize"], 8, "{card}");
    let predict = |run: &Path| {
        let args = ["predict", text(run), "--data", "photos/wide/1.bmp", "--out"];
        place
            .succeeds(&[&args[..], &["-", "--probabilities"]].concat())
            .stdout
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
    let run = run_folder(&place.train(&[]));
    let predict = ["predict", text(&run), "--data", "photos/test/wide/01.bmp"];
    let predict = [&predict[..], &["--out", "-"]].concat();
    let before = place.succeeds(&predict).stdout;
    fs::rename(place.path("encoder"), place.path("elsewhere")).unwrap();
    place.refused(&predict, &["an encoder", "--set embed.model=PATH"]);
    let moved = [&predict[..], &["--set", "embed.model=elsewhere"]].concat();
    assert_eq!(place.succeeds(&moved).stdout, before);
    let weights = place.path("elsewhere/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    place.refused(
        &moved,
        &["is not the encoder that the model was trained with"],
    );
}
