//! A dense layer whose gradient is formed from all lanes' factors.

use super::StepPlan;
use super::columns::Columns;
use crate::exchange::Strategy;
use lockstep_data::lane_rows;
use lockstep_gang::{GangError, Plan, SharingCollective};
use lockstep_nn::{Buffer, Factored, Threads, add};
use std::ops::Range;

/// The factors of one layer in one step: of each lane a share, `x` unless every rank has it, then `dy`.
pub(super) struct DenseExchange {
    pub(super) layer: Factored,
    /// The layer's kind of share.
    kind: usize,
    /// Others' lanes whose factors have not come yet in this step.
    missing: Vec<usize>,
    /// If its output is computed by columns: then every rank has `x`.
    pub(super) columns: Option<Columns>,
}

impl DenseExchange {
    /// The layers that are exchanged as factors, by the layout's dense layers. Their kinds of shares follow
    /// each other in the same order.
    pub(super) fn of_all(
        layers: &[Factored],
        strategies: &[Strategy],
        plan: &Plan,
    ) -> Vec<Option<Self>> {
        let mut kinds = 0..;
        let mut exchange = |(layer, strategy): (&Factored, &Strategy)| {
            let columns = match strategy {
                Strategy::Gradient => return None,
                Strategy::Factors => None,
                Strategy::Columns => Some(Columns::new(layer, plan)),
            };
            Some(Self {
                layer: layer.clone(),
                kind: kinds.next()?,
                missing: Vec::with_capacity(plan.lanes()),
                columns,
            })
        };
        layers.iter().zip(strategies).map(&mut exchange).collect()
    }

    /// Begins a step: everything of the others is missing.
    pub(super) fn begin(&mut self, others: impl Iterator<Item = usize>) {
        self.missing.clear();
        self.missing.extend(others);
    }

    /// Whether all lanes' factors are here.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Hands one own lane's factors to all peers.
    pub(super) fn share(
        &mut self,
        lane: usize,
        (x, dy): (&[f32], &[f32]),
        collective: &mut dyn SharingCollective,
    ) -> Result<(), GangError> {
        let x = if self.columns.is_some() { &[] } else { x };
        let share = collective.plan().share(self.kind, lane);
        let draft = collective.draft(share)?;
        draft[..x.len()].copy_from_slice(x);
        draft[x.len()..x.len() + dy.len()].copy_from_slice(dy);
        collective.announce(share)
    }

    /// Takes what is there, without waiting.
    pub(super) fn collect(
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
    pub(super) fn wait(&mut self, collective: &mut dyn SharingCollective) -> Result<(), GangError> {
        match self.missing.pop() {
            None => Ok(()),
            Some(lane) => collective.accept(collective.plan().share(self.kind, lane)),
        }
    }

    /// Forms the gradient of a chunk from all lanes' factors, added in the lanes' tree, in the first of the
    /// buffers. The last buffer is spare.
    pub(super) fn form(
        &self,
        compute: &Threads,
        step: &StepPlan<'_>,
        chunk: usize,
        collective: &dyn SharingCollective,
        formed: &mut [Buffer],
    ) {
        let len = collective.plan().chunk(chunk).len();
        let Some((spare, formed)) = formed.split_last_mut() else {
            return;
        };
        lockstep_base::failpoint::reach("update.reduce");
        for work in &step.program.forming {
            let of_lane = self.of_lane(work.lane, collective, step);
            if let Some(into) = work.joins() {
                let into = &mut formed[into][..len];
                (self.layer).add_gradient(compute, chunk, of_lane, into, spare);
            } else {
                let into = &mut formed[work.buffer][..len];
                self.layer.gradient(compute, chunk, of_lane, into);
            }
            for &(into, from) in work.other_sums() {
                let [into, from] = formed.get_disjoint_mut([into, from]).expect("two buffers");
                add(&mut into[..len], &from[..len]);
            }
        }
    }

    /// One lane's factors, `x` and `dy`.
    fn of_lane<'a>(
        &self,
        lane: usize,
        collective: &'a dyn SharingCollective,
        step: &StepPlan<'a>,
    ) -> (&'a [f32], &'a [f32]) {
        let plan = collective.plan();
        let rows = lane_rows(lane, plan.lanes(), step.program.batch);
        let width = self.layer.inputs;
        let share = collective.view(plan.share(self.kind, lane));
        let (x, dy) = match self.columns.is_some() {
            true => (step.rows(rows.clone(), width), share),
            false => share.split_at(rows.len() * width),
        };
        (x, &dy[..rows.len() * self.layer.outputs])
    }
}

/// The lanes that are not in `own`.
pub(super) fn other_lanes(own: Range<usize>, lanes: usize) -> impl Iterator<Item = usize> {
    (0..lanes).filter(move |lane| !own.contains(lane))
}
