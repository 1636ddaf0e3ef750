//! The replica as one lane's pass sees it.

use super::{GangReplica, StepPlan};
use lockstep_gang::GangError;
use lockstep_nn::{Replica, add};

/// Takes what one lane's pass hands out.
pub(super) struct LaneReplica<'a> {
    pub(super) replica: &'a mut GangReplica,
    pub(super) step: &'a StepPlan<'a>,
    /// Which lane of the step's program.
    pub(super) work: usize,
}

impl LaneReplica<'_> {
    fn is_last_lane(&self) -> bool {
        self.work + 1 == self.step.program.work.len()
    }

    fn lane(&self) -> usize {
        self.step.program.work[self.work].lane
    }

    /// Keeps the first error: a pass cannot return it.
    fn note(&mut self, outcome: Result<(), GangError>) {
        if let Err(error) = outcome {
            self.replica.failed.get_or_insert(error);
        }
    }
}

impl Replica for LaneReplica<'_> {
    fn state(&self) -> &[f32] {
        self.replica.state.values()
    }

    fn output(&mut self, number: usize, y: &mut [f32]) -> bool {
        let (lane, replica) = (self.lane(), &mut *self.replica);
        let Some(dense) = &mut replica.dense[number] else {
            return false;
        };
        if dense.columns.is_none() {
            return false;
        }
        let taken = dense.take_columns(
            &replica.compute,
            self.step,
            lane,
            y,
            &mut *replica.collective,
            &replica.state,
        );
        self.note(taken);
        true
    }

    fn gradient(&mut self, chunk: usize, fill: &mut dyn FnMut(&mut [f32])) {
        let replica = &mut *self.replica;
        let work = &self.step.program.work[self.work];
        let plan = replica.collective.plan();
        let range = plan.chunk(chunk);
        if replica.immediate {
            lockstep_base::failpoint::reach("update.before");
            let update = self.step.update.at_part(replica.rates[chunk]);
            return replica.state.update_at_once(range, fill, &update);
        }
        let owned = plan.owner(chunk) == replica.collective.rank();
        if work.buffer > 0 {
            fill(&mut replica.aside[work.buffer - 1][range.clone()]);
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
        let (lane, replica) = (self.lane(), &mut *self.replica);
        let Some(dense) = &mut replica.dense[number] else {
            return false;
        };
        if replica.failed.is_none() {
            let shared = dense.share(lane, (x, dy), &mut *replica.collective);
            self.note(shared);
        }
        true
    }

    fn factors_used(&mut self, number: usize) {
        if let Some(dense) = &self.replica.dense[number]
            && self.is_last_lane()
        {
            for chunk in dense.layer.chunks.clone().rev() {
                self.replica.hand_over(self.step, chunk);
            }
        }
    }
}
