//! Pictures a second of an encoder on the GPU of this machine, with invented weights:
//!
//!     cargo run --release -p lockstep-cuda --example encoder_speed -- clip|lite0 BATCH SECONDS
//!
//! Pictures lie in the machine's memory, decoded, and vectors come back there. Prints one line of JSON with the rate, and
//! whether the vectors of some pictures have the processor's bits. `bench/gpu.py` runs it beside PyTorch.

use lockstep_base::random::Stream;
use lockstep_cuda::{BUNCHES, Gpu, GpuEncoder};
use lockstep_nn::Threads;
use lockstep_nn::encoder::{ClipConfig, Encoder, EncoderParts};
use std::error::Error;
use std::time::Instant;

/// Pictures whose vectors are held against the processor's.
const HELD: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, batch, seconds] = &arguments[..] else {
        return Err("usage: encoder_speed clip|lite0 BATCH SECONDS".into());
    };
    let (batch, seconds): (usize, f64) = (batch.parse()?, seconds.parse()?);
    let gpu = Gpu::open(0)?;
    let mut numbers = Stream::new(1, 0);
    let mut tensors = |name: &str, shape: &[usize]| {
        let inputs: usize = shape.iter().skip(1).product();
        let scale = match shape.len() {
            1 => 0.3,
            _ => (3.0 / inputs as f32).sqrt(),
        };
        // Deviations and scales are about 1.
        let is_scale = shape.len() == 1 && (name.ends_with("weight") || name.ends_with("var"));
        let middle = if is_scale { 1.0 } else { 0.0 };
        let count = shape.iter().product::<usize>();
        let number = |_| middle + scale * (2.0 * numbers.unit_f32() - 1.0);
        Ok((0..count).map(number).collect())
    };
    let parts = match kind.as_str() {
        "clip" => EncoderParts::clip(&ClipConfig::default(), &mut tensors)?,
        _ => EncoderParts::efficientnet_lite(0, &mut tensors)?,
    };
    let mut encoder = GpuEncoder::new(&gpu, &parts, batch)?;
    let input = parts.input().len();
    let mut pixels = Stream::new(2, 0);
    for _ in 0..BUNCHES {
        for pixel in encoder.pictures()? {
            *pixel = 2.0 * pixels.unit_f32() - 1.0;
        }
        encoder.queue(batch)?;
    }
    let first = encoder.take()?[..HELD.min(batch) * parts.width()].to_vec();
    encoder.take()?;
    // Each bunch of pinned memory still has its pictures.
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed().as_secs_f64() < seconds {
        encoder.queue(batch)?;
        if encoder.under_way() == BUNCHES {
            encoder.take()?;
            done += batch;
        }
    }
    while encoder.under_way() > 0 {
        encoder.take()?;
        done += batch;
    }
    let rate = done as f64 / start.elapsed().as_secs_f64();
    let mut pixels = Stream::new(2, 0);
    let held = first.len() / parts.width();
    let pictures: Vec<f32> = (0..held * input)
        .map(|_| 2.0 * pixels.unit_f32() - 1.0)
        .collect();
    let mut expected = vec![0.0; first.len()];
    Encoder::new(&Threads::default(), parts, held).encode(held, &pictures, &mut expected);
    let same = first
        .iter()
        .zip(&expected)
        .all(|(x, y)| x.to_bits() == y.to_bits());
    println!("{{\"rate\": {rate}, \"same\": {same}}}");
    Ok(())
}
