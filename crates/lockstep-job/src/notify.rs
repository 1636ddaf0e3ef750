//! `[notify]`: who is told when something happens that people wait for.

use crate::field::{Field, Rule};
use crate::keys::{Any, Each, FromField, as_text, keys, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What stands before the name of a variable that holds an address.
const ENV: &str = "env:";

keys! {
    /// Who is told when something happens that people wait for.
    pub struct Notify: all default {
        /// A web address that gets a message by POST, as JSON with a `text`, such as Slack's. As a rule such an address is a
        /// secret: `"env:NAME"` takes it from the variable `NAME` of the environment.
        webhook: Option<Webhook> = optional => Any;
        /// A program with its arguments, started with the message as JSON on its standard input.
        command: Vec<String> = default(Vec::new()) => Each(Any);
        /// What is told of: `"success"`, `"failure"`, `"recovery"` (a worker was lost and the run goes on).
        on: Vec<Occasion> = default(vec![Occasion::Success, Occasion::Failure, Occasion::Recovery]) => Each(Any);
        /// Metrics that cross a line, each told of once: `"val.loss > 10"`, `"val.accuracy >= 0.9"`.
        when: Vec<Condition> = default(Vec::new()) => Each(Any);
        /// Seconds that the webhook or the command may take for one message.
        timeout_s: f64 = default(10.0) => Rule::SECONDS;
    }
}

words! {
    /// What is told of.
    pub enum Occasion {
        /// The run ended as it should.
        "success" Success
        /// The run failed.
        "failure" Failure
        /// A worker was lost, and the run goes on.
        "recovery" Recovery
    }
}

/// An address that gets messages. Shown and written down without what makes it a secret: its path.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Webhook(String);

impl Webhook {
    /// The variable of the environment that holds the address, if the file does not.
    pub fn variable(&self) -> Option<&str> {
        self.0.strip_prefix(ENV)
    }

    /// The address, secret as it may be, or `env:NAME`.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

/// Without the path.
impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return f.write_str(&self.0);
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        write!(f, "{scheme}://{host}/...")
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Webhook {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromField for Webhook {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        let text = field.text()?;
        let named = text.strip_prefix(ENV).is_some_and(|name| !name.is_empty());
        match named || text.starts_with("http://") || text.starts_with("https://") {
            true => Some(Self(text.to_owned())),
            // What was found is not repeated: it may be a secret.
            false => field.reject(
                "must be a web address or `env:NAME`",
                "for example \"env:SLACK_WEBHOOK\"",
            ),
        }
    }
}

/// A line that a metric may cross: `val.loss > 10`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The metric's name.
    pub metric: String,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub value: f64,
}

/// How a metric is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

/// The longer first, since the shorter are their beginnings.
const COMPARISONS: [(&str, Comparison); 4] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

impl Condition {
    /// Whether a value of the metric fulfils it. NaN is beyond every line.
    pub fn holds(&self, value: f64) -> bool {
        match self.comparison {
            _ if value.is_nan() => true,
            Comparison::Above => value > self.value,
            Comparison::AtLeast => value >= self.value,
            Comparison::Below => value < self.value,
            Comparison::AtMost => value <= self.value,
        }
    }
}

impl FromStr for Condition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let split = |(sign, comparison): &(&str, Comparison)| {
            let (metric, value) = text.split_once(sign)?;
            let value: f64 = value.trim().parse().ok()?;
            let metric = metric.trim();
            let is_name = !metric.is_empty() && !metric.contains(char::is_whitespace);
            (is_name && value.is_finite()).then(|| Self {
                metric: metric.to_owned(),
                comparison: *comparison,
                value,
            })
        };
        COMPARISONS.iter().find_map(split).ok_or(())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = COMPARISONS.iter().find(|(_, of)| *of == self.comparison);
        let sign = sign.map_or("", |(sign, _)| sign);
        write!(f, "{} {sign} {}", self.metric, self.value)
    }
}

impl FromField for Condition {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        let text = field.text()?;
        match text.parse() {
            Ok(condition) => Some(condition),
            Err(()) => field.reject(
                format!("cannot be {text:?}"),
                "a metric, one of > >= < <=, and a number, such as \"val.loss > 10\"",
            ),
        }
    }
}

as_text!(
    Condition,
    |text: &str| text.parse().map_err(|()| format!("{text:?} is not a condition")),
    { "type": "string", "pattern": "^\\s*\\S+?\\s*(>=|<=|>|<)\\s*[-+0-9.eE]+\\s*$" }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_reads_back_as_itself_and_holds_beyond_its_line() {
        for (text, value, holds) in [
            ("val.loss > 10", 10.5, true),
            ("val.loss > 10", 10.0, false),
            ("accuracy >= 0.9", 0.9, true),
            ("a<=-1e-3", 0.0, false),
            ("a < 1", f64::NAN, true),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.holds(value), holds, "{text}");
            assert_eq!(condition.to_string().parse(), Ok(condition));
        }
        for wrong in [
            "",
            "loss",
            "loss = 3",
            "> 3",
            "a b > 3",
            "loss > x",
            "loss > inf",
        ] {
            assert_eq!(wrong.parse::<Condition>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_path() {
        let hook = Webhook("https://hooks.example.com/services/T0/hunter2".to_owned());
        assert_eq!(hook.to_string(), "https://hooks.example.com/...");
        assert_eq!(format!("{hook:?}"), "https://hooks.example.com/...");
        assert!(!serde_json::to_string(&hook).unwrap().contains("hunter2"));
        assert_eq!(Webhook("env:HOOK".to_owned()).variable(), Some("HOOK"));
    }
}
