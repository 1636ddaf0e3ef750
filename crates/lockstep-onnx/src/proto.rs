//! The messages of ONNX's protobuf that a model needs: `onnx.proto3` of the ONNX repository, less what is not written.
//!
//! Fields that a reader tells from absent ones, such as an attribute that is 0, are optional here.

use prost::{Message, Oneof};

/// A model: one graph and what is known of it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Model {
    #[prost(int64, tag = "1")]
    pub(crate) ir_version: i64,
    #[prost(string, tag = "2")]
    pub(crate) producer_name: String,
    #[prost(string, tag = "3")]
    pub(crate) producer_version: String,
    #[prost(message, optional, tag = "7")]
    pub(crate) graph: Option<GraphMessage>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) opset_import: Vec<OperatorSet>,
    #[prost(message, repeated, tag = "14")]
    pub(crate) metadata_props: Vec<Entry>,
}

/// Which operators a model may use.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OperatorSet {
    #[prost(string, tag = "1")]
    pub(crate) domain: String,
    #[prost(int64, tag = "2")]
    pub(crate) version: i64,
}

/// One thing that is known of a model.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Entry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// Operations in an order in which each comes after what it reads.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GraphMessage {
    #[prost(message, repeated, tag = "1")]
    pub(crate) node: Vec<Node>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) initializer: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) input: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) output: Vec<ValueInfo>,
}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub(crate) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
    #[prost(string, tag = "4")]
    pub(crate) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attribute: Vec<Attribute>,
    /// Whose operator it is; empty for ONNX's own.
    #[prost(string, tag = "7")]
    pub(crate) domain: String,
}

/// A setting of an operation.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Attribute {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(float, optional, tag = "2")]
    pub(crate) f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) i: Option<i64>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub(crate) ints: Vec<i64>,
    #[prost(string, repeated, tag = "9")]
    pub(crate) strings: Vec<String>,
    #[prost(int32, tag = "20")]
    pub(crate) r#type: i32,
}

/// Which of an attribute's fields holds.
pub(crate) mod attribute_type {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const INT: i32 = 2;
    pub(crate) const FLOATS: i32 = 6;
    pub(crate) const INTS: i32 = 7;
    pub(crate) const STRINGS: i32 = 8;
}

/// What a tensor is made of.
pub(crate) mod element {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const UINT8: i32 = 2;
    pub(crate) const INT64: i32 = 7;
    pub(crate) const STRING: i32 = 8;
}

/// A constant: its texts, or its numbers little-endian; the last index runs fastest.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Tensor {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(crate) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    #[prost(string, repeated, tag = "6")]
    pub(crate) string_data: Vec<String>,
    #[prost(string, tag = "8")]
    pub(crate) name: String,
    #[prost(bytes = "vec", optional, tag = "9")]
    pub(crate) raw_data: Option<Vec<u8>>,
}

/// What goes in or comes out.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueInfo {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) r#type: Option<ValueType>,
}

/// Of what type that is; always a tensor here.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueType {
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor_type: Option<TensorType>,
}

/// A tensor's elements and shape.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorType {
    #[prost(int32, tag = "1")]
    pub(crate) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<Shape>,
}

/// A tensor's dimensions.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dim: Vec<Dimension>,
}

/// One of them.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Dimension {
    #[prost(oneof = "Extent", tags = "1, 2")]
    pub(crate) extent: Option<Extent>,
}

/// How long a dimension is.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Extent {
    /// So long.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// As long as whoever calls the model likes; dimensions of one name are equally long.
    #[prost(string, tag = "2")]
    Param(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_that_is_zero_is_there() {
        let axis = Attribute {
            name: "axis".to_owned(),
            i: Some(0),
            r#type: attribute_type::INT,
            ..Attribute::default()
        };
        // Field 1, a string of 4 bytes; field 3, the number 0; field 20, the number 2.
        let expected = [0x0a, 4, b'a', b'x', b'i', b's', 0x18, 0, 0xa0, 0x01, 2];
        assert_eq!(axis.encode_to_vec(), expected);
    }

    #[test]
    fn numbers_of_a_list_are_fields_of_their_own_as_the_schema_has_them() {
        let pads = Attribute {
            ints: vec![1, 300],
            ..Attribute::default()
        };
        assert_eq!(pads.encode_to_vec(), [0x40, 1, 0x40, 0xac, 0x02]);
    }

    #[test]
    fn a_dimension_is_a_number_or_a_name() {
        let of = |extent| {
            let extent = Some(extent);
            Dimension { extent }.encode_to_vec()
        };
        assert_eq!(of(Extent::Value(0)), [0x08, 0]);
        assert_eq!(of(Extent::Param("N".to_owned())), [0x12, 1, b'N']);
    }
}
