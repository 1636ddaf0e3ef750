//! `[metrics]`: metrics of the job's own, each by its name a formula over what is right and what was predicted.

use crate::field::Field;
use crate::keys::FromField;
use crate::nearest::suggestion;
use crate::{JobCheckpoint, TreesCheckpoint};
use lockstep_measure::{Best, Formula, Measure, OwnMetric};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Names that evaluations have for something else.
const TAKEN: [&str; 6] = ["samples", "macro", "micro", "weighted", "positive", "set"];

/// The metrics of a job's own, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobMetrics(pub Vec<OwnMetric>);

/// A metric in the words of the job file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum MetricKeys {
    Formula(Formula),
    Table { formula: Formula, best: Best },
}

impl JobMetrics {
    /// The metric of this name.
    pub fn find(&self, name: &str) -> Option<&OwnMetric> {
        self.0.iter().find(|metric| metric.name == name)
    }
}

impl FromField for JobMetrics {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        let fields =
            field.section_or("a table such as { errors = \"mean(label != predicted)\" }")?;
        let read = fields.into_fields().into_iter();
        let read: Vec<_> = read.map(|(name, field)| metric(name, &field)).collect();
        let mut metrics: Vec<OwnMetric> = read.into_iter().collect::<Option<_>>()?;
        metrics.sort_by(|a, b| a.name.cmp(&b.name));
        Some(Self(metrics))
    }
}

fn metric(name: &str, field: &Field<'_>) -> Option<OwnMetric> {
    let mut letters = name.chars();
    let begins = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return field.reject(
            "cannot be a metric's name",
            "use letters, digits and `_`, a letter first",
        );
    }
    let known = Measure::ALL.iter().map(|measure| measure.word());
    if known.chain(TAKEN).any(|known| known == name) {
        return field.reject(
            "is measured in another way already",
            "give your metric another name",
        );
    }
    let (formula, best) = match field.is_text() {
        true => (formula(field)?, None),
        false => {
            let mut section = field
                .section_or("a formula, or a table { formula = \"...\", best = \"lowest\" }")?;
            let formula = section
                .need("formula", "add `formula = \"...\"`")
                .and_then(|field| formula(&field));
            let best = section
                .need("best", "add `best = \"lowest\"` or `best = \"highest\"`")
                .and_then(|field| match field.one_of(&["lowest", "highest"])? {
                    "lowest" => Some(Best::Lowest),
                    _ => Some(Best::Highest),
                });
            section.finish();
            (formula?, Some(best?))
        }
    };
    Some(OwnMetric {
        name: name.to_owned(),
        formula,
        best,
    })
}

fn formula(field: &Field<'_>) -> Option<Formula> {
    match field.text()?.parse::<Formula>() {
        Ok(formula) => Some(formula),
        Err(error) => field.reject(format!("is no formula, at `{}`", error.at), error.reason),
    }
}

impl Serialize for JobMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|metric| {
            let formula = metric.formula.clone();
            let keys = match metric.best {
                None => MetricKeys::Formula(formula),
                Some(best) => MetricKeys::Table { formula, best },
            };
            (&metric.name, keys)
        }))
    }
}

impl<'de> Deserialize<'de> for JobMetrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let metrics = BTreeMap::<String, MetricKeys>::deserialize(deserializer)?;
        let metrics = metrics.into_iter().map(|(name, keys)| match keys {
            MetricKeys::Formula(formula) => OwnMetric {
                name,
                formula,
                best: None,
            },
            MetricKeys::Table { formula, best } => OwnMetric {
                name,
                formula,
                best: Some(best),
            },
        });
        Ok(Self(metrics.collect()))
    }
}

impl JsonSchema for JobMetrics {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Metrics".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let formula = "A formula over `label`, `predicted` and `probability` of each sample, such as \"mean(label != predicted)\".";
        json_schema!({
            "type": "object",
            "additionalProperties": { "anyOf": [
                { "type": "string", "description": formula },
                {
                    "type": "object",
                    "properties": {
                        "formula": { "type": "string", "description": formula },
                        "best": {
                            "enum": ["lowest", "highest"],
                            "description": "What of it is the best, for `checkpoint.best`.",
                        },
                    },
                    "required": ["formula", "best"],
                    "additionalProperties": false,
                },
            ] },
        })
    }
}

/// What the best epoch or round is chosen by: a measure that there is, or a metric of the job's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobBest {
    /// A measure that there is.
    Measure(Measure),
    /// The metric of this name.
    Own(String),
}

impl JobBest {
    /// Of which it is known by now whether it is there.
    fn check(&self, metrics: Option<&JobMetrics>, field: &Field<'_>) -> Option<()> {
        // Where the metrics are wrong, that is said of them.
        let (Self::Own(name), Some(metrics)) = (self, metrics) else {
            return Some(());
        };
        match metrics.find(name) {
            Some(OwnMetric { best: Some(_), .. }) => Some(()),
            Some(metric) => field.reject(
                format!("is {name:?}, and [metrics] does not say whether it is better high or low"),
                format!(
                    "write there: {name} = {{ formula = \"{}\", best = \"lowest\" }}, or \"highest\"",
                    metric.formula
                ),
            ),
            None => {
                let known = Measure::ALL.iter().map(|measure| measure.word());
                let own = metrics.0.iter().map(|metric| metric.name.as_str());
                let words: Vec<&str> = known.chain(own).collect();
                field.reject(format!("cannot be {name:?}"), suggestion(name, &words))
            }
        }
    }
}

/// A section that says what the best is.
pub(crate) trait SaysBest: Sized {
    /// What is the best.
    fn best(&self) -> &JobBest;

    /// The section, if what it calls the best is measured; `field` is it in the file.
    fn checked(self, field: &Field<'_>, metrics: Option<&JobMetrics>) -> Option<Self> {
        let best = field.section()?.get("best");
        match best {
            Some(best) => self.best().check(metrics, &best).map(|()| self),
            None => Some(self),
        }
    }
}

impl SaysBest for JobCheckpoint {
    fn best(&self) -> &JobBest {
        &self.best
    }
}

impl SaysBest for TreesCheckpoint {
    fn best(&self) -> &JobBest {
        &self.best
    }
}

impl From<&str> for JobBest {
    fn from(text: &str) -> Self {
        let mut all = Measure::ALL.iter();
        let known = all.find(|measure| measure.word() == text);
        known.map_or_else(
            || Self::Own(text.to_owned()),
            |measure| Self::Measure(*measure),
        )
    }
}

impl fmt::Display for JobBest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measure(measure) => f.write_str(measure.word()),
            Self::Own(name) => f.write_str(name),
        }
    }
}

impl FromField for JobBest {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        field.text().map(Self::from)
    }
}

impl Serialize for JobBest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JobBest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(text.as_str().into())
    }
}

impl JsonSchema for JobBest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Best".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = Measure::ALL.iter().map(|measure| {
            serde_json::json!({ "type": "string", "const": measure.word(), "description": measure.sentence() })
        });
        let own = serde_json::json!({ "type": "string", "description": "The name of a metric in [metrics]." });
        json_schema!({ "anyOf": words.chain([own]).collect::<Vec<_>>() })
    }
}
