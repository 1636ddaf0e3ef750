//! What a client asks for, from JSON. Keys that are not known are passed over; those that are must make sense.

use crate::bounded_json;
use lockstep_queue::{Needs, Submission};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Reads a submission. Says what is wrong with it.
pub(super) fn read(body: &[u8]) -> Result<Submission, String> {
    let body = bounded_json::read(body)
        .map_err(|error| format!("the body must be a JSON object that describes a job: {error}"))?;
    let Value::Object(map) = body else {
        return Err(
            "the body must be a JSON object, such as {\"entrypoint\": \"true\"}".to_owned(),
        );
    };
    let entrypoint = text(&map, "entrypoint")?;
    let entrypoint = entrypoint.ok_or("entrypoint is missing: the command that is to run")?;
    let id = match text(&map, "submission_id")? {
        Some(id) => Some(id),
        // What it was called before.
        None => text(&map, "job_id")?,
    };
    let runtime_env = object(&map, "runtime_env")?;
    if let Some(variables) = runtime_env.get("env_vars") {
        let known = variables
            .as_object()
            .ok_or("runtime_env.env_vars must be an object")?;
        texts("runtime_env.env_vars", known)?;
    }
    Ok(Submission {
        id,
        user: String::new(),
        entrypoint,
        runtime_env: runtime_env.into_iter().collect(),
        metadata: texts("metadata", &object(&map, "metadata")?)?,
        needs: needs(&map)?,
        highest_priority: None,
    })
}

fn needs(map: &Map<String, Value>) -> Result<Needs, String> {
    let memory = amount(map, "entrypoint_memory")?.unwrap_or(0.0);
    if memory < 0.0 {
        return Err(format!("entrypoint_memory: {memory} is no number of bytes"));
    }
    let mut resources = BTreeMap::new();
    let given = object(map, "entrypoint_resources")?;
    for name in given.keys() {
        let wanted = amount(&given, name).map_err(|why| format!("entrypoint_resources.{why}"))?;
        resources.insert(name.clone(), wanted.unwrap_or(0.0));
    }
    let key = "entrypoint_label_selector";
    Ok(Needs {
        cpus: amount(map, "entrypoint_num_cpus")?,
        gpus: amount(map, "entrypoint_num_gpus")?.unwrap_or(0.0),
        memory: memory as u64,
        resources,
        labels: texts(key, &object(map, key)?)?,
    })
}

fn given<'m>(map: &'m Map<String, Value>, key: &str) -> Option<&'m Value> {
    map.get(key).filter(|value| !value.is_null())
}

fn text(map: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match given(map, key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("{key} must be a string, and is {other}")),
    }
}

fn amount(map: &Map<String, Value>, key: &str) -> Result<Option<f64>, String> {
    match given(map, key) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{key} must be a number, and is {value}")),
        },
    }
}

fn object(map: &Map<String, Value>, key: &str) -> Result<Map<String, Value>, String> {
    match given(map, key) {
        None => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(other) => Err(format!("{key} must be an object, and is {other}")),
    }
}

fn texts(name: &str, map: &Map<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let pair = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        other => Err(format!("{name}.{key} must be a string, and is {other}")),
    };
    map.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_that_rays_clients_say_is_understood_and_what_they_will_say_is_passed_over() {
        let body = json!({
            "entrypoint": "python a.py", "submission_id": "a", "job_id": null,
            "runtime_env": {"working_dir": "gcs://x.zip", "env_vars": {"A": "1"}, "of_later": 1},
            "metadata": {"owner": "me"},
            "entrypoint_num_cpus": 0.5, "entrypoint_num_gpus": 1, "entrypoint_memory": 1_000_000,
            "entrypoint_resources": {"licence": 2}, "entrypoint_label_selector": {"zone": "!z1"},
            "of_a_later_version": [1],
        });
        let read = read(body.to_string().as_bytes()).unwrap();
        assert_eq!(read.id.as_deref(), Some("a"));
        assert_eq!(read.runtime_env["working_dir"], "gcs://x.zip");
        assert_eq!(read.metadata["owner"], "me");
        assert_eq!(
            read.needs,
            Needs {
                cpus: Some(0.5),
                gpus: 1.0,
                memory: 1_000_000,
                resources: BTreeMap::from([("licence".into(), 2.0)]),
                labels: BTreeMap::from([("zone".into(), "!z1".into())]),
            }
        );
    }

    #[test]
    fn the_old_name_of_an_id_counts_and_little_is_needed() {
        let old = read(br#"{"entrypoint": "true", "job_id": "old", "metadata": null}"#).unwrap();
        assert_eq!(old.id.as_deref(), Some("old"));
        assert_eq!(read(br#"{"entrypoint": "true"}"#).unwrap().id, None);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_key() {
        for (body, key) in [
            (json!({}), "entrypoint"),
            (json!({"entrypoint": 3}), "entrypoint"),
            (
                json!({"entrypoint": "a", "submission_id": 3}),
                "submission_id",
            ),
            (
                json!({"entrypoint": "a", "metadata": {"a": 1}}),
                "metadata.a",
            ),
            (json!({"entrypoint": "a", "metadata": []}), "metadata"),
            (
                json!({"entrypoint": "a", "runtime_env": "x"}),
                "runtime_env",
            ),
            (
                json!({"entrypoint": "a", "runtime_env": {"env_vars": {"A": 1}}}),
                "runtime_env.env_vars.A",
            ),
            (
                json!({"entrypoint": "a", "entrypoint_num_cpus": "2"}),
                "entrypoint_num_cpus",
            ),
            (
                json!({"entrypoint": "a", "entrypoint_resources": {"x": "y"}}),
                "entrypoint_resources.x",
            ),
            (json!([1]), "JSON object"),
        ] {
            let why = read(body.to_string().as_bytes()).unwrap_err();
            assert!(why.contains(key), "{why}");
        }
        assert!(read(b"{").unwrap_err().contains("JSON"));
    }
}
