//! The input as it is, in memory that what follows may change.

use super::chain::{Backward, Forward, Layer};
use super::pass::Pass;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{Kernel, POINTWISE};
use crate::launch::Launch;
use crate::memory::DeviceSlice;

arguments! {
    struct Copy {
        from: Pointer<f32>,
        to: Pointer<f32>,
        numbers: u64,
    }
}

const COPY: Kernel<Copy> = Kernel::new(&POINTWISE, "copy", 256);

/// A copy of the input.
pub(crate) struct CopyLayer;

fn copy(pass: &mut Pass<'_>, from: DeviceSlice<f32>, to: DeviceSlice<f32>) {
    let arguments = Copy {
        from: from.pointer(),
        to: to.pointer(),
        numbers: to.len() as u64,
    };
    pass.push(Launch::over(&COPY, to.len(), arguments));
}

impl Layer for CopyLayer {
    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, .. }: Forward) {
        copy(pass, x, y);
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { dy, dx, .. }: Backward) {
        if let Some(dx) = dx {
            copy(pass, dy, dx);
        }
    }
}
