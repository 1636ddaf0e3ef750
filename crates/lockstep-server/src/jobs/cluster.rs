//! This machine, told as a Ray cluster of one node: what `lockstep cluster status` asks a head for.

use super::version::RAY;
use super::with_queue;
use crate::{Caller, Refusal, Role, Server};
use axum::Json;
use axum::extract::State;
use lockstep_queue::{JobStatus, JobView, Machine, Needs};
use serde_json::{Map, Value, json};

/// The list of nodes.
pub(super) async fn nodes(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Value>, Refusal> {
    caller.needs(Role::Read)?;
    let machine = &server.queue().settings().machine;
    let (id, hostname) = node();
    let total = amounts(&needs_of(machine));
    Ok(told(json!({"summary": [{
        "hostname": hostname,
        "ip": server.settings().listen.ip(),
        "raylet": {
            "nodeId": id,
            "nodeManagerAddress": server.settings().listen.ip(),
            "nodeManagerHostname": hostname,
            "state": "ALIVE",
            "isHeadNode": true,
            "resourcesTotal": total,
            "labels": machine.labels,
        },
    }]})))
}

/// This machine as a row of the list of nodes that `ray list nodes` asks for.
pub(super) fn node_row(server: &Server) -> Value {
    let machine = &server.queue().settings().machine;
    let (id, hostname) = node();
    json!({
        "node_id": id,
        "node_ip": server.settings().listen.ip(),
        "is_head_node": true,
        "state": "ALIVE",
        "state_message": null,
        "node_name": hostname,
        "resources_total": amounts(&needs_of(machine)),
        "labels": machine.labels,
        "start_time_ms": null,
        "end_time_ms": null,
    })
}

/// What of it is used, and what is waited for.
pub(super) async fn status(
    State(server): State<Server>,
    caller: Caller,
) -> Result<Json<Value>, Refusal> {
    caller.needs(Role::Read)?;
    let jobs = with_queue(&server, |queue| Ok(queue.list())).await?;
    let total = needs_of(&server.queue().settings().machine);
    let used = |name: &str| -> f64 {
        let running = jobs.iter().filter(|job| job.status == JobStatus::Running);
        let of = running.filter_map(|job| amounts(&job.needs).get(name)?.as_f64());
        of.sum()
    };
    let usage: Map<String, Value> = amounts(&total)
        .into_iter()
        .map(|(name, there)| {
            let used = used(&name);
            (name, json!([used, there]))
        })
        .collect();
    let waits = |job: &&JobView| job.status == JobStatus::Pending;
    let waiting: Vec<Value> = jobs
        .iter()
        .filter(waits)
        .map(|job| json!([amounts(&job.needs), 1]))
        .collect();
    let (id, _) = node();
    Ok(told(json!({"clusterStatus": {
        "loadMetricsReport": {
            "usage": usage,
            "usageByNode": {id: usage},
            "resourceDemand": waiting,
        },
        "autoscalerReport": {"pendingNodes": [], "pendingLaunches": {}},
        "rayVersion": RAY,
    }})))
}

/// All that a machine has, as if it were asked for.
fn needs_of(machine: &Machine) -> Needs {
    Needs {
        cpus: Some(machine.cpus),
        gpus: f64::from(machine.gpus),
        memory: machine.memory,
        resources: machine.resources.clone(),
        ..Needs::default()
    }
}

/// Amounts by Ray's names.
fn amounts(needs: &Needs) -> Map<String, Value> {
    let mut amounts = Map::new();
    amounts.insert("CPU".to_owned(), needs.cpus().into());
    amounts.insert("GPU".to_owned(), needs.gpus.into());
    amounts.insert("memory".to_owned(), (needs.memory as f64).into());
    for (name, amount) in &needs.resources {
        amounts.insert(name.clone(), (*amount).into());
    }
    amounts.retain(|_, amount| amount.as_f64() != Some(0.0));
    amounts
}

/// This machine's id, which stays, and its name.
fn node() -> (String, String) {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().to_owned();
    (lockstep_base::fs::sha256(name.as_bytes()), name)
}

pub(super) fn told(data: Value) -> Json<Value> {
    Json(json!({"result": true, "msg": "", "data": data}))
}
