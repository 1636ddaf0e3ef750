//! A graph while it is built: operations, constants, and what goes in and comes out.
//!
//! A value is known by its name. An operation has one output, which is called as the operation itself.

use crate::OnnxError;
use crate::port::{Element, Port};
use crate::proto::{
    Attribute, Entry, GraphMessage, Model, Node, OperatorSet, Tensor, attribute_type, element,
};
use lockstep_nn::graph::Attribute as Setting;
use prost::Message;
use std::collections::HashSet;

pub(crate) use lockstep_nn::graph::{GraphWriter, Value};

/// Which operators are used. 17 is the first with `LayerNormalization`, and what runtimes since 2022 read.
pub const OPSET: i64 = 17;

/// The version of the file format that belongs to [`OPSET`].
const IR_VERSION: i64 = 8;

/// The operators on text, which ONNX keeps apart, and the version of them that belongs to [`OPSET`].
const TEXT_OPERATORS: (&str, i64) = ("ai.onnx.ml", 3);

/// No message of protobuf may have more bytes.
const LARGEST: u64 = i32::MAX as u64;

/// Finds out before a model of so many parameters is trained that it cannot be written.
///
/// # Errors
/// When it would be larger than a protobuf message can be.
pub fn check_size(parameters: usize) -> Result<(), OnnxError> {
    let bytes = 4 * parameters as u64;
    match bytes > LARGEST {
        true => Err(OnnxError::TooLarge { bytes }),
        false => Ok(()),
    }
}

/// A model in ONNX's terms, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct OnnxModel {
    message: Model,
    /// What it takes.
    pub inputs: Vec<Port>,
    /// What it says of that.
    pub outputs: Vec<Port>,
}

impl OnnxModel {
    /// The file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.message.encode_to_vec()
    }

    /// What is known of the model, by its key.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.message.metadata_props.iter();
        entries.map(|entry| (&entry.key[..], &entry.value[..]))
    }
}

/// A graph that is being built.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    constants: Vec<Tensor>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    metadata: Vec<Entry>,
    uses_text_operators: bool,
    /// The names of all values so far.
    names: HashSet<String>,
}

impl Graph {
    /// A name that no other value has. Layers may share one: torchvision's ResNet has one ReLU at two places.
    fn name(&mut self, wanted: &str) -> Value {
        let mut name = wanted.to_owned();
        let mut count = 1;
        while !self.names.insert(name.clone()) {
            count += 1;
            name = format!("{wanted}.{count}");
        }
        name
    }

    /// What the model takes.
    pub(crate) fn input(&mut self, name: &str, element: Element, shape: &[usize]) -> Value {
        let name = self.name(name);
        self.inputs.push(Port {
            name: name.clone(),
            element,
            shape: shape.to_vec(),
        });
        name
    }

    /// Declares that a value comes out of the model.
    pub(crate) fn output(&mut self, value: &str, element: Element, shape: &[usize]) {
        self.outputs.push(Port {
            name: value.to_owned(),
            element,
            shape: shape.to_vec(),
        });
    }

    /// Something that is to be known of the model.
    pub(crate) fn note(&mut self, key: &str, value: impl Into<String>) {
        self.metadata.push(Entry {
            key: key.to_owned(),
            value: value.into(),
        });
    }

    fn constant(&mut self, name: &str, shape: &[usize], data_type: i32, bytes: Vec<u8>) -> Value {
        let name = self.name(name);
        self.constants.push(Tensor {
            dims: shape.iter().map(|&size| size as i64).collect(),
            data_type,
            name: name.clone(),
            raw_data: Some(bytes),
            ..Tensor::default()
        });
        name
    }

    /// Appends a constant list of words.
    pub(crate) fn words(&mut self, name: &str, words: &[String]) -> Value {
        let name = self.name(name);
        self.constants.push(Tensor {
            dims: vec![words.len() as i64],
            data_type: element::STRING,
            string_data: words.to_vec(),
            name: name.clone(),
            ..Tensor::default()
        });
        name
    }

    /// Bytes as numbers, or what are numbers already.
    pub(crate) fn as_floats(&mut self, value: Value, element: Element) -> Value {
        if element == Element::Float32 {
            return value;
        }
        let to = [int("to", i64::from(element::FLOAT))];
        self.node("Cast", &format!("{value}.floats"), &[&value], &to)
    }

    /// The place of each word of `input` among `values`; NaN for all others.
    pub(crate) fn places(&mut self, input: &Value, values: &[String]) -> Value {
        // An operation that knows no word at all is refused, and the empty word is a gap anyway.
        let mut keys = vec![String::new()];
        keys.extend_from_slice(values);
        let mut places = vec![f32::NAN];
        places.extend((0..values.len()).map(|place| place as f32));
        let keys = Attribute::strings("keys_strings", keys);
        let places = Attribute::floats("values_floats", places);
        let unknown = attribute(&float("default_float", f32::NAN));
        let name = self.name(&format!("{input}.place"));
        self.uses_text_operators = true;
        self.nodes.push(Node {
            input: vec![input.clone()],
            output: vec![name.clone()],
            name: name.clone(),
            op_type: "LabelEncoder".to_owned(),
            attribute: vec![keys, places, unknown],
            domain: TEXT_OPERATORS.0.to_owned(),
        });
        name
    }

    /// The finished model.
    ///
    /// # Errors
    /// When it is larger than a protobuf message can be.
    pub(crate) fn finish(self, name: &str) -> Result<OnnxModel, OnnxError> {
        let operators = |(domain, version): (&str, i64)| OperatorSet {
            domain: domain.to_owned(),
            version,
        };
        let mut opset_import = vec![operators(("", OPSET))];
        opset_import.extend(self.uses_text_operators.then(|| operators(TEXT_OPERATORS)));
        let message = Model {
            ir_version: IR_VERSION,
            producer_name: "lockstep".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            graph: Some(GraphMessage {
                node: self.nodes,
                name: name.to_owned(),
                initializer: self.constants,
                input: self.inputs.iter().map(Port::message).collect(),
                output: self.outputs.iter().map(Port::message).collect(),
            }),
            opset_import,
            metadata_props: self.metadata,
        };
        let bytes = message.encoded_len() as u64;
        if bytes > LARGEST {
            return Err(OnnxError::TooLarge { bytes });
        }
        Ok(OnnxModel {
            message,
            inputs: self.inputs,
            outputs: self.outputs,
        })
    }
}

impl GraphWriter for Graph {
    fn node(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&str],
        attributes: &[(&str, Setting)],
    ) -> Value {
        let name = self.name(name);
        self.nodes.push(Node {
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![name.clone()],
            name: name.clone(),
            op_type: operator.to_owned(),
            attribute: attributes.iter().map(attribute).collect(),
            domain: String::new(),
        });
        name
    }

    fn numbers(&mut self, name: &str, shape: &[usize], numbers: &[f32]) -> Value {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        self.constant(name, shape, element::FLOAT, bytes.collect())
    }

    fn integers(&mut self, name: &str, integers: &[i64]) -> Value {
        let bytes = integers.iter().flat_map(|number| number.to_le_bytes());
        let shape = [integers.len()];
        self.constant(name, &shape, element::INT64, bytes.collect())
    }

    fn integer(&mut self, name: &str, integer: i64) -> Value {
        self.constant(name, &[], element::INT64, integer.to_le_bytes().to_vec())
    }
}

impl Attribute {
    fn strings(name: &str, strings: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            strings,
            r#type: attribute_type::STRINGS,
            ..Self::default()
        }
    }

    fn floats(name: &str, floats: Vec<f32>) -> Self {
        Self {
            name: name.to_owned(),
            floats,
            r#type: attribute_type::FLOATS,
            ..Self::default()
        }
    }
}

/// The message that holds a setting.
fn attribute((name, setting): &(&str, Setting)) -> Attribute {
    let mut message = Attribute {
        name: (*name).to_owned(),
        ..Attribute::default()
    };
    match setting {
        Setting::Float(value) => {
            message.f = Some(*value);
            message.r#type = attribute_type::FLOAT;
        }
        Setting::Int(value) => {
            message.i = Some(*value);
            message.r#type = attribute_type::INT;
        }
        Setting::Ints(values) => {
            message.ints = values.iter().map(|&value| value as i64).collect();
            message.r#type = attribute_type::INTS;
        }
    }
    message
}

/// A setting that is a floating-point number.
pub(crate) fn float(name: &str, value: f32) -> (&str, Setting) {
    (name, Setting::Float(value))
}

/// A setting that is a whole number.
pub(crate) fn int(name: &str, value: i64) -> (&str, Setting) {
    (name, Setting::Int(value))
}

/// A setting that is a list of sizes or places.
pub(crate) fn ints<'a>(name: &'a str, values: &[usize]) -> (&'a str, Setting) {
    (name, Setting::Ints(values.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_nn::graph::{Flow, GraphWeights, write_layers};
    use lockstep_nn::layers::Linear;
    use lockstep_nn::{Dims, LayerSpec, NamedLayer};

    #[test]
    fn every_kind_of_layer_is_written_with_all_of_its_tensors() {
        for (input, layer) in LayerSpec::samples() {
            let kind = layer.kind();
            let layers = NamedLayer::stack([layer, LayerSpec::Linear(Linear { out: 2 })]);
            let model = lockstep_nn::Model::new(&layers, input, 1).unwrap();
            let state = model.initial_state(1);
            let weights = GraphWeights::new(model.layout(), &state, model.summary());
            let mut graph = Graph::default();
            let flow = Flow {
                value: graph.input("input", Element::Float32, &[input.len()]),
                dims: input,
                flat: input.pixels() == 1,
            };
            let flow = write_layers(&layers, &weights, &mut graph, flow);
            assert_eq!((flow.dims, flow.flat), (Dims::vector(2), true), "{kind}");
            let constants = graph.constants.iter().map(|constant| &constant.name[..]);
            let mut known: HashSet<&str> = constants.chain(["input"]).collect();
            for tensor in &model.layout().tensors {
                assert!(known.contains(&tensor.name[..]), "{kind}: {}", tensor.name);
            }
            for node in &graph.nodes {
                let mut inputs = node.input.iter();
                assert!(inputs.all(|input| known.contains(&input[..])), "{kind}");
                known.insert(&node.name);
            }
            assert_eq!(flow.value, graph.nodes.last().unwrap().name, "{kind}");
        }
    }

    #[test]
    fn what_no_file_can_hold_is_refused_with_its_size() {
        assert!(check_size(500_000_000).is_ok());
        let error = check_size(600_000_000).unwrap_err().to_string();
        assert!(error.contains("2400000000 bytes"), "{error}");
    }

    #[test]
    fn values_of_one_name_are_told_apart() {
        let mut graph = Graph::default();
        let names = [(); 3].map(|()| graph.node("Relu", "relu", &["x"], &[]));
        assert_eq!(names, ["relu", "relu.2", "relu.3"]);
    }

    #[test]
    fn a_graph_survives_its_bytes() {
        let mut graph = Graph::default();
        let input = graph.input("input", Element::Float32, &[3]);
        let two = graph.numbers("two", &[1], &[2.0]);
        let twice = graph.node("Mul", "twice", &[&input, &two], &[]);
        graph.output(&twice, Element::Float32, &[3]);
        graph.note("key", "value");
        let model = graph.finish("doubling").unwrap();
        assert_eq!(model.inputs[0].to_string(), "input float32[N, 3]");
        let read = Model::decode(&model.to_bytes()[..]).unwrap();
        assert_eq!(read, model.message);
        let graph = read.graph.unwrap();
        let two = graph.initializer[0].raw_data.as_deref();
        assert_eq!(two, Some(&2f32.to_le_bytes()[..]));
        assert_eq!(graph.node[0].input, ["input", "two"]);
        assert_eq!(model.metadata().collect::<Vec<_>>(), [("key", "value")]);
    }
}
