//! Reads a [`Json`] value, and counts what it consists of.

use crate::json::{EXACT, Json};
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

/// Reads one value, and all in it, as far as there are not too many.
pub(crate) struct Counted {
    most: usize,
    left: Cell<usize>,
}

impl Counted {
    /// At most so many values.
    pub(crate) fn new(most: usize) -> Self {
        let left = Cell::new(most);
        Self { most, left }
    }

    fn count<E: Error>(&self) -> Result<(), E> {
        match self.left.get().checked_sub(1) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(E::custom(format!(
                "it holds more than {} values",
                self.most
            ))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Counted {
    type Value = Json;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        (&self).deserialize(deserializer)
    }
}

impl<'de> DeserializeSeed<'de> for &Counted {
    type Value = Json;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Counted {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Truth(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(match value.unsigned_abs() <= EXACT {
            true => Json::Number(value as f64),
            false => Json::Text(value.to_string()),
        })
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(match value <= EXACT {
            true => Json::Number(value as f64),
            false => Json::Text(value.to_string()),
        })
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut numbers = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            if let Json::Number(number) = item {
                numbers.push(number);
                continue;
            }
            let mut list: Vec<Json> = numbers.into_iter().map(Json::Number).collect();
            list.push(item);
            while let Some(item) = items.next_element_seed(self)? {
                list.push(item);
            }
            return Ok(Json::List(list));
        }
        Ok(Json::Numbers(numbers))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(key) = pairs.next_key::<String>()? {
            self.count()?;
            object.push((key, pairs.next_value_seed(self)?));
        }
        Ok(Json::Object(object))
    }
}
