//! What a model is, as the Open Inference Protocol describes it.

use crate::about::About;
use crate::takes::Takes;
use lockstep_data::{ColumnKind, StoredElement, TargetKind};
use serde_json::{Value, json};

/// The answer to `GET /v2/models/NAME`.
pub(crate) fn describe(about: &About) -> Value {
    let tensor = |name: &str, datatype: &str, shape: Vec<i64>| json!({ "name": name, "datatype": datatype, "shape": shape });
    let inputs: Vec<Value> = match &about.takes {
        Takes::Table(reader) => {
            let column = |(at, name): (usize, &String)| {
                let datatype = match reader.kind(at) {
                    ColumnKind::Number => "FP32",
                    ColumnKind::Boolean => "BOOL",
                    ColumnKind::Category { .. } | ColumnKind::Date { .. } => "BYTES",
                };
                tensor(name, datatype, vec![-1])
            };
            reader.names().iter().enumerate().map(column).collect()
        }
        Takes::Samples(form) if form.takes_pictures() => vec![tensor("input", "BYTES", vec![-1])],
        Takes::Samples(form) => {
            let datatype = match form.element {
                StoredElement::U8 => "UINT8",
                StoredElement::F32 => "FP32",
            };
            let shapes = form.row_shapes();
            let longest = shapes.iter().max_by_key(|shape| shape.len());
            let sides = longest.into_iter().flatten().map(|&side| side as i64);
            vec![tensor(
                "input",
                datatype,
                [-1].into_iter().chain(sides).collect(),
            )]
        }
    };
    let width = about.outputs.names.len() as i64;
    let outputs = match about.outputs.kind {
        TargetKind::Classes => vec![
            tensor("predicted", "BYTES", vec![-1]),
            tensor("probability", "FP32", vec![-1]),
            tensor("probabilities", "FP32", vec![-1, width]),
        ],
        TargetKind::Numbers | TargetKind::Labels => {
            vec![tensor("predicted", "FP32", vec![-1, width])]
        }
    };
    let versions: Vec<String> = about.version.iter().map(u64::to_string).collect();
    json!({
        "name": about.name,
        "versions": versions,
        "platform": "lockstep",
        "inputs": inputs,
        "outputs": outputs,
        "parameters": { "outputs": about.outputs.names },
    })
}
