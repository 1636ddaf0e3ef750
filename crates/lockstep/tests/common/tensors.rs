//! Safetensors files, read and written by their definition: the length of a JSON header, the header, and
//! the numbers.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A tensor of single precision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: Vec<f32>,
}

/// A file's tensors by name.
pub(crate) type Tensors = BTreeMap<String, Tensor>;

pub(crate) fn read(path: &Path) -> Tensors {
    let bytes = fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let data = &bytes[8 + length..];
    let place = |value: &Value| value.as_u64().unwrap() as usize;
    let mut tensors = Tensors::new();
    for (name, entry) in header.iter().filter(|(name, _)| *name != "__metadata__") {
        assert_eq!(entry["dtype"], "F32", "{name}");
        let shape = entry["shape"].as_array().unwrap().iter().map(place);
        let offsets = &entry["data_offsets"];
        let bytes = &data[place(&offsets[0])..place(&offsets[1])];
        let numbers = bytes.as_chunks::<4>().0.iter();
        let tensor = Tensor {
            shape: shape.collect(),
            numbers: numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        };
        tensors.insert(name.clone(), tensor);
    }
    tensors
}

pub(crate) fn write(path: &Path, tensors: &Tensors) {
    let mut header = Map::new();
    let mut data = Vec::new();
    for (name, tensor) in tensors {
        let begin = data.len();
        data.extend(tensor.numbers.iter().flat_map(|x| x.to_le_bytes()));
        let entry =
            json!({ "dtype": "F32", "shape": tensor.shape, "data_offsets": [begin, data.len()] });
        header.insert(name.clone(), entry);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(data);
    fs::write(path, bytes).unwrap();
}
