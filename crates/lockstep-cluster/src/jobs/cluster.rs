//! The nodes of a cluster, as far as the REST API of its head tells.
//!
//! Two answers are joined by the nodes' ids: the list of nodes, asked for past the head's cache, and the load that
//! the autoscaler sees. A node that drains is told by no version so far (2.53 to 2.60 say "active" to its end); the
//! state is read where a later one says it.

use crate::jobs::{Client, JobsError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is done, in errors.
const DOING: &str = "ask for the nodes";

/// The nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// Where its head is.
    pub address: String,
    /// The version of Ray on its head; of a `lockstep serve`, the one that it is like.
    pub ray_version: String,
    /// The version of a `lockstep serve`; nothing of a Ray head.
    pub lockstep_version: Option<String>,
    /// The head first, then by address.
    pub nodes: Vec<Node>,
    /// Nodes that the autoscaler is bringing.
    pub pending_nodes: usize,
    /// What tasks, actors and placement groups ask for and have not got.
    pub waiting: Vec<BTreeMap<String, f64>>,
}

/// How a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeState {
    /// It takes work.
    Alive,
    /// It takes no new work and will go.
    Draining,
    /// It is gone.
    Dead,
}

/// So much of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Amount {
    /// What nobody has taken.
    pub free: f64,
    /// All there is.
    pub total: f64,
}

/// One machine of a cluster, as Ray's scheduler sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// Ray's id of it.
    pub id: String,
    /// The address by which the others reach it.
    pub ip: String,
    /// Its name.
    pub hostname: String,
    /// Whether it is the head.
    pub head: bool,
    /// How it is.
    pub state: NodeState,
    /// Why it is so, in the head's words.
    pub why: Option<String>,
    /// Processors.
    pub cpus: Amount,
    /// GPUs.
    pub gpus: Amount,
    /// Bytes of memory that jobs may ask for.
    pub memory: Amount,
    /// Labels, without Ray's own.
    pub labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

#[derive(Deserialize)]
struct Summary {
    summary: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    hostname: Option<String>,
    ip: Option<String>,
    raylet: Raylet,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raylet {
    node_id: String,
    node_manager_address: Option<String>,
    node_manager_hostname: Option<String>,
    state: Option<String>,
    state_message: Option<String>,
    state_snapshot: Option<Snapshot>,
    #[serde(default)]
    is_head_node: bool,
    #[serde(default)]
    resources_total: BTreeMap<String, f64>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Snapshot {
    state: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    cluster_status: Option<ClusterStatus>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ClusterStatus {
    load_metrics_report: Option<Load>,
    autoscaler_report: Option<Autoscaler>,
}

/// What is used and what there is of each resource, by node.
type Usage = BTreeMap<String, BTreeMap<String, (f64, f64)>>;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Load {
    usage_by_node: Option<Usage>,
    resource_demand: Vec<(BTreeMap<String, f64>, u64)>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Autoscaler {
    pending_nodes: Vec<serde_json::Value>,
    pending_launches: Option<BTreeMap<String, u64>>,
}

impl Client {
    /// The nodes of the cluster, and what is free on them.
    ///
    /// # Errors
    /// When the head cannot be reached or its answer makes no sense.
    pub fn cluster(&self) -> Result<Cluster, JobsError> {
        let summary: Envelope<Summary> = self.get_json(DOING, "/nodes?view=summary&nocache=1")?;
        let status: Envelope<Status> = self.get_json(DOING, "/api/cluster_status")?;
        let cluster = join(
            self.address().to_string(),
            self.ray_version().to_owned(),
            summary.data,
            status.data,
        );
        Ok(Cluster {
            lockstep_version: self.lockstep_version().map(str::to_owned),
            ..cluster
        })
    }
}

fn join(address: String, ray_version: String, summary: Summary, status: Status) -> Cluster {
    let status = status.cluster_status.unwrap_or_default();
    let load = status.load_metrics_report.unwrap_or_default();
    let scaler = status.autoscaler_report.unwrap_or_default();
    let usage = load.usage_by_node.unwrap_or_default();
    let mut nodes: Vec<Node> = summary
        .summary
        .into_iter()
        .map(|listed| node(listed, &usage))
        .collect();
    nodes.sort_by(|a, b| (!a.head, &a.ip, &a.id).cmp(&(!b.head, &b.ip, &b.id)));
    let launches = scaler.pending_launches.unwrap_or_default();
    let launching: u64 = launches.values().sum();
    let waiting = load.resource_demand.into_iter().flat_map(|(what, count)| {
        let times = usize::try_from(count).unwrap_or(1).min(1000);
        std::iter::repeat_n(what, times)
    });
    Cluster {
        address,
        ray_version,
        lockstep_version: None,
        nodes,
        pending_nodes: scaler.pending_nodes.len() + usize::try_from(launching).unwrap_or(0),
        waiting: waiting.collect(),
    }
}

fn node(listed: Listed, usage: &Usage) -> Node {
    let raylet = listed.raylet;
    let used = usage.get(&raylet.node_id);
    let dead = raylet.state.as_deref() == Some("DEAD");
    let draining = raylet
        .state_snapshot
        .and_then(|snapshot| snapshot.state)
        .is_some_and(|state| state.eq_ignore_ascii_case("draining"));
    let amount = |resource: &str| {
        let total = raylet.resources_total.get(resource).copied();
        match used.and_then(|used| used.get(resource)) {
            _ if dead => Amount::default(),
            Some((used, total)) => Amount {
                free: (total - used).max(0.0),
                total: *total,
            },
            None => Amount {
                free: total.unwrap_or_default(),
                total: total.unwrap_or_default(),
            },
        }
    };
    let name = |own: Option<String>, other: Option<String>| {
        let told = |name: &String| !name.is_empty();
        let name = own.filter(told).or(other.filter(told));
        name.unwrap_or_default()
    };
    Node {
        cpus: amount("CPU"),
        gpus: amount("GPU"),
        memory: amount("memory"),
        ip: name(listed.ip, raylet.node_manager_address),
        hostname: name(listed.hostname, raylet.node_manager_hostname),
        head: raylet.is_head_node,
        state: match (dead, draining) {
            (true, _) => NodeState::Dead,
            (false, true) => NodeState::Draining,
            (false, false) => NodeState::Alive,
        },
        why: raylet.state_message.filter(|why| !why.is_empty()),
        labels: raylet
            .labels
            .into_iter()
            .filter(|(key, _)| !key.starts_with("ray.io/"))
            .collect(),
        id: raylet.node_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_make_one_list_with_the_head_first() {
        let summary = r#"{"summary": [
            {"ip": "10.0.0.2", "hostname": "b", "raylet": {"nodeId": "n2", "state": "ALIVE",
              "resourcesTotal": {"CPU": 8.0, "GPU": 2.0, "memory": 1000.0},
              "labels": {"ray.io/node-id": "n2", "zone": "z1"}, "stateSnapshot": {"state": "DRAINING"}}},
            {"ip": "10.0.0.9", "hostname": "a", "raylet": {"nodeId": "n1", "state": "ALIVE", "isHeadNode": true,
              "resourcesTotal": {"CPU": 2.0}}},
            {"raylet": {"nodeId": "n3", "state": "DEAD", "nodeManagerAddress": "10.0.0.3",
              "resourcesTotal": {"CPU": 4.0}, "stateMessage": "health check failed"}}]}"#;
        let status = r#"{"clusterStatus": {
            "loadMetricsReport": {"usageByNode": {"n2": {"CPU": [6.0, 8.0], "memory": [0.0, 1000.0]}},
              "resourceDemand": [[{"CPU": 4.0}, 2]]},
            "autoscalerReport": {"pendingNodes": [["10.0.0.4", "worker", "setting up"]], "pendingLaunches": {"w": 2}}}}"#;
        let cluster = join(
            "http://head".into(),
            "2.60.0".into(),
            serde_json::from_str(summary).unwrap(),
            serde_json::from_str(status).unwrap(),
        );
        let ids: Vec<&str> = cluster.nodes.iter().map(|node| node.id.as_str()).collect();
        assert_eq!(ids, ["n1", "n2", "n3"]);
        let busy = &cluster.nodes[1];
        assert_eq!(
            busy.cpus,
            Amount {
                free: 2.0,
                total: 8.0
            }
        );
        assert_eq!(
            busy.gpus,
            Amount {
                free: 2.0,
                total: 2.0
            }
        );
        assert_eq!(busy.state, NodeState::Draining);
        assert_eq!(busy.labels.len(), 1);
        let dead = &cluster.nodes[2];
        assert_eq!((dead.state, dead.cpus.total), (NodeState::Dead, 0.0));
        assert_eq!((cluster.pending_nodes, cluster.waiting.len()), (3, 2));
    }

    #[test]
    fn a_head_without_an_autoscaler_says_less_and_is_read_all_the_same() {
        let summary = r#"{"summary": [{"raylet": {"nodeId": "n1"}}]}"#;
        let status = r#"{"clusterStatus": null, "autoscalingStatus": null}"#;
        let cluster = join(
            String::new(),
            String::new(),
            serde_json::from_str(summary).unwrap(),
            serde_json::from_str(status).unwrap(),
        );
        assert_eq!(cluster.nodes.len(), 1);
    }
}
