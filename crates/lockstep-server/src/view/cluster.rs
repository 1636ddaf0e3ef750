//! The machines that jobs run on: this one, and those of the Ray cluster that the server was pointed at.

use super::blocking;
use super::machine::Sample;
use crate::{Refusal, Server};
use axum::Json;
use axum::extract::State;
use lockstep_jobs::{Address, Amount, Client, Cluster, Credentials, JobsError, Node, NodeState};
use serde::Serialize;

/// The machines that jobs run on.
#[derive(Debug, Serialize)]
pub(super) struct Machines {
    /// This one.
    here: Sample,
    others: Vec<Other>,
}

/// Machines elsewhere.
#[derive(Debug, Serialize)]
struct Other {
    /// What they are, for people.
    name: String,
    lead: String,
    nodes: Vec<Machine>,
    /// Why nothing is known of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// One machine elsewhere.
#[derive(Debug, PartialEq, Serialize)]
struct Machine {
    name: String,
    state: &'static str,
    cpus: Share,
    memory: Share,
    gpus: Share,
    /// What else is to be said of it.
    what: String,
}

/// So much of something.
#[derive(Debug, PartialEq, Serialize)]
struct Share {
    used: f64,
    total: f64,
}

pub(super) async fn show(State(server): State<Server>) -> Result<Json<Machines>, Refusal> {
    blocking(move || {
        let ray = server.settings().ray.iter();
        Ok(Json(Machines {
            here: Sample::take(&server),
            others: ray.map(|address| of_ray(address)).collect(),
        }))
    })
    .await
}

fn of_ray(address: &str) -> Other {
    match ask(address) {
        Ok(cluster) => Other {
            name: format!("Ray at {}", cluster.address),
            lead: lead(&cluster),
            nodes: cluster.nodes.into_iter().map(machine).collect(),
            error: None,
        },
        Err(error) => Other {
            name: format!("Ray at {address}"),
            lead: String::new(),
            nodes: Vec::new(),
            error: Some(error.to_string()),
        },
    }
}

fn ask(address: &str) -> Result<Cluster, JobsError> {
    let variable = |name: &str| std::env::var(name).ok();
    let address = Address::find(Some(address), variable)?;
    Client::connect(address, Credentials::find(None, variable)?)?.cluster()
}

fn lead(cluster: &Cluster) -> String {
    let coming = match cluster.pending_nodes {
        0 => String::new(),
        more => format!(", {more} more on their way"),
    };
    let waiting = match cluster.waiting.len() {
        0 => String::new(),
        many => format!(", {many} requests wait for room"),
    };
    let nodes = cluster.nodes.len();
    format!(
        "Ray {}, {nodes} nodes{coming}{waiting}",
        cluster.ray_version
    )
}

fn machine(node: Node) -> Machine {
    let share = |amount: Amount| Share {
        used: amount.total - amount.free,
        total: amount.total,
    };
    let mut what: Vec<String> = Vec::new();
    what.extend(node.head.then(|| "head".to_owned()));
    what.extend(node.why);
    what.extend(
        node.labels
            .iter()
            .map(|(key, value)| format!("{key}={value}")),
    );
    let name = match node.hostname.is_empty() {
        true => node.ip,
        false => node.hostname,
    };
    Machine {
        name,
        state: match node.state {
            NodeState::Alive => "alive",
            NodeState::Draining => "draining",
            _ => "dead",
        },
        cpus: share(node.cpus),
        memory: share(node.memory),
        gpus: share(node.gpus),
        what: what.join(", "),
    }
}
