//! How fast layers learn, by their names: some as a part of the learning rate, some not at all.

use crate::layout::Layout;
use crate::replica::{LayerGradient, Replica};
use std::ops::Range;

/// The part of the learning rate that layers learn with, by name. A name stands for a layer, or for all layers whose
/// names go on behind it with a dot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerRates(Vec<(String, f32)>);

impl LayerRates {
    /// Of these names; a part of 0 freezes a layer.
    pub fn new(rates: impl IntoIterator<Item = (String, f32)>) -> Self {
        Self(rates.into_iter().collect())
    }

    /// The part that a layer learns with: that of the longest name that stands for it, and 1 if none does.
    pub fn of(&self, layer: &str) -> f32 {
        let named = self.0.iter().filter(|(name, _)| stands_for(name, layer));
        let longest = named.max_by_key(|(name, _)| name.len());
        longest.map_or(1.0, |&(_, rate)| rate)
    }
}

/// Whether `name` is the layer, or what it is a part of.
pub fn stands_for(name: &str, layer: &str) -> bool {
    let rest = layer.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A replica that is not told of what is frozen: gradients of such chunks are not even formed.
pub(crate) struct TrainedChunks<'a> {
    pub(crate) replica: &'a mut dyn Replica,
    pub(crate) layout: &'a Layout,
}

impl TrainedChunks<'_> {
    fn is_dense_frozen(&self, number: usize) -> bool {
        let first = self.layout.factored[number].chunks.start;
        self.layout.is_frozen(first)
    }
}

impl Replica for TrainedChunks<'_> {
    fn state(&self) -> &[f32] {
        self.replica.state()
    }

    fn output(&mut self, lane: usize, number: usize, y: &mut [f32]) -> bool {
        self.replica.output(lane, number, y)
    }

    fn gradient(
        &mut self,
        lanes: Range<usize>,
        chunks: Range<usize>,
        gradient: &dyn LayerGradient,
    ) {
        // All chunks of a layer learn equally fast.
        if !chunks.clone().any(|chunk| self.layout.is_frozen(chunk)) {
            self.replica.gradient(lanes, chunks, gradient);
        }
    }

    fn factors(&mut self, lane: usize, number: usize, x: &[f32], dy: &[f32]) -> bool {
        // There is no gradient to form: nobody needs the factors, nor asks for them again.
        self.is_dense_frozen(number) || self.replica.factors(lane, number, x, dy)
    }

    fn factors_used(&mut self, number: usize) {
        if !self.is_dense_frozen(number) {
            self.replica.factors_used(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers;
    use crate::{Batch, Capacity, Collect, Dims, LayerSpec, Model, NamedLayer, Step, Targets};

    #[test]
    fn the_longest_name_counts_and_names_end_at_dots() {
        let rates = [("layer1", 0.0), ("layer1.1", 0.5), ("fc", 0.1)];
        let rates = LayerRates::new(rates.map(|(name, rate)| (name.to_owned(), rate)));
        let of = ["layer1.0.conv1", "layer1.1.bn2", "layer10.0", "fc", "fc2"];
        assert_eq!(of.map(|layer| rates.of(layer)), [0.0, 0.5, 1.0, 0.1, 1.0]);
    }

    /// The gradient of a network with some layers frozen; NaN where none was handed out.
    fn gradient(frozen: &[&str]) -> (Model, Vec<f32>) {
        let convolution = LayerSpec::Conv2d(layers::Conv2d {
            out: 3,
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1, 1],
            groups: 1,
            bias: true,
        });
        let layers = NamedLayer::stack([
            convolution.clone(),
            LayerSpec::Relu,
            LayerSpec::Residual(layers::Residual {
                body: vec![NamedLayer::new("layers.2.body.0", convolution.clone())],
                shortcut: vec![NamedLayer::new("layers.2.shortcut.0", convolution)],
            }),
            LayerSpec::Linear(layers::Linear { out: 5 }),
            LayerSpec::Relu,
            LayerSpec::Linear(layers::Linear { out: 2 }),
        ]);
        let input = Dims {
            height: 4,
            width: 4,
            channels: 1,
        };
        let rates = LayerRates::new(frozen.iter().map(|&name| (name.to_owned(), 0.0)));
        let (threads, capacity) = (Default::default(), Capacity { rows: 2, lanes: 1 });
        let mut model = Model::with_rates(&rates, &threads, &layers, input, capacity).unwrap();
        let state = model.initial_state(7);
        let inputs: Vec<f32> = (0..2 * input.len()).map(|i| (i % 7) as f32 - 3.0).collect();
        let batch = Batch {
            inputs: &inputs,
            targets: Targets::Classes(&[1, 0]),
        };
        let step = Step {
            seed: 0,
            number: 0,
            samples: &[0, 1],
            batch: 2,
        };
        let layout = model.layout().clone();
        let mut collect = Collect::new(&state, &layout);
        model.gradient(&mut collect, batch, step);
        let gradient = collect.gradient;
        (model, gradient)
    }

    #[test]
    fn frozen_layers_hand_out_nothing_and_the_gradients_of_others_keep_their_bits() {
        let (_, whole) = gradient(&[]);
        assert!(whole.iter().all(|x| x.is_finite()));
        // From below, in the middle, one path of two, and the last.
        for frozen in [
            &["layers.0"][..],
            &["layers.0", "layers.2"],
            &["layers.0", "layers.2.shortcut"],
            &["layers.2.body", "layers.3"],
            &["layers.5"],
            &["layers"],
        ] {
            let (model, found) = gradient(frozen);
            for tensor in &model.layout().tensors {
                let is_frozen = frozen.iter().any(|name| stands_for(name, &tensor.name));
                for at in tensor.range.clone() {
                    let right = match is_frozen {
                        true => found[at].is_nan(),
                        false => found[at].to_bits() == whole[at].to_bits(),
                    };
                    assert!(right, "{frozen:?}: {} {at}", tensor.name);
                }
            }
        }
    }
}
