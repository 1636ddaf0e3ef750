//! A worker's copy of the state vector, and what happens to a chunk of gradient from the moment the
//! backward pass hands it out until everyone has the new values.
//!
//! The backward pass finishes chunks from the back of the network to the front. A chunk that another
//! rank owns is written straight into the outbox for it and posted; a layer whose factors are smaller
//! than its gradient is shared as those ([`crate::factors`]). An own chunk is added up, updated and
//! published as soon as the peers' parts are there, usually while it is still in cache and always while
//! the backward pass goes on; only what is left over is waited for at the end.

use crate::TrainError;
use crate::factors::{LayerFactors, other_lanes};
use crate::lanes::LaneProgram;
use lockstep_gang::{Collective, GangError, Partial, TreeSum};
use lockstep_nn::optimizer::{blend, square_sum};
use lockstep_nn::{Buffer, Layout, Optimizer, Replica, STATISTICS_SHARE, Update, add};
use std::collections::VecDeque;
use std::ops::Range;

/// Numbers that are summed and updated at a time, so that the sum stays in the first-level cache.
const BLOCK: usize = 2048;

/// A worker's replica of the state, with its share of the optimizer's.
pub(crate) struct GangReplica {
    pub(crate) collective: Box<dyn Collective>,
    /// Parameters, then running statistics; the same on all ranks between steps.
    pub(crate) state: Buffer,
    /// The optimizer's vectors; only own chunks are kept up.
    pub(crate) planes: [Buffer; 2],
    parameters: usize,
    clip_norm: Option<f64>,
    /// Adds up all ranks' partial sums.
    tree: TreeSum,
    /// This rank's partial sums of own chunks, one vector each.
    own: Vec<Buffer>,
    /// Lanes' gradients that wait to be added.
    aside: Vec<Buffer>,
    /// The layers whose factors are exchanged, and by each chunk which of them it belongs to.
    factors: Vec<LayerFactors>,
    factors_of: Vec<Option<usize>>,
    /// By the layout's factored layers, which of `factors` each is.
    taken: Vec<Option<usize>>,
    /// Gradients of one chunk, formed from factors; the first becomes the sum, the last is spare.
    formed: Vec<Buffer>,
    /// Room for one block of a summed gradient.
    block: Buffer,
    /// Own chunks that wait for the peers' parts.
    pending: VecDeque<usize>,
    /// Others' chunks that were handed over and not fetched yet.
    awaited: VecDeque<usize>,
    /// Sums of squares by chunk, this rank's and all ranks'; for clipping only.
    squares: Vec<f64>,
    all_squares: Vec<f64>,
    /// With one lane and no clipping, a chunk's gradient is used up at once: one small buffer, always in
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
    /// `factored` are the layers whose factors are exchanged, in the order of the plan's shares.
    pub(crate) fn new(
        collective: Box<dyn Collective>,
        layout: &Layout,
        state: Buffer,
        optimizer: &Optimizer,
        clip_norm: Option<f64>,
        factored: &[usize],
        aside: usize,
    ) -> Self {
        let plan = collective.plan();
        let (rank, chunks, len) = (collective.rank(), plan.chunks(), layout.len());
        let immediate = plan.lanes() == 1 && clip_norm.is_none();
        let own = if immediate { plan.longest_chunk() } else { len };
        let plane = |index| Buffer::zeros(if optimizer.planes() > index { len } else { 0 });
        let clip_chunks = if clip_norm.is_some() { chunks } else { 0 };
        let mut factors_of = vec![None; chunks];
        let mut taken = vec![None; layout.factored.len()];
        let mut factors = Vec::new();
        for (kind, &number) in factored.iter().enumerate() {
            let layer = &layout.factored[number];
            factors_of[layer.chunks.clone()].fill(Some(kind));
            taken[number] = Some(kind);
            factors.push(LayerFactors::new(layer, kind, plan));
        }
        // A sum and what waits on each level of the tree, and one to spare.
        let levels = plan.lanes().next_power_of_two().ilog2() as usize + 2;
        let formed = match factored.is_empty() {
            true => Vec::new(),
            false => vec![Buffer::zeros(plan.longest_chunk()); levels],
        };
        Self {
            tree: TreeSum::new(plan),
            own: vec![Buffer::zeros(own); plan.partials_of(rank).len()],
            aside: vec![Buffer::zeros(len); aside],
            formed,
            block: Buffer::zeros(BLOCK),
            pending: VecDeque::with_capacity(chunks),
            awaited: VecDeque::with_capacity(chunks),
            squares: vec![0.0; clip_chunks],
            all_squares: vec![0.0; clip_chunks * plan.workers()],
            planes: [plane(0), plane(1)],
            parameters: layout.parameters,
            factors,
            factors_of,
            taken,
            clip_norm,
            immediate,
            failed: None,
            state,
            collective,
        }
    }

    /// Begins a step.
    pub(crate) fn begin(&mut self) {
        let plan = self.collective.plan();
        let own = plan.lanes_of(self.collective.rank());
        for factors in &mut self.factors {
            factors.begin(other_lanes(own.clone(), plan.lanes()));
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

    /// Called when all lanes of this rank are computed: what lanes without rows owe is handed over too,
    /// since the owners count on every rank's word.
    pub(crate) fn computed(&mut self, step: &StepPlan<'_>) -> Result<(), TrainError> {
        let own = self.collective.plan().lanes_of(self.collective.rank());
        for lane in own {
            if !step.program.work.iter().any(|work| work.lane == lane) {
                for factors in self.factors.iter_mut().rev() {
                    factors.share(lane, (&[], &[]), &mut *self.collective)?;
                }
            }
        }
        if step.program.work.is_empty() {
            for chunk in (0..self.collective.plan().chunks()).rev() {
                self.hand_over(step, chunk);
            }
        }
        match self.failed.take() {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    /// Updates what is left, fetches what others updated, votes, and ends the step. Returns the largest
    /// vote.
    pub(crate) fn finish(&mut self, step: &StepPlan<'_>, vote: u64) -> Result<u64, TrainError> {
        // A vote says that this rank has all factors of the step, so that they may be overwritten.
        for layer in (0..self.factors.len()).rev() {
            while !self.factors[layer].is_complete() {
                self.factors[layer].wait(&mut *self.collective)?;
                self.advance(step)?;
            }
        }
        self.collective.cast(vote)?;
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
        let mut outcome = Ok(());
        if self.collective.plan().owner(chunk) == self.collective.rank() {
            self.pending.push_back(chunk);
        } else {
            self.awaited.push_back(chunk);
            if self.factors_of[chunk].is_none() {
                outcome = self.collective.post(chunk);
            }
        }
        if outcome.is_ok() && self.clip_norm.is_none() {
            outcome = self.advance(step);
        }
        self.failed = outcome.err();
    }

    /// Does whatever can be done without waiting.
    fn advance(&mut self, step: &StepPlan<'_>) -> Result<(), GangError> {
        while let Some(&chunk) = self.pending.front() {
            let ready = match self.factors_of[chunk] {
                None => self.collective.arrived(chunk)?,
                Some(layer) => {
                    self.factors[layer].collect(&mut *self.collective)?;
                    self.factors[layer].is_complete()
                }
            };
            if !ready {
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
        match self.collective.plan().workers() {
            1 => Ok(()),
            _ => self.collective.publish(chunk, &self.state[range]),
        }
    }

    /// Adds all lanes' parts of an own chunk, and updates it, block by block.
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
        if let Some(layer) = self.factors_of[chunk] {
            self.form(step, layer, chunk);
            let gradient = &self.formed[0][..range.len()];
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
        for block in blocks(&range) {
            self.sum_block(step, chunk, &block);
            let gradient = &self.block[..block.len()];
            apply(
                &step.update,
                self.parameters,
                block,
                gradient,
                &mut self.state,
                &mut self.planes,
            );
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
        for work in &step.program.forming {
            let of_lane = factors.of_lane(work.lane, step.program.batch);
            let mut sums = &work.sums[..];
            // A lane that is added to its left neighbour at once needs no buffer of its own.
            if let [(into, _), rest @ ..] = sums {
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
    fn clip_and_update(&mut self, step: &StepPlan<'_>, norm: f64) -> Result<(), GangError> {
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
        let scaled = StepPlan {
            program: step.program,
            update,
        };
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

/// Updates one range: parameters by the optimizer, running statistics by blending.
fn apply(
    update: &Update,
    parameters: usize,
    range: Range<usize>,
    gradient: &[f32],
    state: &mut [f32],
    planes: &mut [Buffer; 2],
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

impl LaneReplica<'_> {
    fn is_last_lane(&self) -> bool {
        self.work + 1 == self.step.program.work.len()
    }
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
        if self.is_last_lane() {
            for chunk in self.replica.factors[layer].layer.chunks.clone().rev() {
                self.replica.hand_over(self.step, chunk);
            }
        }
        true
    }
}
