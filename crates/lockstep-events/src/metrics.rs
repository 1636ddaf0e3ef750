//! Measured values by their names.
//!
//! What is measured depends on what is learned: a classifier has a loss and an accuracy, a regression a
//! squared and an absolute error. Here they are a list of names and numbers in the order in which they
//! are shown. In JSON they are a plain object, `{"loss":0.4,"accuracy":0.8}`.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;

/// Named numbers, in order. A name occurs once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics(Vec<(String, f64)>);

impl Metrics {
    /// The value of this name, if it was measured.
    pub fn get(&self, name: &str) -> Option<f64> {
        let named = self.0.iter().find(|(known, _)| known == name);
        named.map(|(_, value)| *value)
    }

    /// Sets the value of a name. A new name comes last.
    pub fn set(&mut self, name: &str, value: f64) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Takes a value that was read, if it is a number. JSON has null for one that is none, and a later version may have
    /// other things: those are passed over.
    fn measure(&mut self, name: &str, value: &Value) {
        if let Some(value) = value.as_f64() {
            self.set(name, value);
        }
    }

    /// All names with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<const N: usize> From<[(&str, f64); N]> for Metrics {
    fn from(values: [(&str, f64); N]) -> Self {
        values.into_iter().collect()
    }
}

impl<'a> FromIterator<(&'a str, f64)> for Metrics {
    fn from_iter<I: IntoIterator<Item = (&'a str, f64)>>(values: I) -> Self {
        let mut metrics = Self::default();
        for (name, value) in values {
            metrics.set(name, value);
        }
        metrics
    }
}

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Named;
        impl<'de> Visitor<'de> for Named {
            type Value = Metrics;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of named numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    metrics.measure(&name, &value);
                }
                Ok(metrics)
            }
        }
        from.deserialize_map(Named)
    }
}

/// Metrics of training as the field `train` of the object that they belong to. The first version of the format had
/// them as fields of their own, each name behind `train_`.
pub(crate) mod train {
    use super::Metrics;
    use serde::de::{IgnoredAny, MapAccess, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    pub(crate) fn serialize<S: Serializer>(metrics: &Metrics, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([("train", metrics)])
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Metrics, D::Error> {
        struct Train;
        impl<'de> Visitor<'de> for Train {
            type Value = Metrics;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object with metrics of training")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some(name) = map.next_key::<String>()? {
                    match name.strip_prefix("train_") {
                        Some(name) => metrics.measure(name, &map.next_value()?),
                        None if name == "train" => metrics = map.next_value()?,
                        None => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(metrics)
            }
        }
        from.deserialize_map(Train)
    }
}

/// A number that may not be one: JSON has neither NaN nor infinity and says null instead.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// What was not measured is no number.
pub(crate) fn unmeasured() -> f64 {
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_a_plain_object_that_reads_back_in_order() {
        let metrics = Metrics::from([("loss", 0.1 + 0.2), ("accuracy", 1.0)]);
        let text = serde_json::to_string(&metrics).unwrap();
        assert_eq!(text, r#"{"loss":0.30000000000000004,"accuracy":1.0}"#);
        assert_eq!(serde_json::from_str::<Metrics>(&text).unwrap(), metrics);
        assert_eq!(
            (metrics.get("loss"), metrics.get("mse")),
            (Some(0.1 + 0.2), None)
        );
    }

    #[test]
    fn a_name_occurs_once() {
        let mut metrics = Metrics::from([("a", 1.0), ("b", 2.0), ("a", 3.0)]);
        metrics.set("b", 4.0);
        assert_eq!(metrics.iter().collect::<Vec<_>>(), [("a", 3.0), ("b", 4.0)]);
    }
}
