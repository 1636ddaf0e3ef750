//! A model: layers in a row, their buffers planned once, a function on flat vectors.
//!
//! Everything a step needs is allocated when the model is built for its largest number of rows; no step
//! allocates. The model owns no parameters: it reads them from, and hands gradients to, a [`Replica`].

use crate::NnError;
use crate::buffer::Buffer;
use crate::build::ModelBuilder;
use crate::chain::Chain;
use crate::dims::Dims;
use crate::init::Initial;
use crate::layers::{Pass, Step};
use crate::layout::Layout;
use crate::loss::{Loss, LossSum, Targets};
use crate::operation::OperationChain;
use crate::rates::{LayerRates, TrainedChunks};
use crate::replica::Replica;
use crate::spec::{LayerSpec, LayerSummary, NamedLayer};
use crate::threads::Threads;

/// Rows to compute on.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The inputs, row after row.
    pub inputs: &'a [f32],
    /// What the model is to say of them.
    pub targets: Targets<'a>,
}

/// A network, what it minimises, and the memory it works in.
pub struct Model {
    chain: Chain,
    loss: Loss,
    layout: Layout,
    initial: Vec<Initial>,
    summary: Vec<LayerSummary>,
    normalises_vectors: bool,
    input: Dims,
    rows: usize,
    /// The scores, and the loss's gradient by them.
    logits: Buffer,
    delta: Buffer,
    scratch: Buffer,
}

impl Model {
    /// Builds a model for rows of such images, at most `rows` of them at a time, that computes on one thread.
    ///
    /// # Errors
    /// When a layer cannot be built as asked; the error names it.
    pub fn new(layers: &[NamedLayer], input: Dims, rows: usize) -> Result<Self, NnError> {
        Self::on(&Threads::default(), layers, input, rows)
    }

    /// As [`Model::new`], on the threads of `compute`.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn on(
        compute: &Threads,
        layers: &[NamedLayer],
        input: Dims,
        rows: usize,
    ) -> Result<Self, NnError> {
        Self::with_rates(&LayerRates::default(), compute, layers, input, rows)
    }

    /// As [`Model::on`], with layers that learn slower than others, or not at all. A batch-norm that is frozen
    /// normalises by its running statistics in training too.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn with_rates(
        rates: &LayerRates,
        compute: &Threads,
        layers: &[NamedLayer],
        input: Dims,
        rows: usize,
    ) -> Result<Self, NnError> {
        let mut builder = ModelBuilder::new(rows, compute);
        builder.rates = rates.clone();
        let mut chain = builder.chain(layers, input)?;
        let last = layers.last().map(|layer| &layer.spec);
        if !matches!(last, Some(LayerSpec::Linear(_))) {
            return Err(NnError::NoLastLinear);
        }
        let ModelBuilder {
            mut layout,
            mut initial,
            summary,
            normalises_vectors,
            ..
        } = builder;
        chain.place_statistics(&mut layout, &mut initial);
        layout.first_dense = chain.first_dense();
        let logits = rows * chain.output().len();
        Ok(Self {
            loss: Loss::default(),
            layout,
            initial,
            summary,
            normalises_vectors,
            input,
            rows,
            logits: Buffer::zeros(logits),
            delta: Buffer::zeros(logits),
            scratch: Buffer::zeros(chain.scratch(rows)),
            chain,
        })
    }

    /// The same model, which minimises `loss` instead of the cross-entropy.
    pub fn minimising(self, loss: Loss) -> Self {
        Self { loss, ..self }
    }

    /// What it minimises.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Where every tensor lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The layers, for people to read.
    pub fn summary(&self) -> &[LayerSummary] {
        &self.summary
    }

    /// What it computes, layer by layer, for back ends that compute it elsewhere.
    pub fn operations(&self) -> OperationChain {
        self.chain.operations()
    }

    /// Number of outputs: classes, numbers or labels, by what it minimises.
    pub fn outputs(&self) -> usize {
        self.chain.output().len()
    }

    /// Whether a lane of one row would have no variance to normalise by.
    pub fn normalises_vectors(&self) -> bool {
        self.normalises_vectors
    }

    /// Bytes of the buffers this model works in.
    pub fn workspace_bytes(&self) -> usize {
        let own = self.logits.len() + self.delta.len() + self.scratch.len();
        4 * own + self.chain.bytes()
    }

    /// The state vector that training begins with, a function of the seed. PyTorch's defaults, unless a layer says
    /// otherwise ([`FirstWeights`](crate::FirstWeights)).
    pub fn initial_state(&self, seed: u64) -> Vec<f32> {
        crate::init::state(&self.layout, &self.initial, seed)
    }

    /// Computes the loss over one lane's rows and hands the gradient to `replica`, last chunk first. Of what is
    /// frozen there is none.
    ///
    /// # Panics
    /// When the batch has more rows than the model was built for, or its parts differ in length.
    pub fn gradient(
        &mut self,
        replica: &mut dyn Replica,
        batch: Batch<'_>,
        step: Step<'_>,
    ) -> LossSum {
        if !self.layout.has_frozen() {
            return self.pass(replica, batch, step);
        }
        let layout = std::mem::take(&mut self.layout);
        let mut trained = TrainedChunks {
            replica,
            layout: &layout,
        };
        let sum = self.pass(&mut trained, batch, step);
        self.layout = layout;
        sum
    }

    /// A pass forward and backward, of which `replica` gets the gradient.
    fn pass(&mut self, replica: &mut dyn Replica, batch: Batch<'_>, step: Step<'_>) -> LossSum {
        let rows = batch.targets.rows(self.outputs());
        assert_eq!(step.samples.len(), rows, "as many sample numbers as rows");
        let first = self.chain.first_dense();
        let is_done =
            first.is_some_and(|first| replica.output(first, self.chain.first_output(rows)));
        let (done, pass) = (usize::from(is_done), Pass::Train(step));
        self.forward(done, pass, replica.state(), batch.inputs, rows);
        let outputs = self.outputs();
        let scores = rows * outputs;
        let delta = &mut self.delta[..scores];
        delta.copy_from_slice(&self.logits[..scores]);
        let scale = 1.0 / step.batch as f64;
        let sum = self.loss.gradient(delta, outputs, batch.targets, scale);
        lockstep_base::progress::enter(lockstep_base::progress::Phase::Backward);
        self.chain.statistics(step, replica);
        self.chain
            .backward(replica, batch.inputs, delta, None, &mut self.scratch);
        sum
    }

    /// The outputs' scores of some rows, row after row, with the running statistics and without dropout.
    /// Those of a row do not depend on the others.
    ///
    /// # Panics
    /// When there are more rows than the model was built for, or a part of one.
    pub fn scores(&mut self, state: &[f32], inputs: &[f32]) -> &[f32] {
        let rows = inputs.len() / self.input.len();
        self.forward(0, Pass::Evaluate, state, inputs, rows);
        &self.logits[..rows * self.outputs()]
    }

    fn forward(&mut self, done: usize, pass: Pass<'_>, state: &[f32], inputs: &[f32], rows: usize) {
        assert!(
            rows <= self.rows,
            "{rows} rows in a model built for {}",
            self.rows
        );
        assert_eq!(
            inputs.len(),
            rows * self.input.len(),
            "whole rows of inputs"
        );
        let scores = rows * self.outputs();
        let logits = &mut self.logits[..scores];
        self.chain
            .forward(done, pass, state, inputs, logits, &mut self.scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zoo;
    use std::ops::Range;

    /// Notes which chunks are handed out.
    struct NumberOrder {
        state: Vec<f32>,
        chunks: Vec<Range<usize>>,
        handed_out: Vec<usize>,
    }

    impl Replica for NumberOrder {
        fn state(&self) -> &[f32] {
            &self.state
        }

        fn gradient(&mut self, chunk: usize, fill: &mut dyn FnMut(&mut [f32])) {
            self.handed_out.push(chunk);
            let mut gradient = vec![f32::NAN; self.chunks[chunk].len()];
            fill(&mut gradient);
            assert!(gradient.iter().all(|x| x.is_finite()), "chunk {chunk}");
        }
    }

    #[test]
    fn every_chunk_is_handed_out_whole_and_last_first() {
        let input = Dims {
            height: 8,
            width: 8,
            channels: 3,
        };
        for layers in [zoo::cifar_cnn(4), zoo::resnet18(4, true)] {
            let mut model = Model::new(&layers, input, 2).unwrap();
            let mut replica = NumberOrder {
                state: model.initial_state(1),
                chunks: model.layout().chunks.clone(),
                handed_out: Vec::new(),
            };
            let inputs: Vec<f32> = (0..2 * input.len()).map(|i| (i % 7) as f32).collect();
            let batch = Batch {
                inputs: &inputs,
                targets: Targets::Classes(&[1, 3]),
            };
            let step = Step {
                seed: 0,
                number: 0,
                samples: &[0, 1],
                batch: 2,
            };
            model.gradient(&mut replica, batch, step);
            let expected: Vec<usize> = (0..replica.chunks.len()).rev().collect();
            assert_eq!(replica.handed_out, expected);
        }
    }
}
