//! What varies. A point of a space is a number from 0 to 1 for each key; what the job is told is its text.

use crate::TuneError;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What the value of a key may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Range {
    /// Any number between two, all factors alike.
    Log {
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// Any number between two.
    Uniform {
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// A whole number from one to another.
    Int {
        /// The smallest.
        low: i64,
        /// The largest.
        high: i64,
    },
    /// One of some values, as TOML.
    Choice {
        /// The values.
        values: Vec<String>,
    },
}

/// A key that varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dimension {
    /// The key of the job file.
    pub key: String,
    /// What it may be.
    pub range: Range,
}

/// All keys that vary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// One each.
    pub dimensions: Vec<Dimension>,
}

impl Range {
    /// The value at `unit`, from 0 to 1, as TOML.
    pub fn text(&self, unit: f64) -> String {
        let unit = unit.clamp(0.0, 1.0);
        match self {
            // So many digits that no two trials are told the same, and no more.
            Range::Log { low, high } => {
                let value = (low.ln() + unit * (high.ln() - low.ln())).exp();
                format!("{:.6e}", value.clamp(*low, *high))
            }
            Range::Uniform { low, high } => format!("{:.6}", low + unit * (high - low)),
            Range::Int { low, high } => {
                let steps = (high - low + 1) as f64;
                (low + (unit * steps) as i64).min(*high).to_string()
            }
            Range::Choice { values } => {
                let at = (unit * values.len() as f64) as usize;
                values[at.min(values.len() - 1)].clone()
            }
        }
    }

    /// How many values there are; none for a range of numbers.
    pub(crate) fn values(&self) -> Option<usize> {
        match self {
            Range::Choice { values } => Some(values.len()),
            Range::Int { low, high } => usize::try_from(high - low + 1).ok(),
            Range::Log { .. } | Range::Uniform { .. } => None,
        }
    }

    /// Points that stand for the whole range in a grid with so many levels.
    pub(crate) fn levels(&self, levels: usize) -> Vec<f64> {
        match self.values() {
            Some(values) if values <= levels || matches!(self, Range::Choice { .. }) => (0..values)
                .map(|at| (at as f64 + 0.5) / values as f64)
                .collect(),
            _ if levels < 2 => vec![0.5],
            _ => (0..levels)
                .map(|at| at as f64 / (levels - 1) as f64)
                .collect(),
        }
    }
}

impl FromStr for Dimension {
    type Err = TuneError;

    fn from_str(given: &str) -> Result<Dimension, TuneError> {
        let wrong = |why: &str| TuneError::Search {
            given: given.to_owned(),
            why: why.to_owned(),
        };
        let (key, range) = given
            .split_once('=')
            .ok_or_else(|| wrong("there is no `=` in it"))?;
        let (key, range) = (key.trim(), range.trim());
        if key.is_empty() {
            return Err(wrong("there is no key before the `=`"));
        }
        let range = match range
            .split_once('(')
            .and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)))
        {
            Some((name, inside)) => between(name.trim(), inside).map_err(|why| wrong(&why))?,
            None => choice(range).map_err(|why| wrong(&why))?,
        };
        Ok(Dimension {
            key: key.to_owned(),
            range,
        })
    }
}

/// `log(1e-4,1e-1)` and its likes.
fn between(name: &str, inside: &str) -> Result<Range, String> {
    let numbers: Vec<f64> = inside
        .split(',')
        .map(|word| {
            word.trim()
                .parse()
                .map_err(|_| format!("`{}` is not a number", word.trim()))
        })
        .collect::<Result<_, _>>()?;
    let [low, high] = numbers[..] else {
        return Err(format!(
            "found {} numbers in the brackets, and it must be two",
            numbers.len()
        ));
    };
    if !(low.is_finite() && high.is_finite() && low < high) {
        return Err(format!(
            "the first number must be less than the second, and {low} is not less than {high}"
        ));
    }
    match name {
        "log" if low <= 0.0 => Err(format!(
            "both numbers of log() must be more than 0, and {low} is not"
        )),
        "log" => Ok(Range::Log { low, high }),
        "uniform" => Ok(Range::Uniform { low, high }),
        "int" if low.fract() != 0.0 || high.fract() != 0.0 => {
            Err("both numbers of int() must be whole".to_owned())
        }
        "int" => Ok(Range::Int {
            low: low as i64,
            high: high as i64,
        }),
        other => Err(format!("`{other}` is none of log, uniform and int")),
    }
}

/// A list of values in TOML.
fn choice(text: &str) -> Result<Range, String> {
    let found: toml::Table = format!("values = {text}")
        .parse()
        .map_err(|_| format!("`{text}` is neither a range nor a list"))?;
    match found.get("values") {
        Some(toml::Value::Array(values)) if !values.is_empty() => Ok(Range::Choice {
            values: values.iter().map(ToString::to_string).collect(),
        }),
        Some(toml::Value::Array(_)) => Err("the list is empty".to_owned()),
        _ => Err(format!(
            "`{text}` is one value, which leaves nothing to search"
        )),
    }
}

impl Space {
    /// Of all that `--search` names.
    ///
    /// # Errors
    /// When one is not understood, a key is there twice, or there is none.
    pub fn parse(searches: &[String]) -> Result<Space, TuneError> {
        let mut dimensions: Vec<Dimension> = Vec::new();
        for search in searches {
            let dimension: Dimension = search.parse()?;
            if dimensions.iter().any(|known| known.key == dimension.key) {
                return Err(TuneError::Twice { key: dimension.key });
            }
            dimensions.push(dimension);
        }
        match dimensions.is_empty() {
            true => Err(TuneError::Nothing),
            false => Ok(Space { dimensions }),
        }
    }

    /// What the job is told at a point: keys and values.
    pub fn values(&self, point: &[f64]) -> Vec<(String, String)> {
        let pairs = self.dimensions.iter().zip(point);
        let value = |(dimension, unit): (&Dimension, &f64)| {
            (dimension.key.clone(), dimension.range.text(*unit))
        };
        pairs.map(value).collect()
    }

    /// Points at the edges of every key, the others in their middle: a job that is right there is right everywhere, as far
    /// as each key goes.
    pub fn edges(&self) -> Vec<Vec<f64>> {
        let mut edges = Vec::new();
        for (at, dimension) in self.dimensions.iter().enumerate() {
            let units = match dimension.range.values() {
                Some(values) if values < 100 => dimension.range.levels(values),
                _ => vec![0.0, 1.0],
            };
            for unit in units {
                let mut point = vec![0.5; self.dimensions.len()];
                point[at] = unit;
                edges.push(point);
            }
        }
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(given: &str) -> Range {
        given.parse::<Dimension>().unwrap().range
    }

    #[test]
    fn ranges_reach_from_edge_to_edge() {
        let log = range("lr=log(1e-4, 1e-1)");
        assert_eq!(
            (log.text(0.0).as_str(), log.text(1.0).as_str()),
            ("1.000000e-4", "1.000000e-1")
        );
        let middle: f64 = log.text(0.5).parse().unwrap();
        assert!((middle / 1e-5_f64.sqrt() - 1.0).abs() < 1e-5, "{middle}");
        let int = range("batch=int(16,19)");
        assert_eq!(
            [0.0, 0.3, 0.99, 1.0].map(|unit| int.text(unit)),
            ["16", "17", "19", "19"]
        );
        let choice = range("model.hidden=[[256], [512, 512]]");
        assert_eq!(
            [0.0, 0.6, 1.0].map(|unit| choice.text(unit)),
            ["[256]", "[512, 512]", "[512, 512]"]
        );
    }

    #[test]
    fn what_is_no_range_is_refused_with_what_would_be_right() {
        for (given, why) in [
            ("lr", "no `=`"),
            ("=log(1,2)", "no key"),
            ("lr=log(0,1)", "more than 0"),
            ("lr=log(1,0.1)", "less than the second"),
            ("lr=log(1)", "found 1 numbers"),
            ("lr=log(a,b)", "`a` is not a number"),
            ("lr=normal(0,1)", "none of log, uniform and int"),
            ("lr=int(0.5,2)", "must be whole"),
            ("lr=0.1", "nothing to search"),
            ("lr=[]", "the list is empty"),
            ("lr=nonsense", "neither a range nor a list"),
        ] {
            let error = given.parse::<Dimension>().unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("KEY=log"),
                "{given}: {error}"
            );
        }
        let twice = ["a=[1, 2]", "a=[3, 4]"].map(str::to_owned);
        assert!(
            Space::parse(&twice)
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
    }
}
