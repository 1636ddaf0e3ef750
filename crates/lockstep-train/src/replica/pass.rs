//! The replica as the pass over some lanes sees it.

use super::{GangReplica, StepPlan};
use crate::lanes::LaneWork;
use lockstep_base::failpoint::reach;
use lockstep_base::progress::{Phase, enter};
use lockstep_gang::GangError;
use lockstep_nn::threads::VectorRange;
use lockstep_nn::{LayerGradient, Replica, UpdateChunk, add};
use std::ops::Range;

/// Takes what a pass hands out.
pub(super) struct PassReplica<'a> {
    pub(super) replica: &'a mut GangReplica,
    pub(super) step: &'a StepPlan<'a>,
    /// The pass's lanes, as the step's program has them.
    pub(super) lanes: &'a [LaneWork],
    /// Whether the step's last lane is among them.
    pub(super) is_last: bool,
}

impl PassReplica<'_> {
    /// Keeps the first error: a pass cannot return it.
    fn note(&mut self, outcome: Result<(), GangError>) {
        if let Err(error) = outcome {
            self.replica.failed.get_or_insert(error);
        }
    }

    /// Without peers a chunk is added up and updated by the thread that its gradient is formed by.
    fn gradient_alone(
        &mut self,
        lanes: Range<usize>,
        chunks: Range<usize>,
        gradient: &dyn LayerGradient,
    ) {
        let replica = &mut *self.replica;
        let is_complete = self.is_last && lanes.end == self.lanes.len();
        let is_single = replica.collective.plan().lanes() == 1;
        let (first, rates) = (chunks.start, &replica.rates);
        let (step, works) = (self.step, self.lanes);
        let ranges = &replica.chunks[chunks];
        let each = |number: usize,
                    mut sums: VectorRange<'_>,
                    room: &mut [f32],
                    update: UpdateChunk<'_>| {
            let (chunk, len) = (first + number, ranges[number].len());
            for lane in lanes.clone() {
                let work = &works[lane];
                match work.joins() {
                    Some(into) => gradient.add(lane, chunk, sums.part_mut(into), room),
                    None if is_single => gradient.write(lane, chunk, &mut room[..len]),
                    None => gradient.write(lane, chunk, sums.part_mut(work.buffer)),
                }
                for &(into, from) in work.other_sums() {
                    sums.add(into, from);
                }
            }
            if is_complete {
                reach("update.before");
                let sum = match is_single {
                    true => &room[..len],
                    false => sums.part_mut(0),
                };
                let was = enter(Phase::Update);
                update(sum, &step.update.at_part(rates[chunk]));
                enter(was);
            }
        };
        let room = (&mut replica.room[..], replica.longest);
        let sums = replica.lane_sums.ranges_mut(ranges);
        (replica.state).each_chunk(&replica.compute, room, ranges, sums, each);
    }

    /// With peers the parts of others' chunks are written where they are sent from.
    fn gradient_in_gang(&mut self, lane: usize, chunk: usize, gradient: &dyn LayerGradient) {
        let replica = &mut *self.replica;
        let work = &self.lanes[lane];
        let plan = replica.collective.plan();
        let range = plan.chunk(chunk);
        let owned = plan.owner(chunk) == replica.collective.rank();
        let (sums, room) = (&mut replica.lane_sums, &mut replica.room);
        let collective = &mut *replica.collective;
        let (own, partials) = (work.partial, replica.partials);
        let aside = |buffer: usize| partials + buffer - 1;
        let joins = work.joins();
        let to = match joins.unwrap_or(work.buffer) {
            0 if owned => sums.part_mut(own, range.clone()),
            0 => collective.outbox(chunk, own),
            buffer => sums.part_mut(aside(buffer), range.clone()),
        };
        match joins {
            Some(_) => gradient.add(lane, chunk, to, room),
            None => gradient.write(lane, chunk, to),
        }
        for &(into, from) in work.other_sums() {
            match into {
                0 if owned => sums.add(own, aside(from), range.clone()),
                0 => {
                    let from = sums.part(aside(from), range.clone());
                    add(collective.outbox(chunk, own), from);
                }
                into => sums.add(aside(into), aside(from), range.clone()),
            }
        }
        if self.is_last && lane + 1 == self.lanes.len() {
            self.replica.hand_over(self.step, chunk);
        }
    }
}

impl Replica for PassReplica<'_> {
    fn state(&self) -> &[f32] {
        self.replica.state.values()
    }

    fn output(&mut self, lane: usize, number: usize, y: &mut [f32]) -> bool {
        let (lane, replica) = (self.lanes[lane].lane, &mut *self.replica);
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

    fn gradient(
        &mut self,
        lanes: Range<usize>,
        chunks: Range<usize>,
        gradient: &dyn LayerGradient,
    ) {
        if self.replica.is_alone {
            return self.gradient_alone(lanes, chunks, gradient);
        }
        for chunk in chunks.rev() {
            for lane in lanes.clone() {
                self.gradient_in_gang(lane, chunk, gradient);
            }
        }
    }

    fn factors(&mut self, lane: usize, number: usize, x: &[f32], dy: &[f32]) -> bool {
        let (lane, replica) = (self.lanes[lane].lane, &mut *self.replica);
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
            && self.is_last
        {
            for chunk in dense.layer.chunks.clone().rev() {
                self.replica.hand_over(self.step, chunk);
            }
        }
    }
}
