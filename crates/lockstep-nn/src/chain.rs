//! Layers in a row and the activations between them.
//!
//! A chain keeps what its layers need again on the way back: the output of every layer but the last,
//! which belongs to whoever runs the chain. Gradients between its layers go back and forth between two
//! buffers of the scratch memory, each as large as the widest activation.

use crate::buffer::Buffer;
use crate::dims::Dims;
use crate::init::Initial;
use crate::layers::input_copy::InputCopy;
use crate::layers::{Layer, Pass, Pointwise, carve, carved};
use crate::layout::Layout;
use crate::operation::{BuiltLayer, OperationChain};
use crate::replica::Replica;
use crate::threads::Threads;
use lockstep_base::progress::{self, Label};
use std::ops::Range;

/// One layer of a chain.
pub(crate) enum Node {
    /// Reads one activation, writes the next.
    Layer(Box<dyn Layer>),
    /// Changes the newest activation in place.
    Pointwise(Box<dyn Pointwise>),
}

/// Layers in a row. The first and the last are not [`Node::Pointwise`].
pub(crate) struct Chain {
    nodes: Vec<Node>,
    /// What each of them is called, for whoever looks where the time goes.
    labels: Vec<Label>,
    /// The shape of each activation; the first is the input's.
    dims: Vec<Dims>,
    /// The output of every layer that makes a new one, but for the last.
    activations: Vec<Buffer>,
    /// The first layer that learns. No gradient is needed below it, unless the chain's input has one.
    first_trained: Option<usize>,
}

impl Chain {
    /// A chain without layers.
    pub(crate) fn new(input: Dims) -> Self {
        Self {
            nodes: Vec::new(),
            labels: Vec::new(),
            dims: vec![input],
            activations: Vec::new(),
            first_trained: None,
        }
    }

    /// Appends a layer whose output has these dimensions.
    pub(crate) fn push(&mut self, layer: Box<dyn Layer>, output: Dims) {
        self.nodes.push(Node::Layer(layer));
        self.dims.push(output);
    }

    /// Appends a layer whose output has the shape of its input.
    pub(crate) fn push_same(&mut self, layer: impl Layer + 'static) {
        self.push(Box::new(layer), self.output());
    }

    /// Appends a layer that changes the newest activation in place, or a copy of the input, which is
    /// not the chain's to change.
    pub(crate) fn push_in_place(&mut self, layer: Box<dyn Pointwise>) {
        if self.nodes.is_empty() {
            self.push_same(InputCopy);
        }
        self.nodes.push(Node::Pointwise(layer));
    }

    /// Names the nodes that were appended since the last call.
    pub(crate) fn name_newest(&mut self, name: &str) {
        self.labels.resize(self.nodes.len(), Label::of(name));
    }

    /// Says that the newest layer learns.
    pub(crate) fn train_newest(&mut self) {
        self.first_trained.get_or_insert(self.nodes.len() - 1);
    }

    /// Takes the newest activation for one of another shape, and as many numbers.
    pub(crate) fn reshape(&mut self, output: Dims) {
        let newest = self.dims.len() - 1;
        debug_assert_eq!(self.dims[newest].len(), output.len());
        self.dims[newest] = output;
    }

    /// The shape of a row of the input.
    pub(crate) fn input(&self) -> Dims {
        self.dims[0]
    }

    /// The shape of a row of the output.
    pub(crate) fn output(&self) -> Dims {
        self.dims[self.dims.len() - 1]
    }

    /// What its layers compute.
    pub(crate) fn operations(&self) -> OperationChain {
        // The activation that the newest layer made.
        let mut at = 0;
        let layers = self.nodes.iter().map(|node| {
            let (operation, in_place) = match node {
                Node::Layer(layer) => (layer.operation(), false),
                Node::Pointwise(layer) => (layer.operation(), true),
            };
            at += usize::from(!in_place);
            BuiltLayer {
                operation,
                in_place,
                output: self.dims[at],
            }
        });
        OperationChain {
            input: self.input(),
            layers: layers.collect(),
            first_trained: self.first_trained,
        }
    }

    /// Plans the activations for at most so many rows, after the last layer was appended.
    pub(crate) fn plan(&mut self, rows: usize) {
        if matches!(self.nodes.last(), Some(Node::Pointwise(_))) {
            // What it left will be needed on the way back, and the chain's output is not kept.
            self.push_same(InputCopy);
        }
        self.name_newest("");
        let kept = &self.dims[1..self.dims.len() - 1];
        let kept = kept.iter().map(|dims| Buffer::large(dims.len() * rows));
        self.activations = kept.collect();
    }

    /// Bytes of the activations that are kept.
    pub(crate) fn bytes(&self) -> usize {
        let own: usize = self.activations.iter().map(|x| 4 * x.len()).sum();
        let parts = self.nodes.iter().map(|node| match node {
            Node::Layer(layer) => layer.bytes(),
            Node::Pointwise(_) => 0,
        });
        own + parts.sum::<usize>()
    }

    /// Numbers of scratch memory that a pass of so many rows wants.
    pub(crate) fn scratch(&self, threads: &Threads, rows: usize) -> usize {
        let layers = self.nodes.iter().map(|node| match node {
            Node::Layer(layer) => layer.scratch(threads, rows),
            Node::Pointwise(_) => 0,
        });
        2 * carved(rows * self.widest()) + layers.max().unwrap_or(0)
    }

    /// Numbers a row of the widest activation, the input not counted.
    fn widest(&self) -> usize {
        let widths = self.dims[1..].iter().map(|dims| dims.len());
        widths.max().unwrap_or(0)
    }

    /// The number of the first layer among the layout's dense layers, if it is one and its output is kept.
    pub(crate) fn first_dense(&self) -> Option<usize> {
        match self.nodes.first() {
            Some(Node::Layer(layer)) if !self.activations.is_empty() => layer.dense(),
            _ => None,
        }
    }

    /// The first layer's output of some rows, if it is kept.
    pub(crate) fn first_output(&mut self, rows: Range<usize>) -> &mut [f32] {
        let width = self.dims[1].len();
        &mut self.activations[0][rows.start * width..rows.end * width]
    }

    /// Computes `y` from `x`. The outputs of the first `done` layers are there already.
    pub(crate) fn forward(
        &mut self,
        done: usize,
        pass: Pass<'_>,
        state: &[f32],
        x: &[f32],
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let rows = x.len() / self.dims[0].len();
        // Number of activations that are made.
        let mut made = done;
        let within = progress::enter_layer(Label::NONE);
        for (node, &label) in self.nodes.iter_mut().zip(&self.labels).skip(done) {
            progress::advance();
            progress::enter_layer(label);
            let width = rows * self.dims[made].len();
            match node {
                Node::Pointwise(layer) => {
                    layer.forward(pass, &mut self.activations[made - 1][..width]);
                }
                Node::Layer(layer) => {
                    let (before, after) = self.activations.split_at_mut(made);
                    let x = before.last().map_or(x, |x| &x[..width]);
                    let y = match after.first_mut() {
                        Some(y) => &mut y[..rows * self.dims[made + 1].len()],
                        None => &mut *y,
                    };
                    layer.forward(pass, state, x, y, scratch);
                    made += 1;
                }
            }
        }
        progress::enter_layer(within);
    }

    /// Appends the layers' running statistics to the layout.
    pub(crate) fn place_statistics(&mut self, layout: &mut Layout, initial: &mut Vec<Initial>) {
        for node in &mut self.nodes {
            if let Node::Layer(layer) = node {
                layer.place_statistics(layout, initial);
            }
        }
    }

    /// Hands out what the layers observed in the forward pass, last chunk first.
    pub(crate) fn statistics(&mut self, pass: Pass<'_>, replica: &mut dyn Replica) {
        for node in self.nodes.iter_mut().rev() {
            if let Node::Layer(layer) = node {
                layer.statistics(pass, replica);
            }
        }
    }

    /// Computes `dx` from `dy` if it is wanted, and hands out the gradients of all parameters, last
    /// chunk first. `x` is what the forward pass had. Layers below the first that learns are only visited for `dx`.
    pub(crate) fn backward(
        &mut self,
        pass: Pass<'_>,
        replica: &mut dyn Replica,
        x: &[f32],
        dy: &[f32],
        mut dx: Option<&mut [f32]>,
        scratch: &mut [f32],
    ) {
        let first = match dx {
            Some(_) => Some(0),
            None => self.first_trained,
        };
        let Some(first) = first else {
            return;
        };
        let rows = x.len() / self.dims[0].len();
        let widest = rows * self.widest();
        let (newest, scratch) = carve(scratch, widest);
        let (below, scratch) = carve(scratch, widest);
        let (mut newest, mut below) = (newest, below);
        newest[..dy.len()].copy_from_slice(dy);
        // The activation that `newest` is the gradient by.
        let mut at = self.dims.len() - 1;
        let within = progress::enter_layer(Label::NONE);
        for (i, node) in self.nodes.iter_mut().enumerate().skip(first).rev() {
            progress::advance();
            progress::enter_layer(self.labels[i]);
            let dy = &mut newest[..rows * self.dims[at].len()];
            match node {
                Node::Pointwise(layer) => {
                    layer.backward(pass, &self.activations[at - 1][..dy.len()], dy);
                }
                Node::Layer(layer) => {
                    let width = rows * self.dims[at - 1].len();
                    let x = match at {
                        1 => x,
                        _ => &self.activations[at - 2][..width],
                    };
                    if i == first {
                        layer.backward(pass, replica, x, dy, dx.take(), scratch);
                        break;
                    }
                    layer.backward(pass, replica, x, dy, Some(&mut below[..width]), scratch);
                    std::mem::swap(&mut newest, &mut below);
                    at -= 1;
                }
            }
        }
        progress::enter_layer(within);
    }
}
