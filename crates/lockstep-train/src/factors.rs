//! Dense layers' gradients, exchanged as the factors they are products of.
//!
//! With a small batch the factors `x` and `dy` of a weight gradient are far fewer numbers than the
//! gradient: for 784 inputs, 512 outputs and 32 rows, 41 thousand instead of 401 thousand. Every rank
//! shares its lanes' factors with all others, and each owner forms its own chunks' gradients from all
//! lanes' factors: as much arithmetic as before, the same sums in the same order, and so the same bits.

use lockstep_data::lane_rows;
use lockstep_gang::{Collective, GangError, Plan};
use lockstep_nn::{Buffer, Factored, Layout};
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

/// How long the shares of these layers are, one for each.
pub(crate) fn share_lengths(layout: &Layout, layers: &[usize], largest_lane: usize) -> Vec<usize> {
    let length = |&number: &usize| {
        let layer = &layout.factored[number];
        largest_lane * (layer.inputs + layer.outputs)
    };
    layers.iter().map(length).collect()
}

/// The factors of one layer in one step.
pub(crate) struct LayerFactors {
    pub(crate) layer: Factored,
    /// The layer's kind of share.
    kind: usize,
    /// By lane: `x`, then `dy`.
    lanes: Vec<Buffer>,
    /// Others' lanes whose factors have not come yet in this step.
    missing: Vec<usize>,
}

impl LayerFactors {
    pub(crate) fn new(layer: &Factored, kind: usize, plan: &Plan) -> Self {
        let length = plan.chunk(plan.share(kind, 0)).len();
        Self {
            layer: layer.clone(),
            kind,
            lanes: vec![Buffer::zeros(length); plan.lanes()],
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

    /// Keeps one own lane's factors and hands them to all peers.
    pub(crate) fn share(
        &mut self,
        lane: usize,
        (x, dy): (&[f32], &[f32]),
        collective: &mut dyn Collective,
    ) -> Result<(), GangError> {
        let room = &mut self.lanes[lane];
        room[..x.len()].copy_from_slice(x);
        room[x.len()..x.len() + dy.len()].copy_from_slice(dy);
        match collective.plan().workers() {
            1 => Ok(()),
            _ => collective.publish(collective.plan().share(self.kind, lane), room),
        }
    }

    /// Fetches what is there, without waiting.
    pub(crate) fn collect(&mut self, collective: &mut dyn Collective) -> Result<(), GangError> {
        while let Some(&lane) = self.missing.last() {
            if !collective.published(collective.plan().share(self.kind, lane))? {
                break;
            }
            self.wait(collective)?;
        }
        Ok(())
    }

    /// Fetches the next lane's factors that are missing.
    pub(crate) fn wait(&mut self, collective: &mut dyn Collective) -> Result<(), GangError> {
        match self.missing.pop() {
            None => Ok(()),
            Some(lane) => {
                let share = collective.plan().share(self.kind, lane);
                collective.fetch(share, &mut self.lanes[lane])
            }
        }
    }

    /// One lane's factors, `x` and `dy`, in a batch of `batch` samples.
    pub(crate) fn of_lane(&self, lane: usize, batch: usize) -> (&[f32], &[f32]) {
        let rows = lane_rows(lane, self.lanes.len(), batch).len();
        let (inputs, outputs) = (rows * self.layer.inputs, rows * self.layer.outputs);
        let (x, dy) = self.lanes[lane].split_at(inputs);
        (x, &dy[..outputs])
    }
}

/// The lanes that are not in `own`.
pub(crate) fn other_lanes(own: Range<usize>, lanes: usize) -> impl Iterator<Item = usize> {
    (0..lanes).filter(move |lane| !own.contains(lane))
}
