//! What a model says, from the scores of its last layer: probabilities and a class, the probabilities of labels, or
//! numbers in the units of the set.

use crate::graph::{Graph, GraphWriter, Value, int};
use crate::port::Element;
use lockstep_data::TargetKind;
use lockstep_model::{Decision, Outputs};

/// The outputs of the graph. With `words`, that of a model of classes says the name of the class too.
pub(crate) fn outputs(graph: &mut Graph, scores: &Value, outputs: &Outputs, words: bool) {
    let width = outputs.names.len();
    match outputs.kind {
        TargetKind::Classes => {
            let said = graph.node("Softmax", "probabilities", &[scores], &[int("axis", 1)]);
            graph.output(&said, Element::Float32, &[width]);
            let class = match outputs.decision {
                Some(Decision {
                    positive,
                    threshold: Some(threshold),
                }) => decided(graph, &said, positive, threshold),
                // Of equally probable classes the first, as `predict` does.
                _ => {
                    let axes = [int("axis", 1), int("keepdims", 0)];
                    graph.node("ArgMax", "class", &[scores], &axes)
                }
            };
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

/// Of two classes, the positive one wherever it has at least this probability, and the other one elsewhere.
fn decided(graph: &mut Graph, probabilities: &Value, positive: usize, threshold: f64) -> Value {
    // The lowest number of its precision that reaches the threshold.
    let rounded = threshold as f32;
    let least = match f64::from(rounded) < threshold {
        true => rounded.next_up(),
        false => rounded,
    };
    let positive = positive as i64;
    let which = graph.integer("class.positive", positive);
    let axis = [int("axis", 1)];
    let of_it = graph.node(
        "Gather",
        "class.probability",
        &[probabilities, &which],
        &axis,
    );
    let least = graph.numbers("class.threshold", &[], &[least]);
    let is_it = graph.node(
        "GreaterOrEqual",
        "class.is_positive",
        &[&of_it, &least],
        &[],
    );
    let other = graph.integer("class.other", 1 - positive);
    graph.node("Where", "class", &[&is_it, &which, &other], &[])
}
