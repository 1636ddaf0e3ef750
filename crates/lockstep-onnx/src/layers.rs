//! The layers of a network as operations of ONNX.
//!
//! Numbers lie as in PyTorch: batch, channels, height, width; or batch, numbers. A network begins with the one or
//! the other, and where a layer wants the other one, it is made first.

use crate::encoding::pick;
use crate::graph::{Graph, Value, float, int, ints};
use crate::proto::{Attribute, element};
use lockstep_nn::{Dims, LayerSpec, LayerSummary, Layout, NamedLayer, NumberOrder};
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
        let mut shape = tensor.shape.clone();
        if tensor.order == NumberOrder::Convolution && shape.len() == 3 {
            // Sequences are images of one line here.
            shape.insert(2, 1);
        }
        Some(graph.numbers(&name, &shape, &numbers))
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
        LayerSpec::LeakyRelu { slope } => Flow {
            value: graph.node(
                "LeakyRelu",
                name,
                &[&flow.value],
                [float("alpha", *slope as f32)],
            ),
            ..flow
        },
        LayerSpec::Silu => {
            let share = graph.node("Sigmoid", &format!("{name}.share"), &[&flow.value], []);
            Flow {
                value: graph.node("Mul", name, &[&flow.value, &share], []),
                ..flow
            }
        }
        LayerSpec::Sigmoid => Flow {
            value: graph.node("Sigmoid", name, &[&flow.value], []),
            ..flow
        },
        LayerSpec::Tanh => Flow {
            value: graph.node("Tanh", name, &[&flow.value], []),
            ..flow
        },
        LayerSpec::LayerNorm => layer_norm(graph, weights, name, flow),
        LayerSpec::GroupNorm { groups } => group_norm(graph, weights, name, *groups, flow),
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
            groups,
            ..
        } => {
            let window = window(*kernel, *stride, *padding);
            let flow = convolution(graph, weights, name, (window, *groups), flow);
            Flow { dims, ..flow }
        }
        LayerSpec::Conv1d {
            kernel,
            stride,
            padding,
            groups,
            ..
        } => {
            let window = window([1, *kernel], [1, *stride], [0, *padding]);
            let flow = convolution(graph, weights, name, (window, *groups), flow);
            Flow { dims, ..flow }
        }
        LayerSpec::Unflatten { shape } => {
            // 0 stands for as many as there are.
            let lengths = [0, shape.channels, shape.height, shape.width];
            let lengths = lengths.map(|length| length as i64);
            let lengths = graph.integers(&format!("{name}.shape"), &lengths);
            Flow {
                value: graph.node("Reshape", name, &[&flow.value, &lengths], []),
                dims: *shape,
                flat: false,
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
        LayerSpec::Embedding { tables } => {
            let value = embedding(graph, weights, name, tables.len(), &flow);
            Flow {
                value,
                dims,
                ..flow
            }
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

/// A convolution with these windows and groups of channels.
fn convolution(
    graph: &mut Graph,
    weights: &Weights<'_>,
    name: &str,
    (window, groups): ([Attribute; 3], usize),
    flow: Flow,
) -> Flow {
    let flow = image(graph, name, flow);
    let own = weights.constants(graph, name, &["weight", "bias"]);
    let groups = (groups > 1).then(|| int("group", groups as i64));
    let settings = window.into_iter().chain(groups);
    let value = apply(graph, "Conv", name, &flow.value, &own, settings);
    Flow { value, ..flow }
}

/// The first numbers of a row as they are, and in place of each of the last the row of its table that it points to.
fn embedding(
    graph: &mut Graph,
    weights: &Weights<'_>,
    name: &str,
    tables: usize,
    flow: &Flow,
) -> Value {
    let plain = flow.dims.len() - tables;
    let mut parts = Vec::new();
    if plain > 0 {
        parts.push(pick(graph, &flow.value, &format!("{name}.plain"), 0..plain));
    }
    for number in 0..tables {
        let table = format!("{name}.{number}");
        let part = |part: &str| format!("{table}.{part}");
        // One number and not a list of one, so that a row is left of each row.
        let column = graph.integer(&part("column"), (plain + number) as i64);
        let axis = [int("axis", 1)];
        let place = graph.node("Gather", &part("place"), &[&flow.value, &column], axis);
        let to = [int("to", i64::from(element::INT64))];
        let place = graph.node("Cast", &part("whole"), &[&place], to);
        let own = weights.constants(graph, &table, &["weight"]);
        let inputs = [&own[0][..], &place];
        parts.push(graph.node("Gather", &part("vector"), &inputs, [int("axis", 0)]));
    }
    match &parts[..] {
        [one] => one.clone(),
        parts => {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            graph.node("Concat", name, &parts, [int("axis", 1)])
        }
    }
}

/// Each vector over its numbers, or each pixel over its channels, which are brought to the end for it.
fn layer_norm(graph: &mut Graph, weights: &Weights<'_>, name: &str, flow: Flow) -> Flow {
    let part = |part: &str| format!("{name}.{part}");
    let turned = |graph: &mut Graph, name: &str, value: &str, order| {
        graph.node("Transpose", name, &[value], [ints("perm", order)])
    };
    let own = weights.constants(graph, name, &["weight", "bias"]);
    let settings = [int("axis", -1), float("epsilon", EPSILON)];
    let operator = "LayerNormalization";
    let value = match flow.flat {
        true => apply(graph, operator, name, &flow.value, &own, settings),
        false => {
            let pixels = turned(graph, &part("pixels"), &flow.value, [0, 2, 3, 1]);
            let normal = apply(graph, operator, &part("normal"), &pixels, &own, settings);
            turned(graph, name, &normal, [0, 3, 1, 2])
        }
    };
    Flow { value, ..flow }
}

/// Groups of channels, each as one long channel of an image that is normalised by itself; then the scale and the shift
/// of every channel.
fn group_norm(
    graph: &mut Graph,
    weights: &Weights<'_>,
    name: &str,
    groups: usize,
    flow: Flow,
) -> Flow {
    let flow = image(graph, name, flow);
    let part = |part: &str| format!("{name}.{part}");
    let Dims {
        height,
        width,
        channels,
    } = flow.dims;
    // 0 stands for as many as there are, -1 for all that are left.
    let long = graph.integers(&part("long_shape"), &[0, groups as i64, -1]);
    let whole = [0, channels as i64, height as i64, width as i64];
    let whole = graph.integers(&part("whole_shape"), &whole);
    let ones = graph.numbers(&part("ones"), &[groups], &vec![1.0; groups]);
    let zeros = graph.numbers(&part("zeros"), &[groups], &vec![0.0; groups]);
    let long = graph.node("Reshape", &part("long"), &[&flow.value, &long], []);
    let inputs = [&long[..], &ones, &zeros];
    let epsilon = [float("epsilon", EPSILON)];
    let normal = graph.node("InstanceNormalization", &part("normal"), &inputs, epsilon);
    let normal = graph.node("Reshape", &part("whole"), &[&normal, &whole], []);
    let mut of_channels = |tensor: &str| {
        let own = weights
            .constant(graph, name, tensor)
            .expect("the layer has it");
        let shape = graph.integers(&part(&format!("{tensor}_shape")), &[channels as i64, 1, 1]);
        graph.node("Reshape", &part(&format!("{tensor}s")), &[&own, &shape], [])
    };
    let (scale, shift) = (of_channels("weight"), of_channels("bias"));
    let scaled = graph.node("Mul", &part("scaled"), &[&normal, &scale], []);
    Flow {
        value: graph.node("Add", name, &[&scaled, &shift], []),
        ..flow
    }
}

/// An operation on a value and the layer's own constants.
fn apply(
    graph: &mut Graph,
    operator: &str,
    name: &str,
    value: &str,
    constants: &[Value],
    settings: impl IntoIterator<Item = Attribute>,
) -> Value {
    let constants = constants.iter().map(|constant| &constant[..]);
    let inputs: Vec<&str> = [value].into_iter().chain(constants).collect();
    graph.node(operator, name, &inputs, settings)
}

/// The settings of a window that moves over an image.
fn window(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> [Attribute; 3] {
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
