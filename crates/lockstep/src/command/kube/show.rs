//! Jobs on Kubernetes, shown to people and programs.

use crate::view::{harmless, lines_of};
use lockstep_cluster::kube::{Client, ClusterJob, JobState, KubeError, ManifestKind, explain};
use serde_json::{Value, json};

/// How a job is, and why its pods do not run.
pub(super) fn status(
    client: &Client,
    namespace: &str,
    name: &str,
    as_json: bool,
) -> anyhow::Result<String> {
    let job = client.job(namespace, name)?;
    let state = job.state();
    let pods = client.pods(namespace, name)?;
    let events = client.events(namespace, name);
    let reasons = explain(&job.value, &pods, &events);
    if as_json {
        let pods: Vec<Value> = pods.iter().map(pod_json).collect();
        let value = json!({
            "job": state.name, "kind": state.kind.word(), "namespace": namespace, "status": state.word,
            "message": state.message, "pods": pods, "reasons": reasons,
        });
        return Ok(serde_json::to_string_pretty(&value)? + "\n");
    }
    let mut text = format!("{:<10} {} ({})\n", "job", state.name, state.kind.word());
    text += &format!("{:<10} {}\n", "status", harmless(&state.word));
    if let Some(message) = &state.message {
        text += &format!("{:<10} {}\n", "", harmless(message));
    }
    for reason in &reasons {
        text += &format!("{:<10} {}\n", "why", harmless(reason));
    }
    if pods.is_empty() {
        return Ok(text);
    }
    let titles = ["pod", "phase", "node", "address"];
    let cell = |value: &Value| harmless(value.as_str().unwrap_or_default());
    let row = |pod: &Value| {
        vec![
            cell(&pod["metadata"]["name"]),
            cell(&pod["status"]["phase"]),
            cell(&pod["spec"]["nodeName"]),
            cell(&pod["status"]["podIP"]),
        ]
    };
    let mut rows: Vec<Vec<String>> = pods.iter().map(row).collect();
    rows.sort();
    text.push('\n');
    Ok(text + &lines_of(&titles, &rows))
}

fn pod_json(pod: &Value) -> Value {
    json!({
        "name": pod["metadata"]["name"], "phase": pod["status"]["phase"],
        "node": pod["spec"]["nodeName"], "address": pod["status"]["podIP"],
    })
}

/// The jobs of a namespace, the newest first.
pub(super) fn list(client: &Client, namespace: &str, as_json: bool) -> anyhow::Result<String> {
    let mut states: Vec<JobState> = Vec::new();
    for kind in [
        ManifestKind::Job,
        ManifestKind::RayJob,
        ManifestKind::RayCluster,
    ] {
        match client.list(kind, namespace) {
            Ok(values) => {
                states.extend(
                    values
                        .into_iter()
                        .map(|value| ClusterJob { kind, value }.state()),
                );
            }
            Err(KubeError::NoKind { .. }) => (),
            Err(error) => return Err(error.into()),
        }
    }
    states.sort_by(|a, b| b.created.cmp(&a.created));
    if as_json {
        let one = |state: &JobState| {
            json!({
                "job": state.name, "kind": state.kind.word(), "status": state.word,
                "workers": state.workers, "created": state.created,
            })
        };
        let all: Vec<Value> = states.iter().map(one).collect();
        return Ok(serde_json::to_string_pretty(&all)? + "\n");
    }
    if states.is_empty() {
        return Ok(format!("no jobs in the namespace `{namespace}`\n"));
    }
    let titles = ["job", "kind", "status", ">workers", "created"];
    let row = |state: &JobState| {
        vec![
            harmless(&state.name),
            state.kind.word().to_owned(),
            harmless(&state.word),
            state.workers.to_string(),
            harmless(&state.created),
        ]
    };
    let rows: Vec<Vec<String>> = states.iter().map(row).collect();
    Ok(lines_of(&titles, &rows))
}
