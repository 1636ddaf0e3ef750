//! A few steps of a whole network, whose parameters and rows are numbers that the script makes too.

use super::network::{Network, Shape};
use lockstep_nn::{Dims, Layout, NamedLayer, Tensor};
use serde::Deserialize;

/// A network, and PyTorch's loss before each step and after the last.
#[derive(Deserialize)]
pub(crate) struct CurveCase {
    pub(crate) name: String,
    #[serde(flatten)]
    network: Network,
    input: Shape,
    pub(crate) rows: usize,
    pub(crate) rate: f32,
    pub(crate) losses: Vec<f64>,
    /// The loss after the last step, with the running statistics.
    pub(crate) evaluated: f64,
}

impl CurveCase {
    pub(crate) fn layers(&self) -> Vec<NamedLayer> {
        self.network.layers()
    }

    pub(crate) fn input(&self) -> Dims {
        self.input.into()
    }

    /// The rows, channels innermost.
    pub(crate) fn inputs(&self) -> Vec<f32> {
        hashed("inputs", self.rows * self.input().len())
    }

    /// What training begins with.
    pub(crate) fn state(&self, layout: &Layout) -> Vec<f32> {
        let tensors = layout.tensors.iter();
        tensors
            .flat_map(|tensor| tensor.from_torch(&begin(tensor)))
            .collect()
    }
}

/// How a tensor begins, in PyTorch's order.
fn begin(tensor: &Tensor) -> Vec<f32> {
    let mut numbers = hashed(&tensor.name, tensor.range.len());
    let positive = tensor.name.ends_with("weight") || tensor.name.ends_with("var");
    for x in &mut numbers {
        *x = match tensor.shape[..] {
            [_] => *x / 4.0 + f32::from(positive),
            _ => *x * unit_gain(tensor),
        };
    }
    numbers
}

/// The power of two that lets a layer's output be about as large as its input.
fn unit_gain(tensor: &Tensor) -> f32 {
    let inputs: usize = tensor.shape[1..].iter().product();
    2f32.powi(((3.0 / inputs as f64).log2() / 2.0).round_ties_even() as i32)
}

/// Numbers in -1..1, a function of a name.
fn hashed(name: &str, len: usize) -> Vec<f32> {
    let seed = name.bytes().fold(0x811c_9dc5_u32, |seed, byte| {
        (seed ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let number = |i: u32| {
        let mut x = i.wrapping_add(seed);
        for (shift, factor) in [(16, 0x7feb_352d), (15, 0x846c_a68b)] {
            x = (x ^ (x >> shift)).wrapping_mul(factor);
        }
        ((x ^ (x >> 16)) >> 16) as f32 / 32_768.0 - 1.0
    };
    (0..len as u32).map(number).collect()
}
