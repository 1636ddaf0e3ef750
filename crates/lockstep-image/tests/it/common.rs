//! The small pictures of `tests/pictures`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pictures")
}

/// The bytes of a picture, or of what Pillow made of it.
pub(crate) fn read(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What there is.
pub(crate) fn index() -> Value {
    serde_json::from_slice(&read("index.json")).unwrap()
}

/// Names of the pictures of every kind.
pub(crate) fn names() -> Vec<String> {
    index()["decoded"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}
