//! JSON from a stranger, with a bound on what it becomes in memory.
//!
//! A value takes some ten times as much memory as its text: `[[],[],…]` of some MiB would become hundreds. So values are
//! counted while they are read, and reading ends at the first one too many.

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// The most values that a request may have: each number, text, list and table, and each key.
const MOST: usize = 50_000;

/// Reads a JSON text that holds at most [`MOST`] values.
pub(crate) fn read(text: &[u8]) -> Result<Value, serde_json::Error> {
    let left = Cell::new(MOST);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Counted(&left).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads one value, and counts it.
#[derive(Clone, Copy)]
struct Counted<'a>(&'a Cell<usize>);

impl Counted<'_> {
    fn count<E: Error>(self) -> Result<(), E> {
        match self.0.get().checked_sub(1) {
            Some(left) => {
                self.0.set(left);
                Ok(())
            }
            None => Err(E::custom(format!("it holds more than {MOST} values"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = pairs.next_key::<String>()? {
            self.count()?;
            map.insert(key, pairs.next_value_seed(self)?);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written_and_too_many_values_are_refused() {
        let text = r#"{"a": [1, -2, 3.5, "x\n", null, true], "b": {"c": 18446744073709551615}}"#;
        assert_eq!(
            read(text.as_bytes()).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
        for wrong in ["", "{", "[1] 2", "nan", "\"\u{1}\""] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        let many = format!("[{}0]", "0,".repeat(MOST));
        let error = read(many.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("more than 50000 values"), "{error}");
        let keys: Vec<String> = (0..MOST).map(|n| format!("\"{n}\":0")).collect();
        assert!(read(format!("{{{}}}", keys.join(",")).as_bytes()).is_err());
        let deep = "[".repeat(100_000);
        assert!(read(deep.as_bytes()).is_err());
    }
}
