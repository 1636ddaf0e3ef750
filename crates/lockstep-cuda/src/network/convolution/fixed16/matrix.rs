//! The weights of a layer, sliced in two orders.

use super::super::super::divisor::Divisor;
use super::super::super::pass::Pass;
use super::super::super::planner::Planner;
use super::slices::{Fixed16Scale, Slices, THREADS, words};
use super::{PIECE, WORD, Weights};
use crate::arguments::{Pointer, arguments};
use crate::memory::DeviceSlice;

arguments! {
    pub(super) struct SlicedWeights {
        from: Pointer<f32>,
        largest: Pointer<u32>,
        scale: Pointer<Fixed16Scale>,
        upper: Pointer<u8>,
        lower: Pointer<u8>,
        inputs: u32,
        outputs: Divisor,
        places: Divisor,
        across: Divisor,
        width: u32,
        rows: u32,
        panel: Divisor,
        turned: u32,
        words_of_place: Divisor,
        words: u32,
        blocks: u32,
    }
}

/// The weights, sliced for both products that have them.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlicedMatrix {
    pub(super) forward: Slices,
    pub(super) backward: Slices,
    pub(super) scale: DeviceSlice<Fixed16Scale>,
}

impl SlicedMatrix {
    pub(super) fn new(weights: &Weights, planner: &mut Planner) -> Self {
        let Weights {
            inputs,
            outputs,
            kernel,
            ..
        } = *weights;
        let forward = outputs * kernel[0] * weights.pieces_of_line() * (PIECE / WORD);
        let backward = inputs * kernel[0] * kernel[1] * words(outputs);
        Self {
            scale: planner.keep(1),
            forward: Slices::new(forward, |words| planner.borrow(words)),
            backward: Slices::new(backward, |words| planner.borrow(words)),
        }
    }

    /// For the product that sums over the outputs, or with the largest magnitude of the weights over the inputs.
    pub(super) fn slice(
        &self,
        pass: &Pass<'_>,
        weights: &Weights,
        largest: Option<Pointer<u32>>,
    ) -> SlicedWeights {
        let Weights {
            inputs,
            outputs,
            kernel: [height, width],
            panel,
            ref range,
        } = *weights;
        let (slices, words_of_place) = match largest {
            Some(_) => (&self.forward, weights.words_of_pixel()),
            None => (&self.backward, words(outputs)),
        };
        let across = match weights.is_narrow() && largest.is_some() {
            true => weights.pieces_of_line() * (PIECE / WORD),
            false => width,
        };
        let [upper, lower] = slices.pointers();
        let words = slices.upper.len();
        SlicedWeights {
            from: pass.values(range),
            largest: largest.unwrap_or_default(),
            scale: self.scale.pointer(),
            upper,
            lower,
            inputs: inputs as u32,
            outputs: Divisor::new(outputs),
            places: Divisor::new(height * across),
            across: Divisor::new(across),
            width: width as u32,
            rows: (height * width * inputs) as u32,
            panel: Divisor::new(panel),
            turned: largest.is_none().into(),
            words_of_place: Divisor::new(words_of_place),
            words: words as u32,
            blocks: words.div_ceil(THREADS) as u32,
        }
    }
}
