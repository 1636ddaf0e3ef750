//! torchvision's ResNet-18 from its definition: plain loops over PyTorch's tensors, channel by channel.
//!
//! It shares nothing with the program but the names and the layout of the weights' file, which are what
//! it is there to check.

use super::tensors::{Tensor, Tensors};

/// Channels of each of the four stages.
const STAGES: [usize; 4] = [64, 128, 256, 512];

/// Images of some channels, each `side` x `side`.
#[derive(Clone)]
struct Image {
    channels: usize,
    side: usize,
    pixels: Vec<f32>,
}

/// Weights as PyTorch might have drawn or trained them: nothing is 0 or 1 that need not be.
pub(crate) fn random(classes: usize, mut draw: impl FnMut() -> f32) -> Tensors {
    let mut tensors = Tensors::new();
    let mut put = |name: String, shape: &[usize], low: f32, high: f32| {
        let len = shape.iter().product();
        let numbers = (0..len).map(|_| low + (high - low) * draw()).collect();
        let shape = shape.to_vec();
        tensors.insert(name, Tensor { shape, numbers });
    };
    let mut convolution = |name: &str, norm: &str, out: usize, inputs: usize, kernel: usize| {
        let bound = (3.0 / (inputs * kernel * kernel) as f32).sqrt();
        let shape = [out, inputs, kernel, kernel];
        put(format!("{name}.weight"), &shape, -bound, bound);
        put(format!("{norm}.weight"), &[out], 0.5, 1.5);
        put(format!("{norm}.bias"), &[out], -0.5, 0.5);
        put(format!("{norm}.running_mean"), &[out], -0.5, 0.5);
        put(format!("{norm}.running_var"), &[out], 0.5, 1.5);
    };
    convolution("conv1", "bn1", 64, 3, 7);
    let mut inputs = 64;
    for (stage, out) in STAGES.into_iter().enumerate() {
        for block in 0..2 {
            let name = format!("layer{}.{block}", stage + 1);
            convolution(
                &format!("{name}.conv1"),
                &format!("{name}.bn1"),
                out,
                inputs,
                3,
            );
            convolution(
                &format!("{name}.conv2"),
                &format!("{name}.bn2"),
                out,
                out,
                3,
            );
            if inputs != out {
                let path = format!("{name}.downsample");
                convolution(&format!("{path}.0"), &format!("{path}.1"), out, inputs, 1);
            }
            inputs = out;
        }
    }
    put("fc.weight".to_owned(), &[classes, 512], -0.05, 0.05);
    put("fc.bias".to_owned(), &[classes], -0.05, 0.05);
    tensors
}

/// The scores of one image of 3 channels, given channel by channel.
pub(crate) fn scores(weights: &Tensors, side: usize, pixels: Vec<f32>) -> Vec<f32> {
    let image = Image {
        channels: 3,
        side,
        pixels,
    };
    let x = normalised(weights, "bn1", convolved(weights, "conv1", &image, 2));
    let mut x = max_pooled(&rectified(x));
    for stage in 1..=STAGES.len() {
        for block in 0..2 {
            let name = format!("layer{stage}.{block}");
            let stride = if stage > 1 && block == 0 { 2 } else { 1 };
            x = residual(weights, &name, x, stride);
        }
    }
    let area = (x.side * x.side) as f32;
    let means: Vec<f32> = x
        .pixels
        .chunks(x.side * x.side)
        .map(|pixels| pixels.iter().sum::<f32>() / area)
        .collect();
    let (matrix, bias) = (&weights["fc.weight"].numbers, &weights["fc.bias"].numbers);
    let dot = |row: &[f32]| row.iter().zip(&means).map(|(w, x)| w * x).sum::<f32>();
    matrix
        .chunks(means.len())
        .zip(bias)
        .map(|(row, bias)| dot(row) + bias)
        .collect()
}

fn residual(weights: &Tensors, name: &str, x: Image, stride: usize) -> Image {
    let part = |part: &str| format!("{name}.{part}");
    let y = convolved(weights, &part("conv1"), &x, stride);
    let y = rectified(normalised(weights, &part("bn1"), y));
    let y = convolved(weights, &part("conv2"), &y, 1);
    let mut y = normalised(weights, &part("bn2"), y);
    let path = part("downsample.0");
    let around = if weights.contains_key(&format!("{path}.weight")) {
        let around = convolved(weights, &path, &x, stride);
        normalised(weights, &part("downsample.1"), around)
    } else {
        x
    };
    for (y, x) in y.pixels.iter_mut().zip(&around.pixels) {
        *y += x;
    }
    rectified(y)
}

/// A convolution whose windows are centred on pixels.
fn convolved(weights: &Tensors, name: &str, x: &Image, stride: usize) -> Image {
    let Tensor { shape, numbers } = &weights[&format!("{name}.weight")];
    let (out, kernel) = (shape[0], shape[2]);
    assert_eq!(shape[1], x.channels, "{name}");
    let padding = kernel / 2;
    let side = (x.side + 2 * padding - kernel) / stride + 1;
    let mut pixels = vec![0.0; out * side * side];
    for (output, pixels) in pixels.chunks_mut(side * side).enumerate() {
        for input in 0..x.channels {
            let from = &x.pixels[input * x.side * x.side..][..x.side * x.side];
            let window =
                &numbers[(output * x.channels + input) * kernel * kernel..][..kernel * kernel];
            for (at, pixel) in pixels.iter_mut().enumerate() {
                let (top, left) = (at / side * stride, at % side * stride);
                for (place, weight) in window.iter().enumerate() {
                    let (row, column) = (top + place / kernel, left + place % kernel);
                    let inside = padding..x.side + padding;
                    if inside.contains(&row) && inside.contains(&column) {
                        *pixel += weight * from[(row - padding) * x.side + column - padding];
                    }
                }
            }
        }
    }
    Image {
        channels: out,
        side,
        pixels,
    }
}

fn normalised(weights: &Tensors, name: &str, mut x: Image) -> Image {
    let of = |part: &str| &weights[&format!("{name}.{part}")].numbers;
    let (scale, shift) = (of("weight"), of("bias"));
    let (mean, variance) = (of("running_mean"), of("running_var"));
    for (c, pixels) in x.pixels.chunks_mut(x.side * x.side).enumerate() {
        for x in pixels {
            *x = (*x - mean[c]) / (variance[c] + 1e-5).sqrt() * scale[c] + shift[c];
        }
    }
    x
}

fn rectified(mut x: Image) -> Image {
    x.pixels.iter_mut().for_each(|x| *x = x.max(0.0));
    x
}

/// The largest of 3 x 3 pixels around every other one.
fn max_pooled(x: &Image) -> Image {
    let side = (x.side - 1) / 2 + 1;
    let mut pixels = Vec::with_capacity(x.channels * side * side);
    for channel in x.pixels.chunks(x.side * x.side) {
        for at in 0..side * side {
            let (top, left) = (2 * (at / side), 2 * (at % side));
            let rows = top.saturating_sub(1)..(top + 2).min(x.side);
            let all = rows.flat_map(|row| {
                let columns = left.saturating_sub(1)..(left + 2).min(x.side);
                columns.map(move |column| channel[row * x.side + column])
            });
            pixels.push(all.fold(f32::NEG_INFINITY, f32::max));
        }
    }
    Image {
        channels: x.channels,
        side,
        pixels,
    }
}
