//! The messages of TensorBoard's protobuf that are written: `event.proto`, `summary.proto` and those of the hparams
//! plugin, less what is not written.

use prost::{Message, Oneof};
use std::collections::BTreeMap;

/// One record of an event file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    #[prost(oneof = "What", tags = "3, 5, 7")]
    pub(super) what: Option<What>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
    #[prost(message, tag = "7")]
    SessionLog(SessionLog),
}

/// A session that begins: what was told of this step and later ones is told again.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionLog {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(super) value: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(message, optional, tag = "9")]
    pub(super) metadata: Option<Metadata>,
    #[prost(oneof = "Datum", tags = "2, 4, 5, 8")]
    pub(super) datum: Option<Datum>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Datum {
    #[prost(float, tag = "2")]
    Scalar(f32),
    #[prost(message, tag = "4")]
    Image(Image),
    #[prost(message, tag = "5")]
    Histogram(Histogram),
    #[prost(message, tag = "8")]
    Tensor(Tensor),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Image {
    #[prost(int32, tag = "1")]
    pub(super) height: i32,
    #[prost(int32, tag = "2")]
    pub(super) width: i32,
    #[prost(int32, tag = "3")]
    pub(super) colorspace: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) encoded: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Histogram {
    #[prost(double, tag = "1")]
    pub(super) min: f64,
    #[prost(double, tag = "2")]
    pub(super) max: f64,
    #[prost(double, tag = "3")]
    pub(super) num: f64,
    #[prost(double, tag = "4")]
    pub(super) sum: f64,
    #[prost(double, tag = "5")]
    pub(super) sum_squares: f64,
    #[prost(double, repeated, tag = "6")]
    pub(super) bucket_limit: Vec<f64>,
    #[prost(double, repeated, tag = "7")]
    pub(super) bucket: Vec<f64>,
}

/// A tensor without numbers: what stands where a plugin's data is all there is.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tensor {
    #[prost(int32, tag = "1")]
    pub(super) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Shape {
    #[prost(message, repeated, tag = "2")]
    pub(super) dim: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Dim {
    #[prost(int64, tag = "1")]
    pub(super) size: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Metadata {
    #[prost(message, optional, tag = "1")]
    pub(super) plugin: Option<Plugin>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Plugin {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) content: Vec<u8>,
}

/// What the hparams plugin keeps.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HParams {
    #[prost(int32, tag = "1")]
    pub(super) version: i32,
    #[prost(oneof = "HParamsData", tags = "2, 3, 4")]
    pub(super) data: Option<HParamsData>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum HParamsData {
    #[prost(message, tag = "2")]
    Experiment(Experiment),
    #[prost(message, tag = "3")]
    Start(SessionStart),
    #[prost(message, tag = "4")]
    End(SessionEnd),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Experiment {
    #[prost(string, tag = "6")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) user: String,
    #[prost(double, tag = "3")]
    pub(super) time_created_secs: f64,
    #[prost(message, repeated, tag = "4")]
    pub(super) hparam_infos: Vec<HParamInfo>,
    #[prost(message, repeated, tag = "5")]
    pub(super) metric_infos: Vec<MetricInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HParamInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// 1: text, 2: true or false, 3: a number.
    #[prost(int32, tag = "4")]
    pub(super) kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) name: Option<MetricName>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricName {
    #[prost(string, tag = "2")]
    pub(super) tag: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionStart {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(super) hparams: BTreeMap<String, Any>,
    #[prost(string, tag = "4")]
    pub(super) group_name: String,
    #[prost(double, tag = "5")]
    pub(super) start_time_secs: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SessionEnd {
    /// 1: success, 2: failure.
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
    #[prost(double, tag = "2")]
    pub(super) end_time_secs: f64,
}

/// A `google.protobuf.Value`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Any {
    #[prost(oneof = "AnyKind", tags = "2, 3, 4")]
    pub(super) kind: Option<AnyKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AnyKind {
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Boolean(bool),
}
