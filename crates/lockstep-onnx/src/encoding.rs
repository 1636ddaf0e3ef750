//! The rows of a table as a network takes them: numbers of one scale, an input for each value of a category, one for each
//! column with gaps, and the places of values that become learned vectors.

use crate::graph::{Graph, GraphWriter, Value, int};
use crate::proto::element;
use crate::scale::normalise;
use lockstep_data::{EmbeddedColumn, Encoding};

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
        let gaps = graph.node("IsNaN", "numbers.gaps", &[&numbers], &[]);
        let fill = graph.numbers("numbers.fill", &shape, &of(|number| number.fill));
        let filled = graph.node("Where", "numbers.filled", &[&gaps, &fill, &numbers], &[]);
        let (mean, std) = (of(|number| number.mean), of(|number| number.std));
        parts.push(normalise(graph, filled, &mean, &std, &shape));
    }
    if !encoding.values.is_empty() {
        let columns = encoding.values.iter().map(|slot| slot.column);
        let picked = pick(graph, input, "values", columns);
        let places = encoding.values.iter().map(|slot| slot.value as f32);
        let places: Vec<f32> = places.collect();
        let places = graph.numbers("values.places", &[places.len()], &places);
        let equal = graph.node("Equal", "values.equal", &[&picked, &places], &[]);
        parts.push(as_number(graph, "values.hot", &equal));
    }
    if !encoding.gaps.is_empty() {
        let picked = pick(graph, input, "gaps", encoding.gaps.iter().copied());
        let is_gap = graph.node("IsNaN", "gaps.found", &[&picked], &[]);
        parts.push(as_number(graph, "gaps.flags", &is_gap));
    }
    parts.extend((encoding.embedded.iter()).map(|embedded| place(graph, input, embedded)));
    match &parts[..] {
        [one] => one.clone(),
        parts => {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            graph.node("Concat", "encoded", &parts, &[int("axis", 1)])
        }
    }
}

/// The place of a category's value among those that training had, counted from 1; 0 for all others.
fn place(graph: &mut Graph, input: &Value, embedded: &EmbeddedColumn) -> Value {
    let part = |part: &str| format!("embedded.{}.{part}", embedded.column);
    let picked = pick(graph, input, &part("value"), [embedded.column].into_iter());
    let gap = graph.node("IsNaN", &part("gap"), &[&picked], &[]);
    // Whatever is none of the values is taken for one below or above all of them.
    let most = embedded
        .values
        .last()
        .map_or(0, |&value| value as usize + 1);
    let [below, above, one] = [(-1.0, "below"), (most as f32, "above"), (1.0, "one")]
        .map(|(number, name)| graph.numbers(&part(name), &[], &[number]));
    let filled = graph.node("Where", &part("filled"), &[&gap, &below, &picked], &[]);
    let within = graph.node("Clip", &part("within"), &[&filled, &below, &above], &[]);
    let index = graph.node("Add", &part("index"), &[&within, &one], &[]);
    let to = [int("to", i64::from(element::INT64))];
    let index = graph.node("Cast", &part("whole"), &[&index], &to);
    let mut places = vec![0.0; most + 2];
    for (place, &value) in (1..).zip(&embedded.values) {
        places[value as usize + 1] = place as f32;
    }
    let places = graph.numbers(&part("places"), &[places.len()], &places);
    graph.node(
        "Gather",
        &part("place"),
        &[&places, &index],
        &[int("axis", 0)],
    )
}

/// Some columns of the input, in this order.
pub(crate) fn pick(
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
        &axis,
    )
}

/// What is true as 1, and else 0.
fn as_number(graph: &mut Graph, name: &str, truths: &Value) -> Value {
    let to = [int("to", i64::from(element::FLOAT))];
    graph.node("Cast", name, &[truths], &to)
}
