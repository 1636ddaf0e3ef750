//! From the parts of a chunk's gradient to its new values.

use super::{BLOCK, GangReplica, StepPlan};
use lockstep_base::progress::{Phase, enter};
use lockstep_gang::{GangError, Partial};
use lockstep_nn::StatePart;
use lockstep_nn::optimizer::square_sum;
use std::ops::Range;

impl GangReplica {
    /// Adds all lanes' parts of a chunk that this rank holds, and updates it.
    pub(super) fn reduce_and_update(&mut self, step: &StepPlan<'_>, chunk: usize) {
        lockstep_base::failpoint::reach("update.before");
        let was = enter(Phase::Update);
        match self.dense_of[chunk] {
            Some(number) => self.form_and_update(step, number, chunk),
            None => {
                let update = step.update.at_part(self.rates[chunk]);
                for block in blocks(&self.collective.plan().chunk(chunk)) {
                    self.sum_block(step, chunk, &block);
                    let gradient = &self.block[..block.len()];
                    self.state.update(block, gradient, &update);
                }
            }
        }
        enter(was);
    }

    /// Forms a chunk's gradient from the factors of its layer, and updates the chunk where it lives.
    fn form_and_update(&mut self, step: &StepPlan<'_>, number: usize, chunk: usize) {
        let Some(dense) = &self.dense[number] else {
            return;
        };
        // The gradient of such a layer is computed here, and not in the backward pass.
        enter(Phase::Backward);
        dense.form(
            &self.compute,
            step,
            chunk,
            &*self.collective,
            &mut self.formed,
        );
        enter(Phase::Update);
        let update = step.update.at_part(self.rates[chunk]);
        let range = self.collective.plan().chunk(chunk);
        let gradient = &self.formed[0][..range.len()];
        let Some(home) = self.collective.home(chunk) else {
            return self.state.update(range, gradient, &update);
        };
        let [first, second] = home.planes;
        let mut apply = |values: &mut [f32]| {
            let planes = [&mut *first, &mut *second];
            update.apply(values, gradient, planes);
        };
        match home.values {
            Some(values) => apply(values),
            None => apply(&mut self.state.part_mut(StatePart::Values)[range]),
        }
    }

    /// Adds the parts of one block of an own chunk in the lanes' tree, into `self.block`.
    fn sum_block(&mut self, step: &StepPlan<'_>, chunk: usize, block: &Range<usize>) {
        lockstep_base::failpoint::reach("update.reduce");
        let out = &mut self.block[..block.len()];
        let (plan, rank) = (self.collective.plan(), self.collective.rank());
        let start = plan.chunk(chunk).start;
        let within = block.start - start..block.end - start;
        let (sums, collective) = (&self.lane_sums, &*self.collective);
        let part = |partial: &Partial| {
            step.program.present[partial.rank][partial.index].then(|| match partial.rank == rank {
                true => sums.part(partial.index, block.clone()),
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
        self.norm = Some(length);
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
