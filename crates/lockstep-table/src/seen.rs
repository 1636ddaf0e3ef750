//! What the cells of one column of text have been so far, and what the column holds therefore.

use crate::kind::{ColumnKind, ColumnType, is_gap, parse, sort_values, truth_of};
use crate::time::{Moment, TimeForm};
use std::collections::HashSet;

/// The most values that a column of categories has where nobody said that it is one.
const FEW: usize = 256;
/// So many values are few, however many rows there are.
const HANDFUL: usize = 10;
/// The most categories of a column.
const MOST: usize = 10_000;

/// The cells of a column so far.
#[derive(Debug)]
pub(crate) struct ColumnScan {
    wanted: Option<ColumnType>,
    comma: bool,
    gaps: u64,
    /// Cells that are no gaps.
    cells: u64,
    /// Of these, numbers.
    numbers: u64,
    /// Whether all are words for true and false, of which pair, and which of both there were.
    truths: Option<(Option<usize>, [bool; 2])>,
    /// Whether all are days or times, and of which form: with the month before the day, and with the day before the month.
    dates: [Option<Option<TimeForm>>; 2],
    /// The different ones; nothing once there were too many.
    values: Option<HashSet<String>>,
    /// What the column's own type says.
    known: Option<ColumnKind>,
    of_no_use: Option<String>,
}

/// What a column holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ColumnContent {
    Kind(ColumnKind),
    /// Nothing that a model could use, and why.
    OfNoUse(String),
}

impl ColumnScan {
    /// Of a column that is said to be this.
    pub(crate) fn new(wanted: Option<ColumnType>, comma: bool) -> Self {
        Self {
            wanted,
            comma,
            gaps: 0,
            cells: 0,
            numbers: 0,
            truths: Some((None, [false; 2])),
            dates: [Some(None); 2],
            values: Some(HashSet::new()),
            known: None,
            of_no_use: None,
        }
    }

    /// The column's own type says what it holds.
    pub(crate) fn of_type(&mut self, kind: ColumnKind) {
        self.known = Some(kind);
    }

    /// The column's own type, called so, is of no use.
    pub(crate) fn of_no_use(&mut self, data_type: &str) {
        self.of_no_use = Some(format!("it holds {data_type}"));
    }

    /// Takes in the next cell.
    pub(crate) fn cell(&mut self, cell: &str) {
        let cell = cell.trim();
        if is_gap(cell) {
            self.gaps += 1;
            return;
        }
        self.cells += 1;
        self.numbers += u64::from(parse(cell, self.comma).is_some());
        if let Some((pair, seen)) = &mut self.truths {
            match truth_of(cell) {
                Some((of, truth)) if pair.is_none_or(|pair| pair == of) => {
                    *pair = Some(of);
                    seen[usize::from(truth)] = true;
                }
                _ => self.truths = None,
            }
        }
        for (dates, day_first) in self.dates.iter_mut().zip([false, true]) {
            if let Some(form) = *dates {
                let moment = Moment::parse(cell, day_first);
                *dates = moment.and_then(|moment| wider(form, moment.form()));
            }
        }
        if let Some(values) = &mut self.values
            && !values.contains(cell)
        {
            let most = match self.wanted {
                Some(ColumnType::Category) => MOST,
                _ => FEW,
            };
            match values.len() < most {
                true => drop(values.insert(cell.to_owned())),
                false => self.values = None,
            }
        }
    }

    /// What they all came to.
    pub(crate) fn decide(self) -> ColumnContent {
        use ColumnType::{Boolean, Category, Date, Number, Text};
        // Where all cells can be read in both orders, the month comes first.
        let dates = match self.dates {
            [Some(form), _] => Some((form, false)),
            [None, day_first] => day_first.map(|form| (form, true)),
        };
        let date = |(form, day_first): (Option<TimeForm>, bool)| ColumnKind::Date {
            form: form.unwrap_or(TimeForm::Both),
            day_first,
        };
        if let Some(reason) = self.of_no_use {
            return ColumnContent::OfNoUse(reason);
        }
        if let Some(kind) = self.known {
            return ColumnContent::Kind(kind);
        }
        let few = self
            .values
            .as_ref()
            .is_some_and(|values| values.len() <= HANDFUL || 2 * values.len() as u64 <= self.cells);
        // One cell that is not a number among many that are is a mistake, which reading it names.
        let many = self
            .values
            .as_ref()
            .is_none_or(|values| values.len() > 2 * HANDFUL);
        let mostly = self.numbers * 100 >= self.cells * if few { 99 } else { 90 };
        match (self.wanted, self.values) {
            (Some(Text), _) => ColumnContent::OfNoUse("it is said to be text".to_owned()),
            (None, _) if self.cells == 0 && self.gaps > 0 => {
                ColumnContent::OfNoUse("it is empty in all rows".to_owned())
            }
            (Some(Number), _) => ColumnContent::Kind(ColumnKind::Number),
            (Some(Boolean), _) => ColumnContent::Kind(ColumnKind::Boolean),
            (Some(Date), _) => ColumnContent::Kind(date(dates.unwrap_or((None, false)))),
            (Some(Category), Some(values)) => ColumnContent::Kind(category(values)),
            (Some(Category), None) => {
                ColumnContent::OfNoUse(format!("it has more than {MOST} different values"))
            }
            (None, _) if self.numbers == self.cells || (mostly && many) => {
                ColumnContent::Kind(ColumnKind::Number)
            }
            (None, _) if matches!(self.truths, Some((_, [true, true]))) => {
                ColumnContent::Kind(ColumnKind::Boolean)
            }
            (None, _) if dates.is_some() => ColumnContent::Kind(date(dates.unwrap_or_default())),
            (None, Some(values)) if few => ColumnContent::Kind(category(values)),
            (None, Some(values)) => ColumnContent::OfNoUse(format!(
                "it is text with {} different values in {} rows",
                values.len(),
                self.cells
            )),
            (None, None) => {
                ColumnContent::OfNoUse(format!("it is text with more than {FEW} different values"))
            }
        }
    }
}

/// The form that both are of; `None` if there is none.
fn wider(so_far: Option<TimeForm>, next: TimeForm) -> Option<Option<TimeForm>> {
    match (so_far, next) {
        (None, next) => Some(Some(next)),
        (Some(one), next) if one == next => Some(Some(one)),
        (Some(TimeForm::Clock), _) | (_, TimeForm::Clock) => None,
        _ => Some(Some(TimeForm::Both)),
    }
}

fn category(values: HashSet<String>) -> ColumnKind {
    let mut values: Vec<String> = values.into_iter().collect();
    sort_values(&mut values);
    ColumnKind::Category { values }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(
        cells: impl IntoIterator<Item = &'a str>,
        wanted: Option<ColumnType>,
    ) -> ColumnContent {
        let mut seen = ColumnScan::new(wanted, false);
        cells.into_iter().for_each(|cell| seen.cell(cell));
        seen.decide()
    }

    fn categories(values: &[&str]) -> ColumnContent {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        ColumnContent::Kind(ColumnKind::Category { values })
    }

    #[test]
    fn a_column_is_what_all_its_cells_are() {
        let is = |cells: &[&str]| found(cells.iter().copied(), None);
        let date_in = |form, day_first| ColumnContent::Kind(ColumnKind::Date { form, day_first });
        let date = |form| date_in(form, false);
        assert_eq!(
            is(&["1", "", "-2.5e3", "NA"]),
            ColumnContent::Kind(ColumnKind::Number)
        );
        assert_eq!(
            is(&["yes", "No", ""]),
            ColumnContent::Kind(ColumnKind::Boolean)
        );
        assert_eq!(is(&["y", "f"]), categories(&["f", "y"]));
        assert_eq!(is(&["y", "y"]), categories(&["y"]));
        assert_eq!(is(&["2024-01-02", "2024-01-03 00:00"]), date(TimeForm::Day));
        assert_eq!(
            is(&["2024-01-02", "2024-01-03 12:00"]),
            date(TimeForm::Both)
        );
        assert_eq!(is(&["12:00", "13:30"]), date(TimeForm::Clock));
        assert_eq!(
            is(&["12:00", "2024-01-03"]),
            categories(&["12:00", "2024-01-03"])
        );
        assert_eq!(is(&["1/2/2024", "12/31/2024"]), date(TimeForm::Day));
        let day_first = date_in(TimeForm::Day, true);
        assert_eq!(is(&["1/2/2024", "31/12/2024"]), day_first);
        assert_eq!(
            is(&["31/12/2024", "12/31/2024"]),
            categories(&["12/31/2024", "31/12/2024"])
        );
        assert_eq!(is(&["red", "blue", "?"]), categories(&["blue", "red"]));
        assert_eq!(is(&["1", "2", "3+"]), categories(&["1", "2", "3+"]));
        assert_eq!(
            is(&["", " "]),
            ColumnContent::OfNoUse("it is empty in all rows".into())
        );
    }

    #[test]
    fn text_is_of_no_use_and_one_wrong_cell_does_not_make_numbers_text() {
        let names: Vec<String> = (0..100).map(|i| format!("name {i}")).collect();
        let found_names = found(names.iter().map(String::as_str), None);
        let reason = "it is text with 100 different values in 100 rows";
        assert_eq!(found_names, ColumnContent::OfNoUse(reason.into()));
        let category = found(names.iter().map(String::as_str), Some(ColumnType::Category));
        assert!(
            matches!(category, ColumnContent::Kind(ColumnKind::Category { values }) if values.len() == 100)
        );
        let mut numbers: Vec<String> = (0..1000).map(|i| format!("{i}.5")).collect();
        numbers[500] = "1O".into();
        let cells = numbers.iter().map(String::as_str);
        assert_eq!(found(cells, None), ColumnContent::Kind(ColumnKind::Number));
        // Few values, of which one is a number of another kind.
        let ages = (0..1000).map(|i| {
            if i == 7 {
                "old"
            } else {
                ["20", "30", "40"][i % 3]
            }
        });
        assert_eq!(found(ages, None), categories(&["20", "30", "40", "old"]));
    }
}
