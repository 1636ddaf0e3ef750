//! The replica as one lane's backward pass sees it.

use super::{GangReplica, StepPlan};
use lockstep_nn::{Replica, add};
use std::ops::Range;

/// Takes what one lane's backward pass hands out.
pub(crate) struct LaneReplica<'a> {
    pub(super) replica: &'a mut GangReplica,
    pub(super) step: &'a StepPlan<'a>,
    /// Which lane of the step's program.
    pub(super) work: usize,
}

impl LaneReplica<'_> {
    fn is_last_lane(&self) -> bool {
        self.work + 1 == self.step.program.work.len()
    }
}

impl Replica for LaneReplica<'_> {
    fn state(&self) -> &[f32] {
        &self.replica.state
    }

    fn values(&self, range: Range<usize>) -> &[f32] {
        &self.replica.state[range]
    }

    fn gradient(&mut self, chunk: usize, fill: &mut dyn FnMut(&mut [f32])) {
        let replica = &mut *self.replica;
        let work = &self.step.program.work[self.work];
        let plan = replica.collective.plan();
        let range = plan.chunk(chunk);
        let owned = plan.owner(chunk) == replica.collective.rank();
        if work.buffer > 0 {
            fill(&mut replica.aside[work.buffer - 1][range.clone()]);
        } else if owned && replica.immediate {
            fill(&mut replica.block[..range.len()]);
        } else if owned {
            fill(&mut replica.own[work.partial][range.clone()]);
        } else {
            fill(replica.collective.outbox(chunk, work.partial));
        }
        for &(into, from) in &work.sums {
            let from = from - 1;
            if into > 0 {
                let [into, from] = replica
                    .aside
                    .get_disjoint_mut([into - 1, from])
                    .expect("two buffers");
                add(&mut into[range.clone()], &from[range.clone()]);
            } else if owned {
                add(
                    &mut replica.own[work.partial][range.clone()],
                    &replica.aside[from][range.clone()],
                );
            } else {
                let into = replica.collective.outbox(chunk, work.partial);
                add(into, &replica.aside[from][range.clone()]);
            }
        }
        if self.is_last_lane() {
            self.replica.hand_over(self.step, chunk);
        }
    }

    fn factors(&mut self, number: usize, x: &[f32], dy: &[f32]) -> bool {
        let Some(layer) = self.replica.taken[number] else {
            return false;
        };
        let replica = &mut *self.replica;
        let lane = self.step.program.work[self.work].lane;
        if replica.failed.is_none() {
            let shared = replica.factors[layer].share(lane, (x, dy), &mut *replica.collective);
            replica.failed = shared.err();
        }
        true
    }

    fn factors_used(&mut self, number: usize) {
        if let Some(layer) = self.replica.taken[number]
            && self.is_last_lane()
        {
            for chunk in self.replica.factors[layer].layer.chunks.clone().rev() {
                self.replica.hand_over(self.step, chunk);
            }
        }
    }
}
