//! A job that embeds pictures and trains a head on the vectors, small enough for tests.

use super::Place;
use super::bitmap::bitmap;
use std::fs;

/// A CLIP that is small enough for tests, with random weights.
pub(crate) const CLIP: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lockstep-nn/tests/clip/quick"
);

pub(crate) const JOB: &str = r#"
name = "pictures"

[data]
train = "photos/train"
test = "photos/test"
max_bad = 0.2

[embed]
model = "CLIP"
batch = 4
store = "vectors"
part = 10

[model]
kind = "head"
hidden = 16

[train]
epochs = 3
batch = 15
optimizer = { kind = "adam" }
workers = 2

[run]
store = "runs"
"#;

/// With 2 classes of pictures: 34 to train on, 12 to test on.
pub(crate) fn place() -> Place {
    let place = Place::new();
    for (set, count) in [("train", 17), ("test", 6)] {
        for (class, name) in ["wide", "tall"].into_iter().enumerate() {
            let folder = place.path(&format!("photos/{set}/{name}"));
            fs::create_dir_all(&folder).unwrap();
            for number in 0..count {
                let picture = bitmap(40 + number % 7, 36 + number % 5, class as u32, number);
                fs::write(folder.join(format!("{number:02}.bmp")), picture).unwrap();
            }
        }
    }
    place.write_job(&JOB.replace("CLIP", CLIP));
    place
}
