//! The job file's vocabulary as a JSON Schema, for editors.

use crate::file::JobFile;
use serde_json::{Value, json};

/// The JSON Schema (draft 2020-12) of a job file: every key, its type, its default and what it means.
///
/// It knows less than [`Job::load`](crate::Job::load): what depends on two keys is only checked there.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(JobFile).to_value();
    schema["title"] = json!("Lockstep job");
    without_null(&mut schema);
    let kinds = schema.pointer_mut("/$defs/JobModel/oneOf");
    for kind in kinds.and_then(Value::as_array_mut).into_iter().flatten() {
        // `layers` says enough.
        if kind["properties"]["kind"]["const"] == "stack" {
            kind["required"] = json!(["layers"]);
        }
    }
    schema
}

/// TOML has no null: what may be left out is not `null`, it is not required.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    object["type"] = only.clone();
                }
            }
            if let Some(Value::Array(options)) = object.get_mut("anyOf") {
                options.retain(|option| option["type"] != "null");
                if let [Value::Object(only)] = options.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    object.extend(only);
                }
            }
            object.values_mut().for_each(without_null);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;
    use std::path::Path;

    /// The schema that a `$ref` stands for.
    fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
        match schema["$ref"].as_str() {
            Some(place) => &root["$defs"][place.trim_start_matches("#/$defs/")],
            None => schema,
        }
    }

    /// What of `value` the schema does not allow, by the keywords that our schema uses.
    fn mistakes(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
        let schema = resolve(root, schema);
        for keyword in ["oneOf", "anyOf"] {
            if let Some(options) = schema[keyword].as_array() {
                let fits = |option: &&Value| mistakes(root, option, value).is_empty();
                return match options.iter().filter(fits).count() {
                    1 => Vec::new(),
                    2.. if keyword == "anyOf" => Vec::new(),
                    n => vec![format!("{n} of the options fit {value}")],
                };
            }
        }
        let right_type = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            other => panic!("the schema has no type: {other:?} in {schema}"),
        };
        if !right_type || schema.get("const").is_some_and(|only| only != value) {
            return vec![format!("{value} is not {schema}")];
        }
        let mut found = Vec::new();
        if let (Some(minimum), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
            && number < minimum
        {
            found.push(format!("{number} is below {minimum}"));
        }
        for item in value.as_array().into_iter().flatten() {
            found.extend(mistakes(root, &schema["items"], item));
        }
        let Some(object) = value.as_object() else {
            return found;
        };
        if schema["properties"].is_null() {
            // Names are free, such as those of variables.
            let each = object.values();
            let each =
                each.flat_map(|value| mistakes(root, &schema["additionalProperties"], value));
            return each.collect();
        }
        assert_eq!(schema["additionalProperties"], false, "{schema}");
        for key in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(key.as_str().unwrap_or_default()) {
                found.push(format!("{key} is missing"));
            }
        }
        for (key, value) in object {
            match schema["properties"].get(key) {
                Some(schema) => found.extend(mistakes(root, schema, value)),
                None => found.push(format!("unknown key {key}")),
            }
        }
        found
    }

    fn check(text: &str) -> Vec<String> {
        let value: toml::Value = toml::from_str(text).expect("TOML");
        let value = serde_json::to_value(value).expect("JSON");
        let schema = schema();
        mistakes(&schema, &schema, &value)
    }

    #[test]
    fn the_schema_allows_what_the_reader_allows() {
        let example = include_str!("../../../examples/fashion-mnist.toml");
        let template = crate::template("x");
        let stack = "name = 'x'\n[data]\ntrain = { images = 'a' }\nval = { images = 'b', labels = 'c' }\n\
             [model]\nlayers = [{ kind = 'batch-norm' }, { kind = 'linear' }]\n\
             [train]\nepochs = 1\nbatch = 2\nclip_norm = 1.5\nlanes = 1\n\
             optimizer = { kind = 'adamw', betas = [0.5, 0.6] }\n\
             schedule = { kind = 'cosine', steps = 7 }\n[gang]\ntransport = 'tcp'\n";
        let model = |words: &str| {
            let lines = stack.lines().map(|line| match line.starts_with("layers") {
                true => words,
                false => line,
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        let cnn = model("kind = 'cnn'");
        let resnet = model("kind = 'resnet18'\nsmall_stem = true\nweights = 'w'");
        let images = model(
            "layers = [{ kind = 'conv2d', out = 3, kernel = [3, 5], padding = 1 }, { kind = 'gelu' }, \
             { kind = 'residual', body = [{ kind = 'max-pool', kernel = 2 }], \
             shortcut = [{ kind = 'avg-pool', kernel = 2, stride = 2 }] }, \
             { kind = 'global-pool' }, { kind = 'flatten' }, { kind = 'linear' }]",
        );
        let cifar = stack.replace("{ images = 'a' }", "{ cifar = 'a', split = 'train' }");
        let files = stack.replace(
            "{ images = 'a' }",
            "{ cifar = ['a', 'b'] }\naugment = { flip = true }",
        );
        for text in [
            example, &template, stack, &cnn, &resnet, &images, &cifar, &files,
        ] {
            assert_eq!(check(text), Vec::<String>::new());
            let job = Job::parse(Path::new("/x/job.toml"), text, &[], None);
            let job = job.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(check(&job.to_toml()), Vec::<String>::new());
        }
    }

    #[test]
    fn the_schema_knows_scripts() {
        let script = "name = 'x'\n[data]\ntrain = 'a.parquet'\n[train]\ncommand = ['python3', 'a.py']\n\
             files = ['lib']\nworkers = { min = 1, max = 2 }\nenv = { A = 'b' }\n[checkpoint]\nkeep = 2\n";
        assert_eq!(check(script), Vec::<String>::new());
        let job = Job::parse(Path::new("/x/job.toml"), script, &[], None).unwrap();
        assert_eq!(check(&job.to_toml()), Vec::<String>::new());
        for (right, wrong) in [
            ("keep = 2", "every = 2"),
            ("command", "comand"),
            ("A = 'b'", "A = 3"),
            ("files = ['lib']", "epochs = 3"),
        ] {
            let text = script.replace(right, wrong);
            assert_ne!(check(&text), Vec::<String>::new(), "{wrong}");
        }
    }

    #[test]
    fn the_schema_refuses_unknown_keys_wrong_types_and_missing_keys() {
        let example = include_str!("../../../examples/fashion-mnist.toml");
        for (right, wrong) in [
            ("epochs = 10", "epoch = 10"),
            ("epochs = 10", "epochs = 'ten'"),
            ("epochs = 10", "epochs = 0"),
            ("name = \"fashion-mnist\"", ""),
            ("momentum = 0.9", "betas = [0.9, 0.9]"),
            ("kind = \"mlp\"", "kind = \"cnn\""),
            ("kind = \"mlp\"", "kind = \"mlp\"\nweights = 3"),
            ("dropout = 0.25", "dropout = 0.25\nlayers = []"),
            ("val_split = 0.0", "val_spit = 0.0"),
            ("val_split = 0.0", "val = { cifar = 'x' }"),
            ("val_split = 0.0", "val = { cifar = ['x'], split = 'test' }"),
            ("val_split = 0.0", "val = { cifar = 'x', split = 'val' }"),
            ("val_split = 0.0", "augment = { crop = 4 }"),
            ("val_split = 0.0", "augment = { crop_padding = -4 }"),
        ] {
            let text = example.replace(right, wrong);
            assert_ne!(text, example, "{right}");
            assert_ne!(check(&text), Vec::<String>::new(), "{wrong}");
        }
    }

    #[test]
    fn every_key_of_the_schema_says_what_it_means() {
        fn walk(schema: &Value, path: &str) {
            if let Some(properties) = schema["properties"].as_object() {
                for (key, schema) in properties {
                    let described = schema["description"].is_string() || key == "kind";
                    assert!(described, "{path}.{key} has no description");
                }
            }
            match schema {
                Value::Object(object) => {
                    object
                        .iter()
                        .for_each(|(key, s)| walk(s, &format!("{path}.{key}")));
                }
                Value::Array(items) => items.iter().for_each(|s| walk(s, path)),
                _ => {}
            }
        }
        walk(&schema(), "");
        assert_eq!(
            schema()["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
    }
}
