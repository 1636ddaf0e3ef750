//! Measured values by their names.
//!
//! What is measured depends on what is learned: a classifier has a loss and an accuracy, a regression a
//! squared and an absolute error. Here they are a list of names and numbers in the order in which they
//! are shown. In JSON they are a plain object, `{"loss":0.4,"accuracy":0.8}`.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
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
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;
        impl<'de> Visitor<'de> for Named {
            type Value = Metrics;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of named numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some((name, value)) = map.next_entry::<String, f64>()? {
                    metrics.set(&name, value);
                }
                Ok(metrics)
            }
        }
        deserializer.deserialize_map(Named)
    }
}

/// Metrics as fields of the object that they belong to.
pub(crate) mod inline {
    use super::{Metrics, fields};
    use serde::{Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(metrics: &Metrics, to: S) -> Result<S::Ok, S::Error> {
        metrics.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Metrics, D::Error> {
        fields("", from)
    }
}

/// Metrics as fields of the object that they belong to, each name behind `train_`.
pub(crate) mod train {
    use super::{Metrics, fields};
    use serde::{Deserializer, Serializer};

    const PREFIX: &str = "train_";

    pub(crate) fn serialize<S: Serializer>(metrics: &Metrics, to: S) -> Result<S::Ok, S::Error> {
        let named = metrics.iter();
        to.collect_map(named.map(|(name, value)| (format!("{PREFIX}{name}"), value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Metrics, D::Error> {
        fields(PREFIX, from)
    }
}

/// The numbers among the fields that nothing else claims and whose name begins with `prefix`. A later
/// version may have fields of other kinds, which are passed over.
fn fields<'de, D: Deserializer<'de>>(prefix: &str, from: D) -> Result<Metrics, D::Error> {
    struct Fields<'a>(&'a str);
    impl<'de> Visitor<'de> for Fields<'_> {
        type Value = Metrics;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("fields with named numbers")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metrics, A::Error> {
            let mut metrics = Metrics::default();
            while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
                if let (Some(name), Some(value)) = (name.strip_prefix(self.0), value.as_f64()) {
                    metrics.set(name, value);
                }
            }
            Ok(metrics)
        }
    }
    from.deserialize_map(Fields(prefix))
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
