//! A worker's copy of the state vector, and what happens to a chunk of gradient from the moment the
//! backward pass hands it out until everyone has the new values.
//!
//! The backward pass finishes chunks from the back of the network to the front. A chunk that another
//! rank owns is written straight into the outbox for it and posted; a layer whose factors are smaller
//! than its gradient is shared as those ([`factors`]). An own chunk is added up, updated and
//! published as soon as the peers' parts are there, usually while it is still in cache and always while
//! the backward pass goes on; only what is left over is waited for at the end. What follows from factors
//! comes last, when this rank's are all shared: peers wait for those, and for nothing that takes longer.
//!
//! Of a first layer that is computed by columns nothing of the weights travels at all ([`columns`]).
//! Where ranks share memory, one that is done takes over what others have not begun ([`common`]).

mod columns;
mod common;
mod factors;
mod pass;
mod update;

use crate::TrainError;
use crate::exchange::ExchangePlan;
use crate::lanes::LaneProgram;
use factors::{DenseExchange, other_lanes};
use lockstep_base::progress::{Phase, enter};
use lockstep_gang::{CollectiveExt, GangError, KeptWriter, SharingCollective, TreeSum};
use lockstep_nn::threads::VectorSet;
use lockstep_nn::{
    Batch, Buffer, Layout, LossSum, Model, StatePart, StateVector, Step, Threads, Update,
};
use pass::PassReplica;
use std::collections::VecDeque;
use std::ops::Range;

/// Numbers that are summed and updated at a time, so that the sum stays in the first-level cache.
const BLOCK: usize = lockstep_nn::optimizer::SQUARED_BLOCK;

/// A worker's replica of the state, with its share of the optimizer's.
pub(crate) struct GangReplica {
    pub(crate) collective: Box<dyn SharingCollective>,
    /// Parameters and running statistics, the same on all ranks between steps but for chunks that their
    /// owners keep to themselves until [`GangReplica::gather_state`]. Of the optimizer's vectors only own
    /// chunks are kept up.
    pub(crate) state: StateVector,
    compute: Threads,
    parameters: usize,
    /// The part of the learning rate that each chunk learns with; 0 never changes, and nothing of it is exchanged.
    rates: Vec<f32>,
    /// The optimizer's vectors.
    planes: usize,
    clip_norm: Option<f64>,
    /// Adds up all ranks' partial sums.
    tree: TreeSum,
    /// This rank's partial sums of own chunks, a vector each, and behind them lanes' gradients that wait to be added.
    lane_sums: VectorSet,
    /// How many of these are partial sums.
    partials: usize,
    /// The layout's chunks.
    chunks: Vec<Range<usize>>,
    /// Room for the gradient of the longest chunk: for each thread, if each updates what it has formed.
    room: Buffer,
    longest: usize,
    /// The layout's dense layers, those whose factors are exchanged; and by each chunk which of these it
    /// belongs to.
    dense: Vec<Option<DenseExchange>>,
    dense_of: Vec<Option<usize>>,
    /// Gradients of one chunk, formed from factors; the first becomes the sum, the last is spare.
    formed: Vec<Buffer>,
    /// A piece of a summed gradient on its way to the optimizer.
    block: Buffer,
    /// Own chunks that wait for the peers' parts.
    pending: VecDeque<usize>,
    /// Others' chunks that were handed over and not fetched yet.
    awaited: VecDeque<usize>,
    /// Others' common chunks that this rank may still take.
    open: VecDeque<usize>,
    /// Sums of squares by chunk, this rank's and all ranks'; for clipping only.
    squares: Vec<f64>,
    all_squares: Vec<f64>,
    /// The norm of the last gradient, where it is clipped.
    norm: Option<f64>,
    /// Without peers and clipping a chunk is updated where its gradient is formed.
    is_alone: bool,
    /// The first error of the step; a pass cannot return it.
    failed: Option<GangError>,
}

/// What the passes of one step have in common.
#[derive(Clone, Copy)]
pub(crate) struct StepPlan<'a> {
    pub(crate) program: &'a LaneProgram,
    pub(crate) update: Update,
    /// The batch's inputs, of all lanes if the exchange reads whole batches.
    pub(crate) inputs: &'a [f32],
}

impl<'a> StepPlan<'a> {
    /// Some rows of the batch's inputs.
    fn rows(&self, rows: Range<usize>, width: usize) -> &'a [f32] {
        &self.inputs[rows.start * width..rows.end * width]
    }
}

/// What a replica's exchange is made with.
pub(crate) struct ExchangeSetup<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) exchange: &'a ExchangePlan,
    pub(crate) compute: Threads,
    /// The optimizer's vectors.
    pub(crate) planes: usize,
    pub(crate) clip_norm: Option<f64>,
    /// Lanes' gradients that wait to be added, at the most.
    pub(crate) aside: usize,
}

impl GangReplica {
    /// Joins what `collective` reaches; all ranks have the same `state`.
    pub(crate) fn new(
        collective: Box<dyn SharingCollective>,
        state: StateVector,
        setup: ExchangeSetup<'_>,
    ) -> Result<Self, TrainError> {
        let ExchangeSetup {
            layout,
            exchange,
            compute,
            planes,
            clip_norm,
            aside,
        } = setup;
        let plan = collective.plan();
        let (rank, chunks, len) = (collective.rank(), plan.chunks(), layout.len());
        let is_alone = plan.workers() == 1 && clip_norm.is_none();
        let (partials, longest) = (plan.partials_of(rank).len(), plan.longest_chunk());
        // A single lane is never added to another one.
        let vectors = match is_alone && plan.lanes() == 1 {
            true => 0,
            false => partials + aside,
        };
        let (rooms, block) = match is_alone {
            true => (compute.rooms(longest, chunks), 0),
            false => (longest, BLOCK),
        };
        let clip_chunks = if clip_norm.is_some() { chunks } else { 0 };
        let dense = DenseExchange::of_all(&layout.factored, &exchange.strategies, plan);
        let mut dense_of = vec![None; chunks];
        for (number, dense) in dense.iter().enumerate() {
            if let Some(dense) = dense {
                dense_of[dense.layer.chunks.clone()].fill(Some(number));
            }
        }
        // A sum and what waits on each level of the tree, and one to spare.
        let levels = plan.lanes().next_power_of_two().ilog2() as usize + 2;
        let formed = match dense_of.iter().any(Option::is_some) {
            true => vec![Buffer::zeros(longest); levels],
            false => Vec::new(),
        };
        let mut replica = Self {
            tree: TreeSum::new(plan, rank),
            lane_sums: VectorSet::zeros(vectors, len),
            partials,
            chunks: layout.chunks.clone(),
            room: Buffer::zeros(rooms),
            longest,
            formed,
            block: Buffer::zeros(block),
            pending: VecDeque::with_capacity(chunks),
            awaited: VecDeque::with_capacity(chunks),
            open: VecDeque::with_capacity(chunks),
            squares: vec![0.0; clip_chunks],
            all_squares: vec![0.0; clip_chunks * plan.workers()],
            norm: None,
            parameters: layout.parameters,
            rates: layout.rates.clone(),
            planes,
            dense,
            dense_of,
            compute,
            clip_norm,
            is_alone,
            failed: None,
            state,
            collective,
        };
        replica.enter_homes()?;
        Ok(replica)
    }

    /// The norm of the last gradient before it was clipped; none where none is.
    pub(crate) fn gradient_norm(&self) -> Option<f64> {
        self.norm
    }

    /// Begins a step.
    pub(crate) fn begin(&mut self, step: &StepPlan<'_>) -> Result<(), TrainError> {
        let plan = self.collective.plan();
        let (own, lanes) = (plan.lanes_of(self.collective.rank()), plan.lanes());
        for dense in self.dense.iter_mut().flatten() {
            dense.begin(other_lanes(own.clone(), lanes));
            let (collective, state) = (&mut *self.collective, &self.state);
            dense.make_columns(&self.compute, step, collective, state)?;
        }
        Ok(())
    }

    /// Computes some lanes of the step's program in one pass, and exchanges meanwhile. `rows` are theirs in the batch that
    /// is given, and `sums` room for their losses.
    pub(crate) fn gradient(
        &mut self,
        model: &mut Model,
        plan: &StepPlan<'_>,
        lanes: Range<usize>,
        (batch, step): (Batch<'_>, Step<'_>),
        (rows, sums): (&[Range<usize>], &mut [LossSum]),
    ) -> Result<(), TrainError> {
        let work = &plan.program.work;
        let mut pass = PassReplica {
            replica: self,
            step: plan,
            is_last: lanes.end == work.len(),
            lanes: &work[lanes],
        };
        model.gradients(&mut pass, batch, step, (rows, sums));
        match self.failed.take() {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    /// Takes this rank's partial sums of the step, those that have rows, each as long as the state vector, and exchanges them.
    pub(crate) fn take_partials(
        &mut self,
        step: &StepPlan<'_>,
        sums: &[&[f32]],
    ) -> Result<(), TrainError> {
        if sums.is_empty() {
            return Ok(());
        }
        let rank = self.collective.rank();
        let present = &step.program.present[rank];
        for chunk in (0..self.collective.plan().chunks()).rev() {
            if self.rates[chunk] == 0.0 {
                continue;
            }
            let plan = self.collective.plan();
            let (range, is_own) = (plan.chunk(chunk), plan.owner(chunk) == rank);
            let partials = (0..present.len()).filter(|&partial| present[partial]);
            for (partial, sum) in partials.zip(sums) {
                let from = &sum[range.clone()];
                let to = match is_own {
                    true => self.lane_sums.part_mut(partial, range.clone()),
                    false => self.collective.outbox(chunk, partial),
                };
                to.copy_from_slice(from);
            }
            self.hand_over(step, chunk);
        }
        match self.failed.take() {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    /// Called when all lanes of this rank are computed: what lanes without rows owe is handed over too,
    /// since the owners count on every rank's word.
    pub(crate) fn computed(&mut self, step: &StepPlan<'_>) -> Result<(), TrainError> {
        let own = self.collective.plan().lanes_of(self.collective.rank());
        for lane in own {
            if !step.program.work.iter().any(|work| work.lane == lane) {
                for dense in self.dense.iter_mut().rev().flatten() {
                    let (collective, state) = (&mut *self.collective, &self.state);
                    dense.take_columns(&self.compute, step, lane, &mut [], collective, state)?;
                    dense.share(lane, (&[], &[]), collective)?;
                }
            }
        }
        if step.program.work.is_empty() {
            for chunk in (0..self.collective.plan().chunks()).rev() {
                if self.rates[chunk] != 0.0 {
                    self.hand_over(step, chunk);
                }
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
        // A vote says that this rank has taken all factors of the step.
        for number in (0..self.dense.len()).rev() {
            while let Some(dense) = &mut self.dense[number]
                && !dense.is_complete()
            {
                dense.wait(&mut *self.collective)?;
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
            } else if self.take_over(step)? {
                continue;
            } else if let Some(chunk) = self.awaited.pop_front() {
                self.fetch(chunk)?;
            } else {
                break;
            }
        }
        Ok(self.collective.end_step()?)
    }

    /// Completes the state on every rank, where owners keep chunks to themselves.
    pub(crate) fn gather_state(&mut self) -> Result<(), TrainError> {
        self.leave_homes()?;
        match self.collective.plan().producing().is_empty() {
            true => Ok(()),
            false => self.exchange_owned(StatePart::Values),
        }
    }

    /// Completes the optimizer's vectors on every rank, so that any of them can write the whole state.
    pub(crate) fn gather_planes(&mut self) -> Result<(), TrainError> {
        self.leave_homes()?;
        (0..self.planes).try_for_each(|plane| self.exchange_owned(StatePart::Plane(plane)))
    }

    /// Completes one vector on every rank.
    fn exchange_owned(&mut self, part: StatePart) -> Result<(), TrainError> {
        let vector = self.state.part_mut(part);
        Ok(self.collective.exchange_owned(vector)?)
    }

    /// Called when all lanes of this rank have contributed to a chunk.
    fn hand_over(&mut self, step: &StepPlan<'_>, chunk: usize) {
        if self.failed.is_some() {
            return;
        }
        let was = enter(Phase::Exchange);
        let mut outcome = Ok(());
        if self.collective.plan().owner(chunk) == self.collective.rank() {
            self.pending.push_back(chunk);
        } else if self.collective.plan().is_common(chunk) {
            self.open.push_back(chunk);
        } else {
            self.awaited.push_back(chunk);
            outcome = self.collective.post(chunk);
        }
        // What follows from factors is formed when all are shared.
        if outcome.is_ok() && self.clip_norm.is_none() && self.dense_of[chunk].is_none() {
            outcome = self.advance(step);
        }
        self.failed = outcome.err();
        enter(was);
    }

    /// Does whatever can be done without waiting: own chunks and others' in turns, so that what a peer
    /// has just published is still in its cache.
    fn advance(&mut self, step: &StepPlan<'_>) -> Result<(), GangError> {
        loop {
            let updated = self.update_next(step)?;
            let fetched = self.fetch_next()?;
            if !updated && !fetched {
                return Ok(());
            }
        }
    }

    /// Updates and publishes the next own chunk, if all that it needs is there.
    fn update_next(&mut self, step: &StepPlan<'_>) -> Result<bool, GangError> {
        let Some(&chunk) = self.pending.front() else {
            return Ok(false);
        };
        let dense = self.dense_of[chunk].and_then(|number| self.dense[number].as_mut());
        let ready = match dense {
            None => self.collective.arrived(chunk)?,
            Some(dense) => {
                dense.collect(&mut *self.collective)?;
                dense.is_complete()
            }
        };
        if ready {
            self.pending.pop_front();
            self.take_and_update(step, chunk)?;
        }
        Ok(ready)
    }

    /// Fetches the next of others' chunks, if it is there.
    fn fetch_next(&mut self) -> Result<bool, GangError> {
        let mut there = None;
        for others in [&mut self.awaited, &mut self.open] {
            let Some(&chunk) = others.front() else {
                continue;
            };
            let kept = self.collective.plan().producing().contains(&chunk);
            if !kept && self.collective.published(chunk)? {
                there = others.pop_front();
                break;
            }
        }
        match there {
            None => Ok(false),
            Some(chunk) => self.fetch(chunk).map(|()| true),
        }
    }

    /// Copies the chunks that this rank holds, those that never change only if `all` are wanted, with these weights'
    /// `average`.
    pub(crate) fn copy_state(&mut self, average: Option<&[f32]>, to: &mut KeptWriter, all: bool) {
        for chunk in 0..self.collective.plan().chunks() {
            if !self.collective.holds(chunk) || !(all || self.rates[chunk] != 0.0) {
                continue;
            }
            lockstep_base::failpoint::reach("copy.chunk");
            let range = self.collective.plan().chunk(chunk);
            let own = self.state.vectors().map(|own| own.get(range.clone()));
            let mut vectors = [
                own[0],
                own[1],
                own[2],
                average.map(|all| &all[range.clone()]),
            ];
            if let Some(home) = self.collective.home(chunk) {
                let [first, second] = home.planes;
                for (number, plane) in [first, second].into_iter().enumerate() {
                    vectors[1 + number] = (!plane.is_empty()).then_some(&*plane);
                }
                if let Some(values) = home.values {
                    vectors[0] = Some(values);
                }
            }
            for (number, vector) in vectors.into_iter().flatten().enumerate() {
                to.write(number, range.start, vector);
            }
        }
    }

    fn publish(&mut self, chunk: usize) -> Result<(), GangError> {
        if self.collective.plan().workers() == 1 || self.is_kept(chunk) {
            return Ok(());
        }
        let range = self.collective.plan().chunk(chunk);
        self.collective.publish(chunk, &self.state.values()[range])
    }

    /// Takes the new values of another rank's chunk, waiting for them if need be.
    fn fetch(&mut self, chunk: usize) -> Result<(), GangError> {
        let range = self.collective.plan().chunk(chunk);
        let values = &mut self.state.part_mut(StatePart::Values)[range];
        self.collective.fetch(chunk, values)
    }

    /// Whether the owner of a chunk keeps its new values to itself.
    fn is_kept(&self, chunk: usize) -> bool {
        self.collective.plan().producing().contains(&chunk)
    }
}
