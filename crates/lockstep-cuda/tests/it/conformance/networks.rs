//! Whole networks that people train: what their layers do beside each other, in lanes of different sizes.

use super::cases::Case;
use lockstep_nn::{Dims, Optimizer, zoo};

/// All of them.
pub(super) fn cases() -> Vec<Case> {
    vec![resnet(), cifar_cnn(), head()]
}

/// All blocks of ResNet-18, with shortcuts of both kinds, down to images of one pixel.
fn resnet() -> Case {
    let layers = zoo::resnet18(4, true);
    let case = Case::new(
        "ResNet-18 with a small stem",
        layers,
        Dims::image(8, 8, 3),
        5,
    );
    case.in_batches(3, 2)
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
