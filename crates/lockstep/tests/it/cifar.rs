//! Training on CIFAR-10's binary files, with images that differ from step to step.

use crate::common::{Place, cifar, read_json};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const JOB: &str = r#"
name = "cifar"

[data]
train = { cifar = "cifar-10-batches-bin", split = "train" }
test = { cifar = "cifar-10-batches-bin", split = "test" }
normalise = { mean = [0.49, 0.48, 0.45], std = [0.25, 0.24, 0.26] }
augment = { crop_padding = 4, flip = true }

[model]
kind = "mlp"
hidden = [16]
dropout = 0.1

[train]
epochs = 3
batch = 32
optimizer = { kind = "sgd", lr = 0.02, momentum = 0.9 }
workers = 2
lanes = 2

[run]
store = "runs"
"#;

const PLAIN: [&str; 2] = ["--set", "data.augment={ crop_padding = 0, flip = false }"];

/// With 503 training images, which leaves a short last batch, and 100 to test on.
fn place() -> Place {
    let place = Place::new();
    cifar::write_folder(&place.path("cifar-10-batches-bin"), 503, 100, 1);
    place.write_job(JOB);
    place
}

#[test]
fn a_known_set_is_not_downloaded_where_that_is_forbidden() {
    let place = Place::new();
    let data = "{ images = \"train-images\", labels = \"train-labels\" }";
    place.edit_job(data, "\"cifar-10:train\"");
    let refused = place.run(&["run", "job.toml", "--offline"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    let words = ["cifar-10", "--offline or LOCKSTEP_OFFLINE forbids"];
    for word in words {
        assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr);
    }
    assert!(place.runs().is_empty());
}

#[test]
fn mistakes_are_shown_as_the_photos_that_they_are() {
    let place = place();
    let result = place.train(&["--epochs", "1"]);
    let run = std::path::PathBuf::from(result["run_dir"].as_str().unwrap());
    let evaluation = read_json(&run.join("evaluation.json"));
    let mistakes = evaluation["mistakes"].as_array().unwrap();
    assert!(!mistakes.is_empty(), "everything was right after one epoch");

    let test = fs::read(place.path("cifar-10-batches-bin/test_batch.bin")).unwrap();
    let photo = |row: usize| {
        let planes = &test[row * 3073 + 1..][..3072];
        (0..1024).flat_map(move |pixel| [0, 1024, 2048].map(|colour| planes[colour + pixel]))
    };
    let rows = mistakes
        .iter()
        .map(|mistake| mistake["row"].as_u64().unwrap());
    let expected: Vec<u8> = rows.flat_map(|row| photo(row as usize)).collect();

    let file = fs::read(run.join("mistakes.png")).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(file))
        .read_info()
        .unwrap();
    let mut shown = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut shown).unwrap();
    assert!(shown == expected, "other pixels than those of the photos");
}

#[test]
fn augmented_images_give_the_same_weights_on_one_and_two_workers() {
    let place = place();
    let one = place.weights(&["--workers", "1"]);
    assert_eq!(place.weights(&["--workers", "2"]), one);
    let tcp = ["--workers", "2", "--set", "gang.transport=tcp"];
    assert_eq!(place.weights(&tcp), one);
    // That it is said and does something.
    assert_ne!(place.weights(&PLAIN), one);
    assert_ne!(place.weights(&["--set", "data.augment.flip=false"]), one);
}

#[test]
fn the_classes_of_augmented_images_are_learned() {
    let result = place().train(&["--epochs", "8"]);
    let accuracy = result["metrics"]["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.5, "{accuracy}");
}

#[test]
fn evaluation_sees_the_images_as_they_are() {
    let place = place();
    // A rate so small that no weight moves: then all that could differ is what evaluation sees.
    let still = ["--epochs", "1", "--set", "train.optimizer.lr=1e-30"];
    let augmented = place.train(&still);
    let plain = place.train(&[&still[..], &PLAIN].concat());
    assert_eq!(augmented["weights_sha256"], plain["weights_sha256"]);
    assert_eq!(augmented["metrics"], plain["metrics"]);
    assert!(plain["metrics"]["loss"].is_f64(), "{plain}");
}

#[test]
fn a_resumed_run_goes_on_with_the_same_images_and_no_others() {
    let place = place();
    let mut run = place.start_long_run(&[]);
    run.wait_for("epoch");
    run.signal(Signal::INT);
    let (_, result, stderr) = run.finish();
    assert_eq!(result["status"], "interrupted", "{stderr}");
    let (folder, done) = (&result["run_dir"], &result["epochs"]);
    let epochs = (done.as_u64().unwrap() + 2).to_string();
    let resume = ["--epochs", &epochs, "--resume", folder.as_str().unwrap()];

    for change in ["data.augment.flip=false", "data.augment.crop_padding=3"] {
        let refused = place.run(&[&["run", "job.toml", "--set", change], &resume[..]].concat());
        assert_ne!(refused.code, Some(0));
        let (key, _) = change.split_once('=').unwrap();
        assert!(refused.stderr.contains(key), "{}", refused.stderr);
    }
    let whole = place.weights(&resume[..2]);
    let on_one = [&resume[..], &["--workers", "1"]].concat();
    assert_eq!(place.weights(&on_one), whole);
}

#[test]
fn files_that_are_named_make_the_same_set_as_their_folder() {
    let place = place();
    let files = [1, 2, 3, 4, 5].map(|i| format!("\"cifar-10-batches-bin/data_batch_{i}.bin\""));
    let files = format!("data.train={{ cifar = [{}] }}", files.join(", "));
    assert_eq!(place.weights(&["--set", &files]), place.weights(&[]));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let place = place();
    let refusal = |set: &str| {
        let ran = place.run(&["run", "job.toml", "--json", "--set", set]);
        assert_ne!(ran.code, Some(0), "{set}");
        let result: Value = ran.result();
        result["error"].as_str().unwrap().to_owned()
    };
    let wide = refusal("data.augment.crop_padding=32");
    assert!(
        wide.contains("crop_padding is 32") && wide.contains("32 x 32"),
        "{wide}"
    );
    let whole = refusal("data.train=cifar-10-batches-bin");
    assert!(whole.contains("split = \"train\""), "{whole}");

    let batch = place.path("cifar-10-batches-bin/data_batch_2.bin");
    let bytes = std::fs::read(&batch).unwrap();
    std::fs::write(&batch, &bytes[..bytes.len() - 1]).unwrap();
    let torn = refusal("train.epochs=1");
    assert!(
        torn.contains("data_batch_2.bin is truncated: its record 100 has 3072 of 3073"),
        "{torn}"
    );
    assert_eq!(place.runs(), Vec::<std::path::PathBuf>::new());
}
