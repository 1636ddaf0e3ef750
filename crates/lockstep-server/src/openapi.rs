//! `/api/openapi.json`: all that the server answers, described from the same declarations that the router is made from.
//!
//! The pages themselves and what they load are left out: they are for browsers.

use crate::endpoint::{BYTES, Endpoint, JSON};
use crate::routes::ENDPOINTS;
use http::Method;
use serde_json::{Map, Value, json};

/// The description.
pub(crate) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.described) {
        let name = endpoint.path.replace("{*", "{");
        let method = endpoint.method.as_str().to_ascii_lowercase();
        let described = describe(endpoint, &method, &name);
        paths.entry(name).or_insert_with(|| json!({}))[method] = described;
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

fn describe(endpoint: &Endpoint, method: &str, path: &str) -> Value {
    let mut parameters = Vec::new();
    for part in path.split('/') {
        if let Some(name) = part
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
        {
            let schema = json!({ "type": "string", "minLength": 1 });
            parameters
                .push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
    }
    for (name, needed, kind) in keys(endpoint.query) {
        parameters.push(
            json!({ "name": name, "in": "query", "required": needed, "schema": schema(kind) }),
        );
    }
    let mut described = json!({
        "summary": endpoint.summary,
        "operationId": format!("{method} {path}"),
        "parameters": parameters,
        "responses": {
            "200": { "description": "done", "content": { endpoint.answer: {} } },
            "4XX": { "description": "refused: the body says why" },
        },
    });
    if !endpoint.body.is_empty() {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, needed, kind) in keys(endpoint.body) {
            properties.insert(name.to_owned(), schema(kind));
            if needed {
                required.push(name);
            }
        }
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        described["requestBody"] =
            json!({ "required": true, "content": { JSON: { "schema": schema } } });
    } else if endpoint.method == Method::PUT {
        let schema = json!({ "type": "string", "format": "binary" });
        described["requestBody"] =
            json!({ "required": true, "content": { BYTES: { "schema": schema } } });
    }
    described
}

/// Each key with whether it is needed, and its type.
fn keys(all: &str) -> impl Iterator<Item = (&str, bool, &str)> {
    all.split_whitespace().map(|key| {
        let (name, kind) = key.split_once(':').unwrap_or((key, "string"));
        match name.strip_suffix('!') {
            Some(name) => (name, true, kind),
            None => (name, false, kind),
        }
    })
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

    #[test]
    fn a_route_is_described_by_what_it_takes() {
        let document = document();
        let file = &document["paths"]["/api/2.0/mlflow-artifacts/artifacts/{path}"]["put"];
        assert_eq!(file["parameters"][0]["name"], "path");
        assert!(file["requestBody"]["content"][BYTES].is_object());
        let submit = &document["paths"]["/api/jobs/"]["post"];
        let schema = &submit["requestBody"]["content"][JSON]["schema"];
        assert_eq!(schema["required"], json!(["entrypoint"]));
        assert!(document["paths"]["/login"].is_null());
        assert!(document["paths"]["/api/3.0/mlflow/runs/create"].is_null());
    }
}
