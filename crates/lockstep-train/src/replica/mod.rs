//! A worker's copy of the state vector, and what happens to a chunk of gradient from the moment the
//! backward pass hands it out until everyone has the new values.
//!
//! The backward pass finishes chunks from the back of the network to the front. A chunk that another
//! rank owns is written straight into the outbox for it and posted; a layer whose factors are smaller
//! than its gradient is shared as those ([`crate::factors`]). An own chunk is added up, updated and
//! published as soon as the peers' parts are there, usually while it is still in cache and always while
//! the backward pass goes on; only what is left over is waited for at the end. What follows from factors
//! comes last, when this rank's are all shared: peers wait for those, and for nothing that takes longer.
//!
//! Of a first layer that is computed by columns nothing of the weights travels at all ([`columns`]).
//! Where ranks share memory, one that is done takes over what others have not begun ([`common`]).

mod columns;
mod common;
mod lane;
mod update;

use crate::TrainError;
use crate::factors::{LayerFactors, other_lanes};
use crate::lanes::LaneProgram;
use lane::LaneReplica;
use lockstep_gang::{CollectiveExt, GangError, SharingCollective, TreeSum};
use lockstep_nn::{Buffer, Factored, Layout, Optimizer, Update};
use std::collections::VecDeque;

/// Numbers that are summed and updated at a time, so that the sum stays in the first-level cache.
const BLOCK: usize = 2048;

/// A worker's replica of the state, with its share of the optimizer's.
pub(crate) struct GangReplica {
    pub(crate) collective: Box<dyn SharingCollective>,
    /// Parameters, then running statistics; the same on all ranks between steps, but for chunks that their
    /// owners keep to themselves until [`GangReplica::gather_state`].
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
    /// A piece of a summed gradient on its way to the optimizer.
    block: Buffer,
    /// The layer that is computed by columns, and room for some of its columns for one lane.
    first: Option<Factored>,
    columns: Buffer,
    /// Own chunks that wait for the peers' parts.
    pending: VecDeque<usize>,
    /// Others' chunks that were handed over and not fetched yet.
    awaited: VecDeque<usize>,
    /// Others' common chunks that this rank may still take.
    open: VecDeque<usize>,
    /// Sums of squares by chunk, this rank's and all ranks'; for clipping only.
    squares: Vec<f64>,
    all_squares: Vec<f64>,
    /// With one lane and no clipping there is nothing to add: a gradient is written to `block`, and used
    /// from there at once.
    immediate: bool,
    /// The first error of the step; the backward pass cannot return it.
    failed: Option<GangError>,
}

/// What the backward passes of one step have in common.
#[derive(Clone, Copy)]
pub(crate) struct StepPlan<'a> {
    pub(crate) program: &'a LaneProgram,
    pub(crate) update: Update,
    /// The batch's inputs, of all lanes if the first layer is computed by columns.
    pub(crate) inputs: &'a [f32],
}

impl GangReplica {
    /// `factored` are the layers whose factors are exchanged, in the order of the plan's shares.
    pub(crate) fn new(
        collective: Box<dyn SharingCollective>,
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
        let own = if immediate { 0 } else { len };
        let block = if immediate {
            plan.longest_chunk()
        } else {
            BLOCK
        };
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
        let products = (plan.producing()).map(|chunk| plan.chunk(plan.product(chunk, 0)).len());
        let columns = Buffer::zeros(products.max().unwrap_or(0));
        let by_columns = |layer: &&Factored| layer.weight_chunks() == plan.producing();
        Self {
            first: layout.factored.iter().find(by_columns).cloned(),
            columns,
            tree: TreeSum::new(plan),
            own: vec![Buffer::zeros(own); plan.partials_of(rank).len()],
            aside: vec![Buffer::zeros(len); aside],
            formed,
            block: Buffer::zeros(block),
            pending: VecDeque::with_capacity(chunks),
            awaited: VecDeque::with_capacity(chunks),
            open: VecDeque::with_capacity(chunks),
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
                self.take_columns(step, lane, &mut [])?;
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
        // A vote says that this rank has taken all factors of the step.
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
            } else if self.take_over(step)? {
                continue;
            } else if let Some(chunk) = self.awaited.pop_front() {
                let range = self.collective.plan().chunk(chunk);
                self.collective.fetch(chunk, &mut self.state[range])?;
            } else {
                break;
            }
        }
        Ok(self.collective.end_step()?)
    }

    /// Completes the state on every rank, where owners keep chunks to themselves.
    pub(crate) fn gather_state(&mut self) -> Result<(), TrainError> {
        self.leave_homes()?;
        if self.first.is_some() {
            self.collective.exchange_owned(&mut self.state)?;
        }
        Ok(())
    }

    /// Completes the optimizer's vectors on every rank, so that any of them can write the whole state.
    pub(crate) fn gather_planes(&mut self) -> Result<(), TrainError> {
        self.leave_homes()?;
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
        } else if self.collective.plan().is_common(chunk) {
            self.open.push_back(chunk);
        } else {
            self.awaited.push_back(chunk);
            outcome = self.collective.post(chunk);
        }
        // What follows from factors is formed when all are shared.
        if outcome.is_ok() && self.clip_norm.is_none() && self.factors_of[chunk].is_none() {
            outcome = self.advance(step);
        }
        self.failed = outcome.err();
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
        let ready = match self.factors_of[chunk] {
            None => self.collective.arrived(chunk)?,
            Some(layer) => {
                self.factors[layer].collect(&mut *self.collective)?;
                self.factors[layer].is_complete()
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
        for others in [&mut self.awaited, &mut self.open] {
            let Some(&chunk) = others.front() else {
                continue;
            };
            let kept = self.collective.plan().producing().contains(&chunk);
            if !kept && self.collective.published(chunk)? {
                others.pop_front();
                let range = self.collective.plan().chunk(chunk);
                self.collective.fetch(chunk, &mut self.state[range])?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn publish(&mut self, chunk: usize) -> Result<(), GangError> {
        if self.collective.plan().workers() == 1 || self.is_kept(chunk) {
            return Ok(());
        }
        let range = self.collective.plan().chunk(chunk);
        self.collective.publish(chunk, &self.state[range])
    }
}
