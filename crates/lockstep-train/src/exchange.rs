//! How each layer's gradient reaches the ranks that update it, planned before the first step.
//!
//! *Gradient*: partial sums of the gradient itself go to the owner of each chunk. The strategy of all layers
//! that are not dense.
//!
//! *Factors*: with a small batch the factors `x` and `dy` of a dense layer's weight gradient are far fewer
//! numbers than the gradient: for 784 inputs, 512 outputs and 32 rows, 41 thousand instead of 401 thousand.
//! Every rank shares its lanes' factors with all others, and gradients are formed from all lanes' factors:
//! as much arithmetic as before, the same sums in the same order, and so the same bits. Where ranks share
//! memory, a rank that is done takes over chunks that others have not begun.
//!
//! *Columns*: of a first dense layer every rank has all lanes' `x`, the batch's inputs. Only `dy` is shared,
//! and its output is computed by whoever has its weights, which then need not travel at all.

use crate::TrainError;
use lockstep_gang::Plan;
use lockstep_nn::{Factored, Layout};

/// How the gradient of a dense layer is exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    Gradient,
    Factors,
    Columns,
}

/// What an exchange is planned for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workload {
    pub(crate) lanes: usize,
    pub(crate) workers: usize,
    /// Samples of a full batch.
    pub(crate) batch: usize,
    /// The optimizer's vectors.
    pub(crate) planes: usize,
    /// Whether the gradient's norm is clipped.
    pub(crate) clips: bool,
    /// Whether every rank averages all weights after every step.
    pub(crate) averages: bool,
}

/// Who exchanges what with whom.
pub(crate) struct ExchangePlan {
    pub(crate) plan: Plan,
    /// By the layout's dense layers; those of all other layers are exchanged as [`Strategy::Gradient`].
    pub(crate) strategies: Vec<Strategy>,
}

/// Chunks of a first layer for each lane, at the least, so that any number of workers has about as much to
/// compute each.
const CHUNKS_PER_LANE: usize = 2;

impl ExchangePlan {
    /// Plans the exchange of a network with this layout.
    pub(crate) fn new(layout: &Layout, workload: Workload) -> Result<Self, TrainError> {
        let dense = &layout.factored;
        let strategies: Vec<Strategy> = (0..dense.len())
            .map(
                |number| match layout.is_frozen(dense[number].chunks.start) {
                    // Nothing of it is exchanged.
                    true => Strategy::Gradient,
                    false => strategy(&dense[number], layout.first_dense == Some(number), workload),
                },
            )
            .collect();
        let largest_lane = workload.batch.div_ceil(workload.lanes);
        let (mut shares, mut common, mut columns) = (Vec::new(), Vec::new(), None);
        for (layer, strategy) in dense.iter().zip(&strategies) {
            let inputs = match strategy {
                Strategy::Gradient => continue,
                Strategy::Factors => layer.inputs,
                Strategy::Columns => 0,
            };
            shares.push(largest_lane * (inputs + layer.outputs));
            common.extend(layer.chunks.clone());
            if *strategy == Strategy::Columns {
                columns = Some(layer);
            }
        }
        let chunks = layout.chunks.clone();
        let mut plan = Plan::new(chunks, workload.lanes, workload.workers)?
            .with_shares(&shares)
            .with_common(common, workload.planes);
        if let Some(layer) = columns {
            let chunks = layer.weight_chunks();
            let columns = chunks.clone().filter_map(|chunk| layer.columns(chunk));
            let lengths: Vec<usize> = columns
                .map(|columns| largest_lane * columns.len())
                .collect();
            plan = plan.with_products(chunks, &lengths);
        }
        Ok(Self { plan, strategies })
    }

    /// Whether every rank reads all rows of a batch, not only those of its own lanes.
    pub(crate) fn reads_whole_batch(&self) -> bool {
        self.strategies.contains(&Strategy::Columns)
    }
}

/// The cheapest strategy for a layer.
fn strategy(layer: &Factored, is_first: bool, workload: Workload) -> Strategy {
    let Factored {
        inputs, outputs, ..
    } = *layer;
    // A worker without peers has nothing to exchange. Clipping reads every gradient twice. Who averages needs all weights
    // after every step, and none may stay with their owner.
    let worth_factoring = workload.workers > 1
        && !workload.clips
        && !workload.averages
        && workload.batch * (inputs + outputs) < inputs * outputs;
    let mut chunks = layer.weight_chunks();
    let worth_columns = is_first
        && chunks.len() >= CHUNKS_PER_LANE * workload.lanes
        && chunks.all(|chunk| layer.columns(chunk).is_some());
    match (worth_factoring, worth_columns) {
        (false, _) => Strategy::Gradient,
        (true, false) => Strategy::Factors,
        (true, true) => Strategy::Columns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_nn::{Dims, LayerSpec, Model, NamedLayer, layers};

    const WORKLOAD: Workload = Workload {
        lanes: 2,
        workers: 2,
        batch: 32,
        planes: 1,
        clips: false,
        averages: false,
    };

    fn strategies(layers: &[LayerSpec], input: Dims, workload: Workload) -> Vec<Strategy> {
        let layers = NamedLayer::stack(layers.to_vec());
        let model = Model::new(&layers, input, 1).unwrap();
        let plan = ExchangePlan::new(model.layout(), workload).unwrap();
        plan.strategies
    }

    #[test]
    fn every_dense_layer_gets_the_strategy_that_moves_least() {
        use LayerSpec::Relu;
        use Strategy::{Columns, Factors, Gradient};
        let linear = |out| LayerSpec::Linear(layers::Linear { out });
        let layers = [linear(512), Relu, linear(512), linear(10)];
        let input = Dims::vector(784);
        let of = |workload| strategies(&layers, input, workload);
        assert_eq!(of(WORKLOAD), [Columns, Factors, Gradient]);
        let one_lane = Workload {
            lanes: 1,
            workers: 1,
            ..WORKLOAD
        };
        assert_eq!(of(one_lane), [Gradient; 3]);
        let clipped = Workload {
            clips: true,
            ..WORKLOAD
        };
        assert_eq!(of(clipped), [Gradient; 3]);
        let many_rows = Workload {
            batch: 1000,
            ..WORKLOAD
        };
        assert_eq!(of(many_rows), [Gradient; 3]);
        // One whose weights are fewer chunks than lanes want, and one that is not first.
        let narrow = Workload {
            lanes: 9,
            ..WORKLOAD
        };
        assert_eq!(of(narrow), [Factors, Factors, Gradient]);
        let after_relu = [Relu, linear(512), linear(10)];
        let found = strategies(&after_relu, input, WORKLOAD);
        assert_eq!(found, [Factors, Gradient]);
    }
}
