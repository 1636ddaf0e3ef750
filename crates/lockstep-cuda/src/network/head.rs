//! The last dense layer of a classifier, its loss and two gradients, in one launch.

use super::loss::LossPass;
use super::pass::Pass;
use super::pointwise::Pointwise;
use super::product::MULTIPROCESSORS;
use super::targets::TargetRows;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{HEAD, Kernel};
use crate::launch::{Launch, MOST_SHARED};
use crate::memory::DeviceSlice;
use lockstep_nn::Factored;

arguments! {
    struct Head {
        x: Pointer<f32>,
        weight: Pointer<f32>,
        bias: Pointer<f32>,
        dy: Pointer<f32>,
        dx: Pointer<f32>,
        targets: TargetRows,
        losses: Pointer<f64>,
        correct: Pointer<u32>,
        rows: u32,
        inputs: u32,
        outputs: u32,
        rows_of_block: u32,
        wide_x: u32,
        scale: f64,
        below: Pointwise,
    }
}

const KERNEL: Kernel<Head> = Kernel::new(&HEAD, "head", 128);

/// Outputs that a warp has one of for each thread.
const MOST_OUTPUTS: usize = 32;

/// Rows of a block: one for each warp at the most.
const MOST_ROWS: usize = 4;

/// Numbers that the threads of a block share.
fn shared_numbers(layer: &Factored, rows: usize) -> usize {
    let pitch = layer.outputs | 1;
    layer.inputs * pitch + rows * layer.inputs.next_multiple_of(4)
}

/// Whether a layer is one that the kernel can be the head of.
pub(crate) fn is_head(layer: &Factored) -> bool {
    let bytes = size_of::<f32>() * shared_numbers(layer, MOST_ROWS);
    layer.outputs <= MOST_OUTPUTS && bytes <= MOST_SHARED
}

impl LossPass<'_> {
    /// Appends what computes the last layer too: `x` is the layer's input, to which `below` was done where it lies, and `dx` where its gradient
    /// goes.
    pub(crate) fn head(
        &self,
        pass: &mut Pass<'_>,
        layer: &Factored,
        (x, dx): (DeviceSlice<f32>, DeviceSlice<f32>),
        below: Pointwise,
    ) {
        let batch = self.batch;
        let rows = pass.rows.div_ceil(MULTIPROCESSORS).clamp(1, MOST_ROWS);
        let arguments = Head {
            x: x.pointer(),
            weight: pass.values(&layer.weight()),
            bias: pass.values(&layer.bias()),
            dy: batch.delta.pointer(),
            dx: dx.pointer(),
            targets: self.targets,
            losses: batch.losses.pointer(),
            correct: batch.correct.pointer(),
            rows: pass.rows as u32,
            inputs: layer.inputs as u32,
            outputs: layer.outputs as u32,
            rows_of_block: rows as u32,
            wide_x: layer.inputs.is_multiple_of(4).into(),
            scale: 1.0 / pass.samples as f64,
            below,
        };
        let blocks = [pass.rows.div_ceil(rows), 1, 1];
        let shared = size_of::<f32>() * shared_numbers(layer, rows);
        pass.push(Launch::new(&KERNEL, blocks, arguments).sharing(shared));
    }
}
