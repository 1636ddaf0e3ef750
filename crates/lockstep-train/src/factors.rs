//! Dense layers' gradients, exchanged as the factors they are products of.
//!
//! With a small batch the factors `x` and `dy` of a weight gradient are far fewer numbers than the
//! gradient: for 784 inputs, 512 outputs and 32 rows, 41 thousand instead of 401 thousand. Every rank
//! shares its lanes' factors with all others, and each owner forms its own chunks' gradients from all
//! lanes' factors: as much arithmetic as before, the same sums in the same order, and so the same bits.
//!
//! Of a first layer whose output is computed by columns ([`crate::replica`]) every rank has all lanes' `x`,
//! the batch's inputs, and only `dy` is shared.

use lockstep_data::lane_rows;
use lockstep_gang::{GangError, Plan, SharingCollective};
use lockstep_nn::{Factored, Layout, Model};
use std::ops::Range;

/// The layers of a model whose gradients are cheaper to exchange as factors.
pub(crate) fn worth_factoring(
    layout: &Layout,
    lanes: usize,
    batch: usize,
    clip: bool,
) -> Vec<usize> {
    // With one lane there is nothing to add up. Clipping reads every gradient twice.
    if lanes == 1 || clip {
        return Vec::new();
    }
    let cheaper =
        |layer: &Factored| batch * (layer.inputs + layer.outputs) < layer.inputs * layer.outputs;
    (0..layout.factored.len())
        .filter(|&number| cheaper(&layout.factored[number]))
        .collect()
}

/// Chunks of the first layer for each lane, at the least, so that any number of workers has about as much
/// to compute each.
const CHUNKS_PER_LANE: usize = 2;

/// The first layer, if its output is worth computing by columns: each rank computes those whose weights it
/// owns, for all lanes, and new weights stay where they are.
pub(crate) fn by_columns<'a>(
    model: &'a Model,
    factored: &[usize],
    lanes: usize,
) -> Option<&'a Factored> {
    let first = model.first_dense()?;
    let mut chunks = first.weight_chunks();
    let worth = factored.first() == Some(&0)
        && chunks.len() >= CHUNKS_PER_LANE * lanes
        && chunks.all(|chunk| first.columns(chunk).is_some());
    worth.then_some(first)
}

/// The plan with the shares of these layers, and with the products of the one that is computed by columns.
/// Any rank can work on their chunks, and has to have the optimizer's `planes` for that.
pub(crate) fn with_factors(
    plan: Plan,
    model: &Model,
    factored: &[usize],
    largest_lane: usize,
    planes: usize,
) -> Plan {
    let first = by_columns(model, factored, plan.lanes());
    let length = |&number: &usize| {
        let layer = &model.layout().factored[number];
        let inputs = match first {
            Some(_) if number == 0 => 0,
            _ => layer.inputs,
        };
        largest_lane * (inputs + layer.outputs)
    };
    let lengths: Vec<usize> = factored.iter().map(length).collect();
    let chunks = |&number: &usize| model.layout().factored[number].chunks.clone();
    let common = factored.iter().flat_map(chunks);
    let plan = plan.with_shares(&lengths).with_common(common, planes);
    let Some(first) = first else {
        return plan;
    };
    let chunks = first.weight_chunks();
    let columns = chunks.clone().filter_map(|chunk| first.columns(chunk));
    let lengths: Vec<usize> = columns
        .map(|columns| largest_lane * columns.len())
        .collect();
    plan.with_products(chunks, &lengths)
}

/// The factors of one layer in one step: of each lane a share, `x` unless every rank has it, then `dy`.
pub(crate) struct LayerFactors {
    pub(crate) layer: Factored,
    /// The layer's kind of share.
    kind: usize,
    /// Whether every rank has `x`.
    x_is_known: bool,
    /// Others' lanes whose factors have not come yet in this step.
    missing: Vec<usize>,
}

impl LayerFactors {
    pub(crate) fn new(layer: &Factored, kind: usize, plan: &Plan) -> Self {
        Self {
            layer: layer.clone(),
            kind,
            x_is_known: plan.producing() == layer.weight_chunks(),
            missing: Vec::with_capacity(plan.lanes()),
        }
    }

    /// Begins a step: everything of the others is missing.
    pub(crate) fn begin(&mut self, others: impl Iterator<Item = usize>) {
        self.missing.clear();
        self.missing.extend(others);
    }

    /// Whether all lanes' factors are here.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Hands one own lane's factors to all peers.
    pub(crate) fn share(
        &mut self,
        lane: usize,
        (x, dy): (&[f32], &[f32]),
        collective: &mut dyn SharingCollective,
    ) -> Result<(), GangError> {
        let x = if self.x_is_known { &[] } else { x };
        let share = collective.plan().share(self.kind, lane);
        let draft = collective.draft(share)?;
        draft[..x.len()].copy_from_slice(x);
        draft[x.len()..x.len() + dy.len()].copy_from_slice(dy);
        collective.announce(share)
    }

    /// Takes what is there, without waiting.
    pub(crate) fn collect(
        &mut self,
        collective: &mut dyn SharingCollective,
    ) -> Result<(), GangError> {
        while let Some(&lane) = self.missing.last() {
            if !collective.published(collective.plan().share(self.kind, lane))? {
                break;
            }
            self.wait(collective)?;
        }
        Ok(())
    }

    /// Takes the next lane's factors that are missing.
    pub(crate) fn wait(&mut self, collective: &mut dyn SharingCollective) -> Result<(), GangError> {
        match self.missing.pop() {
            None => Ok(()),
            Some(lane) => collective.accept(collective.plan().share(self.kind, lane)),
        }
    }

    /// One lane's factors, `x` and `dy`, in a batch of `batch` samples. `inputs` are the batch's, where
    /// every rank has them.
    pub(crate) fn of_lane<'a>(
        &self,
        lane: usize,
        collective: &'a dyn SharingCollective,
        (batch, inputs): (usize, &'a [f32]),
    ) -> (&'a [f32], &'a [f32]) {
        let plan = collective.plan();
        let rows = lane_rows(lane, plan.lanes(), batch);
        let width = self.layer.inputs;
        let share = collective.view(plan.share(self.kind, lane));
        let (x, dy) = match self.x_is_known {
            true => (&inputs[rows.start * width..rows.end * width], share),
            false => share.split_at(rows.len() * width),
        };
        (x, &dy[..rows.len() * self.layer.outputs])
    }
}

/// The lanes that are not in `own`.
pub(crate) fn other_lanes(own: Range<usize>, lanes: usize) -> impl Iterator<Item = usize> {
    (0..lanes).filter(move |lane| !own.contains(lane))
}
