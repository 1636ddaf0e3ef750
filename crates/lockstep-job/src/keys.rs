//! Every key of the job file is declared once.
//!
//! [`keys!`] takes a table of the job file as the list of its keys. Each entry has the sentence that
//! explains the key, its name and type, what holds when it is left out, and what its value must satisfy:
//!
//! ```text
//! /// Seconds that a worker waits for another before it gives it up.
//! deadline_s: f64 = default(30.0) => Rule::SECONDS;
//! ```
//!
//! From that come the field of the struct, the reader that reports every mistake at its spot, what serde
//! writes and the JSON Schema, so that they cannot differ. [`kinds!`] does the same for a table whose
//! `kind` decides which other keys it has, and [`words!`] for a value that is one of several words.
//!
//! What holds when a key is left out:
//!
//! | written | meaning |
//! |---|---|
//! | `need("add ...")` | a mistake; the text says how to mend it |
//! | `default(value)` | the value |
//! | `hidden(value)` | the value, which is not written when the job is shown; needs `#[serde(default)]` |
//! | `optional` | nothing: the field is an `Option` |
//! | `shown(a, b)` | the value `b`; the schema, which knows no folder, says `a` |
//! | `flat(read)` | nothing itself: its own keys, which `read` reads, stand beside the others |
//! | `otherwise(value)` | what follows from keys above it, each an `Option` that is `None` after a mistake |
//!
//! Where the file writes a value in other forms than its type has, `as` names a type with their schema.
//! After `=>` stands a [`Check`], which knows no other key. What a value must satisfy beside that follows
//! as a closure of the field and the value, which sees the keys above.

use crate::field::{Field, Rule};
use crate::section::Section;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
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
pub(crate) trait Limits {
    /// Adds it.
    fn describe(&self, _schema: &mut Map<String, Value>) {}
}

/// How a value is read, and what it must satisfy.
pub(crate) trait Check<T>: Limits {
    /// The value, or `None` after its mistake was reported.
    fn read(&self, field: &Field<'_>) -> Option<T>;
}

/// Any value of the type.
pub(crate) struct Any;

impl Limits for Any {}

impl<T: FromField> Check<T> for Any {
    fn read(&self, field: &Field<'_>) -> Option<T> {
        T::from_field(field)
    }
}

/// What a function reads.
pub(crate) struct By<F>(pub(crate) F);

impl<F> Limits for By<F> {}

impl<T, F: Fn(&Field<'_>) -> Option<T>> Check<T> for By<F> {
    fn read(&self, field: &Field<'_>) -> Option<T> {
        (self.0)(field)
    }
}

/// A table, whose keys a function reads.
pub(crate) struct Table<F>(pub(crate) F);

impl<F> Limits for Table<F> {}

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
impl<T: Whole> Limits for RangeInclusive<T> {
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

impl<T: Whole> Limits for Within<T> {
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

impl Limits for Rule {
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

impl<C: Limits> Limits for Each<C> {
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

impl<C: Limits> Limits for NotEmpty<C> {
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

/// A value whose keys stand beside those of another table.
pub(crate) trait WriteKeys {
    /// Writes them.
    fn write_keys<M: SerializeMap>(&self, keys: &mut M) -> Result<(), M::Error>;
}

/// Writes a table that has no other keys.
pub(crate) fn write_table<S: Serializer>(
    table: &impl WriteKeys,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    table.write_keys(&mut map)?;
    map.end()
}

/// What holds when a key is left out, as the schema says it.
pub(crate) enum LeftOut {
    Mistake,
    Default(Value),
    Nothing,
    /// It is no key, but has keys.
    Flat,
}

impl LeftOut {
    /// The default, as it is written.
    pub(crate) fn default<T: Serialize>(value: T) -> LeftOut {
        // Defaults are plain numbers, words and tables of them.
        serde_json::to_value(value).map_or(LeftOut::Nothing, LeftOut::Default)
    }
}

/// The schema of a table that is being put together.
pub(crate) struct TableSchema {
    description: String,
    properties: Map<String, Value>,
    required: Vec<Value>,
    /// The kinds of a table whose keys depend on its kind.
    kinds: Option<Schema>,
}

impl TableSchema {
    /// A table that means `doc`; of this kind, if its keys depend on that.
    pub(crate) fn new(doc: &[&str], kind: Option<&str>) -> TableSchema {
        let mut table = TableSchema {
            description: sentences(doc),
            properties: Map::new(),
            required: Vec::new(),
            kinds: None,
        };
        if let Some(kind) = kind {
            let value = json!({ "type": "string", "const": kind });
            table.properties.insert("kind".to_owned(), value);
            table.required.push(json!("kind"));
        }
        table
    }

    /// Adds a key.
    pub(crate) fn key<T: JsonSchema>(
        &mut self,
        generator: &mut SchemaGenerator,
        name: &str,
        doc: &[&str],
        left_out: LeftOut,
        limits: &impl Limits,
    ) {
        if matches!(left_out, LeftOut::Flat) {
            return self.flat(T::json_schema(generator));
        }
        let mut schema = generator.subschema_for::<T>();
        let object = schema.ensure_object();
        object.insert("description".to_owned(), json!(sentences(doc)));
        limits.describe(object);
        match left_out {
            LeftOut::Mistake => self.required.push(json!(name)),
            LeftOut::Default(value) => {
                object.insert("default".to_owned(), value);
            }
            LeftOut::Nothing | LeftOut::Flat => {}
        }
        self.properties.insert(name.to_owned(), schema.to_value());
    }

    /// Adds the keys of another table, or one of its kinds.
    fn flat(&mut self, mut table: Schema) {
        if table.get("oneOf").is_some() {
            self.kinds = Some(table);
            return;
        }
        if let Some(Value::Object(keys)) = table.remove("properties") {
            self.properties.extend(keys);
        }
        if let Some(Value::Array(required)) = table.remove("required") {
            self.required.extend(required);
        }
    }

    /// The whole.
    pub(crate) fn finish(self) -> Schema {
        if let Some(mut schema) = self.kinds {
            let kinds = schema.get_mut("oneOf").and_then(Value::as_array_mut);
            for kind in kinds.into_iter().flatten() {
                for (key, value) in &self.properties {
                    kind["properties"][key] = value.clone();
                }
            }
            return schema;
        }
        let mut schema = json_schema!({
            "type": "object",
            "description": self.description,
            "additionalProperties": false,
        });
        if !self.properties.is_empty() {
            schema.insert("properties".to_owned(), self.properties.into());
        }
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), self.required.into());
        }
        schema
    }
}

/// The lines of a doc comment as one text.
pub(crate) fn sentences(doc: &[&str]) -> String {
    let lines: Vec<&str> = doc
        .iter()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    lines.join("\n")
}

/// What a single key comes to; for [`keys!`] and [`kinds!`].
macro_rules! key {
    (read $section:ident $name:expr, need($fix:expr), $read:expr) => {
        $section.need($name, $fix).and_then($read)
    };
    (read $section:ident $name:expr, default($value:expr), $read:expr) => {
        $section.or($name, $value, $read)
    };
    (read $section:ident $name:expr, hidden($value:expr), $read:expr) => {
        $section.or($name, $value, $read)
    };
    (read $section:ident $name:expr, shown($schema:expr, $value:expr), $read:expr) => {
        $section.or($name, $value, $read)
    };
    (read $section:ident $name:expr, flat($keys:expr), $read:expr) => {
        $crate::keys::read_flat($section, $keys)
    };
    (read $section:ident $name:expr, optional, $read:expr) => {
        $section.maybe($name, $read)
    };
    (read $section:ident $name:expr, otherwise($value:expr), $read:expr) => {
        match $section.get($name) {
            Some(field) => ($read)(field),
            None => $value,
        }
    };
    (value $field:ident $check:expr) => {
        $crate::keys::Check::read(&$check, &$field)
    };
    (value $field:ident $check:expr, $and:expr) => {
        $crate::keys::read_and(&$field, &$check, $and)
    };
    (write $map:ident $name:expr, $value:expr, optional) => {
        if let Some(value) = $value {
            serde::ser::SerializeMap::serialize_entry($map, $name, value)?;
        }
    };
    (write $map:ident $name:expr, $value:expr, flat($keys:expr)) => {
        $crate::keys::WriteKeys::write_keys($value, $map)?;
    };
    (write $map:ident $name:expr, $value:expr, hidden($default:expr)) => {
        if *$value != $default {
            serde::ser::SerializeMap::serialize_entry($map, $name, $value)?;
        }
    };
    (write $map:ident $name:expr, $value:expr, $mode:ident $(($($left:expr),+))?) => {
        serde::ser::SerializeMap::serialize_entry($map, $name, $value)?;
    };
    (left_out $type:ty, need($fix:expr)) => {
        $crate::keys::LeftOut::Mistake
    };
    (left_out $type:ty, default($value:expr)) => {
        $crate::keys::LeftOut::default::<$type>($value)
    };
    (left_out $type:ty, shown($schema:expr, $value:expr)) => {
        $crate::keys::LeftOut::default::<$type>($schema)
    };
    (left_out $type:ty, flat($keys:expr)) => {
        $crate::keys::LeftOut::Flat
    };
    (left_out $type:ty, $mode:ident $(($($left:expr),+))?) => {
        $crate::keys::LeftOut::Nothing
    };
    (shown $type:ty) => {
        $type
    };
    (shown $type:ty as $shown:ty) => {
        $shown
    };
    (default default($value:expr)) => {
        $value
    };
    (default optional) => {
        None
    };
}

/// Declares a table of the job file. After the name of the struct stand what it derives beside the usual,
/// `: all default` if every key may be left out, and after `given` what its reader must be told.
macro_rules! keys {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident $(($($derive:ident),*))? : all default { $($body:tt)* }
    ) => {
        $crate::keys::keys! {
            $(#[doc = $doc])*
            pub struct $name $(($($derive),*))? { $($body)* }
        }
        $crate::keys::keys! { default $name { $($body)* } }
    };
    (
        default $name:ident { $(
            $(#[doc = $doc:literal])*
            $key:ident : $type:ty $(as $shown:ty)? = $mode:ident $(($($left:expr),+))? => $check:expr $(, $and:expr)?;
        )* }
    ) => {
        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $crate::keys::key!(default $mode $(($($left),+))?)),* }
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident $(($($derive:ident),*))? $(given ($($given:ident : $given_type:ty),*))? { $(
            $(#[doc = $key_doc:literal])*
            $(#[serde($serde:ident)])?
            $key:ident : $type:ty $(as $shown:ty)? = $mode:ident $(($($left:expr),+))? => $check:expr $(, $and:expr)?;
        )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, $($($derive,)*)? serde::Deserialize)]
        pub struct $name { $(
            $(#[doc = $key_doc])*
            $(#[serde($serde)])?
            pub $key: $type,
        )* }

        impl $name {
            /// Reads the keys, and leaves it to the caller to finish the section.
            pub(crate) fn read_keys(
                section: &mut $crate::section::Section<'_>
                $($(, $given: $given_type)*)?
            ) -> Option<Self> {
                $(let $key = $crate::keys::key!(
                    read section stringify!($key), $mode $(($($left),+))?,
                    |field| $crate::keys::key!(value field $check $(, $and)?)
                );)*
                Some(Self { $($key: $key?),* })
            }
        }

        impl $crate::keys::WriteKeys for $name {
            fn write_keys<M: serde::ser::SerializeMap>(&self, keys: &mut M) -> Result<(), M::Error> {
                $($crate::keys::key!(write keys stringify!($key), &self.$key, $mode $(($($left),+))?);)*
                Ok(())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::keys::write_table(self, serializer)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut table = $crate::keys::TableSchema::new(&[$($doc),*], None);
                $(table.key::<$crate::keys::key!(shown $type $(as $shown)?)>(
                    generator,
                    stringify!($key),
                    &[$($key_doc),*],
                    $crate::keys::key!(left_out $type, $mode $(($($left),+))?),
                    &$check,
                );)*
                table.finish()
            }
        }
    };
}

/// Declares a table whose `kind` decides which other keys it has.
macro_rules! kinds {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident $(given ($($given:ident : $given_type:ty),*))? { $(
            $(#[doc = $kind_doc:literal])*
            $kind:literal $variant:ident $({ $(
                $(#[doc = $key_doc:literal])*
                $key:ident : $type:ty $(as $shown:ty)? = $mode:ident $(($($left:expr),+))? => $check:expr $(, $and:expr)?;
            )* })?
        )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
        #[serde(tag = "kind", deny_unknown_fields)]
        pub enum $name { $(
            $(#[doc = $kind_doc])*
            #[serde(rename = $kind)]
            $variant $({ $(
                $(#[doc = $key_doc])*
                $key: $type,
            )* })?,
        )* }

        impl $name {
            /// The words for its kinds.
            pub(crate) const KINDS: &[&str] = &[$($kind),*];

            /// Reads the keys of a table of one of [`Self::KINDS`], and leaves it to the caller to finish
            /// the section.
            pub(crate) fn read_keys(
                kind: &str,
                section: &mut $crate::section::Section<'_>
                $($(, $given: $given_type)*)?
            ) -> Option<Self> {
                match kind {
                    $($kind => {
                        $($(let $key = $crate::keys::key!(
                            read section stringify!($key), $mode $(($($left),+))?,
                            |field| $crate::keys::key!(value field $check $(, $and)?)
                        );)*)?
                        Some(Self::$variant $({ $($key: $key?),* })?)
                    })*
                    _ => None,
                }
            }
        }

        impl $crate::keys::WriteKeys for $name {
            fn write_keys<M: serde::ser::SerializeMap>(&self, keys: &mut M) -> Result<(), M::Error> {
                match self {
                    $(Self::$variant $({ $($key),* })? => {
                        serde::ser::SerializeMap::serialize_entry(keys, "kind", $kind)?;
                        $($($crate::keys::key!(
                            write keys stringify!($key), $key, $mode $(($($left),+))?
                        );)*)?
                    })*
                }
                Ok(())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::keys::write_table(self, serializer)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut kinds = Vec::new();
                $({
                    #[allow(unused_mut, reason = "a kind may have no keys")]
                    let mut table = $crate::keys::TableSchema::new(&[$($kind_doc),*], Some($kind));
                    $($(table.key::<$crate::keys::key!(shown $type $(as $shown)?)>(
                        generator,
                        stringify!($key),
                        &[$($key_doc),*],
                        $crate::keys::key!(left_out $type, $mode $(($($left),+))?),
                        &$check,
                    );)*)?
                    kinds.push(table.finish());
                })*
                schemars::json_schema!({
                    "description": $crate::keys::sentences(&[$($doc),*]),
                    "oneOf": kinds,
                })
            }
        }
    };
}

/// Declares a value that is one of several words.
macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident $(($($derive:ident),*))? { $(
            $(#[doc = $word_doc:literal])*
            $word:literal $variant:ident
        )* }
    ) => {
        $(#[doc = $doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name { $(
            $(#[doc = $word_doc])*
            #[serde(rename = $word)]
            $variant,
        )* }

        impl $name {
            /// As the job file writes it.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::keys::FromField for $name {
            fn from_field(field: &$crate::field::Field<'_>) -> Option<Self> {
                match field.one_of(&[$($word),*])? {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {key, keys, kinds, words};
