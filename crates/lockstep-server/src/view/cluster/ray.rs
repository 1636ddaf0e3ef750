//! The nodes of a Ray cluster, as its head tells.

use super::{Cluster, Machine, Share};
use lockstep_cluster::jobs::{
    Address, Amount, Client, Cluster as RayCluster, Credentials, JobsError, Node, NodeState,
};

/// The nodes of the cluster whose head is there.
pub(super) fn look(address: &str) -> Cluster {
    match ask(address) {
        Ok(cluster) => Cluster {
            name: format!("Ray at {}", cluster.address),
            lead: lead(&cluster),
            nodes: cluster.nodes.into_iter().map(machine).collect(),
            error: None,
        },
        Err(error) => Cluster::unknown(format!("Ray at {address}"), &error),
    }
}

fn ask(address: &str) -> Result<RayCluster, JobsError> {
    let variable = |name: &str| std::env::var(name).ok();
    let address = Address::find(Some(address), variable)?;
    Client::connect(address, Credentials::find(None, variable)?)?.cluster()
}

fn lead(cluster: &RayCluster) -> String {
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
