//! `lockstep cluster`: the nodes of a cluster.

use crate::args::ClusterCommand;
use crate::view::{bytes, harmless, lines_of, plural};
use lockstep_cluster::jobs::{Amount, Cluster, Node, NodeState};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// So much of a node's id tells it from others.
const SHORT: usize = 12;

pub(crate) fn run(command: &ClusterCommand) -> anyhow::Result<ExitCode> {
    let ClusterCommand::Status { head, json } = command;
    let cluster = head.connect()?.cluster()?;
    let text = match json {
        true => serde_json::to_string_pretty(&cluster)? + "\n",
        false => table(&cluster),
    };
    super::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn table(cluster: &Cluster) -> String {
    let titles = [
        "node",
        "host",
        "state",
        ">cores free",
        ">GPUs free",
        ">memory free",
        "labels, or why",
    ];
    let rows: Vec<Vec<String>> = cluster.nodes.iter().map(row).collect();
    let mut text = match &cluster.lockstep_version {
        Some(version) => format!("lockstep serve {version} at {}\n", cluster.address),
        None => format!("Ray {} at {}\n", cluster.ray_version, cluster.address),
    };
    text += &lines_of(&titles, &rows);
    let alive = |node: &&Node| node.state != NodeState::Dead;
    let total = |of: fn(&Node) -> Amount| {
        let amounts = cluster.nodes.iter().filter(alive).map(of);
        amounts.fold(Amount::default(), |sum, amount| Amount {
            free: sum.free + amount.free,
            total: sum.total + amount.total,
        })
    };
    text += &format!(
        "{}: {} cores, {} GPUs, {} of memory free\n",
        plural(cluster.nodes.iter().filter(alive).count(), "node"),
        share(total(|node| node.cpus)),
        share(total(|node| node.gpus)),
        memory(total(|node| node.memory)),
    );
    if cluster.pending_nodes > 0 {
        let coming = plural(cluster.pending_nodes, "more node");
        text += &format!("the autoscaler is bringing {coming}\n");
    }
    for (what, count) in waiting(cluster) {
        text += &format!("waiting: {count} × {what}\n");
    }
    text
}

fn row(node: &Node) -> Vec<String> {
    let state = match node.state {
        NodeState::Draining => "draining",
        NodeState::Dead => "dead",
        _ if node.head => "head",
        _ => "alive",
    };
    let cell = |shown: String| match node.state {
        NodeState::Dead => "–".to_owned(),
        _ => shown,
    };
    let labels: Vec<String> = node
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    // Of a node that is gone, its id may be all that is left.
    let name = match node.ip.is_empty() {
        true => node.id.chars().take(SHORT).collect(),
        false => node.ip.clone(),
    };
    vec![
        harmless(&name),
        harmless(&node.hostname),
        state.to_owned(),
        cell(share(node.cpus)),
        cell(share(node.gpus)),
        cell(memory(node.memory)),
        harmless(&match &node.why {
            Some(why) => why.clone(),
            None => labels.join(" "),
        }),
    ]
}

/// `1.5 of 2`
fn share(amount: Amount) -> String {
    let number = |value: f64| match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.2}"),
    };
    format!("{} of {}", number(amount.free), number(amount.total))
}

fn memory(amount: Amount) -> String {
    format!(
        "{} of {}",
        bytes(amount.free as u64),
        bytes(amount.total as u64)
    )
}

/// What is waited for, with how often.
fn waiting(cluster: &Cluster) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for wanted in &cluster.waiting {
        let parts = wanted.iter().map(|(what, much)| format!("{what} {much}"));
        *counts
            .entry(parts.collect::<Vec<_>>().join(", "))
            .or_default() += 1;
    }
    counts
}
