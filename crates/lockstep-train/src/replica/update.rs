//! From the parts of a chunk's gradient to its new values.

use super::{BLOCK, GangReplica, StepPlan};
use lockstep_gang::{GangError, Partial};
use lockstep_nn::optimizer::{blend, square_sum};
use lockstep_nn::{Buffer, STATISTICS_SHARE, Update, add};
use std::ops::Range;

impl GangReplica {
    /// Adds all lanes' parts of a chunk that this rank holds, and updates it.
    pub(super) fn reduce_and_update(&mut self, step: &StepPlan<'_>, chunk: usize) {
        lockstep_failpoint::reach("update.before");
        let range = self.collective.plan().chunk(chunk);
        if let Some(layer) = self.factors_of[chunk] {
            self.form(step, layer, chunk);
            let gradient = &self.formed[0][..range.len()];
            let mut values = &mut self.state[range.clone()];
            let mut planes = parts(&mut self.planes, &range);
            if let Some(home) = self.collective.home(chunk) {
                values = home.values.unwrap_or(values);
                planes = home.planes;
            }
            step.update.apply(values, gradient, planes);
        } else if self.immediate {
            update(
                &step.update,
                self.parameters,
                range,
                &self.block,
                &mut self.state,
                &mut self.planes,
            );
        } else {
            for block in blocks(&range) {
                self.sum_block(step, chunk, &block);
                update(
                    &step.update,
                    self.parameters,
                    block,
                    &self.block,
                    &mut self.state,
                    &mut self.planes,
                );
            }
        }
    }

    /// Forms the gradient of a chunk from all lanes' factors, added in the lanes' tree, in the first of
    /// the buffers.
    fn form(&mut self, step: &StepPlan<'_>, layer: usize, chunk: usize) {
        let len = self.collective.plan().chunk(chunk).len();
        let factors = &self.factors[layer];
        let Some((spare, formed)) = self.formed.split_last_mut() else {
            return;
        };
        lockstep_failpoint::reach("update.reduce");
        let batch = (step.program.batch, step.inputs);
        for work in &step.program.forming {
            let of_lane = factors.of_lane(work.lane, &*self.collective, batch);
            let mut sums = &work.sums[..];
            // A lane that is added to its left neighbour at once needs no buffer of its own.
            if let [(into, from), rest @ ..] = sums
                && *from == work.buffer
            {
                sums = rest;
                let into = &mut formed[*into][..len];
                factors.layer.add_gradient(chunk, of_lane, into, spare);
            } else {
                let into = &mut formed[work.buffer][..len];
                factors.layer.gradient(chunk, of_lane, into);
            }
            for &(into, from) in sums {
                let [into, from] = formed.get_disjoint_mut([into, from]).expect("two buffers");
                add(&mut into[..len], &from[..len]);
            }
        }
    }

    /// Adds the parts of one block of an own chunk in the lanes' tree, into `self.block`.
    fn sum_block(&mut self, step: &StepPlan<'_>, chunk: usize, block: &Range<usize>) {
        lockstep_failpoint::reach("update.reduce");
        let out = &mut self.block[..block.len()];
        let (plan, rank) = (self.collective.plan(), self.collective.rank());
        let start = plan.chunk(chunk).start;
        let within = block.start - start..block.end - start;
        let (own, collective) = (&self.own, &*self.collective);
        let part = |partial: &Partial| {
            step.program.present[partial.rank][partial.index].then(|| match partial.rank == rank {
                true => &own[partial.index][block.clone()],
                false => &collective.inbox(chunk, partial.rank, partial.index)[within.clone()],
            })
        };
        self.tree.sum(part, out);
    }

    /// Clipping needs the whole gradient's norm before any number of it is used.
    pub(super) fn clip_and_update(
        &mut self,
        step: &StepPlan<'_>,
        norm: f64,
    ) -> Result<(), GangError> {
        self.squares.fill(0.0);
        for i in 0..self.pending.len() {
            let chunk = self.pending[i];
            self.collective.wait_arrived(chunk)?;
            for block in blocks(&self.collective.plan().chunk(chunk)) {
                self.sum_block(step, chunk, &block);
                if block.start < self.parameters {
                    self.squares[chunk] += square_sum(&self.block[..block.len()]);
                }
            }
        }
        self.collective
            .all_gather(&self.squares, &mut self.all_squares)?;
        let chunks = self.squares.len();
        let plan = self.collective.plan();
        let total: f64 = (0..chunks)
            .map(|chunk| self.all_squares[plan.owner(chunk) * chunks + chunk])
            .sum();
        let length = total.sqrt();
        let scale = if length > norm {
            (norm / length) as f32
        } else {
            1.0
        };
        let update = step.update.scaled(scale);
        let scaled = StepPlan { update, ..*step };
        while let Some(chunk) = self.pending.pop_front() {
            self.reduce_and_update(&scaled, chunk);
            self.publish(chunk)?;
        }
        Ok(())
    }
}

/// A range in pieces of [`BLOCK`].
fn blocks(range: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = range.end;
    range
        .clone()
        .step_by(BLOCK)
        .map(move |start| start..(start + BLOCK).min(end))
}

/// Updates a range by a gradient that begins with it: parameters by the optimizer, running statistics by
/// blending.
fn update(
    update: &Update,
    parameters: usize,
    range: Range<usize>,
    gradient: &[f32],
    state: &mut [f32],
    planes: &mut [Buffer; 2],
) {
    let gradient = &gradient[..range.len()];
    let values = &mut state[range.clone()];
    if range.start >= parameters {
        blend(values, gradient, STATISTICS_SHARE);
        return;
    }
    update.apply(values, gradient, parts(planes, &range));
}

/// A range of the optimizer's vectors, as far as there are any.
fn parts<'a>(planes: &'a mut [Buffer; 2], range: &Range<usize>) -> [&'a mut [f32]; 2] {
    planes
        .each_mut()
        .map(|plane| plane.get_mut(range.clone()).unwrap_or_default())
}
