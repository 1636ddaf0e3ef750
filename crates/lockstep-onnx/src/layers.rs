//! The layers of a network as operations of ONNX.
//!
//! Numbers lie as in PyTorch: batch, channels, height, width; or batch, numbers. A network begins with the one or
//! the other, and where a layer wants the other one, it is made first.

use crate::graph::{Graph, Value, float, int, ints};
use lockstep_nn::{Dims, LayerSpec, LayerSummary, Layout, NamedLayer};
use std::collections::HashMap;

/// What keeps a variance from being zero; that of the batch-norm layer.
const EPSILON: f32 = 1e-5;

/// A value between two layers.
#[derive(Clone)]
pub(crate) struct Flow {
    /// Its name.
    pub(crate) value: Value,
    /// The shape of a row.
    pub(crate) dims: Dims,
    /// Whether a row is a vector; otherwise it is an image, if only of one pixel.
    pub(crate) flat: bool,
}

/// A network's weights.
pub(crate) struct Weights<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) state: &'a [f32],
    /// The shape of what each layer makes.
    outputs: HashMap<&'a str, Dims>,
}

impl<'a> Weights<'a> {
    pub(crate) fn new(layout: &'a Layout, state: &'a [f32], summary: &'a [LayerSummary]) -> Self {
        let outputs = summary.iter().map(|layer| (&layer.name[..], layer.output));
        Self {
            layout,
            state,
            outputs: outputs.collect(),
        }
    }

    /// Puts a tensor into the graph, if the layer has it.
    fn constant(&self, graph: &mut Graph, layer: &str, part: &str) -> Option<Value> {
        let name = format!("{layer}.{part}");
        let mut tensors = self.layout.tensors.iter();
        let tensor = tensors.find(|tensor| tensor.name == name)?;
        let numbers = tensor.to_torch(&self.state[tensor.range.clone()]);
        Some(graph.numbers(&name, &tensor.shape, &numbers))
    }

    /// Puts those of a layer's tensors that it has into the graph, in this order.
    fn constants(&self, graph: &mut Graph, layer: &str, parts: &[&str]) -> Vec<Value> {
        let parts = parts.iter();
        parts
            .filter_map(|part| self.constant(graph, layer, part))
            .collect()
    }
}

/// Layers in a row.
pub(crate) fn chain(
    graph: &mut Graph,
    weights: &Weights<'_>,
    layers: &[NamedLayer],
    flow: Flow,
) -> Flow {
    let each = |flow, layer| one(graph, weights, layer, flow);
    layers.iter().fold(flow, each)
}

/// One layer.
fn one(graph: &mut Graph, weights: &Weights<'_>, layer: &NamedLayer, flow: Flow) -> Flow {
    let name = &layer.name[..];
    let dims = weights.outputs.get(name).copied().unwrap_or(flow.dims);
    match &layer.spec {
        // Drops nothing where nothing is trained.
        LayerSpec::Dropout { .. } => flow,
        LayerSpec::Flatten => flat(graph, name, flow),
        LayerSpec::Linear { .. } => {
            let flow = flat(graph, &format!("{name}.flatten"), flow);
            let own = weights.constants(graph, name, &["weight", "bias"]);
            let value = apply(graph, "Gemm", name, &flow.value, &own, [int("transB", 1)]);
            Flow {
                value,
                dims,
                ..flow
            }
        }
        LayerSpec::Relu => Flow {
            value: graph.node("Relu", name, &[&flow.value], []),
            ..flow
        },
        LayerSpec::Gelu => Flow {
            value: gelu(graph, name, &flow.value),
            ..flow
        },
        LayerSpec::BatchNorm => {
            let parts = ["weight", "bias", "running_mean", "running_var"];
            let own = weights.constants(graph, name, &parts);
            let epsilon = [float("epsilon", EPSILON)];
            let value = apply(
                graph,
                "BatchNormalization",
                name,
                &flow.value,
                &own,
                epsilon,
            );
            Flow { value, ..flow }
        }
        LayerSpec::Conv2d {
            kernel,
            stride,
            padding,
            ..
        } => {
            let flow = image(graph, name, flow);
            let own = weights.constants(graph, name, &["weight", "bias"]);
            let window = window(*kernel, *stride, *padding);
            let value = apply(graph, "Conv", name, &flow.value, &own, window);
            Flow {
                value,
                dims,
                ..flow
            }
        }
        LayerSpec::MaxPool {
            kernel,
            stride,
            padding,
        } => {
            let flow = image(graph, name, flow);
            let window = window(*kernel, *stride, *padding);
            let value = graph.node("MaxPool", name, &[&flow.value], window);
            Flow {
                value,
                dims,
                ..flow
            }
        }
        LayerSpec::AvgPool {
            kernel,
            stride,
            padding,
        } => {
            let flow = image(graph, name, flow);
            let window = window(*kernel, *stride, *padding);
            let settings = window.into_iter().chain([int("count_include_pad", 1)]);
            let value = graph.node("AveragePool", name, &[&flow.value], settings);
            Flow {
                value,
                dims,
                ..flow
            }
        }
        LayerSpec::GlobalPool => {
            let flow = image(graph, name, flow);
            let value = graph.node("GlobalAveragePool", name, &[&flow.value], []);
            flat(
                graph,
                &format!("{name}.flatten"),
                Flow {
                    value,
                    dims,
                    ..flow
                },
            )
        }
        LayerSpec::Residual { body, shortcut } => {
            let mut one = chain(graph, weights, body, flow.clone());
            let mut other = chain(graph, weights, shortcut, flow);
            if one.flat != other.flat {
                one = flat(graph, &format!("{name}.body.flatten"), one);
                other = flat(graph, &format!("{name}.shortcut.flatten"), other);
            }
            let value = graph.node("Add", name, &[&one.value, &other.value], []);
            Flow { value, ..one }
        }
    }
}

/// An operation on a value and the layer's own constants.
fn apply(
    graph: &mut Graph,
    operator: &str,
    name: &str,
    value: &str,
    constants: &[Value],
    settings: impl IntoIterator<Item = crate::proto::Attribute>,
) -> Value {
    let constants = constants.iter().map(|constant| &constant[..]);
    let inputs: Vec<&str> = [value].into_iter().chain(constants).collect();
    graph.node(operator, name, &inputs, settings)
}

/// The settings of a window that moves over an image.
fn window(
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
) -> [crate::proto::Attribute; 3] {
    [
        ints("kernel_shape", kernel),
        ints("strides", stride),
        // Above, left, below, right.
        ints("pads", [padding, padding].concat()),
    ]
}

/// `x` times the share of a standard normal distribution below `x`, by the error function.
pub(crate) fn gelu(graph: &mut Graph, name: &str, value: &str) -> Value {
    let part = |part: &str| format!("{name}.{part}");
    let root = graph.numbers(&part("root"), &[1], &[std::f32::consts::SQRT_2]);
    let one = graph.numbers(&part("one"), &[1], &[1.0]);
    let half = graph.numbers(&part("half"), &[1], &[0.5]);
    let scaled = graph.node("Div", &part("scaled"), &[value, &root], []);
    let erf = graph.node("Erf", &part("erf"), &[&scaled], []);
    let twice = graph.node("Add", &part("twice"), &[&erf, &one], []);
    let share = graph.node("Mul", &part("share"), &[&twice, &half], []);
    graph.node("Mul", name, &[value, &share], [])
}

/// The same numbers as vectors, channel after channel.
pub(crate) fn flat(graph: &mut Graph, name: &str, flow: Flow) -> Flow {
    if flow.flat {
        return flow;
    }
    Flow {
        value: graph.node("Flatten", name, &[&flow.value], [int("axis", 1)]),
        dims: Dims::vector(flow.dims.len()),
        flat: true,
    }
}

/// The same numbers as images: a vector is one of one pixel.
fn image(graph: &mut Graph, layer: &str, flow: Flow) -> Flow {
    if !flow.flat {
        return flow;
    }
    // 0 stands for as many as there are.
    let shape = [0, flow.dims.len() as i64, 1, 1];
    let shape = graph.integers(&format!("{layer}.pixel_shape"), &shape);
    let name = format!("{layer}.pixel");
    Flow {
        value: graph.node("Reshape", &name, &[&flow.value, &shape], []),
        flat: false,
        ..flow
    }
}
