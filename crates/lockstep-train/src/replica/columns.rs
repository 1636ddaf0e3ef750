//! The first layer, computed by columns.
//!
//! Nobody needs the first layer's gradient by its input, so its weights are used for one thing only: its
//! output. Each column of that follows from the weights of that column and the inputs, and the inputs are
//! the batch, which every worker can read for itself. So the owner of some columns' weights computes them
//! for the rows of all lanes, and hands each lane's rank its part: a few numbers a row instead of new
//! weights for everyone after every step. Each number is the same chain as ever, and so are its bits.

use super::{GangReplica, StepPlan};
use crate::factors::other_lanes;
use lockstep_data::lane_rows;
use lockstep_gang::{GangError, SharingCollective};
use lockstep_nn::Factored;
use std::ops::Range;

impl GangReplica {
    /// Whether the owner of a chunk keeps its new values to itself.
    pub(super) fn is_kept(&self, chunk: usize) -> bool {
        self.collective.plan().producing().contains(&chunk)
    }

    /// Whether the first layer is computed by columns.
    pub(crate) fn is_by_columns(&self) -> bool {
        self.first.is_some()
    }

    /// Computes this rank's columns for all other ranks' lanes. Lanes without rows get a piece as well:
    /// their ranks count on it.
    pub(crate) fn make_columns(&mut self, step: &StepPlan<'_>) -> Result<(), GangError> {
        let Some(layer) = &self.first else {
            return Ok(());
        };
        let plan = self.collective.plan();
        let (lanes, own) = (plan.lanes(), plan.lanes_of(self.collective.rank()));
        for chunk in layer.weight_chunks() {
            if !self.collective.holds(chunk) {
                continue;
            }
            let columns = columns_of(layer, chunk);
            for lane in other_lanes(own.clone(), lanes) {
                let x = lane_inputs(step, lane, lanes, layer.inputs);
                let y = (&mut self.columns[..], columns.len());
                let weights = weights(layer, chunk, &mut *self.collective, &self.state);
                layer.product(columns.clone(), weights, x, y);
                let product = self.collective.plan().product(chunk, lane);
                let length = self.collective.plan().chunk(product).len();
                self.collective.publish(product, &self.columns[..length])?;
            }
        }
        Ok(())
    }

    /// Completes the first layer's output `y` for one of this rank's lanes: computes the own columns and
    /// fetches the others'.
    pub(crate) fn take_columns(
        &mut self,
        step: &StepPlan<'_>,
        lane: usize,
        y: &mut [f32],
    ) -> Result<(), GangError> {
        let Some(layer) = &self.first else {
            return Ok(());
        };
        let lanes = self.collective.plan().lanes();
        let x = lane_inputs(step, lane, lanes, layer.inputs);
        for own in [true, false] {
            for chunk in layer.weight_chunks() {
                if self.collective.holds(chunk) != own {
                    continue;
                }
                let columns = columns_of(layer, chunk);
                if own && !y.is_empty() {
                    let y = (&mut y[columns.start..], layer.outputs);
                    let weights = weights(layer, chunk, &mut *self.collective, &self.state);
                    layer.product(columns, weights, x, y);
                } else if !own {
                    let product = self.collective.plan().product(chunk, lane);
                    let length = self.collective.plan().chunk(product).len();
                    let part = &mut self.columns[..length];
                    self.collective.fetch(product, part)?;
                    let rows = y.chunks_exact_mut(layer.outputs);
                    for (row, part) in rows.zip(part.chunks_exact(columns.len())) {
                        row[columns.clone()].copy_from_slice(part);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The columns that a chunk computes: leaving some out would go unnoticed, so it must not happen.
fn columns_of(layer: &Factored, chunk: usize) -> Range<usize> {
    let columns = layer.columns(chunk);
    columns.expect("only a layer of whole panels is computed by columns")
}

/// The weights of a chunk that this rank holds, and the layer's bias.
fn weights<'a>(
    layer: &Factored,
    chunk: usize,
    collective: &'a mut dyn SharingCollective,
    state: &'a [f32],
) -> (&'a [f32], &'a [f32]) {
    let range = collective.plan().chunk(chunk);
    let home = collective.home(chunk).and_then(|home| home.values);
    let weight = home.map_or(&state[range], |values| values);
    (weight, &state[layer.bias()])
}

/// One lane's rows of the batch's inputs.
fn lane_inputs<'a>(step: &StepPlan<'a>, lane: usize, lanes: usize, width: usize) -> &'a [f32] {
    let rows = lane_rows(lane, lanes, step.program.batch);
    &step.inputs[rows.start * width..rows.end * width]
}
