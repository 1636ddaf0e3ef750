//! A body of the type `text/csv`: a first line with the names of the columns, then a line for each row.

use crate::Refusal;
use crate::content::Content;
use crate::json::{Json, MOST_VALUES};
use csv::ReaderBuilder;
use lockstep_data::CsvFormat;

/// The most bytes that are looked at to find what stands between values.
const HEAD: usize = 64 << 10;

/// Reads a table, whose values are between commas, or what else is found by looking, as in files.
///
/// # Errors
/// When a line has another number of values than the first, or is no UTF-8 text.
pub(crate) fn read(body: &[u8]) -> Result<Content, Refusal> {
    let head = String::from_utf8_lossy(&body[..body.len().min(HEAD)]);
    let mut reader = ReaderBuilder::new()
        .delimiter(CsvFormat::default().delimiter(&head))
        .from_reader(body);
    let wrong = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        Refusal::bad(match error.kind() {
            csv::ErrorKind::UnequalLengths {
                expected_len, len, ..
            } => format!(
                "line {line} of the body has {len} values, where the first line names {expected_len} columns"
            ),
            csv::ErrorKind::Utf8 { .. } => format!("line {line} of the body is not UTF-8 text"),
            _ => format!("the body is not a table: {error}"),
        })
    };
    let columns = reader.headers().map_err(wrong)?.iter();
    let columns: Vec<String> = columns.map(|name| name.trim().to_owned()).collect();
    if columns.is_empty() {
        return Err(Refusal::bad(
            "the body is empty; its first line must name the columns",
        ));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(wrong)?;
        if rows.len().saturating_mul(columns.len()) > MOST_VALUES {
            let most = format!("the body holds more than {MOST_VALUES} values");
            return Err(Refusal::too_large(most));
        }
        let cells = record.iter().map(|cell| Json::Text(cell.to_owned()));
        rows.push(Json::List(cells.collect()));
    }
    Ok(Content::Table { columns, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_rows_and_the_first_names_the_columns() {
        let Content::Table { columns, rows } = read(b"a, b\n1,\"x, y\"\n,2\n").unwrap() else {
            panic!("a table")
        };
        assert_eq!(columns, ["a", "b"]);
        let text = |text: &str| Json::Text(text.into());
        let expected = [
            Json::List(vec![text("1"), text("x, y")]),
            Json::List(vec![text(""), text("2")]),
        ];
        assert_eq!(rows, expected);
        let Content::Table { columns, rows } = read(b"a;b\n1,5;x\n").unwrap() else {
            panic!("a table")
        };
        assert_eq!(columns, ["a", "b"]);
        assert_eq!(rows, [Json::List(vec![text("1,5"), text("x")])]);
    }

    #[test]
    fn lines_that_do_not_fit_are_named() {
        for (body, expected) in [
            (&b""[..], "its first line must name the columns"),
            (
                b"a,b\n1,2\n3\n",
                "line 3 of the body has 1 values, where the first line names 2",
            ),
            (b"a\n\xff\n", "line 2 of the body is not UTF-8"),
        ] {
            let said = read(body).unwrap_err().message;
            assert!(said.contains(expected), "{said}");
        }
    }
}
