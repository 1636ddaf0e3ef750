//! Normalisation of tokens.

use super::place::Placer;
use crate::arguments::{Pointer, arguments};
use crate::error::CudaError;
use crate::kernels::{ATTENTION, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::encoder::NormParts;

arguments! {
    struct EncoderNorm {
        x: Pointer<f32>,
        y: Pointer<f32>,
        scale: Pointer<f32>,
        shift: Pointer<f32>,
        rows: u32,
        width: u32,
        stride: u64,
        epsilon: f32,
    }
}

/// Threads of a block, and rows that it has.
pub(super) const THREADS: u32 = 128;
pub(super) const ROWS: usize = 8;

const NORM: Kernel<EncoderNorm> = Kernel::new(&ATTENTION, "encoder_norm", THREADS);

/// A layer normalisation.
pub(super) struct TokenNorm {
    scale: DeviceSlice<f32>,
    shift: DeviceSlice<f32>,
    epsilon: f32,
}

impl TokenNorm {
    pub(super) fn new(parts: &NormParts, placer: &mut Placer<'_>) -> Result<Self, CudaError> {
        Ok(Self {
            scale: placer.numbers(&parts.scale)?,
            shift: placer.numbers(&parts.shift)?,
            epsilon: parts.epsilon,
        })
    }

    /// What normalises so many rows, each `stride` numbers behind the one before.
    pub(super) fn launch(
        &self,
        (rows, stride): (usize, usize),
        x: DeviceSlice<f32>,
        y: DeviceSlice<f32>,
    ) -> Launch {
        let arguments = EncoderNorm {
            x: x.pointer(),
            y: y.pointer(),
            scale: self.scale.pointer(),
            shift: self.shift.pointer(),
            rows: rows as u32,
            width: self.scale.len() as u32,
            stride: stride as u64,
            epsilon: self.epsilon,
        };
        Launch::new(&NORM, [rows.div_ceil(ROWS), 1, 1], arguments)
    }
}
