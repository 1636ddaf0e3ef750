//! A row of a table as it was written: what a model's users are shown as an example of its input.
//!
//! The decoded table has the numbers of a row; the words of categories, days and times are made of them again. So no
//! file of the table must be read once more.

use crate::{ColumnKind, Dataset, TimeForm};
use serde_json::{Value, json};

impl Dataset {
    /// The cells of a row of the table, in the order of its columns: the first row without gaps, or the first. None of
    /// what is no table of single cells.
    pub fn example_row(&self) -> Vec<Value> {
        let columns = &self.table().columns;
        if columns.is_empty() || self.len() == 0 {
            return Vec::new();
        }
        let width = self.sample_len();
        let mut rows = self.floats().chunks_exact(width);
        let whole = |row: &&[f32]| row.iter().all(|number| !number.is_nan());
        let row = rows.find(whole).unwrap_or(&self.floats()[..width]);
        let mut at = 0;
        let cells = columns.iter().map(|column| {
            let kind = &column.column.kind;
            let numbers = &row[at..at + kind.width()];
            at += kind.width();
            cell(kind, numbers)
        });
        cells.collect()
    }
}

/// The cell that became these numbers.
fn cell(kind: &ColumnKind, numbers: &[f32]) -> Value {
    let first = numbers[0];
    if first.is_nan() {
        return Value::Null;
    }
    match kind {
        ColumnKind::Number => number(first),
        ColumnKind::Boolean => json!(first != 0.0),
        ColumnKind::Category { values } => json!(values.get(first as usize)),
        ColumnKind::Date { form, .. } => json!(match (form, numbers) {
            (TimeForm::Clock, [hour]) => clock(*hour),
            (TimeForm::Both, [year, month, day, _, hour]) => {
                format!("{year:04}-{month:02}-{day:02} {}", clock(*hour))
            }
            _ => format!("{:04}-{:02}-{:02}", numbers[0], numbers[1], numbers[2]),
        }),
    }
}

/// A number in as few digits as its precision has.
fn number(number: f32) -> Value {
    /// Whole numbers below this are exact in single precision.
    const EXACT: f32 = 16_777_216.0;
    match number.fract() == 0.0 && number.abs() < EXACT {
        true => json!(number as i64),
        false => json!(number.to_string().parse::<f64>().ok()),
    }
}

fn clock(hour: f32) -> String {
    let seconds = (f64::from(hour) * 3600.0).round() as u32;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use crate::testing::Folder;
    use serde_json::json;

    fn example(text: &str) -> Vec<serde_json::Value> {
        Folder::new().table(text).example_row()
    }

    #[test]
    fn an_example_is_the_first_row_without_gaps_as_it_was_written() {
        let text = "town,sold,at,day,area,rooms,new,label\n\
                    Ulm,2024-02-29 13:30:07,7:15,2024-01-01,,3,yes,x\n\
                    Bonn,1969-12-31 23:59:59,23:59:59,31.05.2024,0.1,4,no,y\n";
        let expected = [
            json!("Bonn"),
            json!("1969-12-31 23:59:59"),
            json!("23:59:59"),
            json!("2024-05-31"),
            json!(0.1),
            json!(4),
            json!(false),
        ];
        assert_eq!(example(text), expected);
    }

    #[test]
    fn where_every_row_has_gaps_the_first_is_the_example_and_its_gaps_are_null() {
        let text = "a,b,label\n1.5,,x\n,2,y\n";
        assert_eq!(example(text), [json!(1.5), json!(null)]);
    }
}
