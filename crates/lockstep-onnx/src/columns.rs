//! The columns of a table as the inputs of a graph, one for each, under their own names; and the rows that come of them.
//!
//! A column of categories takes their words, one of numbers or truths `float32`, and one of dates or times whole seconds:
//! since 1970, or since midnight. What is not there is NaN; of words, any that training did not have; of seconds, the
//! smallest number that there is, which is what numpy makes of a date that is none. A row is then what a decoded table
//! has: numbers with NaN as gaps, categories as their places, dates as their parts.

use crate::dates::parts;
use crate::graph::{Graph, GraphWriter, Value, int};
use crate::port::Element;
use lockstep_data::{ColumnKind, InputColumn};

/// Whether a model of rows with so many numbers can take these columns each by itself: it is known what they are.
pub(crate) fn are_known(columns: &[InputColumn], numbers: usize) -> bool {
    let known: usize = columns.iter().map(|column| column.kind.width()).sum();
    // A value without a name is none in ONNX.
    known == numbers && columns.iter().all(|column| !column.name.is_empty())
}

/// Declares the columns as inputs, and makes rows of them.
pub(crate) fn rows(graph: &mut Graph, columns: &[InputColumn]) -> Value {
    // All inputs come first: their names are the columns', whatever else is called so.
    let inputs: Vec<Value> = columns
        .iter()
        .map(|column| graph.input(&column.name, element(&column.kind), &[]))
        .collect();
    let axis = graph.integers("column.axis", &[1]);
    let mut numbers = Vec::new();
    for (column, input) in columns.iter().zip(&inputs) {
        let of_column = match &column.kind {
            ColumnKind::Number | ColumnKind::Boolean => vec![input.clone()],
            ColumnKind::Category { values } => vec![graph.places(input, values)],
            ColumnKind::Date { form, .. } => parts(graph, input, *form),
        };
        for number in of_column {
            let name = format!("{}.column", column.name);
            numbers.push(graph.node("Unsqueeze", &name, &[&number, &axis], &[]));
        }
    }
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    graph.node("Concat", "rows", &numbers, &[int("axis", 1)])
}

/// What the input of a column is made of.
fn element(kind: &ColumnKind) -> Element {
    match kind {
        ColumnKind::Number | ColumnKind::Boolean => Element::Float32,
        ColumnKind::Category { .. } => Element::Text,
        ColumnKind::Date { .. } => Element::Int64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_data::TimeForm;

    fn column(name: &str, kind: ColumnKind) -> InputColumn {
        InputColumn::new(name, kind)
    }

    #[test]
    fn each_column_is_an_input_of_its_own_name_and_type() {
        let date = ColumnKind::Date {
            form: TimeForm::Day,
            day_first: false,
        };
        let town = ColumnKind::Category {
            values: vec!["Bonn".into(), "Ulm".into()],
        };
        let columns = [
            column("rows", ColumnKind::Number),
            column("rows.column", ColumnKind::Boolean),
            column("town", town),
            column("sold", date),
        ];
        assert!(are_known(&columns, 7));
        assert!(!are_known(&columns, 6));
        assert!(!are_known(&[column("", ColumnKind::Number)], 1));
        let mut graph = Graph::default();
        let made = rows(&mut graph, &columns);
        let model = graph.finish("columns").unwrap();
        let shown: Vec<String> = model.inputs.iter().map(ToString::to_string).collect();
        let expected = [
            "rows float32[N]",
            "rows.column float32[N]",
            "town string[N]",
            "sold int64[N]",
        ];
        assert_eq!(shown, expected);
        assert_eq!(made, "rows.2", "the column keeps its name");
    }
}
