//! What the value of a key must satisfy: how it is read, and what the schema says of it.

use crate::field::{Field, Rule};
use crate::section::Section;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// A value that can be read without knowing more than its type.
pub(crate) trait FromField: Sized {
    /// The value, or `None` after its mistake was reported.
    fn from_field(field: &Field<'_>) -> Option<Self>;
}

/// What the schema says of a key beside its type.
pub(crate) trait SchemaLimits {
    /// Adds it.
    fn describe(&self, _schema: &mut Map<String, Value>) {}
}

/// How a value is read, and what it must satisfy.
pub(crate) trait Check<T>: SchemaLimits {
    /// The value, or `None` after its mistake was reported.
    fn read(&self, field: &Field<'_>) -> Option<T>;
}

/// Any value of the type.
pub(crate) struct Any;

impl SchemaLimits for Any {}

impl<T: FromField> Check<T> for Any {
    fn read(&self, field: &Field<'_>) -> Option<T> {
        T::from_field(field)
    }
}

/// What a function reads.
pub(crate) struct By<F>(pub(crate) F);

impl<F> SchemaLimits for By<F> {}

impl<T, F: Fn(&Field<'_>) -> Option<T>> Check<T> for By<F> {
    fn read(&self, field: &Field<'_>) -> Option<T> {
        (self.0)(field)
    }
}

/// A table, whose keys a function reads.
pub(crate) struct Table<F>(pub(crate) F);

impl<F> SchemaLimits for Table<F> {}

impl<T, F: Fn(&mut Section<'_>) -> Option<T>> Check<T> for Table<F> {
    fn read(&self, field: &Field<'_>) -> Option<T> {
        let mut section = field.section()?;
        let table = (self.0)(&mut section);
        section.finish();
        table
    }
}

/// A whole number that a key can hold.
pub(crate) trait Whole: TryFrom<i128> + PartialOrd + Display + Copy {
    /// The number in the widest type.
    fn wide(self) -> u64;
}

macro_rules! whole {
    ($($type:ty)*) => {
        $(impl Whole for $type {
            fn wide(self) -> u64 {
                self as u64
            }
        })*
    };
}

whole!(u32 u64 usize);

/// A whole number in a range. The schema has its lower end alone: the upper one is beyond what makes
/// sense, and only keeps sizes from overflowing.
impl<T: Whole> SchemaLimits for RangeInclusive<T> {
    fn describe(&self, schema: &mut Map<String, Value>) {
        if self.start().wide() > 0 {
            schema.insert("minimum".to_owned(), json!(self.start().wide()));
        }
    }
}

impl<T: Whole> Check<T> for RangeInclusive<T> {
    fn read(&self, field: &Field<'_>) -> Option<T> {
        field.integer(self.clone())
    }
}

/// A whole number in a range of which the schema has both ends.
pub(crate) struct Within<T>(pub(crate) RangeInclusive<T>);

impl<T: Whole> SchemaLimits for Within<T> {
    fn describe(&self, schema: &mut Map<String, Value>) {
        self.0.describe(schema);
        schema.insert("maximum".to_owned(), json!(self.0.end().wide()));
    }
}

impl<T: Whole> Check<T> for Within<T> {
    fn read(&self, field: &Field<'_>) -> Option<T> {
        self.0.read(field)
    }
}

impl SchemaLimits for Rule {
    fn describe(&self, schema: &mut Map<String, Value>) {
        for (limit, number) in self.limits {
            schema.insert((*limit).to_owned(), json!(number));
        }
    }
}

impl Check<f64> for Rule {
    fn read(&self, field: &Field<'_>) -> Option<f64> {
        field.number(self)
    }
}

/// An array, each element of which satisfies a check.
pub(crate) struct Each<C>(pub(crate) C);

impl<C: SchemaLimits> SchemaLimits for Each<C> {
    fn describe(&self, schema: &mut Map<String, Value>) {
        if let Some(Value::Object(items)) = schema.get_mut("items") {
            self.0.describe(items);
        }
    }
}

impl<T, C: Check<T>> Check<Vec<T>> for Each<C> {
    fn read(&self, field: &Field<'_>) -> Option<Vec<T>> {
        field.all(|item| self.0.read(item))
    }
}

/// Like [`Each`], and not empty; beside it stands an example of what is right.
pub(crate) struct NotEmpty<C>(pub(crate) C, pub(crate) &'static str);

impl<C: SchemaLimits> SchemaLimits for NotEmpty<C> {
    fn describe(&self, schema: &mut Map<String, Value>) {
        schema.insert("minItems".to_owned(), json!(1));
        if let Some(Value::Object(items)) = schema.get_mut("items") {
            self.0.describe(items);
        }
    }
}

impl<T, C: Check<T>> Check<Vec<T>> for NotEmpty<C> {
    fn read(&self, field: &Field<'_>) -> Option<Vec<T>> {
        let items = field.all(|item| self.0.read(item))?;
        match items.is_empty() {
            true => field.reject("must not be empty", self.1),
            false => Some(items),
        }
    }
}

/// Reads a value, and what it must satisfy beside its check.
pub(crate) fn read_and<V, T>(
    field: &Field<'_>,
    check: &impl Check<V>,
    and: impl FnOnce(&Field<'_>, V) -> Option<T>,
) -> Option<T> {
    let value = check.read(field)?;
    and(field, value)
}

impl FromField for String {
    fn from_field(field: &Field<'_>) -> Option<Self> {
        field.text().map(str::to_owned)
    }
}

impl FromField for () {
    fn from_field(_field: &Field<'_>) -> Option<()> {
        Some(())
    }
}

impl FromField for bool {
    fn from_field(field: &Field<'_>) -> Option<bool> {
        field.boolean()
    }
}

impl FromField for PathBuf {
    fn from_field(field: &Field<'_>) -> Option<PathBuf> {
        field.path()
    }
}

/// Reads keys that stand beside those of another table.
pub(crate) fn read_flat<T>(
    section: &mut Section<'_>,
    read: impl FnOnce(&mut Section<'_>) -> Option<T>,
) -> Option<T> {
    read(section)
}
