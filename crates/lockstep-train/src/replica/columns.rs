//! The first layer, computed by columns.
//!
//! Nobody needs the first layer's gradient by its input, so its weights are used for one thing only: its
//! output. Each column of that follows from the weights of that column and the inputs, and the inputs are
//! the batch, which every worker can read for itself. So the owner of some columns' weights computes them
//! for the rows of all lanes, and hands each lane's rank its part: a few numbers a row instead of new
//! weights for everyone after every step. Each number is the same chain as ever, and so are its bits.

use super::StepPlan;
use super::factors::{DenseExchange, other_lanes};
use lockstep_data::lane_rows;
use lockstep_gang::{GangError, Plan, SharingCollective};
use lockstep_nn::{Buffer, Factored, StateVector, Threads};
use std::ops::Range;

/// What computing by columns needs.
pub(super) struct Columns {
    /// Room for one chunk's columns of one lane's output.
    room: Buffer,
    /// The layer's bias in this step.
    bias: Buffer,
}

impl Columns {
    pub(super) fn new(layer: &Factored, plan: &Plan) -> Self {
        let products = layer.weight_chunks();
        let lengths = products.map(|chunk| plan.chunk(plan.product(chunk, 0)).len());
        Self {
            room: Buffer::zeros(lengths.max().unwrap_or(0)),
            bias: Buffer::zeros(layer.outputs),
        }
    }
}

impl DenseExchange {
    /// Computes this rank's columns for all other ranks' lanes. Lanes without rows get a piece as well:
    /// their ranks count on it.
    pub(super) fn make_columns(
        &mut self,
        compute: &Threads,
        step: &StepPlan<'_>,
        collective: &mut dyn SharingCollective,
        state: &StateVector,
    ) -> Result<(), GangError> {
        let (Some(Columns { room, bias }), layer) = (&mut self.columns, &self.layer) else {
            return Ok(());
        };
        bias.copy_from_slice(&state.values()[layer.bias()]);
        let plan = collective.plan();
        let (lanes, own) = (plan.lanes(), plan.lanes_of(collective.rank()));
        for chunk in layer.weight_chunks() {
            if !collective.holds(chunk) {
                continue;
            }
            let columns = columns_of(layer, chunk);
            for lane in other_lanes(own.clone(), lanes) {
                let rows = lane_rows(lane, lanes, step.program.batch);
                let x = step.rows(rows, layer.inputs);
                let y = (&mut room[..], columns.len());
                let weights = (weight(chunk, collective, state), &bias[..]);
                layer.product(compute, columns.clone(), weights, x, y);
                let product = collective.plan().product(chunk, lane);
                let length = collective.plan().chunk(product).len();
                collective.publish(product, &room[..length])?;
            }
        }
        Ok(())
    }

    /// Completes the first layer's output `y` for one of this rank's lanes: computes the own columns and
    /// fetches the others'.
    pub(super) fn take_columns(
        &mut self,
        compute: &Threads,
        step: &StepPlan<'_>,
        lane: usize,
        y: &mut [f32],
        collective: &mut dyn SharingCollective,
        state: &StateVector,
    ) -> Result<(), GangError> {
        let (Some(Columns { room, bias }), layer) = (&mut self.columns, &self.layer) else {
            return Ok(());
        };
        let lanes = collective.plan().lanes();
        let x = step.rows(lane_rows(lane, lanes, step.program.batch), layer.inputs);
        for own in [true, false] {
            for chunk in layer.weight_chunks() {
                if collective.holds(chunk) != own {
                    continue;
                }
                let columns = columns_of(layer, chunk);
                if own && !y.is_empty() {
                    let y = (&mut y[columns.start..], layer.outputs);
                    let weights = (weight(chunk, collective, state), &bias[..]);
                    layer.product(compute, columns, weights, x, y);
                } else if !own {
                    let product = collective.plan().product(chunk, lane);
                    let length = collective.plan().chunk(product).len();
                    let part = &mut room[..length];
                    collective.fetch(product, part)?;
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

/// The weights of a chunk that this rank holds.
fn weight<'a>(
    chunk: usize,
    collective: &'a mut dyn SharingCollective,
    state: &'a StateVector,
) -> &'a [f32] {
    let range = collective.plan().chunk(chunk);
    match collective.home(chunk).and_then(|home| home.values) {
        Some(values) => values,
        None => &state.values()[range],
    }
}
