//! The JSON Schema of a table, put together key by key.

use super::SchemaLimits;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

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

/// A table of which the kind decides which other keys it has.
pub(crate) trait OfKinds: JsonSchema {
    /// The words for its kinds.
    const WORDS: &'static [&'static str];
}

/// The schema of such a table, or of the word for its kind alone.
pub(crate) struct WordOr<T>(std::marker::PhantomData<T>);

impl<T: OfKinds> JsonSchema for WordOr<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}OrWord", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "type": "string", "enum": T::WORDS }, table] })
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
        limits: &impl SchemaLimits,
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
