//! The nodes of a Kubernetes cluster, and what a namespace's pods have asked for on each.

use super::{Cluster, Machine, Share};
use lockstep_cluster::kube::{Client, Config, KubeError, KubeNode, KubeNodes, Wanted};

/// The nodes that the namespace's pods may run on.
pub(super) fn look(wanted: &Wanted) -> Cluster {
    let namespace = wanted.namespace.as_deref().unwrap_or("default");
    let name = format!("Kubernetes namespace {namespace}");
    match ask(wanted, namespace) {
        Ok((server, found)) => Cluster {
            lead: lead(&server, &found),
            nodes: found.nodes.into_iter().map(machine).collect(),
            name,
            error: None,
        },
        Err(error) => Cluster::unknown(name, &error),
    }
}

/// The client is made anew for each question: its credentials may have been changed since.
fn ask(wanted: &Wanted, namespace: &str) -> Result<(String, KubeNodes), KubeError> {
    let client = Client::new(Config::find(wanted)?)?;
    Ok((client.server().to_owned(), client.nodes(namespace)?))
}

fn lead(server: &str, found: &KubeNodes) -> String {
    let nodes = match found.complete {
        true => counted(found.nodes.len(), "node"),
        false => "nodes may not be listed, so only those with pods are shown".to_owned(),
    };
    let waiting = match found.waiting {
        0 => String::new(),
        1 => ", one pod waits for room".to_owned(),
        many => format!(", {many} pods wait for room"),
    };
    format!("{server}, {nodes}{waiting}")
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn machine(node: KubeNode) -> Machine {
    let share = |used, total| Share { used, total };
    let pods = node.pods.iter().map(|(run, count)| match run.as_str() {
        "" => counted(*count, "other pod"),
        run => format!("{run}: {}", counted(*count, "pod")),
    });
    Machine {
        state: match node.ready {
            Some(true) => "alive",
            Some(false) => "draining",
            None => "unknown",
        },
        cpus: share(node.asked.cpus, node.room.cpus),
        memory: share(node.asked.memory, node.room.memory),
        gpus: share(node.asked.gpus, node.room.gpus),
        what: pods.collect::<Vec<_>>().join(", "),
        name: node.name,
    }
}
