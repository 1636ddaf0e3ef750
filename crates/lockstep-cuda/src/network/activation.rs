//! Activations that look at one number.

use super::chain::{Backward, Forward, Layer};
use super::pass::Pass;
use super::pointwise::Pointwise;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{ACTIVATION, Kernel};
use crate::launch::Launch;

arguments! {
    struct ActivationForward {
        x: Pointer<f32>,
        y: Pointer<f32>,
        numbers: u64,
        slope: f32,
        then: Pointwise,
    }

    struct ActivationBackward {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        dx: Pointer<f32>,
        numbers: u64,
        slope: f32,
        below: Pointwise,
    }
}

/// Threads of a block.
const THREADS: u32 = 256;

/// A function of one number.
pub(crate) struct ActivationLayer {
    forward: Kernel<ActivationForward>,
    backward: Kernel<ActivationBackward>,
    /// What a leaky ReLU multiplies by below 0.
    slope: f32,
}

impl ActivationLayer {
    pub(crate) const GELU: Self = Self::new("gelu_forward", "gelu_backward");
    pub(crate) const SILU: Self = Self::new("silu_forward", "silu_backward");
    pub(crate) const SIGMOID: Self = Self::new("sigmoid_forward", "sigmoid_backward");
    pub(crate) const TANH: Self = Self::new("tanh_forward", "tanh_backward");

    pub(crate) const fn leaky_relu(slope: f32) -> Self {
        Self {
            slope,
            ..Self::new("leaky_relu_forward", "leaky_relu_backward")
        }
    }

    const fn new(forward: &'static str, backward: &'static str) -> Self {
        Self {
            forward: Kernel::new(&ACTIVATION, forward, THREADS),
            backward: Kernel::new(&ACTIVATION, backward, THREADS),
            slope: 0.0,
        }
    }
}

impl Layer for ActivationLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let arguments = ActivationForward {
            x: x.pointer(),
            y: y.pointer(),
            numbers: y.len() as u64,
            slope: self.slope,
            then,
        };
        let threads = y.len() / then.side_by_side(y.len());
        pass.push(Launch::over(&self.forward, threads, arguments));
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        let Some(dx) = dx else {
            return;
        };
        let arguments = ActivationBackward {
            x: x.pointer(),
            dy: dy.pointer(),
            dx: dx.pointer(),
            numbers: dx.len() as u64,
            slope: self.slope,
            below,
        };
        let threads = dx.len() / below.side_by_side(dx.len());
        pass.push(Launch::over(&self.backward, threads, arguments));
    }
}
