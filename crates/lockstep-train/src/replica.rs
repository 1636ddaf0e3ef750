//! A worker's copy of the state vector, and what happens to a chunk of gradient from the moment the
//! backward pass hands it out until everyone has the new values.
//!
//! The backward pass finishes chunks from the back of the network to the front. A chunk that another
//! rank owns is written straight into the outbox for it and posted. An own chunk is added to what the
//! peers posted, updated and published as soon as their parts are there, usually while it is still in
//! cache and always while the backward pass goes on; only what is left over is waited for at the end.

use crate::TrainError;
use crate::lanes::LaneProgram;
use lockstep_gang::{Collective, GangError, Partial, TreeSum};
use lockstep_nn::optimizer::{blend, square_sum};
use lockstep_nn::{Layout, Optimizer, Replica, STATISTICS_SHARE, Update};
use std::collections::VecDeque;

/// Numbers that are summed and updated at a time, so that the sum stays in the first-level cache.
const BLOCK: usize = 2048;

/// A worker's replica of the state, with its share of the optimizer's.
pub(crate) struct GangReplica {
    pub(crate) collective: Box<dyn Collective>,
    /// Parameters, then running statistics; the same on all ranks between steps.
    pub(crate) state: Vec<f32>,
    /// The optimizer's vectors; only own chunks are kept up.
    pub(crate) planes: [Vec<f32>; 2],
    parameters: usize,
    clip_norm: Option<f64>,
    tree: TreeSum,
    /// This rank's partial sums of own chunks, one vector each.
    own: Vec<Vec<f32>>,
    /// Lanes' gradients that wait to be added.
    aside: Vec<Vec<f32>>,
    /// Room for one block of a summed gradient.
    block: Vec<f32>,
    /// Own chunks that wait for the peers' parts.
    pending: VecDeque<usize>,
    /// Others' chunks that were posted and not fetched yet.
    awaited: VecDeque<usize>,
    /// Sums of squares by chunk, this rank's and all ranks'; for clipping only.
    squares: Vec<f64>,
    all_squares: Vec<f64>,
    /// With one worker and one lane, a chunk's gradient is used up at once: one small buffer, always in
    /// cache, does for all.
    immediate: bool,
    /// The first error of the step; the backward pass cannot return it.
    failed: Option<GangError>,
}

/// What the backward passes of one step have in common.
pub(crate) struct StepPlan<'a> {
    pub(crate) program: &'a LaneProgram,
    pub(crate) update: Update,
}

/// The replica as one lane's backward pass sees it.
pub(crate) struct LaneReplica<'a> {
    replica: &'a mut GangReplica,
    step: &'a StepPlan<'a>,
    work: usize,
}

impl GangReplica {
    pub(crate) fn new(
        collective: Box<dyn Collective>,
        layout: &Layout,
        state: Vec<f32>,
        optimizer: &Optimizer,
        clip_norm: Option<f64>,
        programs: [&LaneProgram; 2],
    ) -> Self {
        let plan = collective.plan();
        let (rank, chunks) = (collective.rank(), plan.chunks());
        let len = layout.len();
        let aside = programs
            .iter()
            .map(|program| program.aside)
            .max()
            .unwrap_or(0);
        let immediate = plan.lanes() == 1 && clip_norm.is_none();
        let own = if immediate { plan.longest_chunk() } else { len };
        let plane = |index| vec![0.0; if optimizer.planes() > index { len } else { 0 }];
        let clip_chunks = if clip_norm.is_some() { chunks } else { 0 };
        Self {
            tree: TreeSum::new(plan),
            own: vec![vec![0.0; own]; plan.partials_of(rank).len()],
            aside: vec![vec![0.0; len]; aside],
            block: vec![0.0; BLOCK],
            pending: VecDeque::with_capacity(chunks),
            awaited: VecDeque::with_capacity(chunks),
            squares: vec![0.0; clip_chunks],
            all_squares: vec![0.0; clip_chunks * plan.workers()],
            planes: [plane(0), plane(1)],
            parameters: layout.parameters,
            clip_norm,
            immediate,
            failed: None,
            state,
            collective,
        }
    }

    /// The view for the backward pass of the `work`-th lane of the step's program.
    pub(crate) fn lane<'a>(&'a mut self, step: &'a StepPlan<'a>, work: usize) -> LaneReplica<'a> {
        LaneReplica {
            replica: self,
            step,
            work,
        }
    }

    /// Announces this rank's vote once all of its chunks are posted.
    pub(crate) fn cast(&mut self, step: &StepPlan<'_>, vote: u64) -> Result<(), TrainError> {
        if step.program.work.is_empty() {
            // No lane of this rank has rows: its parts are absent, but the owners count on its word.
            for chunk in (0..self.collective.plan().chunks()).rev() {
                self.hand_over(step, chunk);
            }
        }
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        Ok(self.collective.cast(vote)?)
    }

    /// Updates what is left, fetches what others updated, and ends the step. Returns the largest vote.
    pub(crate) fn finish(&mut self, step: &StepPlan<'_>) -> Result<u64, TrainError> {
        if let Some(norm) = self.clip_norm {
            self.clip_and_update(step, norm)?;
        }
        loop {
            self.advance(step)?;
            // Nothing more is there yet: wait for the first thing that is missing.
            if let Some(&chunk) = self.pending.front() {
                self.collective.wait_arrived(chunk)?;
            } else if let Some(chunk) = self.awaited.pop_front() {
                let range = self.collective.plan().chunk(chunk);
                self.collective.fetch(chunk, &mut self.state[range])?;
            } else {
                break;
            }
        }
        Ok(self.collective.end_step()?)
    }

    /// Completes the optimizer's vectors on every rank, so that any of them can write the whole state.
    pub(crate) fn gather_planes(&mut self) -> Result<(), TrainError> {
        for plane in self.planes.iter_mut().filter(|plane| !plane.is_empty()) {
            self.collective.exchange_owned(plane)?;
        }
        Ok(())
    }

    /// Called when all lanes of this rank have contributed to a chunk.
    fn hand_over(&mut self, step: &StepPlan<'_>, chunk: usize) {
        if self.failed.is_some() {
            return;
        }
        let outcome = if self.collective.plan().owner(chunk) == self.collective.rank() {
            self.pending.push_back(chunk);
            Ok(())
        } else {
            self.awaited.push_back(chunk);
            self.collective.post(chunk)
        };
        let outcome = match (outcome, self.clip_norm) {
            (Ok(()), None) => self.advance(step),
            (other, _) => other,
        };
        self.failed = outcome.err();
    }

    /// Does whatever can be done without waiting.
    fn advance(&mut self, step: &StepPlan<'_>) -> Result<(), GangError> {
        while let Some(&chunk) = self.pending.front() {
            if !self.collective.arrived(chunk)? {
                break;
            }
            self.pending.pop_front();
            self.reduce_and_update(step, chunk);
            self.publish(chunk)?;
        }
        while let Some(&chunk) = self.awaited.front() {
            if !self.collective.published(chunk)? {
                break;
            }
            self.awaited.pop_front();
            let range = self.collective.plan().chunk(chunk);
            self.collective.fetch(chunk, &mut self.state[range])?;
        }
        Ok(())
    }

    fn publish(&mut self, chunk: usize) -> Result<(), GangError> {
        let range = self.collective.plan().chunk(chunk);
        self.collective.publish(chunk, &self.state[range])
    }

    /// Adds all ranks' parts of an own chunk, and updates it, block by block.
    fn reduce_and_update(&mut self, step: &StepPlan<'_>, chunk: usize) {
        let range = self.collective.plan().chunk(chunk);
        if self.immediate {
            let gradient = &self.own[0][..range.len()];
            apply(
                &step.update,
                self.parameters,
                range,
                gradient,
                &mut self.state,
                &mut self.planes,
            );
            return;
        }
        for start in range.clone().step_by(BLOCK) {
            let block = start..(start + BLOCK).min(range.end);
            let out = &mut self.block[..block.len()];
            sum_parts(
                &mut self.tree,
                &*self.collective,
                &self.own,
                step.program,
                chunk,
                block.clone(),
                out,
            );
            apply(
                &step.update,
                self.parameters,
                block,
                out,
                &mut self.state,
                &mut self.planes,
            );
        }
    }

    /// Clipping needs the whole gradient's norm before any number of it is used.
    fn clip_and_update(&mut self, step: &StepPlan<'_>, norm: f64) -> Result<(), GangError> {
        self.squares.fill(0.0);
        for i in 0..self.pending.len() {
            let chunk = self.pending[i];
            self.collective.wait_arrived(chunk)?;
            let range = self.collective.plan().chunk(chunk);
            for start in range.clone().step_by(BLOCK) {
                let block = start..(start + BLOCK).min(range.end);
                let out = &mut self.block[..block.len()];
                sum_parts(
                    &mut self.tree,
                    &*self.collective,
                    &self.own,
                    step.program,
                    chunk,
                    block.clone(),
                    out,
                );
                if block.start < self.parameters {
                    self.squares[chunk] += square_sum(out);
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
        let scaled = StepPlan {
            program: step.program,
            update: step.update.scaled(scale),
        };
        while let Some(chunk) = self.pending.pop_front() {
            self.reduce_and_update(&scaled, chunk);
            self.publish(chunk)?;
        }
        Ok(())
    }
}

/// Adds the parts of one block of an own chunk in the lanes' tree.
fn sum_parts(
    tree: &mut TreeSum,
    collective: &dyn Collective,
    own: &[Vec<f32>],
    program: &LaneProgram,
    chunk: usize,
    block: std::ops::Range<usize>,
    out: &mut [f32],
) {
    let plan = collective.plan();
    let start = plan.chunk(chunk).start;
    let within = block.start - start..block.end - start;
    let rank = collective.rank();
    let part = |partial: &Partial| {
        program.present[partial.rank][partial.index].then(|| {
            if partial.rank == rank {
                &own[partial.index][block.clone()]
            } else {
                &collective.inbox(chunk, partial.rank, partial.index)[within.clone()]
            }
        })
    };
    tree.sum(part, out);
}

/// Updates one range: parameters by the optimizer, running statistics by blending.
fn apply(
    update: &Update,
    parameters: usize,
    range: std::ops::Range<usize>,
    gradient: &[f32],
    state: &mut [f32],
    planes: &mut [Vec<f32>; 2],
) {
    let values = &mut state[range.clone()];
    if range.start >= parameters {
        blend(values, gradient, STATISTICS_SHARE);
        return;
    }
    let [first, second] = planes;
    let planes = [first, second].map(|plane| plane.get_mut(range.clone()).unwrap_or_default());
    update.apply(values, gradient, planes);
}

impl Replica for LaneReplica<'_> {
    fn state(&self) -> &[f32] {
        &self.replica.state
    }

    fn gradient(&mut self, chunk: usize, fill: &mut dyn FnMut(&mut [f32])) {
        let replica = &mut *self.replica;
        let work = &self.step.program.work[self.work];
        let plan = replica.collective.plan();
        let range = plan.chunk(chunk);
        let owned = plan.owner(chunk) == replica.collective.rank();
        if work.buffer > 0 {
            fill(&mut replica.aside[work.buffer - 1][range.clone()]);
        } else if owned {
            let place = if replica.immediate {
                0..range.len()
            } else {
                range.clone()
            };
            fill(&mut replica.own[work.partial][place]);
        } else {
            fill(replica.collective.outbox(chunk, work.partial));
        }
        for &(into, from) in &work.sums {
            if into > 0 {
                let (left, right) = replica.aside.split_at_mut(into.max(from) - 1);
                let (into, from) = if into < from {
                    (&mut left[into - 1], &mut right[0])
                } else {
                    (&mut right[0], &mut left[from - 1])
                };
                add(&mut into[range.clone()], &from[range.clone()]);
            } else if owned {
                add(
                    &mut replica.own[work.partial][range.clone()],
                    &replica.aside[from - 1][range.clone()],
                );
            } else {
                let into = replica.collective.outbox(chunk, work.partial);
                add(into, &replica.aside[from - 1][range.clone()]);
            }
        }
        if self.work + 1 == self.step.program.work.len() {
            replica.hand_over(self.step, chunk);
        }
    }
}

fn add(into: &mut [f32], from: &[f32]) {
    for (into, &from) in into.iter_mut().zip(from) {
        *into += from;
    }
}
