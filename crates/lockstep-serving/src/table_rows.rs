//! Rows of a request for a model that takes the columns of a table.
//!
//! Columns are found by their names, in any order, and those that the model does not know are left alone, as in the files
//! that `lockstep predict` reads. Rows without names must have the model's columns in their order.

use crate::Refusal;
use crate::content::Content;
use crate::json::Json;
use crate::mlflow::shown;
use lockstep_data::{Cell, RowReader};

/// What messages call the table.
const REQUEST: &str = "the request";

/// The numbers of all rows.
///
/// # Errors
/// When a column is missing, or a value is none of what its column holds; the error names the row and the column.
pub(crate) fn read(reader: &RowReader, content: Content) -> Result<Vec<f32>, Refusal> {
    let mut rows = RowNumbers {
        reader,
        out: Vec::with_capacity(content.rows().saturating_mul(reader.width())),
    };
    match content {
        Content::Table { columns, rows: all } => {
            let places = find(reader, &columns)?;
            for (row, values) in all.into_iter().enumerate() {
                rows.list(row, values, &places, (columns.len(), "there are"))?;
            }
        }
        Content::Columns(columns) => rows.columns(&columns)?,
        Content::Rows(all) => {
            let in_order: Vec<usize> = (0..reader.names().len()).collect();
            let mut order = Order::default();
            for (row, values) in all.into_iter().enumerate() {
                match values {
                    Json::Object(record) => rows.record(row, &record, &mut order)?,
                    values => {
                        let wanted = (in_order.len(), "the model has");
                        rows.list(row, values, &in_order, wanted)?;
                    }
                }
            }
        }
        Content::Tensor(tensor) => {
            let width = reader.names().len();
            if tensor.shape.len() != 2 || tensor.shape[1] != width {
                return Err(Refusal::bad(format!(
                    "the tensor has the shape {:?}; one input for each column is right, or the shape [rows, {width}]",
                    tensor.shape
                )));
            }
            for (row, values) in tensor.values.chunks_exact(width).enumerate() {
                for (column, &value) in values.iter().enumerate() {
                    rows.cell(row, column, Some(Cell::Number(value)), "a number")?;
                }
            }
        }
        Content::Pictures(_) => {
            let names = reader.names().join("`, `");
            return Err(Refusal::bad(format!(
                "this model takes no pictures but the columns of a table: `{names}`"
            )));
        }
    }
    Ok(rows.out)
}

/// Where the columns lie among those that are named.
fn find(reader: &RowReader, named: &[String]) -> Result<Vec<usize>, Refusal> {
    let found = reader.find(REQUEST, named.iter().map(|name| name.trim()));
    found.map_err(|error| Refusal::bad(error.to_string()))
}

/// The numbers of the rows so far.
struct RowNumbers<'a> {
    reader: &'a RowReader,
    out: Vec<f32>,
}

/// Where the columns lie in a record, as long as records have the same keys.
#[derive(Default)]
struct Order {
    keys: Vec<String>,
    places: Vec<usize>,
}

impl RowNumbers<'_> {
    /// One cell of a row; `words` say what it is if it is no cell.
    fn cell(
        &mut self,
        row: usize,
        column: usize,
        cell: Option<Cell<'_>>,
        words: &str,
    ) -> Result<(), Refusal> {
        let name = || shown(&self.reader.names()[column]);
        let Some(cell) = cell else {
            return Err(Refusal::bad(format!(
                "row {row}: the column `{}` holds {words}; it must be a single value",
                name()
            )));
        };
        let read = self.reader.read(column, cell, &mut self.out);
        match read {
            Ok(_) => Ok(()),
            Err(found) => Err(Refusal::bad(format!(
                "row {row}: the column `{}` {found}",
                name()
            ))),
        }
    }

    /// A row as a list, in which the columns lie at `places`.
    fn list(
        &mut self,
        row: usize,
        values: Json,
        places: &[usize],
        (wanted, what): (usize, &str),
    ) -> Result<(), Refusal> {
        match values.len() {
            Some(found) if found == wanted => (),
            Some(found) => {
                return Err(Refusal::bad(format!(
                    "row {row} has {found} values, where {what} {wanted} columns"
                )));
            }
            None => {
                let found = values.words();
                return Err(Refusal::bad(format!(
                    "row {row} is {found}; it must be a list of {wanted} values, or an object with a value for each column"
                )));
            }
        }
        for (column, &at) in places.iter().enumerate() {
            match &values {
                Json::Numbers(numbers) => {
                    self.cell(row, column, Some(Cell::Number(numbers[at])), "a number")?;
                }
                Json::List(items) => {
                    self.cell(row, column, items[at].cell(), items[at].words())?;
                }
                _ => unreachable!("it has a length"),
            }
        }
        Ok(())
    }

    /// A row as an object.
    fn record(
        &mut self,
        row: usize,
        record: &[(String, Json)],
        order: &mut Order,
    ) -> Result<(), Refusal> {
        let keys = record.iter().map(|(key, _)| key);
        if row == 0 || !keys.clone().eq(&order.keys) {
            order.keys = keys.cloned().collect();
            let found = self.reader.find(
                &format!("row {row}"),
                order.keys.iter().map(|name| name.trim()),
            );
            order.places = found.map_err(|error| Refusal::bad(error.to_string()))?;
        }
        for (column, &at) in order.places.iter().enumerate() {
            let value = &record[at].1;
            self.cell(row, column, value.cell(), value.words())?;
        }
        Ok(())
    }

    /// All rows, column by column.
    fn columns(&mut self, columns: &[(String, Json)]) -> Result<(), Refusal> {
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        let places = find(self.reader, &names)?;
        let mut rows = None;
        for &at in &places {
            let (name, values) = &columns[at];
            let name = shown(name);
            let Some(length) = values.len() else {
                let found = values.words();
                return Err(Refusal::bad(format!(
                    "the column `{name}` is {found}; it must be a list with a value for every row"
                )));
            };
            let (first, wanted) = rows.get_or_insert((name.clone(), length));
            if *wanted != length {
                return Err(Refusal::bad(format!(
                    "the column `{name}` has {length} values, where `{first}` has {wanted}"
                )));
            }
        }
        let rows = rows.map_or(0, |(_, rows)| rows);
        if rows == 0 {
            return Err(Refusal::bad("the request has no rows"));
        }
        for row in 0..rows {
            for (column, &at) in places.iter().enumerate() {
                match &columns[at].1 {
                    Json::Numbers(numbers) => {
                        self.cell(row, column, Some(Cell::Number(numbers[row])), "a number")?;
                    }
                    Json::List(items) => match &items[row] {
                        // One value of a tensor of the shape [rows, 1].
                        Json::Numbers(one) if one.len() == 1 => {
                            self.cell(row, column, Some(Cell::Number(one[0])), "a number")?;
                        }
                        Json::List(one) if one.len() == 1 => {
                            self.cell(row, column, one[0].cell(), one[0].words())?;
                        }
                        item => self.cell(row, column, item.cell(), item.words())?,
                    },
                    _ => unreachable!("it has a length"),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlflow;
    use crate::tensor::Tensor;
    use lockstep_data::{ColumnKind, InputColumn};

    fn reader() -> RowReader {
        let values = vec!["east".to_owned(), "west".to_owned()];
        let columns = [
            InputColumn::number("price"),
            InputColumn::new("region", ColumnKind::Category { values }),
        ];
        RowReader::new(&columns, true)
    }

    fn rows(kind: &str, body: &str) -> Result<Vec<f32>, String> {
        let asked = mlflow::read(kind, body.as_bytes()).unwrap();
        read(&reader(), asked.content).map_err(|refusal| refusal.message)
    }

    #[test]
    fn every_way_of_sending_a_table_makes_the_same_numbers() {
        let json = "application/json";
        for (kind, body) in [
            (
                json,
                r#"{"dataframe_split": {"columns": ["region", "x", "price"], "data": [["west", 9, 1.5], ["east", 8, 2]]}}"#,
            ),
            (
                json,
                r#"{"dataframe_records": [{"region": "west", "price": 1.5}, {"price": "2", "y": [], "region": "east"}]}"#,
            ),
            (json, r#"{"inputs": [[1.5, "west"], [2, "east"]]}"#),
            (
                json,
                r#"{"inputs": {"price": [1.5, 2], "region": ["west", "east"]}}"#,
            ),
            (
                json,
                r#"{"inputs": {"price": [[1.5], [2]], "region": [["west"], ["east"]]}}"#,
            ),
            (
                json,
                r#"{"instances": [[1.5, "west"], {"price": 2, "region": "east"}]}"#,
            ),
            ("text/csv", "region,price\nwest,1.5\neast, 2\n"),
        ] {
            assert_eq!(rows(kind, body).unwrap(), [1.5, 1.0, 2.0, 0.0], "{body}");
        }
        let values = vec![1.0, 2.0];
        let shape = vec![1, 2];
        let tensor = Content::Tensor(Tensor { shape, values });
        assert_eq!(read(&reader(), tensor).unwrap()[0], 1.0);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_row_and_column() {
        let json = "application/json";
        for (body, expected) in [
            (
                r#"{"dataframe_split": {"columns": ["regoin", "price"], "data": [["west", 1]]}}"#,
                "the request has no column `region`; did you mean `regoin`?",
            ),
            (
                r#"{"dataframe_records": [{"region": "west", "price": 1}, {"region": "west"}]}"#,
                "row 1 has no column `price`; it has `region`",
            ),
            (
                r#"{"dataframe_split": {"columns": ["region", "price"], "data": [["west", 1], ["west", "dear"]]}}"#,
                "row 1: the column `price` holds `dear`, which is not a number",
            ),
            (
                r#"{"inputs": [[1, "west"], [1, "west", 2]]}"#,
                "row 1 has 3 values, where the model has 2 columns",
            ),
            (
                r#"{"inputs": [1, 2]}"#,
                "row 0 is a number; it must be a list of 2 values",
            ),
            (
                r#"{"inputs": {"price": [1, 2], "region": ["west"]}}"#,
                "the column `region` has 1 values, where `price` has 2",
            ),
            (
                r#"{"inputs": {"price": 1, "region": 2}}"#,
                "the column `price` is a number",
            ),
            (
                r#"{"inputs": [[{}, "west"]]}"#,
                "row 0: the column `price` holds an object; it must be a single value",
            ),
        ] {
            let said = rows(json, body).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
        let pictures = read(&reader(), Content::Pictures(vec![vec![]])).unwrap_err();
        assert!(pictures.message.contains("`price`, `region`"));
    }
}
