//! A model: layers in a row, their buffers planned once, a function on flat vectors.
//!
//! Everything a step needs is allocated when the model is built for its largest number of rows; no step
//! allocates. The model owns no parameters: it reads them from, and hands gradients to, a [`Replica`].

use crate::NnError;
use crate::buffer::Buffer;
use crate::build::ModelBuilder;
use crate::chain::Chain;
use crate::dims::Dims;
use crate::fixed16::Precision;
use crate::init::Initial;
use crate::layers::{Pass, Step};
use crate::layout::Layout;
use crate::loss::{Loss, LossSum, Targets};
use crate::operation::OperationChain;
use crate::rates::{LayerRates, TrainedChunks};
use crate::replica::Replica;
use crate::spec::{LayerSpec, LayerSummary, NamedLayer};
use crate::threads::Threads;
use std::ops::Range;

/// Rows to compute on.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The inputs, row after row.
    pub inputs: &'a [f32],
    /// What the model is to say of them.
    pub targets: Targets<'a>,
}

/// The most that a model computes in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Rows.
    pub rows: usize,
    /// Lanes that they belong to in training.
    pub lanes: usize,
}

/// A network, what it minimises, and the memory it works in.
pub struct Model {
    chain: Chain,
    loss: Loss,
    precision: Precision,
    layout: Layout,
    initial: Vec<Initial>,
    summary: Vec<LayerSummary>,
    normalises_vectors: bool,
    input: Dims,
    capacity: Capacity,
    /// The scores, and the loss's gradient by them.
    logits: Buffer,
    delta: Buffer,
    scratch: Buffer,
    threads: Threads,
}

impl Model {
    /// Builds a model for rows of such images, at most `rows` of them at a time, that computes on one thread.
    ///
    /// # Errors
    /// When a layer cannot be built as asked; the error names it.
    pub fn new(layers: &[NamedLayer], input: Dims, rows: usize) -> Result<Self, NnError> {
        Self::on(&Threads::default(), layers, input, rows)
    }

    /// As [`Model::new`], on these threads.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn on(
        threads: &Threads,
        layers: &[NamedLayer],
        input: Dims,
        rows: usize,
    ) -> Result<Self, NnError> {
        let capacity = Capacity { rows, lanes: 1 };
        Self::with_rates(&LayerRates::default(), threads, layers, input, capacity)
    }

    /// As [`Model::on`], for several lanes in a pass, with layers that learn slower than others, or not at all. A batch-norm that is frozen
    /// normalises by its running statistics in training too.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn with_rates(
        rates: &LayerRates,
        threads: &Threads,
        layers: &[NamedLayer],
        input: Dims,
        capacity: Capacity,
    ) -> Result<Self, NnError> {
        Self::in_precision(Precision::F32, rates, threads, layers, input, capacity)
    }

    /// As [`Model::with_rates`], with products computed so.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn in_precision(
        precision: Precision,
        rates: &LayerRates,
        threads: &Threads,
        layers: &[NamedLayer],
        input: Dims,
        capacity: Capacity,
    ) -> Result<Self, NnError> {
        let Capacity { rows, lanes } = capacity;
        let mut builder = ModelBuilder::new(rows, lanes);
        builder.rates = rates.clone();
        builder.precision = precision;
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
            precision,
            layout,
            initial,
            summary,
            normalises_vectors,
            input,
            capacity,
            logits: Buffer::zeros(logits),
            delta: Buffer::zeros(logits),
            scratch: Buffer::large(chain.scratch(threads, rows)),
            threads: threads.clone(),
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

    /// How its products are computed.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The most that it computes in one pass.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The threads that it computes on.
    pub fn threads(&self) -> &Threads {
        &self.threads
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

    /// About how many multiply-adds a row takes forwards; backwards it is twice as many.
    pub fn multiply_adds(&self) -> usize {
        // Every parameter of a layer has a part in every pixel of its output. Of learned vectors, a row reads a few.
        let layers = self
            .summary
            .iter()
            .filter(|layer| layer.kind != "embedding");
        layers
            .map(|layer| layer.parameters * layer.output.pixels())
            .sum()
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
        self.workspace_bytes_for(self.capacity.rows)
    }

    /// What [`Model::workspace_bytes`] would be of the same model for so many rows.
    pub fn workspace_bytes_for(&self, rows: usize) -> usize {
        let own = 2 * rows * self.outputs() + self.chain.scratch(&self.threads, rows);
        4 * own + self.chain.bytes() / self.capacity.rows.max(1) * rows
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
        let (rows, mut sum) = (0..step.samples.len(), LossSum::default());
        let lane = (std::slice::from_ref(&rows), std::slice::from_mut(&mut sum));
        self.gradients(replica, batch, step, lane);
        sum
    }

    /// As [`Model::gradient`], of several lanes in one pass. Each comes with its rows, of which there is at least one and
    /// which follow each other, and with room for its loss. Every number is the same as in a pass of its own.
    ///
    /// # Panics
    /// As [`Model::gradient`], and when the lanes are not the rows of the batch.
    pub fn gradients(
        &mut self,
        replica: &mut dyn Replica,
        batch: Batch<'_>,
        step: Step<'_>,
        (lanes, sums): (&[Range<usize>], &mut [LossSum]),
    ) {
        let threads = self.threads.clone();
        let pass = Pass {
            threads: &threads,
            step: Some(step),
            lanes,
        };
        if !self.layout.has_frozen() {
            return self.train(pass, replica, batch, sums);
        }
        let layout = std::mem::take(&mut self.layout);
        let mut trained = TrainedChunks {
            replica,
            layout: &layout,
        };
        self.train(pass, &mut trained, batch, sums);
        self.layout = layout;
    }

    /// A pass forward and backward, of which `replica` gets the gradient.
    fn train(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        batch: Batch<'_>,
        sums: &mut [LossSum],
    ) {
        let outputs = self.outputs();
        let rows = batch.targets.rows(outputs);
        let step = pass.step.expect("a pass of training has a step");
        assert_eq!(step.samples.len(), rows, "as many sample numbers as rows");
        check_lanes(pass.lanes, rows, sums.len());
        let (lanes, most) = (sums.len(), self.capacity.lanes);
        assert!(lanes <= most, "{lanes} lanes in a model built for {most}");
        let done = usize::from(self.is_first_done(pass.lanes, replica));
        self.forward(done, pass, replica.state(), batch.inputs, rows);
        let scale = 1.0 / step.batch as f64;
        let delta = &mut self.delta[..rows * outputs];
        delta.copy_from_slice(&self.logits[..rows * outputs]);
        for (rows, sum) in pass.lanes.iter().zip(sums) {
            let delta = &mut delta[rows.start * outputs..rows.end * outputs];
            let targets = batch.targets.of_rows(rows.clone(), outputs);
            *sum = self.loss.gradient(delta, outputs, targets, scale);
        }
        lockstep_base::progress::enter(lockstep_base::progress::Phase::Backward);
        self.chain.statistics(pass, replica);
        self.chain
            .backward(pass, replica, batch.inputs, delta, None, &mut self.scratch);
    }

    /// Offers the first layer's output to the replica, and returns whether it was computed there.
    fn is_first_done(&mut self, lanes: &[Range<usize>], replica: &mut dyn Replica) -> bool {
        let Some(first) = self.chain.first_dense() else {
            return false;
        };
        let taken = lanes.iter().enumerate().filter(|(lane, rows)| {
            let output = self.chain.first_output((*rows).clone());
            replica.output(*lane, first, output)
        });
        let taken = taken.count();
        assert!(taken == 0 || taken == lanes.len(), "all lanes or none");
        taken > 0
    }

    /// The outputs' scores of some rows, row after row, with the running statistics and without dropout.
    /// Those of a row do not depend on the others.
    ///
    /// # Panics
    /// When there are more rows than the model was built for, or a part of one.
    pub fn scores(&mut self, state: &[f32], inputs: &[f32]) -> &[f32] {
        let rows = inputs.len() / self.input.len();
        let threads = self.threads.clone();
        self.forward(0, Pass::evaluation(&threads), state, inputs, rows);
        &self.logits[..rows * self.outputs()]
    }

    fn forward(&mut self, done: usize, pass: Pass<'_>, state: &[f32], inputs: &[f32], rows: usize) {
        let most = self.capacity.rows;
        assert!(rows <= most, "{rows} rows in a model built for {most}");
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

/// Lanes are not empty, and follow each other from the first row to the last.
fn check_lanes(lanes: &[Range<usize>], rows: usize, sums: usize) {
    assert_eq!(
        lanes.len(),
        sums,
        "as many lanes as there is room for losses"
    );
    let end = lanes.iter().try_fold(0, |end, lane| {
        (lane.start == end && lane.end > end).then_some(lane.end)
    });
    assert_eq!(end, Some(rows), "the rows of the lanes {lanes:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::LayerGradient;
    use crate::zoo;

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

        fn gradient(&mut self, _: Range<usize>, chunks: Range<usize>, all: &dyn LayerGradient) {
            for chunk in chunks.rev() {
                self.handed_out.push(chunk);
                let mut gradient = vec![f32::NAN; self.chunks[chunk].len()];
                all.write(0, chunk, &mut gradient);
                assert!(gradient.iter().all(|x| x.is_finite()), "chunk {chunk}");
            }
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
