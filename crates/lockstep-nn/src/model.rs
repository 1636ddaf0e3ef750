//! A model: layers in a row, their buffers planned once, a function on flat vectors.
//!
//! Everything a step needs is allocated when the model is built for its largest number of rows; no step
//! allocates. The model owns no parameters: it reads them from, and hands gradients to, a [`Replica`].

use crate::NnError;
use crate::buffer::Buffer;
use crate::init::Initial;
use crate::layers::batch_norm::BatchNorm;
use crate::layers::copy::Copy;
use crate::layers::dropout::Dropout;
use crate::layers::linear::Linear;
use crate::layers::relu::Relu;
use crate::layers::{Layer, Pass, Pointwise, Step};
use crate::layout::Layout;
use crate::loss::{self, LossSum};
use crate::replica::Replica;

/// One layer as asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum LayerSpec {
    /// A dense layer with so many outputs.
    Linear {
        /// Number of outputs.
        out: usize,
    },
    /// `max(x, 0)`.
    Relu,
    /// Zeroes this share while training.
    Dropout {
        /// The share, in `0..1`.
        p: f32,
    },
    /// Batch normalisation of vectors.
    BatchNorm,
}

/// One layer as it was built, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSummary {
    /// Its name, the prefix of its tensors' names.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// Numbers a row in its output.
    pub outputs: usize,
    /// Parameters, running statistics not counted.
    pub parameters: usize,
}

/// Rows to compute on.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The inputs, row after row.
    pub inputs: &'a [f32],
    /// The class of every row.
    pub labels: &'a [u32],
}

enum Node {
    /// Reads one activation, writes the next.
    Layer(Box<dyn Layer>),
    /// Changes the newest activation in place.
    Pointwise(Box<dyn Pointwise>),
}

/// A classifier and the memory it works in.
pub struct Model {
    nodes: Vec<Node>,
    layout: Layout,
    initial: Vec<Initial>,
    summary: Vec<LayerSummary>,
    inputs: usize,
    rows: usize,
    /// Features of each activation; the first is the input, which is not kept here.
    widths: Vec<usize>,
    /// The output of every layer that makes a new one.
    activations: Vec<Buffer>,
    /// The gradient by the newest activation, and room for the one before it.
    deltas: [Buffer; 2],
    scratch: Buffer,
}

impl Model {
    /// Builds a model for rows of `inputs` numbers and at most `rows` of them at a time.
    ///
    /// # Errors
    /// When a layer cannot be built as asked; the error names it.
    pub fn new(layers: &[LayerSpec], inputs: usize, rows: usize) -> Result<Self, NnError> {
        let mut layout = Layout::default();
        let mut initial = Vec::new();
        let mut summary = Vec::new();
        let mut nodes = Vec::new();
        let mut widths = vec![inputs];
        if matches!(
            layers.first(),
            Some(LayerSpec::Relu | LayerSpec::Dropout { .. })
        ) {
            // Pointwise layers change an activation in place; the input is not theirs to change.
            nodes.push(Node::Layer(Box::new(Copy)));
            widths.push(inputs);
        }
        for (i, layer) in layers.iter().enumerate() {
            let name = format!("layers.{i}");
            let width = widths[widths.len() - 1];
            let before = layout.parameters;
            let kind = match *layer {
                LayerSpec::Linear { out } => {
                    if out == 0 {
                        return Err(NnError::NoOutputs { layer: i });
                    }
                    nodes.push(Node::Layer(Box::new(Linear::new(
                        &name,
                        width,
                        out,
                        &mut layout,
                    ))));
                    let bound = Initial::uniform_for_inputs(width);
                    initial.extend([bound, bound]);
                    widths.push(out);
                    "linear"
                }
                LayerSpec::BatchNorm => {
                    let norm = BatchNorm::new(&name, width, &mut layout);
                    nodes.push(Node::Layer(Box::new(norm)));
                    initial.extend([Initial::Constant(1.0), Initial::Constant(0.0)]);
                    widths.push(width);
                    "batch-norm"
                }
                LayerSpec::Relu => {
                    nodes.push(Node::Pointwise(Box::new(Relu)));
                    "relu"
                }
                LayerSpec::Dropout { p } => {
                    if !(0.0..1.0).contains(&p) {
                        return Err(NnError::Probability { layer: i, found: p });
                    }
                    let number = u8::try_from(i).map_err(|_| NnError::TooManyLayers {
                        found: layers.len(),
                    })?;
                    nodes.push(Node::Pointwise(Box::new(Dropout::new(
                        p, number, width, rows,
                    ))));
                    "dropout"
                }
            };
            summary.push(LayerSummary {
                name,
                kind,
                outputs: widths[widths.len() - 1],
                parameters: layout.parameters - before,
            });
        }
        if !matches!(layers.last(), Some(LayerSpec::Linear { .. })) {
            return Err(NnError::NoLastLinear);
        }
        for node in &mut nodes {
            if let Node::Layer(layer) = node {
                layer.place_statistics(&mut layout, &mut initial);
            }
        }
        let widest = widths[1..].iter().copied().max().unwrap_or(0);
        let scratch = nodes.iter().map(|node| match node {
            Node::Layer(layer) => layer.scratch(rows),
            Node::Pointwise(_) => 0,
        });
        let scratch = scratch.max().unwrap_or(0);
        Ok(Self {
            nodes,
            initial,
            summary,
            inputs,
            rows,
            activations: widths[1..]
                .iter()
                .map(|width| Buffer::zeros(width * rows))
                .collect(),
            deltas: [Buffer::zeros(widest * rows), Buffer::zeros(widest * rows)],
            scratch: Buffer::zeros(scratch),
            widths,
            layout,
        })
    }

    /// Where every tensor lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The layers, for people to read.
    pub fn summary(&self) -> &[LayerSummary] {
        &self.summary
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.widths[self.widths.len() - 1]
    }

    /// Whether a lane of one row would have no variance to normalise by.
    pub fn has_batch_norm(&self) -> bool {
        self.layout.parameters < self.layout.len()
    }

    /// Bytes of the buffers this model works in.
    pub fn workspace_bytes(&self) -> usize {
        let activations: usize = self.activations.iter().map(|x| x.len()).sum();
        4 * (activations + self.deltas[0].len() + self.deltas[1].len() + self.scratch.len())
    }

    /// The state vector that training begins with, a function of the seed. PyTorch's defaults.
    pub fn initial_state(&self, seed: u64) -> Vec<f32> {
        crate::init::state(&self.layout, &self.initial, seed)
    }

    /// Computes the loss over one lane's rows and hands the gradient to `replica`, last chunk first.
    ///
    /// # Panics
    /// When the batch has more rows than the model was built for, or its parts differ in length.
    pub fn gradient(
        &mut self,
        replica: &mut dyn Replica,
        batch: Batch<'_>,
        step: Step<'_>,
    ) -> LossSum {
        let rows = batch.labels.len();
        assert_eq!(step.samples.len(), rows, "as many sample numbers as rows");
        self.forward(Pass::Train(step), replica.state(), batch.inputs, rows);

        let logits = self.activations.len() - 1;
        let [dy, dx] = &mut self.deltas;
        let (mut dy, mut dx) = (dy, dx);
        let classes = self.widths[self.widths.len() - 1];
        dy[..rows * classes].copy_from_slice(&self.activations[logits][..rows * classes]);
        let scale = 1.0 / step.batch as f64;
        let sum = loss::cross_entropy(&mut dy[..rows * classes], batch.labels, scale);

        for node in self.nodes.iter_mut().rev() {
            if let Node::Layer(layer) = node {
                layer.statistics(step, replica);
            }
        }
        let mut newest = logits;
        for node in self.nodes.iter_mut().rev() {
            let width = rows * self.widths[newest + 1];
            match node {
                Node::Pointwise(layer) => {
                    layer.backward(&self.activations[newest][..width], &mut dy[..width]);
                }
                Node::Layer(layer) => {
                    let scratch = &mut self.scratch;
                    if newest == 0 {
                        layer.backward(replica, batch.inputs, &mut dy[..width], None, scratch);
                    } else {
                        let below = rows * self.widths[newest];
                        let x = &self.activations[newest - 1][..below];
                        let wanted = Some(&mut dx[..below]);
                        layer.backward(replica, x, &mut dy[..width], wanted, scratch);
                        std::mem::swap(&mut dy, &mut dx);
                        newest -= 1;
                    }
                }
            }
        }
        sum
    }

    /// The loss over some rows with the running statistics and without dropout.
    ///
    /// # Panics
    /// As [`Model::gradient`].
    pub fn evaluate(&mut self, state: &[f32], batch: Batch<'_>) -> LossSum {
        let rows = batch.labels.len();
        self.forward(Pass::Evaluate, state, batch.inputs, rows);
        let logits = rows * self.classes();
        let newest = &self.activations[self.activations.len() - 1];
        loss::evaluate(&newest[..logits], batch.labels)
    }

    fn forward(&mut self, pass: Pass<'_>, state: &[f32], inputs: &[f32], rows: usize) {
        assert!(
            rows <= self.rows,
            "{rows} rows in a model built for {}",
            self.rows
        );
        assert_eq!(inputs.len(), rows * self.inputs, "whole rows of inputs");
        // Number of activations that are made.
        let mut made = 0;
        for node in &mut self.nodes {
            match node {
                Node::Pointwise(layer) => {
                    let width = rows * self.widths[made];
                    layer.forward(pass, &mut self.activations[made - 1][..width]);
                }
                Node::Layer(layer) => {
                    let (before, after) = self.activations.split_at_mut(made);
                    let y = &mut after[0][..rows * self.widths[made + 1]];
                    let x = before
                        .last()
                        .map_or(inputs, |x| &x[..rows * self.widths[made]]);
                    layer.forward(pass, state, x, y);
                    made += 1;
                }
            }
        }
    }
}
