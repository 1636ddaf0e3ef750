//! Dense layers.

use super::chain::{Backward, Forward, Layer};
use super::learn::DenseGradient;
use super::pass::Pass;
use super::pointwise::Pointwise;
use super::product::ProductKernels;
use super::step::BeginStep;
use crate::arguments::{Pointer, arguments};
use crate::kernels::DENSE;
use lockstep_nn::Factored;

arguments! {
    struct DenseForward {
        x: Pointer<f32>,
        weight: Pointer<f32>,
        bias: Pointer<f32>,
        y: Pointer<f32>,
        rows: u32,
        inputs: u32,
        outputs: u32,
        is_first: u32,
        begin: BeginStep,
        then: Pointwise,
    }

    struct DenseInputGradient {
        dy: Pointer<f32>,
        weight: Pointer<f32>,
        x: Pointer<f32>,
        dx: Pointer<f32>,
        rows: u32,
        inputs: u32,
        outputs: u32,
        below: Pointwise,
    }
}

const FORWARD: ProductKernels<DenseForward> = ProductKernels::new(
    &DENSE,
    [
        "dense_forward_any",
        "dense_forward_small",
        "dense_forward_medium",
        "dense_forward_large",
        "dense_forward_largest",
    ],
);
const INPUT_GRADIENT: ProductKernels<DenseInputGradient> = ProductKernels::new(
    &DENSE,
    [
        "dense_input_gradient_any",
        "dense_input_gradient_small",
        "dense_input_gradient_medium",
        "dense_input_gradient_large",
        "dense_input_gradient_largest",
    ],
);

/// Whether all rows of inputs, outputs and weights begin at multiples of 16 bytes, so that 4 numbers are brought at a time.
pub(crate) fn is_wide(layer: &Factored) -> bool {
    let numbers = [layer.inputs, layer.outputs, layer.weight().start];
    numbers.iter().all(|numbers| numbers.is_multiple_of(4))
}

/// `y = x W + b`.
pub(crate) struct DenseLayer(pub(crate) Factored);

impl Layer for DenseLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn as_dense(&self) -> Option<&Factored> {
        Some(&self.0)
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let Self(dense) = self;
        let begin = pass.begin_of(x);
        let arguments = DenseForward {
            x: x.pointer(),
            weight: pass.values(&dense.weight()),
            bias: pass.values(&dense.bias()),
            y: y.pointer(),
            rows: pass.rows as u32,
            inputs: dense.inputs as u32,
            outputs: dense.outputs as u32,
            is_first: begin.is_some().into(),
            begin: begin.unwrap_or_else(BeginStep::none),
            then,
        };
        pass.push(FORWARD.launch([pass.rows, dense.outputs], is_wide(dense), arguments));
    }

    fn backward(&self, pass: &mut Pass<'_>, backward: Backward) {
        let Self(dense) = self;
        let Backward { x, dy, dx, below } = backward;
        if let Some(dx) = dx {
            let arguments = DenseInputGradient {
                dy: dy.pointer(),
                weight: pass.values(&dense.weight()),
                x: x.pointer(),
                dx: dx.pointer(),
                rows: pass.rows as u32,
                inputs: dense.inputs as u32,
                outputs: dense.outputs as u32,
                below,
            };
            pass.push(INPUT_GRADIENT.launch([pass.rows, dense.inputs], is_wide(dense), arguments));
        }
        pass.learn(dense, DenseGradient { x, dy });
    }
}
