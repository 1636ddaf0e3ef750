//! Two paths from the same input, added.

use super::chain::{Backward, Chain, Forward, Layer};
use super::pass::Pass;
use super::planner::Planner;
use super::pointwise::Pointwise;
use crate::arguments::{Pointer, arguments};
use crate::error::CudaError;
use crate::kernels::{Kernel, POINTWISE};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::OperationChain;

arguments! {
    struct AddForward {
        y: Pointer<f32>,
        beside: Pointer<f32>,
        numbers: u64,
        then: Pointwise,
    }

    struct AddBackward {
        dx: Pointer<f32>,
        beside: Pointer<f32>,
        x: Pointer<f32>,
        numbers: u64,
        below: Pointwise,
    }
}

const ADD_FORWARD: Kernel<AddForward> = Kernel::new(&POINTWISE, "add_forward", 256);
const ADD_BACKWARD: Kernel<AddBackward> = Kernel::new(&POINTWISE, "add_backward", 256);

/// `y = body(x) + shortcut(x)`.
pub(crate) struct ResidualLayer {
    body: Chain,
    shortcut: Option<Shortcut>,
}

/// The path beside the body.
struct Shortcut {
    chain: Chain,
    /// Its output on the way there, and the gradient by its input on the way back.
    beside: DeviceSlice<f32>,
}

impl ResidualLayer {
    /// Plans both paths; without a shortcut the input itself is added.
    ///
    /// # Errors
    /// As [`Chain::new`].
    pub(crate) fn new(
        body: &OperationChain,
        shortcut: Option<&OperationChain>,
        planner: &mut Planner,
    ) -> Result<Self, CudaError> {
        let widest = body.input.len().max(body.output().len());
        let shortcut = match shortcut {
            None => None,
            Some(shortcut) => Some(Shortcut {
                beside: planner.borrow(planner.rows * widest),
                chain: Chain::new(shortcut, planner)?,
            }),
        };
        Ok(Self {
            body: Chain::new(body, planner)?,
            shortcut,
        })
    }
}

impl Layer for ResidualLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        self.body.forward(pass, x, y);
        let beside = match &self.shortcut {
            None => x,
            Some(Shortcut { chain, beside }) => {
                let beside = beside.first(y.len());
                chain.forward(pass, x, beside);
                beside
            }
        };
        let arguments = AddForward {
            y: y.pointer(),
            beside: beside.pointer(),
            numbers: y.len() as u64,
            then,
        };
        let threads = y.len() / then.side_by_side(y.len());
        pass.push(Launch::over(&ADD_FORWARD, threads, arguments));
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        let beside = match &self.shortcut {
            None => dy,
            Some(Shortcut { chain, beside }) => {
                let beside = beside.first(x.len());
                chain.backward(pass, x, dy, dx.map(|_| beside));
                beside
            }
        };
        self.body.backward(pass, x, dy, dx);
        let Some(dx) = dx else {
            return;
        };
        let arguments = AddBackward {
            dx: dx.pointer(),
            beside: beside.pointer(),
            x: x.pointer(),
            numbers: dx.len() as u64,
            below,
        };
        let threads = dx.len() / below.side_by_side(dx.len());
        pass.push(Launch::over(&ADD_BACKWARD, threads, arguments));
    }
}
