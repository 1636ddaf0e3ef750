//! What goes into a model and comes out of it: names, elements and shapes.

use crate::proto::{Dimension, Extent, Shape, TensorType, ValueInfo, ValueType, element};

/// The dimension whose length is up to whoever calls the model.
const BATCH: &str = "N";

/// What a value of a graph is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Numbers of single precision.
    Float32,
    /// Whole numbers.
    Int64,
    /// Bytes.
    Uint8,
    /// Words.
    Text,
}

impl Element {
    /// As the file has it.
    fn code(self) -> i32 {
        match self {
            Self::Float32 => element::FLOAT,
            Self::Int64 => element::INT64,
            Self::Uint8 => element::UINT8,
            Self::Text => element::STRING,
        }
    }

    /// As numpy and ONNX call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Text => "string",
        }
    }
}

/// What goes into a model or comes out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub element: Element,
    /// The lengths of its dimensions behind the first, which is that of the batch.
    pub shape: Vec<usize>,
}

impl Port {
    /// As the file has it.
    pub(crate) fn message(&self) -> ValueInfo {
        let extents = self.shape.iter().map(|&size| Extent::Value(size as i64));
        let extents = [Extent::Param(BATCH.to_owned())].into_iter().chain(extents);
        let dim = |extent| Dimension {
            extent: Some(extent),
        };
        let tensor_type = Some(TensorType {
            elem_type: self.element.code(),
            shape: Some(Shape {
                dim: extents.map(dim).collect(),
            }),
        });
        ValueInfo {
            name: self.name.clone(),
            r#type: Some(ValueType { tensor_type }),
        }
    }
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}[{BATCH}", self.name, self.element.word())?;
        for size in &self.shape {
            write!(f, ", {size}")?;
        }
        write!(f, "]")
    }
}
