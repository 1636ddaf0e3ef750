//! A fingerprint of how this process computes: two processes with the same give the same bits.

use crate::TrainError;
use crate::weights;
use lockstep_gang::Collective;
use lockstep_nn::{Batch, Collect, Dims, LayerSpec, Model, NamedLayer, Step, Targets};

/// A small model that uses everything: every kind of layer, and sums longer than any block of them.
fn specimen() -> Vec<NamedLayer> {
    let convolution = |out| LayerSpec::Conv2d {
        out,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
        bias: true,
    };
    let (kernel, stride, padding) = ([3, 2], [2, 1], [1, 0]);
    let residual = LayerSpec::Residual {
        body: NamedLayer::stack([convolution(5), LayerSpec::BatchNorm]),
        shortcut: Vec::new(),
    };
    NamedLayer::stack([
        convolution(5),
        LayerSpec::BatchNorm,
        LayerSpec::Relu,
        LayerSpec::MaxPool {
            kernel,
            stride,
            padding,
        },
        residual,
        LayerSpec::Gelu,
        LayerSpec::AvgPool {
            kernel,
            stride: [1, 1],
            padding,
        },
        LayerSpec::Flatten,
        LayerSpec::Linear { out: 37 },
        LayerSpec::BatchNorm,
        LayerSpec::Relu,
        LayerSpec::Dropout { p: 0.3 },
        LayerSpec::Linear { out: 10 },
    ])
}

/// Computes the gradient of the specimen, and hashes it.
fn fingerprint() -> u64 {
    let rows = 7;
    let input = Dims {
        height: 19,
        width: 17,
        channels: 3,
    };
    let inputs = input.len();
    let mut model = Model::new(&specimen(), input, rows).expect("the specimen can be built");
    let state = model.initial_state(1);
    let x: Vec<f32> = (0..rows * inputs)
        .map(|i| (i * 7919 % 1009) as f32 / 1009.0)
        .collect();
    let labels: Vec<u32> = (0..rows as u32).collect();
    let layout = model.layout().clone();
    let mut collect = Collect::new(&state, &layout);
    let batch = Batch {
        inputs: &x,
        targets: Targets::Classes(&labels),
    };
    model.gradient(
        &mut collect,
        batch,
        Step {
            seed: 3,
            number: 5,
            samples: &labels,
            batch: 9,
        },
    );
    let hash = weights::sha256_of([&collect.gradient]);
    u64::from_str_radix(&hash[..13], 16).unwrap_or_default()
}

/// Refuses a gang whose members would compute different bits.
pub(crate) fn agree(collective: &mut dyn Collective) -> Result<(), TrainError> {
    // 52 bits travel exactly in an f64.
    let mine = fingerprint() as f64;
    let mut all = vec![0.0; collective.plan().workers()];
    collective.all_gather(&[mine], &mut all)?;
    match all.iter().position(|&other| other != all[0]) {
        None => Ok(()),
        Some(rank) => Err(TrainError::Numerics {
            rank,
            found: all[rank] as u64,
            expected: all[0] as u64,
        }),
    }
}
