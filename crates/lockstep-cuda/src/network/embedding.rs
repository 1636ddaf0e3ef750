//! Learned vectors in place of the last inputs of a row.

use super::chain::{Backward, Forward, Layer};
use super::pass::Pass;
use super::planner::Planner;
use super::pointwise::Pointwise;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{EMBEDDING, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::TablePlace;

arguments! {
    struct EmbeddingForward {
        x: Pointer<f32>,
        values: Pointer<f32>,
        y: Pointer<f32>,
        tables: Pointer<u64>,
        count: u32,
        inputs: u32,
        outputs: u32,
        then: Pointwise,
    }

    struct EmbeddingInputGradient {
        dy: Pointer<f32>,
        dx: Pointer<f32>,
        x: Pointer<f32>,
        rows: u32,
        inputs: u32,
        outputs: u32,
        plain: u32,
        below: Pointwise,
    }

    struct EmbeddingClear {
        gradient: Pointer<f32>,
        stride: u64,
        tables: Pointer<u64>,
    }

    struct EmbeddingGradient {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        gradient: Pointer<f32>,
        stride: u64,
        tables: Pointer<u64>,
        lane_rows: Pointer<u32>,
        inputs: u32,
        outputs: u32,
    }
}

const FORWARD: Kernel<EmbeddingForward> = Kernel::new(&EMBEDDING, "embedding_forward", 128);
const INPUT_GRADIENT: Kernel<EmbeddingInputGradient> =
    Kernel::new(&EMBEDDING, "embedding_input_gradient", 256);
const CLEAR: Kernel<EmbeddingClear> = Kernel::new(&EMBEDDING, "embedding_clear", 256);
const GRADIENT: Kernel<EmbeddingGradient> = Kernel::new(&EMBEDDING, "embedding_gradient", 128);

/// Blocks that make the gradient of a table zeros, at the most.
const MOST_CLEARING: usize = 128;

/// Tables beside each other.
pub(crate) struct EmbeddingLayer {
    /// Numbers of a row of the input, and of the output.
    inputs: usize,
    outputs: usize,
    tables: Vec<TablePlace>,
    /// The same for the device.
    places: DeviceSlice<u64>,
}

impl EmbeddingLayer {
    pub(crate) fn new(
        [inputs, outputs]: [usize; 2],
        tables: &[TablePlace],
        planner: &mut Planner,
    ) -> Self {
        let numbers = |table: &TablePlace| {
            let TablePlace {
                rows,
                width,
                input,
                output,
                ref weight,
            } = *table;
            [weight.start, rows, width, input, output].map(|number| number as u64)
        };
        Self {
            inputs,
            outputs,
            places: planner.constant(tables.iter().flat_map(numbers).collect()),
            tables: tables.to_vec(),
        }
    }
}

impl Layer for EmbeddingLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let arguments = EmbeddingForward {
            x: x.pointer(),
            values: pass.all_values(),
            y: y.pointer(),
            tables: self.places.pointer(),
            count: self.tables.len() as u32,
            inputs: self.inputs as u32,
            outputs: self.outputs as u32,
            then,
        };
        pass.push(Launch::new(&FORWARD, [pass.rows, 1, 1], arguments));
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        let Self {
            inputs,
            outputs,
            tables,
            places,
        } = self;
        if let Some(dx) = dx {
            let arguments = EmbeddingInputGradient {
                dy: dy.pointer(),
                dx: dx.pointer(),
                x: x.pointer(),
                rows: pass.rows as u32,
                inputs: *inputs as u32,
                outputs: *outputs as u32,
                plain: (inputs - tables.len()) as u32,
                below,
            };
            pass.push(Launch::over(&INPUT_GRADIENT, dx.len(), arguments));
        }
        // What is frozen has room for a gradient too, which nobody reads.
        if !tables.iter().any(|table| pass.is_trained(&table.weight)) {
            return;
        }
        let numbers = tables.iter().map(|table| table.weight.len());
        let clearing = numbers.max().unwrap_or(0).div_ceil(256);
        let clear = EmbeddingClear {
            gradient: pass.all_gradients(),
            stride: pass.stride(),
            tables: places.pointer(),
        };
        let lanes = pass.lanes.count();
        let blocks = [clearing.clamp(1, MOST_CLEARING), tables.len(), lanes];
        pass.push(Launch::new(&CLEAR, blocks, clear));
        let add = EmbeddingGradient {
            x: x.pointer(),
            dy: dy.pointer(),
            gradient: pass.all_gradients(),
            stride: pass.stride(),
            tables: places.pointer(),
            lane_rows: pass.lanes.rows.pointer(),
            inputs: *inputs as u32,
            outputs: *outputs as u32,
        };
        let blocks = [pass.lanes.longest, tables.len(), lanes];
        pass.push(Launch::new(&GRADIENT, blocks, add));
    }
}
