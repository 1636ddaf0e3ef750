//! How the cells of a table of text are written: the words for what is not there, and the signs in and around numbers.
//!
//! A number is written as programs write it (`-0.5`, `1e-3`), or as people do: with a currency before or behind it, with
//! `%`, with signs between groups of three digits where the table says which, and with a comma for its point.

use crate::cells::{refused, used};
use crate::columns::shown;
use serde::{Deserialize, Serialize};

/// The words that programs and people write where a value is not there, in lower case.
const GAPS: [&str; 11] = [
    "na", "n/a", "nan", "null", "none", "?", "-", "#n/a", "nat", "missing", "<na>",
];
/// The longest of them.
const LONGEST_GAP: usize = 7;
/// The sign behind hundredths.
const PERCENT: char = '%';

/// How cells of text are written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CellForm {
    /// Words for what is not there, beside the usual ones, in upper or lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub na: Vec<String>,
    /// Whether numbers have a comma in place of a decimal point.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decimal_comma: bool,
    /// What stands between groups of three digits; if nothing is said, a point where a comma is the decimal point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
}

impl CellForm {
    /// Whether this is how programs write.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a cell says that its value is not there.
    pub(crate) fn is_gap(&self, cell: &str) -> bool {
        let is = |word: &str| cell.eq_ignore_ascii_case(word);
        let is_usual = || {
            // Most cells are numbers.
            let is_number = cell.as_bytes()[0].is_ascii_digit();
            !is_number && cell.len() <= LONGEST_GAP && GAPS.iter().any(|word| is(word))
        };
        cell.is_empty() || is_usual() || self.na.iter().any(|word| is(word))
    }

    /// A cell as a number, if it is one.
    pub(crate) fn parse(&self, cell: &str) -> Option<f64> {
        self.amount(cell).map(|(number, _)| number)
    }

    /// A cell as a number, if it is one, and the sign of a currency or `%` with it.
    pub(crate) fn amount(&self, cell: &str) -> Option<(f64, Option<char>)> {
        if !self.decimal_comma
            && let Ok(number) = cell.parse()
        {
            return Some((number, None));
        }
        let (text, unit) = self.pointed(cell)?;
        let number: f64 = text.parse().ok()?;
        Some(match unit {
            Some(PERCENT) => (number / 100.0, unit),
            unit => (number, unit),
        })
    }

    /// A cell as a number that is used, or what is wrong with it.
    pub(crate) fn number(&self, cell: &str) -> Result<f32, String> {
        let Some(number) = self.parse(cell) else {
            let advice = self.advice(cell);
            return Err(format!(
                "holds `{}`, which is not a number{advice}",
                shown(cell)
            ));
        };
        let is_word = !cell.bytes().any(|byte| byte.is_ascii_digit());
        used(number).ok_or_else(|| match number.is_infinite() && is_word {
            true => format!(
                "holds `{cell}`, which is infinite, and every value must be a finite number; `na = [\"{cell}\"]` makes \
                 a gap of it"
            ),
            false => refused(number),
        })
    }

    /// A number to predict as programs write it, where it is written otherwise.
    pub(crate) fn plain(&self, cell: &str) -> Option<String> {
        if !self.decimal_comma && cell.parse::<f64>().is_ok() {
            return None;
        }
        let (text, unit) = self.pointed(cell)?;
        let number: f64 = text.parse().ok()?;
        Some(match unit {
            Some(PERCENT) => (number / 100.0).to_string(),
            _ => text,
        })
    }

    /// What else would make a number of a cell that is none.
    fn advice(&self, cell: &str) -> &'static str {
        match self.would_group(cell) {
            true => "; it would be one with `thousands = \",\"`",
            false => "",
        }
    }

    /// Whether a cell that is no number would be one if commas grouped its digits.
    pub(crate) fn would_group(&self, cell: &str) -> bool {
        let otherwise = || Self {
            thousands: Some(','),
            ..Self::default()
        };
        cell.contains(',') && !self.is_grouping_known() && otherwise().parse(cell).is_some()
    }

    fn is_grouping_known(&self) -> bool {
        self.decimal_comma || self.thousands.is_some()
    }

    /// A cell, which is no plain number, as the text of one, if it may be one, and the sign of a currency or `%` with it.
    fn pointed(&self, cell: &str) -> Option<(String, Option<char>)> {
        match without_unit(cell) {
            Some((number, unit)) => Some((self.with_point(&number)?, Some(unit))),
            None if self.is_grouping_known() => Some((self.with_point(cell)?, None)),
            None => None,
        }
    }

    /// A number without what groups its digits, and with a point. Groups must be of three digits: what has others is
    /// something else, such as a date.
    fn with_point(&self, number: &str) -> Option<String> {
        let point = if self.decimal_comma { ',' } else { '.' };
        let (whole, fraction) = match number.split_once(point) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        let mut groups = whole.split(|sign| self.groups(sign));
        let mut digits = groups.next()?.to_owned();
        let first = digits.trim_start_matches(['-', '+']).len();
        let mut is_grouped = false;
        for group in groups {
            is_grouped = true;
            if group.len() != 3 || !group.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            digits += group;
        }
        let fits = !is_grouped || (1..=3).contains(&first);
        // A point that is neither is none of a number.
        let fits = fits && !digits.contains('.');
        fits.then(|| match fraction {
            Some(fraction) => format!("{digits}.{fraction}"),
            None => digits,
        })
    }

    /// Whether this sign stands between groups of digits.
    fn groups(&self, sign: char) -> bool {
        match self.thousands {
            Some(' ') => matches!(sign, ' ' | '\u{a0}' | '\u{202f}'),
            Some('\'') => matches!(sign, '\'' | '\u{2019}'),
            Some(own) => sign == own,
            None => self.decimal_comma && sign == '.',
        }
    }
}

/// A cell without the sign of a currency, or `%`, at its begin or end, and that sign, if there is one.
fn without_unit(cell: &str) -> Option<(String, char)> {
    let (sign, rest) = match cell.strip_prefix('-') {
        Some(rest) => ("-", rest.trim_start()),
        None => ("", cell),
    };
    let before = rest.chars().next().filter(|&unit| is_currency(unit));
    let behind = rest.chars().next_back();
    let behind = behind.filter(|&unit| is_currency(unit) || unit == PERCENT);
    let number = match (before, behind) {
        (Some(before), _) => rest[before.len_utf8()..].trim_start(),
        (None, Some(behind)) => rest[..rest.len() - behind.len_utf8()].trim_end(),
        (None, None) => return None,
    };
    // Of `$-5`, the sign comes behind the currency.
    Some((format!("{sign}{number}"), before.or(behind)?))
}

fn is_currency(sign: char) -> bool {
    matches!(sign, '$' | '£' | '¥' | '\u{20a0}'..='\u{20cf}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comma() -> CellForm {
        CellForm {
            decimal_comma: true,
            ..CellForm::default()
        }
    }

    fn grouped(thousands: char) -> CellForm {
        CellForm {
            thousands: Some(thousands),
            ..CellForm::default()
        }
    }

    #[test]
    fn the_usual_words_and_the_tables_own_are_gaps() {
        let form = CellForm {
            na: ["-999".to_owned(), "Unknown".to_owned()].into(),
            ..CellForm::default()
        };
        for gap in [
            "", "NA", "n/a", "-", "#N/A", "NaT", "Missing", "<NA>", "?", "-999", "unknown",
        ] {
            assert!(form.is_gap(gap), "{gap:?}");
        }
        for value in ["0", "-1", "-99", "missing it", "nay", "é"] {
            assert!(!form.is_gap(value), "{value:?}");
        }
        assert!(!CellForm::default().is_gap("-999"));
    }

    #[test]
    fn a_comma_is_a_decimal_point_where_that_is_said() {
        let parse = |cell: &str| comma().parse(cell);
        assert_eq!(parse("1.234,5"), Some(1234.5));
        assert_eq!(parse("-0,25"), Some(-0.25));
        assert_eq!(CellForm::default().parse("0,25"), None);
        assert_eq!(parse("1.234.567"), Some(1_234_567.0));
        assert_eq!(parse("-1.234e2"), None);
        assert_eq!(parse("1,5e2"), Some(150.0));
        for other in ["31.12.2024", "1.5", "1234.567", "1.2.3.4", ".123", "1,2,3"] {
            assert_eq!(parse(other), None, "{other}");
        }
        let spaced = CellForm {
            thousands: Some(' '),
            ..comma()
        };
        assert_eq!(spaced.parse("1\u{202f}234,5"), Some(1234.5));
        assert_eq!(spaced.parse("1.234"), None);
    }

    #[test]
    fn digits_are_grouped_where_that_is_said() {
        assert_eq!(grouped(',').parse("1,234,567.5"), Some(1_234_567.5));
        assert_eq!(grouped('\'').parse("1’234"), Some(1234.0));
        assert_eq!(grouped('_').parse("-1_000"), Some(-1000.0));
        assert_eq!(grouped(',').parse("12.5"), Some(12.5));
        for other in ["1,23", "1234,567", "1,2,3", ",123", "1,234,"] {
            assert_eq!(grouped(',').parse(other), None, "{other}");
        }
        let plain = CellForm::default();
        assert_eq!(plain.parse("1,234"), None);
        let said = plain.number("1,234").unwrap_err();
        assert!(said.ends_with("with `thousands = \",\"`"), "{said}");
        let said = plain.number("one").unwrap_err();
        assert!(said.ends_with("is not a number"), "{said}");
    }

    #[test]
    fn currencies_and_percents_are_numbers() {
        let plain = CellForm::default();
        for (cell, number, unit) in [
            ("$5", 5.0, '$'),
            ("-$5.50", -5.5, '$'),
            ("$-5", -5.0, '$'),
            ("12 €", 12.0, '€'),
            ("£ 3", 3.0, '£'),
            ("₹7", 7.0, '₹'),
            ("45%", 0.45, '%'),
            ("-0.5 %", -0.005, '%'),
        ] {
            assert_eq!(plain.amount(cell), Some((number, Some(unit))), "{cell}");
        }
        assert_eq!(grouped(',').parse("$1,234.50"), Some(1234.5));
        assert_eq!(comma().parse("1.234,50 €"), Some(1234.5));
        for other in ["$", "%", "$5%x", "5$5", "€ five", "--5", "- $ -5"] {
            assert_eq!(plain.amount(other), None, "{other}");
        }
        let label = |form: &CellForm, cell: &str| form.plain(cell);
        assert_eq!(label(&plain, "1.50"), None);
        assert_eq!(label(&plain, "$1.50").as_deref(), Some("1.50"));
        assert_eq!(label(&plain, "50%").as_deref(), Some("0.5"));
        assert_eq!(label(&plain, "red"), None);
        assert_eq!(label(&comma(), "1.234,5").as_deref(), Some("1234.5"));
    }

    #[test]
    fn infinities_are_named_with_what_makes_gaps_of_them() {
        let plain = CellForm::default();
        for cell in ["inf", "-Infinity"] {
            let said = plain.number(cell).unwrap_err();
            assert!(said.contains(&format!("holds `{cell}`")), "{said}");
            assert!(said.contains(&format!("`na = [\"{cell}\"]`")), "{said}");
        }
        for cell in ["1e39", "1e999"] {
            let said = plain.number(cell).unwrap_err();
            assert!(!said.contains("na ="), "{said}");
        }
    }
}
