//! A job before it is checked: TOML values, each with the spot where it was written.

use crate::Diagnostic;
use crate::source::{JobText, Spot};
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and where it was written.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) spot: Spot,
}

/// A TOML value. Integers are wide enough to hold any that is worth quoting in an error.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Boolean(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    Datetime,
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) node: Node,
}

/// A key and where it was written.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) spot: Spot,
}

impl Value {
    /// The value's type with its article.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Boolean(_) => "a boolean",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a string",
            Value::Datetime => "a date",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

impl Node {
    /// Parses a whole document.
    pub(crate) fn document(source: &Arc<JobText>, text: &str) -> Result<Node, Diagnostic> {
        let origin = Origin { source, offset: 0 };
        let table = DeTable::parse(text).map_err(|error| origin.syntax(&error))?;
        Ok(Node {
            value: origin.table(table.get_ref()),
            spot: origin.spot(0..0),
        })
    }

    /// Parses a single value that begins at byte `offset` of its source.
    pub(crate) fn value(
        source: &Arc<JobText>,
        offset: usize,
        text: &str,
    ) -> Result<Node, Diagnostic> {
        let origin = Origin { source, offset };
        let value = DeValue::parse(text).map_err(|error| origin.syntax(&error))?;
        Ok(origin.node(&value))
    }

    /// Puts a value at a path of keys below this table, making the tables on the way.
    pub(crate) fn set(&mut self, path: &[Key], node: Node) -> Result<(), Diagnostic> {
        let Some((key, rest)) = path.split_first() else {
            *self = node;
            return Ok(());
        };
        let found = self.value.kind();
        let Value::Table(entries) = &mut self.value else {
            return Err(Diagnostic::at(
                &key.spot,
                format!("cannot set `{}` inside {found}", key.name),
                "set the whole value before this key instead",
            ));
        };
        if let Some(entry) = entries.iter_mut().find(|entry| entry.key.name == key.name) {
            if rest.is_empty() {
                entry.key = key.clone();
            }
            return entry.node.set(rest, node);
        }
        let mut child = Node {
            value: Value::Table(Vec::new()),
            spot: key.spot.clone(),
        };
        child.set(rest, node)?;
        entries.push(Entry {
            key: key.clone(),
            node: child,
        });
        Ok(())
    }
}

impl Node {
    /// Makes a table of the word at a path of keys that stands for one: `"adamw"` for `{ kind = "adamw" }`.
    pub(crate) fn expand_kind(&mut self, path: &[&str]) {
        if let Some((key, rest)) = path.split_first() {
            if let Value::Table(entries) = &mut self.value
                && let Some(entry) = entries.iter_mut().find(|entry| entry.key.name == *key)
            {
                entry.node.expand_kind(rest);
            }
            return;
        }
        if !matches!(self.value, Value::Text(_)) {
            return;
        }
        let word = std::mem::replace(&mut self.value, Value::Table(Vec::new()));
        let kind = Entry {
            key: Key {
                name: "kind".to_owned(),
                spot: self.spot.clone(),
            },
            node: Node {
                value: word,
                spot: self.spot.clone(),
            },
        };
        self.value = Value::Table(vec![kind]);
    }
}

/// Where a parsed text begins in its source.
struct Origin<'s> {
    source: &'s Arc<JobText>,
    offset: usize,
}

impl Origin<'_> {
    fn spot(&self, span: Range<usize>) -> Spot {
        Spot::new(
            self.source,
            self.offset + span.start..self.offset + span.end,
        )
    }

    fn syntax(&self, error: &toml::de::Error) -> Diagnostic {
        let spot = self.spot(error.span().unwrap_or(0..0));
        let message = error.message();
        let (what, label) = match message.split_once(", expected ") {
            Some((what, expected)) => (what, format!("expected {expected}")),
            None if message == "duplicate key" => (message, "it is given above already".to_owned()),
            None => (message, String::new()),
        };
        Diagnostic::at(&spot, format!("not valid TOML: {what}"), label)
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let spot = self.spot(value.span());
        let value = match value.get_ref() {
            DeValue::Boolean(value) => Value::Boolean(*value),
            DeValue::String(text) => Value::Text(text.as_ref().to_owned()),
            DeValue::Datetime(_) => Value::Datetime,
            DeValue::Integer(digits) => Value::Integer(widest(digits.as_str(), digits.radix())),
            DeValue::Float(digits) => Value::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Table(table) => self.table(table),
            DeValue::Array(items) => Value::Array(items.iter().map(|v| self.node(v)).collect()),
        };
        Node { value, spot }
    }

    fn table(&self, table: &DeTable<'_>) -> Value {
        let entries = table.iter().map(|(key, value)| Entry {
            key: Key {
                name: key.get_ref().as_ref().to_owned(),
                spot: self.spot(key.span()),
            },
            node: self.node(value),
        });
        Value::Table(entries.collect())
    }
}

/// The integer, or the one nearest to it if it is beyond all bounds.
fn widest(digits: &str, radix: u32) -> i128 {
    let beyond = if digits.starts_with('-') {
        i128::MIN
    } else {
        i128::MAX
    };
    i128::from_str_radix(digits, radix).unwrap_or(beyond)
}
