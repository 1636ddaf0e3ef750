//! Images a second of an encoder: `cargo run --release -p lockstep-nn --example clip_rate --
//! clip FOLDER BATCH SECONDS THREADS`, or `lite0 FILE …`, and `fixed16` behind them for that precision; `-` instead of a file or folder invents the weights, of
//! ViT-B/32 for CLIP.
//!
//! Prints one line of JSON with the rate and the first picture's vector. `bench/clip.py` runs it beside
//! onnxruntime.

use lockstep_nn::Precision;
use lockstep_nn::Threads;
use lockstep_nn::encoder::{ClipConfig, Encoder, EncoderError, EncoderParts};
use lockstep_tensors::TensorFile;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, path, batch, seconds, threads, precision @ ..] = &arguments[..] else {
        return Err("usage: clip_rate clip|lite0 PATH BATCH SECONDS THREADS [fixed16]".into());
    };
    let precision = match precision.first().map(String::as_str) {
        Some("fixed16") => Precision::Fixed16,
        _ => Precision::F32,
    };
    let threads = Threads::with_threads(threads.parse()?)?;
    let (batch, seconds): (usize, f64) = (batch.parse()?, seconds.parse()?);
    let file = match path.as_str() {
        "-" => None,
        path => Some(TensorFile::open(path)?),
    };
    let mut tensors = |name: &str, shape: &[usize]| match &file {
        Some(file) => file.read(name).map_err(|error| EncoderError::Tensor {
            name: name.to_owned(),
            reason: error.to_string(),
        }),
        None => Ok(vec![0.01; shape.iter().product()]),
    };
    let parts = match kind.as_str() {
        "clip" => {
            let config = match &file {
                None => ClipConfig::default(),
                Some(_) => {
                    let text = std::fs::read_to_string(Path::new(path).join("config.json"))?;
                    ClipConfig::from_json(&text)?
                }
            };
            EncoderParts::clip(&config, &mut tensors)?
        }
        _ => EncoderParts::efficientnet_lite(0, &mut tensors)?,
    };
    let mut encoder = Encoder::in_precision(precision, &threads, parts, batch);
    let pixels: Vec<f32> = (0..(batch * encoder.input().len()) as u32)
        .map(|place| ((place.wrapping_mul(2_654_435_761) >> 24) as f32 - 127.0) / 128.0)
        .collect();
    let mut out = vec![0.0; batch * encoder.width()];
    encoder.encode(batch, &pixels, &mut out);
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed().as_secs_f64() < seconds {
        encoder.encode(batch, &pixels, &mut out);
        done += batch;
    }
    let rate = done as f64 / start.elapsed().as_secs_f64();
    let first = &out[..encoder.width()];
    println!("{{\"rate\": {rate}, \"first\": {first:?}}}");
    Ok(())
}
