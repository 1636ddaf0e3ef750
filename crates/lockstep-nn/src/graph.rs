//! A network as a graph of operations, in the vocabulary of ONNX.
//!
//! Every layer says in its own file which operations it is; whoever keeps a graph implements [`GraphWriter`]. Numbers lie
//! as in PyTorch: batch, channels, height, width; or batch, numbers. A network begins with the one or the other, and
//! where a layer wants the other one, it is made first.

use crate::dims::Dims;
use crate::layers::window::Window;
use crate::layout::{Layout, NumberOrder};
use crate::spec::{LayerSummary, NamedLayer};
use std::collections::HashMap;

/// The name of a value in a graph.
pub type Value = String;

/// A setting of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// A whole number.
    Int(i64),
    /// A list of sizes or places.
    Ints(Vec<usize>),
    /// A floating-point number.
    Float(f32),
}

/// A graph that operations and constants are appended to.
pub trait GraphWriter {
    /// Appends an operation on values. Its output is called as the operation itself, or similarly if the name is taken.
    fn node(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) -> Value;

    /// Appends a constant of floating-point numbers.
    fn numbers(&mut self, name: &str, shape: &[usize], numbers: &[f32]) -> Value;

    /// Appends a constant list of whole numbers, such as a shape.
    fn integers(&mut self, name: &str, integers: &[i64]) -> Value;

    /// Appends a constant whole number.
    fn integer(&mut self, name: &str, integer: i64) -> Value;
}

/// A value between two layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Its name.
    pub value: Value,
    /// The shape of a row.
    pub dims: Dims,
    /// Whether a row is a vector; otherwise it is an image, if only of one pixel.
    pub flat: bool,
}

impl Flow {
    /// The same numbers as vectors, channel after channel, by an operation of this name.
    pub fn flattened(self, name: &str, graph: &mut dyn GraphWriter) -> Flow {
        if self.flat {
            return self;
        }
        let axis = [("axis", Attribute::Int(1))];
        Flow {
            value: graph.node("Flatten", name, &[&self.value], &axis),
            dims: Dims::vector(self.dims.len()),
            flat: true,
        }
    }
}

/// A network's weights, and the shapes of what its layers make.
pub struct GraphWeights<'a> {
    layout: &'a Layout,
    state: &'a [f32],
    outputs: HashMap<&'a str, Dims>,
}

impl<'a> GraphWeights<'a> {
    /// Those of a model in this state.
    pub fn new(layout: &'a Layout, state: &'a [f32], summary: &'a [LayerSummary]) -> Self {
        let outputs = summary.iter().map(|layer| (&layer.name[..], layer.output));
        Self {
            layout,
            state,
            outputs: outputs.collect(),
        }
    }
}

/// Appends layers in a row.
pub fn write_layers(
    layers: &[NamedLayer],
    weights: &GraphWeights<'_>,
    graph: &mut dyn GraphWriter,
    flow: Flow,
) -> Flow {
    layers.iter().fold(flow, |flow, layer| {
        let output = weights.outputs.get(&layer.name[..]).copied();
        let mut at = LayerGraph {
            name: &layer.name,
            output: output.unwrap_or(flow.dims),
            weights,
            graph,
        };
        layer.spec.definition().write_graph(flow, &mut at)
    })
}

/// Where a layer writes its operations.
pub(crate) struct LayerGraph<'a> {
    /// The layer's name.
    pub(crate) name: &'a str,
    /// The shape of what it makes.
    pub(crate) output: Dims,
    weights: &'a GraphWeights<'a>,
    pub(crate) graph: &'a mut dyn GraphWriter,
}

impl LayerGraph<'_> {
    /// The name of a part of the layer.
    pub(crate) fn part(&self, part: &str) -> String {
        format!("{}.{part}", self.name)
    }

    /// An operation under the layer's own name.
    pub(crate) fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        self.graph.node(operator, self.name, inputs, attributes)
    }

    /// An operation under the layer's own name that keeps the shape.
    pub(crate) fn map(
        &mut self,
        operator: &str,
        flow: Flow,
        attributes: &[(&str, Attribute)],
    ) -> Flow {
        Flow {
            value: self.node(operator, &[&flow.value], attributes),
            ..flow
        }
    }

    /// An operation that is a part of the layer.
    pub(crate) fn part_node(
        &mut self,
        part: &str,
        operator: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        let name = self.part(part);
        self.graph.node(operator, &name, inputs, attributes)
    }

    /// An operation, under the layer's own name or that of a part, on a value and some of the layer's tensors.
    pub(crate) fn apply(
        &mut self,
        operator: &str,
        name: &str,
        value: &str,
        tensors: &[Value],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        let tensors = tensors.iter().map(|tensor| &tensor[..]);
        let inputs: Vec<&str> = [value].into_iter().chain(tensors).collect();
        self.graph.node(operator, name, &inputs, attributes)
    }

    /// Puts a tensor of the layer into the graph, if the layer has it.
    pub(crate) fn tensor(&mut self, part: &str) -> Option<Value> {
        let name = self.part(part);
        let mut tensors = self.weights.layout.tensors.iter();
        let tensor = tensors.find(|tensor| tensor.name == name)?;
        let numbers = tensor.to_torch(&self.weights.state[tensor.range.clone()]);
        let mut shape = tensor.shape.clone();
        if tensor.order == NumberOrder::Convolution && shape.len() == 3 {
            // Sequences are images of one line here.
            shape.insert(2, 1);
        }
        Some(self.graph.numbers(&name, &shape, &numbers))
    }

    /// Puts those of the layer's tensors that it has into the graph, in this order.
    pub(crate) fn tensors(&mut self, parts: &[&str]) -> Vec<Value> {
        parts.iter().filter_map(|part| self.tensor(part)).collect()
    }

    /// Layers in a row that are inside of this one.
    pub(crate) fn write_layers(&mut self, layers: &[NamedLayer], flow: Flow) -> Flow {
        write_layers(layers, self.weights, self.graph, flow)
    }

    /// The same numbers as vectors, by a part of the layer.
    pub(crate) fn flattened(&mut self, part: &str, flow: Flow) -> Flow {
        flow.flattened(&self.part(part), self.graph)
    }

    /// The same numbers as images: a vector is one of one pixel.
    pub(crate) fn as_image(&mut self, flow: Flow) -> Flow {
        if !flow.flat {
            return flow;
        }
        // 0 stands for as many as there are.
        let shape = [0, flow.dims.len() as i64, 1, 1];
        let shape = self.graph.integers(&self.part("pixel_shape"), &shape);
        Flow {
            value: self.part_node("pixel", "Reshape", &[&flow.value, &shape], &[]),
            flat: false,
            ..flow
        }
    }
}

/// The settings of a window that moves over an image.
pub(crate) fn window_attributes(window: Window) -> Vec<(&'static str, Attribute)> {
    let pads = [window.padding, window.padding].concat();
    vec![
        ("kernel_shape", Attribute::Ints(window.kernel.to_vec())),
        ("strides", Attribute::Ints(window.stride.to_vec())),
        // Above, left, below, right.
        ("pads", Attribute::Ints(pads)),
    ]
}
