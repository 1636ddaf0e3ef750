//! `[checkpoint]`: when a run's state is written, how many stay, and what the best epoch is.

use crate::JobBest;
use crate::field::Field;
use crate::keys::{Any, FromField, as_text, keys};
use crate::nearest::listed;
use lockstep_base::nearest::nearest;
use lockstep_measure::Measure;
use std::fmt;
use std::str::FromStr;

/// More than any disk holds of anything worth keeping.
const MAX_KEEP: usize = 1_000_000;
/// The largest count: far beyond any run, and a number that TOML can hold.
const MAX_COUNT: u64 = i64::MAX as u64;
/// Seconds of a year: far from overflowing a clock.
const MAX_SECONDS: f64 = 31_536_000.0;

keys! {
    /// When a run's state is written, how many stay, and what the best epoch is.
    pub struct JobCheckpoint: all default {
        /// How often: `"500 steps"`, `"1 epoch"`, `"30 s"`, `"5 min"`, `"2 h"`, or `"none"`.
        every: Every = default(Every::Epochs(1)) => Any;
        /// How many of the newest stay.
        keep: usize = default(3) => 1..=MAX_KEEP;
        /// The measure on validation data by which the best epoch is chosen, or a metric of `[metrics]`.
        best: JobBest = default(JobBest::Measure(Measure::Loss)) => Any;
    }
}

/// How often a checkpoint is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Every {
    /// After so many optimizer steps.
    Steps(u64),
    /// After so many epochs.
    Epochs(u64),
    /// After so many seconds.
    Seconds(f64),
    /// Never while training goes on.
    None,
}

impl FromField for Every {
    fn from_field(field: &Field<'_>) -> Option<Every> {
        let text = field.text()?;
        match text.parse() {
            Ok(every) => Some(every),
            Err(NotEvery { remedy }) => field.reject(format!("cannot be {text:?}"), remedy),
        }
    }
}

/// What is right instead of what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotEvery {
    remedy: String,
}

impl fmt::Display for NotEvery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.remedy)
    }
}

/// Every word for a unit, and what it stands for.
#[derive(Clone, Copy)]
enum Unit {
    Step,
    Epoch,
    Seconds(f64),
}

const UNITS: [(&str, Unit); 14] = [
    ("steps", Unit::Step),
    ("step", Unit::Step),
    ("epochs", Unit::Epoch),
    ("epoch", Unit::Epoch),
    ("s", Unit::Seconds(1.0)),
    ("sec", Unit::Seconds(1.0)),
    ("second", Unit::Seconds(1.0)),
    ("seconds", Unit::Seconds(1.0)),
    ("min", Unit::Seconds(60.0)),
    ("minute", Unit::Seconds(60.0)),
    ("minutes", Unit::Seconds(60.0)),
    ("h", Unit::Seconds(3600.0)),
    ("hour", Unit::Seconds(3600.0)),
    ("hours", Unit::Seconds(3600.0)),
];

impl FromStr for Every {
    type Err = NotEvery;

    fn from_str(text: &str) -> Result<Every, NotEvery> {
        let wrong = |remedy: String| Err(NotEvery { remedy });
        let text = text.trim();
        if text == "none" {
            return Ok(Every::None);
        }
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (number, word) = text.split_at(end.unwrap_or(text.len()));
        let word = word.trim();
        if number.is_empty() {
            return match nearest(word, &["none"]) {
                Some(none) => wrong(format!("did you mean `{none}`?")),
                None => wrong("a number and a unit, such as \"500 steps\", or \"none\"".to_owned()),
            };
        }
        let Some((_, unit)) = UNITS.iter().find(|(known, _)| *known == word) else {
            let words = ["steps", "epochs", "s", "min", "h"];
            if word.is_empty() {
                let units = listed(&words);
                return wrong(format!(
                    "a number needs a unit, such as \"{number} steps\": one of {units}"
                ));
            }
            return match nearest(word, &words) {
                Some(meant) => wrong(format!("did you mean `{number} {meant}`?")),
                None => wrong(format!("use one of {}", listed(&words))),
            };
        };
        match unit {
            Unit::Seconds(length) => match number.parse::<f64>() {
                Ok(number) if number > 0.0 && number * length <= MAX_SECONDS => {
                    Ok(Every::Seconds(number * length))
                }
                _ => wrong("must be greater than 0 and at most a year".to_owned()),
            },
            Unit::Step | Unit::Epoch => match (number.parse::<u64>(), unit) {
                (Ok(number @ 1..=MAX_COUNT), Unit::Step) => Ok(Every::Steps(number)),
                (Ok(number @ 1..=MAX_COUNT), _) => Ok(Every::Epochs(number)),
                _ => wrong(format!("must be a whole number of {word}, 1 or more")),
            },
        }
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Every::Steps(1) => f.write_str("1 step"),
            Every::Steps(number) => write!(f, "{number} steps"),
            Every::Epochs(1) => f.write_str("1 epoch"),
            Every::Epochs(number) => write!(f, "{number} epochs"),
            Every::Seconds(number) => write!(f, "{number} s"),
            Every::None => f.write_str("none"),
        }
    }
}

as_text!(Every, str::parse::<Every>, {
    "type": "string",
    "description": "A number and a unit, such as \"500 steps\", or \"none\".",
    "pattern": format!("^(none|[0-9.]+ *({}))$", UNITS.map(|(word, _)| word).join("|")),
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_understood_and_written_back_so_that_it_reads_the_same() {
        for (text, every, shown) in [
            ("500 steps", Every::Steps(500), "500 steps"),
            ("1step", Every::Steps(1), "1 step"),
            ("1 epoch", Every::Epochs(1), "1 epoch"),
            ("2  epochs", Every::Epochs(2), "2 epochs"),
            ("30 s", Every::Seconds(30.0), "30 s"),
            ("0.5 seconds", Every::Seconds(0.5), "0.5 s"),
            ("5 min", Every::Seconds(300.0), "300 s"),
            ("2 h", Every::Seconds(7200.0), "7200 s"),
            ("none", Every::None, "none"),
        ] {
            assert_eq!(text.parse(), Ok(every), "{text}");
            assert_eq!(every.to_string(), shown);
            assert_eq!(shown.parse(), Ok(every));
        }
    }

    #[test]
    fn what_is_wrong_is_answered_with_what_would_be_right() {
        for (text, remedy) in [
            ("500 stpes", "did you mean `500 steps`?"),
            ("500", "a number needs a unit, such as \"500 steps\""),
            ("often", "a number and a unit"),
            ("nnoe", "did you mean `none`?"),
            ("", "a number and a unit"),
            ("0 steps", "a whole number of steps, 1 or more"),
            ("1.5 epochs", "a whole number of epochs, 1 or more"),
            ("0 s", "greater than 0"),
            ("-1 s", "a number and a unit"),
            ("1.2.3 s", "greater than 0"),
            ("1000000 h", "at most a year"),
            ("3 fortnights", "use one of `steps`"),
        ] {
            let error = text.parse::<Every>().unwrap_err().to_string();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }
}
