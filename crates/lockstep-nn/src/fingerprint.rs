//! A fingerprint of how this process computes: two processes with the same one compute the same bits.
//!
//! It is a hash over everything that training computes and that a machine could compute differently: a
//! network with all kinds of layers and both ways of convolving, forward and backward and evaluated, samples
//! of those kinds that it lacks, every loss, dense layers formed from factors and by columns, every optimizer, the rates, and the norm.

use crate::dims::Dims;
use crate::fixed16::Precision;
use crate::layers::{self, EmbeddingTable, Step};
use crate::loss::{Loss, LossTargets, ShapedClasses, Targets, WeightedNumbers};
use crate::model::{Batch, Capacity, Model};
use crate::optimizer::{Optimizer, average, square_sum};
use crate::rates::LayerRates;
use crate::replica::Collect;
use crate::schedule::{Decay, Schedule};
use crate::spec::{LayerSpec, NamedLayer};
use crate::state::StateVector;
use crate::threads::Threads;
use std::collections::BTreeSet;

/// Which version of the numerics this is: from the same state, another one computes other bits.
pub const NUMERICS_VERSION: u32 = 2;

/// Rows of the batches: sums over rows and pixels are longer than any block of them.
const ROWS: usize = 7;

/// The samples of the network.
const INPUT: Dims = Dims {
    height: 19,
    width: 17,
    channels: 3,
};

/// Outputs of the network.
const OUTPUTS: usize = 10;

/// The fingerprint of this process. It takes a few milliseconds.
pub fn fingerprint() -> u64 {
    let mut hash = Hash::default();
    let specimen = specimen();
    let mut model = Model::new(&specimen, INPUT, ROWS).expect("the specimen can be built");
    let gradient = every_layer(&mut model, INPUT, &mut hash);
    other_layers(&specimen, &mut hash);
    every_optimizer(&model, &gradient, &mut hash);
    dense_layers(&model, &mut hash);
    every_loss(Loss::CrossEntropy, &mut hash);
    every_loss(Loss::SquaredError, &mut hash);
    every_loss(Loss::BinaryCrossEntropy, &mut hash);
    hash.0
}

/// The fingerprint of this process where products are computed so.
pub fn fingerprint_in(precision: Precision) -> u64 {
    let mut hash = Hash(fingerprint());
    if precision != Precision::F32 {
        let capacity = Capacity {
            rows: ROWS,
            lanes: 1,
        };
        let (rates, threads) = (LayerRates::default(), Threads::default());
        let specimen = specimen();
        let model = Model::in_precision(precision, &rates, &threads, &specimen, INPUT, capacity);
        let mut model = model.expect("the specimen can be built");
        every_layer(&mut model, INPUT, &mut hash);
    }
    hash.0
}

/// A small network that has every kind of layer that there was when it was made. Other layers would change the
/// fingerprint of all that is older; new kinds are found by [`other_layers`].
fn specimen() -> Vec<NamedLayer> {
    let convolution = |out, kernel, stride, padding, groups| {
        LayerSpec::Conv2d(layers::Conv2d {
            out,
            kernel,
            stride,
            padding,
            groups,
            bias: true,
        })
    };
    // With channels in groups of 16 a 3 x 3 convolution is Winograd's, without it is not.
    let square = |out, stride| convolution(out, [3, 3], [stride; 2], [1, 1], 1);
    let grouped = |groups| convolution(16, [3, 2], [2, 1], [1, 0], groups);
    let linear = |out| LayerSpec::Linear(layers::Linear { out });
    let residual = |body: Vec<LayerSpec>, shortcut: Vec<LayerSpec>| {
        let (body, shortcut) = (NamedLayer::stack(body), NamedLayer::stack(shortcut));
        LayerSpec::Residual(layers::Residual { body, shortcut })
    };
    let identity = residual(vec![square(16, 1), LayerSpec::BatchNorm], vec![]);
    let point = convolution(5, [1, 1], [2, 2], [0, 0], 1);
    let projected = residual(vec![square(5, 2), LayerSpec::Gelu], vec![point]);
    let to_vector = residual(
        vec![LayerSpec::Flatten, linear(37)],
        vec![LayerSpec::GlobalPool, linear(37)],
    );
    let in_groups = residual(
        vec![
            LayerSpec::GroupNorm(layers::GroupNorm { groups: 8 }),
            LayerSpec::LeakyRelu(layers::LeakyRelu { slope: 0.01 }),
            grouped(16),
            LayerSpec::Silu,
        ],
        vec![LayerSpec::LayerNorm, grouped(2), LayerSpec::Tanh],
    );
    let (kernel, padding) = ([3, 2], [1, 0]);
    let shape = Dims::image(1, 37, 1);
    NamedLayer::stack([
        square(16, 1),
        LayerSpec::BatchNorm,
        LayerSpec::Relu,
        identity,
        LayerSpec::MaxPool(layers::MaxPool {
            kernel,
            stride: [2, 1],
            padding,
        }),
        in_groups,
        projected,
        LayerSpec::Sigmoid,
        LayerSpec::AvgPool(layers::AvgPool {
            kernel,
            stride: [1, 1],
            padding,
        }),
        to_vector,
        LayerSpec::Relu,
        LayerSpec::Dropout(layers::Dropout { p: 0.3 }),
        LayerSpec::Unflatten(layers::Unflatten { shape }),
        LayerSpec::Conv1d(layers::Conv1d {
            out: 3,
            kernel: 5,
            stride: 2,
            padding: 1,
            groups: 1,
            bias: true,
        }),
        LayerSpec::Flatten,
        LayerSpec::Embedding(layers::Embedding {
            tables: vec![EmbeddingTable { rows: 5, width: 3 }; 2],
        }),
        linear(OUTPUTS),
    ])
}

/// A training pass over the specimen, and an evaluation. Returns the gradient.
fn every_layer(model: &mut Model, input: Dims, hash: &mut Hash) -> Vec<f32> {
    let state = model.initial_state(1);
    let inputs = numbers(ROWS * input.len());
    let labels: Vec<u32> = (0..ROWS as u32).collect();
    let layout = model.layout().clone();
    let mut collect = Collect::new(&state, &layout);
    let targets = Targets::Classes(&labels);
    model.gradient(
        &mut collect,
        Batch {
            inputs: &inputs,
            targets,
        },
        step(&labels),
    );
    hash.add(&collect.gradient);
    hash.add(model.scores(&state, &inputs));
    collect.gradient
}

/// A training pass over the sample of every kind that the specimen lacks, and an evaluation.
fn other_layers(specimen: &[NamedLayer], hash: &mut Hash) {
    let mut known = BTreeSet::new();
    kinds(specimen, &mut known);
    for (input, layer) in LayerSpec::samples() {
        if !known.contains(layer.kind()) {
            let last = LayerSpec::Linear(layers::Linear { out: OUTPUTS });
            let layers = NamedLayer::stack([layer, last]);
            let mut model = Model::new(&layers, input, ROWS).expect("a sample can be built");
            every_layer(&mut model, input, hash);
        }
    }
}

/// The kinds of some layers and of those inside of them.
fn kinds(layers: &[NamedLayer], found: &mut BTreeSet<&'static str>) {
    for layer in layers {
        found.insert(layer.spec.kind());
        if let LayerSpec::Residual(layers::Residual { body, shortcut }) = &layer.spec {
            kinds(body, found);
            kinds(shortcut, found);
        }
    }
}

/// Two steps of every optimizer, with rates of every schedule, and the norm of the gradient.
fn every_optimizer(model: &Model, gradient: &[f32], hash: &mut Hash) {
    let sgd = |momentum, nesterov| Optimizer::Sgd {
        momentum,
        nesterov,
        weight_decay: 0.01,
    };
    let adam = |decoupled| Optimizer::Adam {
        betas: [0.9, 0.999],
        epsilon: 1e-8,
        weight_decay: 0.01,
        decoupled,
    };
    let rms_prop = |momentum| Optimizer::RmsProp {
        alpha: 0.99,
        epsilon: 1e-8,
        momentum,
        weight_decay: 0.01,
    };
    let cosine = Decay::Cosine {
        steps: 9,
        min: 1e-5,
    };
    let step = Decay::Step {
        every: 3,
        gamma: 0.3,
    };
    let cycle = Decay::OneCycle {
        steps: 9,
        pct_start: 0.3,
        div_factor: 25.0,
        final_div_factor: 1e4,
    };
    let plateau = Decay::Plateau {
        factor: 0.3,
        min: 1e-5,
        cuts: 3,
    };
    let schedules = [Decay::Constant, step, cosine, cycle, plateau].map(|decay| Schedule {
        base: 0.1,
        warmup: 2,
        decay,
    });
    let values = model.initial_state(1);
    let optimizers = [
        sgd(0.0, false),
        sgd(0.9, false),
        sgd(0.9, true),
        adam(false),
        adam(true),
        rms_prop(0.0),
        rms_prop(0.9),
        Optimizer::Lion {
            betas: [0.9, 0.99],
            weight_decay: 0.01,
        },
    ];
    for optimizer in optimizers {
        let mut state = StateVector::new(model.layout(), &values, optimizer.planes());
        for (number, schedule) in [1, 7].into_iter().zip(schedules.iter().cycle()) {
            let update = optimizer.at(number, schedule.rate(number)).scaled(0.7);
            for chunk in &model.layout().chunks {
                state.update(chunk.clone(), &gradient[chunk.clone()], &update);
            }
        }
        for vector in state.vectors() {
            hash.add(vector);
        }
    }
    let mut averaged = values;
    average(&mut averaged, gradient, 0.3);
    hash.add(&averaged);
    let rates = schedules.map(|schedule| schedule.rate(5));
    hash.add(&rates);
    hash.add_bits(square_sum(gradient).to_bits());
}

/// The specimen's dense layers as workers exchange them: gradients formed from factors and added, and
/// outputs by columns.
fn dense_layers(model: &Model, hash: &mut Hash) {
    let compute = Threads::default();
    let state = model.initial_state(1);
    for layer in &model.layout().factored {
        let factors = (
            &numbers(ROWS * layer.inputs)[..],
            &numbers(ROWS * layer.outputs)[..],
        );
        for chunk in layer.chunks.clone() {
            let length = model.layout().chunks[chunk].len();
            let (mut sum, mut spare) = (vec![0.0; length], vec![0.0; length]);
            layer.gradient(&compute, chunk, factors, &mut sum);
            layer.add_gradient(&compute, chunk, factors, &mut sum, &mut spare);
            hash.add(&sum);
        }
        for chunk in layer.weight_chunks() {
            let Some(columns) = layer.columns(chunk) else {
                continue;
            };
            let width = columns.len();
            let mut y = vec![0.0; ROWS * width];
            let weight = &state[model.layout().chunks[chunk].clone()];
            let weights = (weight, &state[layer.bias()]);
            layer.product(&compute, columns, weights, factors.0, (&mut y, width));
            hash.add(&y);
        }
    }
}

/// A training pass of a single dense layer that minimises `loss`.
fn every_loss(loss: Loss, hash: &mut Hash) {
    let layers = NamedLayer::stack([LayerSpec::Linear(layers::Linear { out: OUTPUTS })]);
    let model = Model::new(&layers, Dims::vector(20), ROWS).expect("a dense layer can be built");
    let mut model = model.minimising(loss);
    let (state, layout) = (model.initial_state(2), model.layout().clone());
    let (inputs, wanted) = (numbers(ROWS * 20), numbers(ROWS * OUTPUTS));
    let labels: Vec<u32> = (0..ROWS as u32).collect();
    let others: Vec<(u32, f32)> = labels.iter().map(|&label| (label / 2, 0.3)).collect();
    let shaped = ShapedClasses {
        classes: &labels,
        others: &others,
        weights: &wanted[..OUTPUTS],
        samples: &inputs[..ROWS],
        smoothing: 0.1,
        factor: 1.5,
    };
    let weighted = WeightedNumbers {
        numbers: &wanted,
        weights: &inputs[..ROWS],
        factor: 1.5,
    };
    let all: &[Targets<'_>] = match loss.targets() {
        LossTargets::Classes => &[Targets::Classes(&labels), Targets::Shaped(shaped)],
        LossTargets::Numbers | LossTargets::Labels => {
            &[Targets::Numbers(&wanted), Targets::Weighted(weighted)]
        }
    };
    for &targets in all {
        let mut collect = Collect::new(&state, &layout);
        let sum = model.gradient(
            &mut collect,
            Batch {
                inputs: &inputs,
                targets,
            },
            step(&labels),
        );
        hash.add(&collect.gradient);
        hash.add_bits(sum.loss.to_bits());
    }
}

fn step(samples: &[u32]) -> Step<'_> {
    Step {
        seed: 3,
        number: 5,
        samples,
        batch: ROWS + 2,
    }
}

/// Numbers between 0 and 1 that no two layers see in the same order.
fn numbers(count: usize) -> Vec<f32> {
    let number = |i: usize| (i * 7919 % 1009) as f32 / 1009.0;
    (0..count).map(number).collect()
}

/// FNV-1a over the bits of numbers.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, numbers: &[f32]) {
        for number in numbers {
            self.add_bits(u64::from(number.to_bits()));
        }
    }

    fn add_bits(&mut self, bits: u64) {
        self.0 = (self.0 ^ bits).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::conv2d::is_winograds;
    use crate::layers::window::Window;

    #[test]
    fn other_precisions_have_other_fingerprints() {
        assert_eq!(fingerprint_in(Precision::F32), fingerprint());
        assert_ne!(fingerprint_in(Precision::Fixed16), fingerprint());
    }

    #[test]
    fn a_kind_of_layer_that_the_specimen_lacks_is_in_it_all_the_same() {
        let (mut all, mut none, mut without) = Default::default();
        other_layers(&specimen(), &mut all);
        assert_eq!(all.0, Hash::default().0);
        other_layers(&[], &mut none);
        let relu = NamedLayer::stack([LayerSpec::Relu]);
        other_layers(&relu, &mut without);
        assert_ne!(none.0, all.0);
        assert_ne!(none.0, without.0);
    }

    /// The convolutions of some layers that leave the size as it is: their inputs, outputs and windows.
    fn convolutions(layers: &[NamedLayer], mut at: Dims, found: &mut Vec<(Dims, Dims, Window)>) {
        for layer in layers {
            match &layer.spec {
                &LayerSpec::Conv2d(layers::Conv2d {
                    out,
                    kernel,
                    stride: [1, 1],
                    padding,
                    ..
                }) => {
                    let (input, stride) = (at, [1, 1]);
                    at.channels = out;
                    let window = Window {
                        kernel,
                        stride,
                        padding,
                    };
                    found.push((input, at, window));
                }
                LayerSpec::Residual(layers::Residual { body, .. }) => convolutions(body, at, found),
                LayerSpec::BatchNorm | LayerSpec::Relu => (),
                _ => return,
            }
        }
    }

    #[test]
    fn it_contains_both_ways_of_convolving() {
        let mut found = Vec::new();
        convolutions(&specimen(), INPUT, &mut found);
        let ways: BTreeSet<bool> = found
            .into_iter()
            .map(|(input, output, window)| is_winograds(input, output, window))
            .collect();
        assert_eq!(ways, BTreeSet::from([false, true]));
    }

    #[test]
    fn it_is_made_of_layers_optimizers_factors_and_losses_and_each_changes_it() {
        let mut hash = Hash::default();
        let mut model = Model::new(&specimen(), INPUT, ROWS).unwrap();
        let mut changed = |then: &mut dyn FnMut(&mut Hash)| {
            let before = hash.0;
            then(&mut hash);
            assert_ne!(hash.0, before);
            hash.0
        };
        let mut gradient = Vec::new();
        changed(&mut |hash| gradient = every_layer(&mut model, INPUT, hash));
        changed(&mut |hash| every_optimizer(&model, &gradient, hash));
        changed(&mut |hash| dense_layers(&model, hash));
        changed(&mut |hash| every_loss(Loss::CrossEntropy, hash));
        changed(&mut |hash| every_loss(Loss::SquaredError, hash));
        let all = changed(&mut |hash| every_loss(Loss::BinaryCrossEntropy, hash));
        assert_eq!(fingerprint(), all);
    }

    #[test]
    fn it_is_the_same_every_time_and_other_numbers_would_change_it() {
        assert_eq!(fingerprint(), fingerprint());
        let (mut one, mut other) = (Hash::default(), Hash::default());
        one.add(&[1.0, 2.0]);
        other.add(&[1.0, f32::from_bits(2f32.to_bits() + 1)]);
        assert_ne!(one.0, other.0);
    }
}
