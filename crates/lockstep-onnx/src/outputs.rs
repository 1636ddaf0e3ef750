//! What a model says, from the scores of its last layer: probabilities and a class, the probabilities of labels, or
//! numbers in the units of the set.

use crate::graph::{Graph, GraphWriter, Value, int};
use crate::port::Element;
use lockstep_data::TargetKind;
use lockstep_model::Outputs;

/// The outputs of the graph. With `words`, that of a model of classes says the name of the class too.
pub(crate) fn outputs(graph: &mut Graph, scores: &Value, outputs: &Outputs, words: bool) {
    let width = outputs.names.len();
    match outputs.kind {
        TargetKind::Classes => {
            let said = graph.node("Softmax", "probabilities", &[scores], &[int("axis", 1)]);
            graph.output(&said, Element::Float32, &[width]);
            // Of equally probable classes the first, as `predict` does.
            let axes = [int("axis", 1), int("keepdims", 0)];
            let class = graph.node("ArgMax", "class", &[scores], &axes);
            graph.output(&class, Element::Int64, &[]);
            if words {
                let names = graph.words("predicted.names", &outputs.names);
                let axis = [int("axis", 0)];
                let said = graph.node("Gather", "predicted", &[&names, &class], &axis);
                graph.output(&said, Element::Text, &[]);
            }
        }
        TargetKind::Labels => {
            let said = graph.node("Sigmoid", "probabilities", &[scores], &[]);
            graph.output(&said, Element::Float32, &[width]);
        }
        TargetKind::Numbers => {
            let (mean, std) = (outputs.scale.mean(), outputs.scale.std());
            let std = graph.numbers("values.std", &[std.len()], std);
            let spread = graph.node("Mul", "values.spread", &[scores, &std], &[]);
            let mean = graph.numbers("values.mean", &[mean.len()], mean);
            let said = graph.node("Add", "values", &[&spread, &mean], &[]);
            graph.output(&said, Element::Float32, &[width]);
        }
    }
}
