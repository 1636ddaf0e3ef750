//! Where the workers of a job run on a Ray cluster, if its runs go to a folder beside it.
//!
//! Such a folder is on one node. Workers on several nodes would not find it, and the head, where Ray starts a job's
//! command, often has no processors for them. So the command and all workers run on one node that has room for them.

use super::Engine;
use crate::ClusterError;
use crate::jobs::{Client, Cluster, NodeState};
use lockstep_job::{Job, Placement};

/// What all workers of a job take together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RoomForAll {
    pub(super) cpus: f64,
    pub(super) gpus: f64,
    /// In bytes; none if it is not counted.
    pub(super) memory: Option<u64>,
}

impl RoomForAll {
    pub(super) fn of(job: &Job) -> RoomForAll {
        let workers = job.workers().max as f64;
        let each = &job.resources;
        let memory = each.memory.map(|memory| memory.0 as f64 * workers);
        RoomForAll {
            cpus: workers * each.cpus,
            gpus: workers * each.gpus,
            memory: memory.map(|memory| memory as u64),
        }
    }

    fn fits(&self, node: &crate::jobs::Node) -> bool {
        let memory = self.memory.unwrap_or_default() as f64;
        let has = [node.cpus.total, node.gpus.total, node.memory.total];
        [self.cpus, self.gpus, memory]
            .iter()
            .zip(has)
            .all(|(needed, has)| *needed <= has)
    }
}

/// Where the workers of a job run whose store, which is called so, lies beside it.
///
/// # Errors
/// When they must be on several nodes, or no node has room for all.
pub(super) fn engine(job: &Job, client: &Client, store: &str) -> Result<Engine, ClusterError> {
    // A head that does not tell its nodes is no reason to send nothing.
    match client.cluster() {
        Ok(cluster) => engine_on(&cluster, job, store),
        Err(_) => Ok(Engine::Ray),
    }
}

fn engine_on(cluster: &Cluster, job: &Job, store: &str) -> Result<Engine, ClusterError> {
    let alive = cluster.nodes.iter();
    let mut working = alive.filter(|node| node.state == NodeState::Alive && node.cpus.total > 0.0);
    let refused = |why: String| {
        Err(ClusterError::StoreOfOneNode {
            store: store.to_owned(),
            why,
        })
    };
    let (first, others) = (working.next(), working.clone().count());
    if first.is_some_and(|node| node.head) && others == 0 {
        return Ok(Engine::Ray);
    }
    if job.resources.place == Placement::StrictSpread {
        return refused("resources.place wants each worker on a node of its own".to_owned());
    }
    if !job.resources.labels.is_empty() {
        return refused("resources.labels wants workers on certain nodes".to_owned());
    }
    let room = RoomForAll::of(job);
    if first.into_iter().chain(working).any(|node| room.fits(node)) {
        return Ok(Engine::Local);
    }
    let largest = cluster.nodes.iter().map(|node| node.cpus.total);
    refused(format!(
        "no node has room for all {workers} workers: they need {cpus} processors{gpus}{memory}, and the largest node has \
         {largest}",
        workers = job.workers().max,
        cpus = room.cpus,
        gpus = match room.gpus > 0.0 {
            true => format!(", {} GPUs", room.gpus),
            false => String::new(),
        },
        memory = match room.memory {
            Some(bytes) => format!(", {bytes} bytes of memory"),
            None => String::new(),
        },
        largest = largest.fold(0.0, f64::max),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{Amount, Node};
    use std::path::Path;

    fn job(more: &str) -> Job {
        let text = format!(
            "name = \"a\"\n[data]\ntrain = \"fashion-mnist:train\"\n[model]\nkind = \"mlp\"\nhidden = [4]\n\
             [train]\nepochs = 1\nbatch = 8\nworkers = 2\n\
             optimizer = {{ kind = \"adam\" }}\n{more}"
        );
        Job::parse(Path::new("/job.toml"), &text, &[], None).unwrap()
    }

    fn cluster(cpus: &[f64]) -> Cluster {
        let nodes = cpus.iter().enumerate().map(|(n, &cpus)| Node {
            id: n.to_string(),
            ip: String::new(),
            hostname: String::new(),
            head: n == 0,
            state: NodeState::Alive,
            why: None,
            cpus: Amount {
                free: 0.0,
                total: cpus,
            },
            gpus: Amount::default(),
            memory: Amount::default(),
            labels: Default::default(),
        });
        Cluster {
            address: String::new(),
            ray_version: String::new(),
            lockstep_version: None,
            nodes: nodes.collect(),
            pending_nodes: 0,
            waiting: Vec::new(),
        }
    }

    #[test]
    fn workers_whose_store_lies_on_one_node_are_all_there() {
        let on = |cpus: &[f64], more: &str| engine_on(&cluster(cpus), &job(more), "runs");
        assert_eq!(on(&[4.0], "").unwrap(), Engine::Ray);
        assert_eq!(on(&[4.0, 0.0], "").unwrap(), Engine::Ray);
        for cpus in [&[0.0, 2.0][..], &[1.0, 1.0, 2.0], &[4.0, 4.0]] {
            assert_eq!(on(cpus, "").unwrap(), Engine::Local, "{cpus:?}");
        }
    }

    #[test]
    fn what_one_node_cannot_do_is_refused_before_anything_is_sent() {
        let says = |cpus: &[f64], more: &str, words: &[&str]| {
            let error = engine_on(&cluster(cpus), &job(more), "runs").unwrap_err();
            let error = error.to_string();
            for word in words.iter().chain(&["run.store", "`runs`", "URL"]) {
                assert!(error.contains(word), "{word}: {error}");
            }
        };
        says(&[0.0, 1.0, 1.0], "", &["need 2 processors", "has 1"]);
        says(&[0.0], "", &["has 0"]);
        let resources = "[resources]\nmemory = \"1 GiB\"\n";
        says(&[0.0, 2.0], resources, &["2147483648 bytes of memory"]);
        let spread = "[resources]\nplace = \"strict-spread\"\n";
        says(&[4.0, 4.0], spread, &["on a node of its own"]);
        let labels = "[resources]\nlabels = { zone = \"a\" }\n";
        says(&[4.0, 4.0], labels, &["resources.labels"]);
    }
}
