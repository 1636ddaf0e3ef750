//! What a model says, from the scores of its last layer: probabilities and a class, the probabilities of labels, or
//! numbers in the units of the set.

use crate::graph::{Graph, GraphWriter, Value, int};
use lockstep_data::TargetKind;
use lockstep_model::Outputs;

/// The outputs of the graph.
pub(crate) fn outputs(graph: &mut Graph, scores: &Value, outputs: &Outputs) {
    let width = outputs.names.len();
    match outputs.kind {
        TargetKind::Classes => {
            let said = graph.node("Softmax", "probabilities", &[scores], &[int("axis", 1)]);
            graph.output(&said, "float32", &[width]);
            // Of equally probable classes the first, as `predict` does.
            let axes = [int("axis", 1), int("keepdims", 0)];
            let class = graph.node("ArgMax", "class", &[scores], &axes);
            graph.output(&class, "int64", &[]);
        }
        TargetKind::Labels => {
            let said = graph.node("Sigmoid", "probabilities", &[scores], &[]);
            graph.output(&said, "float32", &[width]);
        }
        TargetKind::Numbers => {
            let (mean, std) = (outputs.scale.mean(), outputs.scale.std());
            let std = graph.numbers("values.std", &[std.len()], std);
            let spread = graph.node("Mul", "values.spread", &[scores, &std], &[]);
            let mean = graph.numbers("values.mean", &[mean.len()], mean);
            let said = graph.node("Add", "values", &[&spread, &mean], &[]);
            graph.output(&said, "float32", &[width]);
        }
    }
}
