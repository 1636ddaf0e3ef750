//! The parameters of a run: the keys of its job file, each with its value.

use serde_json::Value;
use std::collections::BTreeMap;

/// Every key of a job file with its value. Keys are paths as `--set` takes them, except that the items of a list of
/// tables are numbered: `model.layers[0].kind`. A text that is no TOML has none.
pub(crate) fn params(text: &str) -> BTreeMap<String, Value> {
    let mut params = BTreeMap::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        for (key, value) in table {
            flatten(key, value, &mut params);
        }
    }
    params
}

fn flatten(path: String, value: toml::Value, params: &mut BTreeMap<String, Value>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten(format!("{path}.{key}"), value, params);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for (number, item) in items.into_iter().enumerate() {
                flatten(format!("{path}[{number}]"), item, params);
            }
        }
        value => drop(params.insert(path, plain(value))),
    }
}

fn plain(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Array(items) => items.into_iter().map(plain).collect(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_set_takes() {
        let text = "name = \"a\"\n[model]\nhidden = [24, 16]\nlayers = [{ kind = \"relu\" }]\n\
            [train]\noptimizer = { kind = \"sgd\", lr = 0.05 }\n";
        let params = params(text);
        assert_eq!(params["train.optimizer.lr"], 0.05);
        assert_eq!(params["model.hidden"], serde_json::json!([24, 16]));
        assert_eq!(params["model.layers[0].kind"], "relu");
        assert_eq!(params["name"], "a");
    }
}
