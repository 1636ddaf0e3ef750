//! What is done to numbers before a network sees them, and to those that it says: subtraction, division, and back.

use crate::graph::{Graph, GraphWriter, Value};

/// `(value - shift) / scale`, in the precision and the order that training has it in. What would change nothing is
/// left out. `shape` lays the numbers, one a channel, along the channels.
pub(crate) fn normalise(
    graph: &mut Graph,
    value: Value,
    shift: &[f32],
    scale: &[f32],
    shape: &[usize],
) -> Value {
    let mut value = value;
    let name = value.clone();
    if shift.iter().any(|&number| number != 0.0) {
        let shift = graph.numbers(&format!("{name}.shift"), shape, shift);
        value = graph.node("Sub", &format!("{name}.shifted"), &[&value, &shift], &[]);
    }
    if scale.iter().any(|&number| number != 1.0) {
        let scale = graph.numbers(&format!("{name}.scale"), shape, scale);
        value = graph.node("Div", &format!("{name}.scaled"), &[&value, &scale], &[]);
    }
    value
}
