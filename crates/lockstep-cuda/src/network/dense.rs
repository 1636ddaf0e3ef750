//! Dense layers.

use super::chain::{Backward, Forward, Layer};
use super::pass::Pass;
use super::pointwise::Pointwise;
use super::product::ProductKernels;
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

    struct DenseWeightGradient {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        d_weight: Pointer<f32>,
        d_bias: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        inputs: u32,
        outputs: u32,
    }
}

const FORWARD: ProductKernels<DenseForward> =
    ProductKernels::new(&DENSE, "dense_forward_small", "dense_forward_large");
const INPUT_GRADIENT: ProductKernels<DenseInputGradient> = ProductKernels::new(
    &DENSE,
    "dense_input_gradient_small",
    "dense_input_gradient_large",
);
const WEIGHT_GRADIENT: ProductKernels<DenseWeightGradient> = ProductKernels::new(
    &DENSE,
    "dense_weight_gradient_small",
    "dense_weight_gradient_large",
);

/// `y = x W + b`.
pub(crate) struct DenseLayer(pub(crate) Factored);

impl Layer for DenseLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let Self(dense) = self;
        let arguments = DenseForward {
            x: x.pointer(),
            weight: pass.values(&dense.weight()),
            bias: pass.values(&dense.bias()),
            y: y.pointer(),
            rows: pass.rows as u32,
            inputs: dense.inputs as u32,
            outputs: dense.outputs as u32,
            then,
        };
        let shape = [pass.rows, dense.outputs];
        pass.push(FORWARD.launch(shape, 1, arguments));
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        let Self(dense) = self;
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
            let shape = [pass.rows, dense.inputs];
            pass.push(INPUT_GRADIENT.launch(shape, 1, arguments));
        }
        if pass.is_trained(&dense.weight()) {
            let arguments = DenseWeightGradient {
                x: x.pointer(),
                dy: dy.pointer(),
                d_weight: pass.gradient(&dense.weight()),
                d_bias: pass.gradient(&dense.bias()),
                stride: pass.stride(),
                lane_rows: pass.lanes.rows.pointer(),
                inputs: dense.inputs as u32,
                outputs: dense.outputs as u32,
            };
            let shape = [dense.inputs, dense.outputs];
            pass.push(WEIGHT_GRADIENT.launch(shape, pass.lanes.count(), arguments));
        }
    }
}
