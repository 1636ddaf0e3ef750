//! The columns of a table that a model takes.

use lockstep_data::InputColumn;

/// What the columns of a model's input hold: numbers, where it does not say.
pub fn inputs(known: Vec<InputColumn>, names: &[String]) -> Vec<InputColumn> {
    match known.is_empty() {
        true => names.iter().map(|name| InputColumn::number(name)).collect(),
        false => known,
    }
}
