//! Data is found, checked and hashed once a run: workers, also those that come later, only map it; damage is
//! noticed before anything is trained on it.

use crate::common::{Place, send};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;

/// The decoded copies in the cache.
fn decoded(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path("cache/decoded")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_none()).collect()
}

#[test]
fn samples_that_were_damaged_in_the_cache_are_never_trained_on() {
    let place = Place::new();
    let sound = place.weights(&[]);
    for path in decoded(&place) {
        let mut bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len() / 2).step_by(101) {
            bytes[at] ^= 0x55;
        }
        // Its length and its trailer are as they were.
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(place.weights(&[]), sound);
}

#[test]
fn a_source_of_equal_size_and_time_is_noticed() {
    let place = Place::new();
    let before = place.weights(&[]);
    let images = place.path("train-images");
    let time = fs::metadata(&images).unwrap().modified().unwrap();
    let mut bytes = fs::read(&images).unwrap();
    let begin = bytes.len() / 2;
    for byte in &mut bytes[begin..] {
        *byte = !*byte;
    }
    fs::write(&images, bytes).unwrap();
    let file = fs::File::options().write(true).open(&images).unwrap();
    file.set_modified(time).unwrap();
    assert_ne!(place.weights(&[]), before);
}

#[test]
fn a_worker_that_comes_later_needs_neither_the_source_nor_a_look_at_it() {
    let place = Place::new();
    let args = ["--epochs", "30"];
    let undisturbed = place.weights(&args);
    let mut run = place.start(&args);
    let victim = run.wait_for_worker(1);
    run.wait_for("epoch");
    for name in ["train-images", "train-labels", "test-images", "test-labels"] {
        fs::rename(place.path(name), place.path(&format!("{name}-gone"))).unwrap();
    }
    send(victim, Signal::KILL);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(result["restarts"], 1);
    assert_eq!(result["weights_sha256"], undisturbed);
}
