//! Tables whose rows are printed as they come.
//!
//! A training run fills its table over minutes, so the widths are fixed before the first row is
//! known. Cells may carry colours; their visible width is what counts. A frame of rounded lines for
//! terminals, bare aligned columns for files.

use console::{measure_text_width, style, truncate_str};
use std::io::IsTerminal;

/// On which side a column's cells are flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// What the head says.
    pub(crate) title: String,
    /// Visible width of its cells; longer ones are cut with an ellipsis.
    pub(crate) width: usize,
    /// Where its cells are flush.
    pub(crate) align: Align,
}

impl Column {
    /// A column of words.
    pub(crate) fn left(title: impl Into<String>, width: usize) -> Self {
        Self::new(title.into(), width, Align::Left)
    }

    /// A column of numbers.
    pub(crate) fn right(title: impl Into<String>, width: usize) -> Self {
        Self::new(title.into(), width, Align::Right)
    }

    fn new(title: String, width: usize, align: Align) -> Self {
        let width = width.max(measure_text_width(&title));
        Self {
            title,
            width,
            align,
        }
    }
}

/// What surrounds the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Thin lines with round corners.
    Rounded,
    /// Nothing but space.
    Bare,
}

/// The shape of a table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<Column>,
    frame: Frame,
}

impl Table {
    /// A table of these columns.
    pub(crate) fn new(columns: Vec<Column>, frame: Frame) -> Self {
        Self { columns, frame }
    }

    /// Columns that fit a table of two into `width`: the first as wide as its widest cell, the
    /// second with what is left, both no wider than need be.
    pub(crate) fn for_pairs(pairs: &[(String, String)], frame: Frame, width: usize) -> Self {
        let widest = |cells: &mut dyn Iterator<Item = &String>| {
            cells
                .map(|cell| measure_text_width(cell))
                .max()
                .unwrap_or(0)
        };
        let key = widest(&mut pairs.iter().map(|(key, _)| key));
        let value = widest(&mut pairs.iter().map(|(_, value)| value));
        let room = width.saturating_sub(key + 7).max(8);
        let columns = vec![Column::left("", key), Column::left("", value.min(room))];
        Self::new(columns, frame)
    }

    /// The line above everything, if the frame has one.
    pub(crate) fn top(&self) -> Option<String> {
        self.rule('╭', '┬', '╮')
    }

    /// The titles and the line below them.
    pub(crate) fn head(&self, style: impl Fn(String) -> String) -> Vec<String> {
        let titles: Vec<String> = self
            .columns
            .iter()
            .map(|column| style(column.title.clone()))
            .collect();
        let rule = self.rule('├', '┼', '┤');
        std::iter::once(self.row(&titles)).chain(rule).collect()
    }

    /// One row. Missing cells are empty.
    pub(crate) fn row(&self, cells: &[String]) -> String {
        let cell = |(index, column): (usize, &Column)| {
            let text = cells.get(index).map_or("", String::as_str);
            let text = truncate_str(text, column.width, "…");
            let space = " ".repeat(column.width - measure_text_width(&text));
            match column.align {
                Align::Left => format!("{text}{space}"),
                Align::Right => format!("{space}{text}"),
            }
        };
        let cells: Vec<String> = self.columns.iter().enumerate().map(cell).collect();
        match self.frame {
            Frame::Rounded => format!("│ {} │", cells.join(" │ ")),
            Frame::Bare => cells.join("  ").trim_end().to_owned(),
        }
    }

    /// The line below everything, if the frame has one.
    pub(crate) fn foot(&self) -> Option<String> {
        self.rule('╰', '┴', '╯')
    }

    /// All lines of a table without a head whose rows are known.
    pub(crate) fn pairs(&self, pairs: &[(String, String)]) -> Vec<String> {
        let rows = pairs
            .iter()
            .map(|(key, value)| self.row(&[key.clone(), value.clone()]));
        self.top()
            .into_iter()
            .chain(rows)
            .chain(self.foot())
            .collect()
    }

    /// The whole table, whose rows are known, as text.
    pub(crate) fn filled<R: AsRef<[String]>>(
        &self,
        rows: &[R],
        style: impl Fn(String) -> String,
    ) -> String {
        let mut lines: Vec<String> = self.top().into_iter().collect();
        lines.extend(self.head(style));
        lines.extend(rows.iter().map(|row| self.row(row.as_ref())));
        lines.extend(self.foot());
        lines.join("\n") + "\n"
    }

    /// How wide the table is.
    pub(crate) fn width(&self) -> usize {
        let cells: usize = self.columns.iter().map(|column| column.width).sum();
        match self.frame {
            Frame::Rounded => cells + 3 * self.columns.len() + 1,
            Frame::Bare => cells + 2 * self.columns.len().saturating_sub(1),
        }
    }

    fn rule(&self, left: char, middle: char, right: char) -> Option<String> {
        if self.frame == Frame::Bare {
            return None;
        }
        let lines: Vec<String> = self
            .columns
            .iter()
            .map(|column| "─".repeat(column.width + 2))
            .collect();
        let lines = lines.join(&middle.to_string());
        Some(format!("{left}{lines}{right}"))
    }
}

/// Columns with these titles, as wide as the widest cell of `rows`. A `>` before a title aligns its column to the
/// right.
pub(crate) fn columns<T: AsRef<str>, R: AsRef<[String]>>(titles: &[T], rows: &[R]) -> Vec<Column> {
    let column = |(index, title): (usize, &T)| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(index));
        let widest = cells.map(|cell| measure_text_width(cell)).max();
        let widest = widest.unwrap_or(0);
        match title.as_ref().strip_prefix('>') {
            Some(title) => Column::right(title, widest),
            None => Column::left(title.as_ref(), widest),
        }
    };
    titles.iter().enumerate().map(column).collect()
}

/// A whole table whose rows are known, as text: framed on a terminal, bare elsewhere. It has the [columns] of these
/// titles, but for those that are empty in every row.
pub(crate) fn lines_of<T: AsRef<str>, R: AsRef<[String]>>(titles: &[T], rows: &[R]) -> String {
    let frame = match std::io::stdout().is_terminal() {
        true => Frame::Rounded,
        false => Frame::Bare,
    };
    let (titles, rows) = without_empty(titles, rows);
    let table = Table::new(columns(&titles, &rows), frame);
    table.filled(&rows, |title| style(title).bold().to_string())
}

/// The columns that have something in a row.
fn without_empty<T: AsRef<str>, R: AsRef<[String]>>(
    titles: &[T],
    rows: &[R],
) -> (Vec<String>, Vec<Vec<String>>) {
    let is_filled = |at: usize| {
        let mut cells = rows.iter().filter_map(|row| row.as_ref().get(at));
        rows.is_empty() || cells.any(|cell| !cell.is_empty())
    };
    let filled: Vec<usize> = (0..titles.len()).filter(|at| is_filled(*at)).collect();
    let pick = |row: &R| {
        let cells = filled.iter().map(|at| row.as_ref().get(*at).cloned());
        cells.map(Option::unwrap_or_default).collect()
    };
    let titles = filled.iter().map(|at| titles[*at].as_ref().to_owned());
    (titles.collect(), rows.iter().map(pick).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(frame: Frame) -> Table {
        Table::new(vec![Column::left("name", 4), Column::right("n", 5)], frame)
    }

    fn cells(cells: &[&str]) -> Vec<String> {
        cells.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_column_that_is_empty_in_every_row_is_left_out() {
        let rows = [cells(&["a", "", "1"]), cells(&["b", "", ""])];
        let (titles, rows) = without_empty(&["name", "tags", ">n"], &rows);
        assert_eq!(titles, ["name", ">n"]);
        assert_eq!(rows, [["a", "1"], ["b", ""]]);
        let none: [Vec<String>; 0] = [];
        assert_eq!(without_empty(&["name", "tags"], &none).0.len(), 2);
    }

    #[test]
    fn every_line_of_a_framed_table_has_the_same_width() {
        let table = table(Frame::Rounded);
        let mut lines: Vec<String> = table.top().into_iter().collect();
        lines.extend(table.head(|title| title));
        lines.push(table.row(&cells(&["ab", "12"])));
        lines.push(table.row(&cells(&["a long name", "\u{1b}[1m7\u{1b}[0m"])));
        lines.extend(table.foot());
        for line in &lines {
            assert_eq!(measure_text_width(line), table.width(), "{line}");
        }
        assert_eq!(lines[3], "│ ab   │    12 │");
        assert!(lines[4].contains("a l…"), "{}", lines[4]);
    }

    #[test]
    fn a_bare_table_is_text_alone() {
        let table = table(Frame::Bare);
        assert_eq!(table.top(), None);
        assert_eq!(table.head(|title| title), ["name      n"]);
        assert_eq!(table.row(&cells(&["ab", "12"])), "ab       12");
    }

    #[test]
    fn pairs_fit_the_width_they_are_given() {
        let pairs = [("key".to_owned(), "v".repeat(200))];
        for line in Table::for_pairs(&pairs, Frame::Rounded, 40).pairs(&pairs) {
            assert_eq!(measure_text_width(&line), 40, "{line}");
        }
    }
}
