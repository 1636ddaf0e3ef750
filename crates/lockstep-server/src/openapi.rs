//! `/api/openapi.json`: all that the server answers, from one table.
//!
//! The table says of each operation what it is for and what it takes. A test reads the routes in the sources and fails for
//! one that is not in the table. The pages themselves and what they load are left out: they are for browsers.

mod table;

use serde_json::{Map, Value, json};
use table::OPERATIONS;

/// One operation.
struct Operation {
    /// Small letters: `get`.
    method: &'static str,
    /// With names in braces.
    path: &'static str,
    /// What it does.
    says: &'static str,
    /// What follows the question mark: the name, with `!` if it is needed, and its type.
    query: &'static [(&'static str, &'static str)],
    /// The keys of the body, in the same way; nothing for bodies of other kinds.
    body: &'static [(&'static str, &'static str)],
    /// The media type of what comes back.
    answer: &'static str,
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
const BYTES: &str = "application/octet-stream";

/// The description.
pub(crate) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = describe(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lockstep",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Jobs as Ray's clients ask for them, runs as MLflow's do, and what the pages show.",
        },
        "paths": paths,
        "components": { "securitySchemes": {
            "token": { "type": "http", "scheme": "bearer" },
            "cookie": { "type": "apiKey", "in": "cookie", "name": "ray-authentication-token" },
        } },
        "security": [{}, { "token": [] }, { "cookie": [] }],
    })
}

fn describe(operation: &Operation) -> Value {
    let mut parameters = Vec::new();
    for part in operation.path.split('/') {
        if let Some(name) = part
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
        {
            let schema = json!({ "type": "string", "minLength": 1 });
            parameters
                .push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
    }
    for (name, kind) in operation.query {
        let (name, needed) = needed(name);
        parameters.push(
            json!({ "name": name, "in": "query", "required": needed, "schema": schema(kind) }),
        );
    }
    let mut described = json!({
        "summary": operation.says,
        "operationId": format!("{} {}", operation.method, operation.path),
        "parameters": parameters,
        "responses": {
            "200": { "description": "done", "content": { operation.answer: {} } },
            "4XX": { "description": "refused: the body says why" },
        },
    });
    if !operation.body.is_empty() {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, kind) in operation.body {
            let (name, needed) = needed(name);
            properties.insert(name.to_owned(), schema(kind));
            if needed {
                required.push(name);
            }
        }
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        described["requestBody"] =
            json!({ "required": true, "content": { JSON: { "schema": schema } } });
    } else if operation.method == "put" {
        let schema = json!({ "type": "string", "format": "binary" });
        described["requestBody"] =
            json!({ "required": true, "content": { BYTES: { "schema": schema } } });
    }
    described
}

fn needed(name: &'static str) -> (&'static str, bool) {
    match name.strip_suffix('!') {
        Some(name) => (name, true),
        None => (name, false),
    }
}

/// The schema of a type: its JSON name, `texts` for a list of texts, or `pairs` for a list of keys with values.
fn schema(kind: &str) -> Value {
    match kind {
        "texts" => json!({ "type": "array", "items": { "type": "string" } }),
        "words" => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        "pairs" => {
            let text = json!({ "type": "string" });
            let pair = json!({ "type": "object", "properties": { "key": text, "value": text }, "required": ["key"] });
            json!({ "type": "array", "items": pair })
        }
        "points" => {
            let point = json!({
                "type": "object",
                "properties": {
                    "key": { "type": "string" }, "value": { "type": "number" }, "timestamp": { "type": "integer" },
                    "step": { "type": "integer" },
                },
                "required": ["key", "value"],
            });
            json!({ "type": "array", "items": point })
        }
        "tables" => json!({ "type": "array", "items": { "type": "object" } }),
        kind => json!({ "type": kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// All routes in the sources, as `.route("PATH"` has them.
    fn routes(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                routes(&path, found);
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            // These lie below a prefix, twice.
            let nested = path.ends_with("mlflow/run_routes.rs")
                || path.ends_with("mlflow/experiment_routes.rs");
            let prefix = if nested { "/api/2.0/mlflow" } else { "" };
            for rest in text.split(".route(").skip(1) {
                if let Some(rest) = rest.trim_start().strip_prefix('"') {
                    let route = rest.split('"').next().unwrap_or_default();
                    if route.starts_with('/') {
                        found.insert(format!("{prefix}{}", route.replace("{*", "{")));
                    }
                }
            }
        }
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let mut found = BTreeSet::new();
        routes(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut found,
        );
        assert!(found.len() > 40, "{found:?}");
        let for_browsers = ["/login", "/login.css", "/logout", "/assets/{path}"];
        found.retain(|route| !for_browsers.contains(&route.as_str()));
        let described: BTreeSet<String> =
            OPERATIONS.iter().map(|one| one.path.to_owned()).collect();
        let missing: Vec<_> = found.difference(&described).collect();
        assert!(missing.is_empty(), "not in openapi/table.rs: {missing:?}");
        let gone: Vec<_> = described.difference(&found).collect();
        assert!(gone.is_empty(), "no such route: {gone:?}");
    }

    #[test]
    fn no_operation_is_there_twice() {
        let mut known = BTreeSet::new();
        for operation in OPERATIONS {
            assert!(
                known.insert((operation.method, operation.path)),
                "{}",
                operation.path
            );
        }
        assert_eq!(document()["openapi"], "3.1.0");
    }
}
