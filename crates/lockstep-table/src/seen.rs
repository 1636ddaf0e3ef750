//! What the cells of one column of text have been so far, and what the column holds therefore.

use crate::CellForm;
use crate::kind::{ColumnKind, ColumnType, sort_values, truth_of};
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
    form: CellForm,
    gaps: u64,
    /// Cells that are no gaps.
    cells: u64,
    /// Of these, numbers.
    numbers: u64,
    /// Of those that are not, such as would be if commas grouped digits.
    grouped: u64,
    /// The currency of the numbers, or `%`, and another one.
    units: [Option<char>; 2],
    /// Whether all are words for true and false, of which pair, and which of both there were.
    truths: Option<(Option<usize>, [bool; 2])>,
    /// Which are days or times: with the month before the day, and with the day before the month.
    dates: [DateScan; 2],
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
    pub(crate) fn new(wanted: Option<ColumnType>, form: &CellForm) -> Self {
        Self {
            wanted,
            form: form.clone(),
            gaps: 0,
            cells: 0,
            numbers: 0,
            grouped: 0,
            units: [None; 2],
            truths: Some((None, [false; 2])),
            dates: [DateScan::default(); 2],
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
        if self.form.is_gap(cell) {
            self.gaps += 1;
            return;
        }
        self.cells += 1;
        let number = self.form.amount(cell);
        let is_number = number.is_some();
        self.numbers += u64::from(is_number);
        match number {
            Some((_, None)) => {}
            Some((_, unit)) => match &mut self.units {
                [first @ None, _] => *first = unit,
                [first, other] if *first != unit => *other = unit,
                _ => {}
            },
            None => self.grouped += u64::from(self.form.would_group(cell)),
        }
        if let Some((pair, seen)) = &mut self.truths {
            match truth_of(cell) {
                Some((of, truth)) if pair.is_none_or(|pair| pair == of) => {
                    *pair = Some(of);
                    seen[usize::from(truth)] = true;
                }
                _ => self.truths = None,
            }
        }
        // No number is a date, and most columns are numbers.
        let dates = self.dates.iter_mut().filter(|_| !is_number);
        for (dates, day_first) in dates.zip([false, true]) {
            if let Some(moment) = Moment::parse(cell, day_first) {
                dates.take(moment.form());
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
        // Where as many cells can be read in both orders, the month comes first.
        let [month_first, other] = self.dates;
        let day_first = other.fitting() > month_first.fitting();
        let dates = if day_first { other } else { month_first };
        let date = ColumnKind::Date {
            form: dates.form(),
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
        // One cell that is no number or date among many that are is a mistake, which reading it names.
        let many = self
            .values
            .as_ref()
            .is_none_or(|values| values.len() > 2 * HANDFUL);
        // What is of several currencies cannot be compared.
        let numbers = match self.units {
            [Some(_), Some(_)] => 0,
            _ => self.numbers,
        };
        let hint = match self.units {
            [Some(one), Some(other)] => format!(", with amounts in {one} and {other}"),
            _ if self.grouped > 0 && self.grouped + self.numbers == self.cells => {
                "; all would be numbers with `thousands = \",\"`".to_owned()
            }
            _ => String::new(),
        };
        let are = |fitting: u64| {
            let mostly = fitting * 100 >= self.cells * if few { 99 } else { 90 };
            fitting == self.cells || (mostly && many)
        };
        match (self.wanted, self.values) {
            (Some(Text), _) => ColumnContent::OfNoUse("it is said to be text".to_owned()),
            (None, _) if self.cells == 0 && self.gaps > 0 => {
                ColumnContent::OfNoUse("it is empty in all rows".to_owned())
            }
            (Some(Number), _) => ColumnContent::Kind(ColumnKind::Number),
            (Some(Boolean), _) => ColumnContent::Kind(ColumnKind::Boolean),
            (Some(Date), _) => ColumnContent::Kind(date),
            (Some(Category), Some(values)) => ColumnContent::Kind(category(values)),
            (Some(Category), None) => {
                ColumnContent::OfNoUse(format!("it has more than {MOST} different values"))
            }
            (None, _) if are(numbers) => ColumnContent::Kind(ColumnKind::Number),
            (None, _) if matches!(self.truths, Some((_, [true, true]))) => {
                ColumnContent::Kind(ColumnKind::Boolean)
            }
            (None, _) if are(dates.fitting()) => ColumnContent::Kind(date),
            (None, Some(values)) if few => ColumnContent::Kind(category(values)),
            (None, Some(values)) => ColumnContent::OfNoUse(format!(
                "it is text with {} different values in {} rows{hint}",
                values.len(),
                self.cells
            )),
            (None, None) => ColumnContent::OfNoUse(format!(
                "it is text with more than {FEW} different values{hint}"
            )),
        }
    }
}

/// The days and times among the cells of a column.
#[derive(Debug, Clone, Copy, Default)]
struct DateScan {
    /// Cells that say a day.
    days: u64,
    /// Of these, such as say a time too.
    timed: u64,
    /// Cells that say a time alone.
    clocks: u64,
}

impl DateScan {
    fn take(&mut self, form: TimeForm) {
        self.days += u64::from(form != TimeForm::Clock);
        self.timed += u64::from(form == TimeForm::Both);
        self.clocks += u64::from(form == TimeForm::Clock);
    }

    /// How many cells a column of this form can have.
    fn fitting(&self) -> u64 {
        self.days.max(self.clocks)
    }

    /// The form of most of them; days and times where there are none.
    fn form(&self) -> TimeForm {
        match self {
            Self { days, clocks, .. } if clocks > days => TimeForm::Clock,
            Self {
                days: 1..,
                timed: 0,
                ..
            } => TimeForm::Day,
            _ => TimeForm::Both,
        }
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
        let mut seen = ColumnScan::new(wanted, &CellForm::default());
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
    fn amounts_are_numbers_unless_they_are_of_several_currencies() {
        let amounts = |unit: fn(usize) -> char| -> ColumnContent {
            let cells: Vec<String> = (0..100).map(|i| format!("{}{i}.50", unit(i))).collect();
            found(cells.iter().map(String::as_str), None)
        };
        assert_eq!(amounts(|_| '$'), ColumnContent::Kind(ColumnKind::Number));
        let ColumnContent::OfNoUse(reason) = amounts(|i| if i == 7 { '€' } else { '$' }) else {
            panic!("amounts in $ and € are no numbers")
        };
        assert!(reason.ends_with("with amounts in $ and €"), "{reason}");
        let grouped: Vec<String> = (0..100).map(|i| format!("{i},500")).collect();
        let ColumnContent::OfNoUse(reason) = found(grouped.iter().map(String::as_str), None) else {
            panic!("what groups digits must be said")
        };
        assert!(reason.ends_with("with `thousands = \",\"`"), "{reason}");
    }

    #[test]
    fn one_wrong_cell_does_not_make_dates_a_category() {
        let date = |form, day_first| ColumnContent::Kind(ColumnKind::Date { form, day_first });
        let days = || (0..1000).map(|i| format!("{}/{}/2024", i % 28 + 1, i % 12 + 1));
        let with = |wrong: &str| {
            let mut cells: Vec<String> = days().collect();
            cells[500] = wrong.to_owned();
            found(cells.iter().map(String::as_str), None)
        };
        for wrong in ["soon", "31/02/2024", "12:30", "7"] {
            assert_eq!(with(wrong), date(TimeForm::Day, true), "{wrong}");
        }
        let mut clocks: Vec<String> = (0..60).map(|i| format!("12:{i}")).collect();
        clocks[0] = "2024-01-02".into();
        let cells = clocks.iter().map(String::as_str);
        assert_eq!(found(cells, None), date(TimeForm::Clock, false));
        // Few values, of which one is of another kind.
        let weeks = (0..1000).map(|i| match i {
            7 => "never",
            _ => ["2024-01-01", "2024-01-08", "2024-01-15"][i % 3],
        });
        let values = ["2024-01-01", "2024-01-08", "2024-01-15", "never"];
        assert_eq!(found(weeks, None), categories(&values));
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
