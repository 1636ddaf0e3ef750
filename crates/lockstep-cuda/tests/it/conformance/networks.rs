//! Whole networks that people train: what their layers do beside each other, in lanes of different sizes.

use super::cases::{Case, linear};
use super::images::{convolution, winograd};
use super::layers::residual;
use lockstep_nn::{Dims, LayerSpec, NamedLayer, Optimizer, zoo};

/// Those that are small enough for every run.
pub(super) fn cases() -> Vec<Case> {
    vec![residual_network(), cifar_cnn(), head()]
}

/// ResNet-18 with both stems, down to images of one pixel.
pub(super) fn resnets() -> Vec<Case> {
    let resnet = |small_stem, side, samples| {
        let name = format!("ResNet-18 of {side} x {side} pixels");
        let layers = zoo::resnet18(4, small_stem);
        Case::new(name, layers, Dims::image(side, side, 3), samples).in_batches(3, 2)
    };
    vec![resnet(true, 8, 5), resnet(false, 40, 8)]
}

/// Products in fixed point that are large enough for each size of tiles.
pub(super) fn many_pixels() -> Vec<Case> {
    let case = |channels: usize| {
        let pixelwise = |out| convolution(out, [[1, 1], [1, 1], [0, 0]], 1, true);
        let layers = [pixelwise(channels), LayerSpec::Relu, pixelwise(channels)];
        let layers = layers.into_iter().chain([LayerSpec::GlobalPool, linear(3)]);
        let name = format!("{channels} channels of many pixels");
        let input = Dims::image(65, 64, 16);
        Case::new(name, NamedLayer::stack(layers), input, 5).in_fixed16()
    };
    // Depths that 32 bits cannot hold the sums of: of an output, and of a gradient by the input.
    let deep = |layers: [usize; 2], inputs| {
        let name = format!("{inputs} inputs, {} and {} outputs", layers[0], layers[1]);
        let layers = NamedLayer::stack(layers.map(linear));
        let mut case = Case::new(name, layers, Dims::vector(inputs), 2).in_fixed16();
        // As large as slices can be, so that they do come to more.
        case.inputs.fill(0.99);
        case.values.fill(0.99 / 16.0);
        case
    };
    let pixels = [20, 40, 256].map(case).into_iter();
    pixels
        .chain([deep([3, 2], 140_000), deep([70_000, 2], 3)])
        .collect()
}

/// Two blocks as ResNet has them, with shortcuts of both kinds.
fn residual_network() -> Case {
    let (norm, relu) = (LayerSpec::BatchNorm, LayerSpec::Relu);
    let smaller = |out, side: usize| convolution(out, [[side; 2], [2, 2], [side / 2; 2]], 1, false);
    let same = |out| winograd(out, [1, 1], false);
    let body = |first, out| vec![first, norm.clone(), relu.clone(), same(out), norm.clone()];
    let layers = NamedLayer::stack([
        same(16),
        norm.clone(),
        relu.clone(),
        residual(body(same(16), 16), vec![]),
        relu.clone(),
        residual(body(smaller(32, 3), 32), vec![smaller(32, 1), norm.clone()]),
        relu.clone(),
        LayerSpec::GlobalPool,
        linear(4),
    ]);
    let case = Case::new(
        "residual blocks of images",
        layers,
        Dims::image(8, 8, 3),
        14,
    );
    case.in_batches(5, 2)
}

fn cifar_cnn() -> Case {
    let layers = zoo::cifar_cnn(10);
    let case = Case::new("the CNN of CIFAR-10", layers, Dims::image(16, 16, 3), 5);
    Case {
        optimizer: Optimizer::Adam {
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: 1e-4,
            decoupled: true,
        },
        ..case.in_batches(3, 2)
    }
}

/// What is trained on the vectors of an encoder.
fn head() -> Case {
    let layers = zoo::head(96, 0.4, 7);
    let case = Case::new("a head", layers, Dims::vector(160), 30);
    Case {
        epochs: 2,
        ..case.in_batches(13, 2)
    }
}
