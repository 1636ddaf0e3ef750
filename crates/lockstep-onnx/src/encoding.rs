//! The rows of a table as a network takes them: numbers of one scale, an input for each value of a category, and one for each
//! column with gaps.

use crate::graph::{Graph, Value, int};
use crate::proto::element;
use crate::scale::normalise;
use lockstep_data::Encoding;

/// The encoded form of rows with gaps as NaN and categories as their places, in the order and the precision that training
/// has it in.
pub(crate) fn encode(graph: &mut Graph, input: &Value, encoding: &Encoding) -> Value {
    let mut parts = Vec::new();
    if !encoding.numbers.is_empty() {
        let of = |part: fn(&lockstep_data::ScaledNumber) -> f32| -> Vec<f32> {
            encoding.numbers.iter().map(part).collect()
        };
        let shape = [encoding.numbers.len()];
        let columns = encoding.numbers.iter().map(|number| number.column);
        let numbers = pick(graph, input, "numbers", columns);
        let gaps = graph.node("IsNaN", "numbers.gaps", &[&numbers], []);
        let fill = graph.numbers("numbers.fill", &shape, &of(|number| number.fill));
        let filled = graph.node("Where", "numbers.filled", &[&gaps, &fill, &numbers], []);
        let (mean, std) = (of(|number| number.mean), of(|number| number.std));
        parts.push(normalise(graph, filled, &mean, &std, &shape));
    }
    if !encoding.values.is_empty() {
        let columns = encoding.values.iter().map(|slot| slot.column);
        let picked = pick(graph, input, "values", columns);
        let places = encoding.values.iter().map(|slot| slot.value as f32);
        let places: Vec<f32> = places.collect();
        let places = graph.numbers("values.places", &[places.len()], &places);
        let equal = graph.node("Equal", "values.equal", &[&picked, &places], []);
        parts.push(as_number(graph, "values.hot", &equal));
    }
    if !encoding.gaps.is_empty() {
        let picked = pick(graph, input, "gaps", encoding.gaps.iter().copied());
        let is_gap = graph.node("IsNaN", "gaps.found", &[&picked], []);
        parts.push(as_number(graph, "gaps.flags", &is_gap));
    }
    match &parts[..] {
        [one] => one.clone(),
        parts => {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            graph.node("Concat", "encoded", &parts, [int("axis", 1)])
        }
    }
}

/// Some columns of the input, in this order.
fn pick(
    graph: &mut Graph,
    input: &Value,
    name: &str,
    columns: impl Iterator<Item = usize>,
) -> Value {
    let columns: Vec<i64> = columns.map(|column| column as i64).collect();
    let columns = graph.integers(&format!("{name}.columns"), &columns);
    let axis = [int("axis", 1)];
    graph.node(
        "Gather",
        &format!("{name}.picked"),
        &[input, &columns],
        axis,
    )
}

/// What is true as 1, and else 0.
fn as_number(graph: &mut Graph, name: &str, truths: &Value) -> Value {
    let to = [int("to", i64::from(element::FLOAT))];
    graph.node("Cast", name, &[truths], to)
}
