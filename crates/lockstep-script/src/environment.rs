//! What frameworks expect in the environment of a script that is one of several.
//!
//! PyTorch's are those that `torchrun` sets; TensorFlow reads `TF_CONFIG`, JAX and XGBoost variables of their own. All
//! are set, since nobody knows which the script uses. The ports are new in every generation: those of the last may
//! still be taken by a process that is on its way out. Threads of numerical libraries are divided among the workers of a
//! machine, unless the user said how many there should be.

use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::{IpAddr, TcpListener};

/// Ports that a worker offers: for PyTorch, TensorFlow, JAX and XGBoost.
const PORTS: usize = 4;

/// The variable that says how many threads numerical libraries use.
const THREADS: &str = "OMP_NUM_THREADS";

/// Where a worker is, as it tells the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerAddress {
    /// Its machine's name.
    pub(crate) node: String,
    /// Under which the others reach it.
    pub(crate) address: IpAddr,
    /// Ports that were free.
    pub(crate) ports: Vec<u16>,
}

impl WorkerAddress {
    /// Of a worker on this machine, with free ports.
    pub(crate) fn here(address: IpAddr) -> std::io::Result<Self> {
        // Held together, so that no port is offered twice.
        let listeners: Vec<TcpListener> = (0..PORTS)
            .map(|_| TcpListener::bind((address, 0)))
            .collect::<Result<_, _>>()?;
        let ports = listeners
            .iter()
            .map(|listener| Ok(listener.local_addr()?.port()));
        Ok(Self {
            node: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            address,
            ports: ports.collect::<std::io::Result<_>>()?,
        })
    }

    fn at(&self, port: usize) -> String {
        let port = self.ports.get(port).copied().unwrap_or_default();
        match self.address {
            IpAddr::V4(address) => format!("{address}:{port}"),
            IpAddr::V6(address) => format!("[{address}]:{port}"),
        }
    }
}

/// A worker's place among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placing {
    pub(crate) rank: usize,
    pub(crate) workers: usize,
    pub(crate) local_rank: usize,
    pub(crate) local_workers: usize,
    pub(crate) node_rank: usize,
    pub(crate) nodes: usize,
}

impl Placing {
    /// Of `rank` among workers that are at these places, by rank.
    pub(crate) fn of(rank: usize, all: &[WorkerAddress]) -> Self {
        let mut nodes: Vec<&str> = Vec::new();
        for place in all {
            if !nodes.contains(&place.node.as_str()) {
                nodes.push(&place.node);
            }
        }
        let own = all[rank].node.as_str();
        let is_here = |place: &&WorkerAddress| place.node == own;
        Self {
            rank,
            workers: all.len(),
            local_rank: all[..rank].iter().filter(is_here).count(),
            local_workers: all.iter().filter(is_here).count(),
            node_rank: nodes.iter().position(|node| *node == own).unwrap_or(0),
            nodes: nodes.len(),
        }
    }
}

/// The variables of a script, beside those that its user set.
pub(crate) fn variables(
    all: &[WorkerAddress],
    placing: &Placing,
    run: &str,
    (generation, max_restarts): (u16, u32),
    error_file: &str,
) -> Vec<(&'static str, String)> {
    let first = &all[0];
    let cluster: Vec<String> = all.iter().map(|place| place.at(1)).collect();
    let config = json!({
        "cluster": { "worker": cluster },
        "task": { "type": "worker", "index": placing.rank },
    });
    let port = |at: usize| first.ports.get(at).copied().unwrap_or_default().to_string();
    let (rank, workers) = (placing.rank.to_string(), placing.workers.to_string());
    let mut variables = vec![
        ("RANK", rank.clone()),
        ("WORLD_SIZE", workers.clone()),
        ("LOCAL_RANK", placing.local_rank.to_string()),
        ("LOCAL_WORLD_SIZE", placing.local_workers.to_string()),
        ("GROUP_RANK", placing.node_rank.to_string()),
        ("GROUP_WORLD_SIZE", placing.nodes.to_string()),
        ("ROLE_RANK", rank.clone()),
        ("ROLE_NAME", "default".to_owned()),
        ("ROLE_WORLD_SIZE", workers.clone()),
        ("NODE_RANK", placing.node_rank.to_string()),
        ("MASTER_ADDR", first.address.to_string()),
        ("MASTER_PORT", port(0)),
        ("TORCHELASTIC_RESTART_COUNT", (generation - 1).to_string()),
        ("TORCHELASTIC_MAX_RESTARTS", max_restarts.to_string()),
        ("TORCHELASTIC_RUN_ID", run.to_owned()),
        ("TORCHELASTIC_USE_AGENT_STORE", "False".to_owned()),
        ("TORCHELASTIC_ERROR_FILE", error_file.to_owned()),
        ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1".to_owned()),
        ("JAX_COORDINATOR_ADDRESS", first.at(2)),
        ("JAX_NUM_PROCESSES", workers.clone()),
        ("JAX_PROCESS_ID", rank.clone()),
        ("DMLC_TRACKER_URI", first.address.to_string()),
        ("DMLC_TRACKER_PORT", port(3)),
        ("DMLC_TASK_ID", rank),
        ("DMLC_NUM_WORKER", workers),
        // What a script prints is seen when it prints it.
        ("PYTHONUNBUFFERED", "1".to_owned()),
    ];
    if placing.local_workers > 1 && std::env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / placing.local_workers).max(1);
        variables.push((THREADS, threads.to_string()));
    }
    if placing.workers > 1 {
        variables.push(("TF_CONFIG", config.to_string()));
        // Keras 3 has no strategy for several workers.
        variables.push(("TF_USE_LEGACY_KERAS", "1".to_owned()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(node: &str, last: u8) -> WorkerAddress {
        WorkerAddress {
            node: node.to_owned(),
            address: IpAddr::from([10, 0, 0, last]),
            ports: vec![100, 200, 300, 400],
        }
    }

    #[test]
    fn ranks_are_counted_on_each_node_and_over_all() {
        let all = [place("b", 1), place("a", 2), place("b", 1)];
        let third = Placing::of(2, &all);
        assert_eq!((third.local_rank, third.local_workers), (1, 2));
        assert_eq!((third.node_rank, third.nodes), (0, 2));
        assert_eq!(Placing::of(1, &all).node_rank, 1);
    }

    #[test]
    fn every_framework_finds_what_it_reads() {
        let all = [place("a", 1), place("b", 2)];
        let found = variables(&all, &Placing::of(1, &all), "run", (3, 5), "/e.json");
        let value = |name: &str| {
            let found = found.iter().find(|(found, _)| *found == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(value("MASTER_ADDR"), Some("10.0.0.1"));
        assert_eq!(value("MASTER_PORT"), Some("100"));
        assert_eq!(value("TORCHELASTIC_RESTART_COUNT"), Some("2"));
        assert_eq!(
            value("TF_CONFIG"),
            Some(
                r#"{"cluster":{"worker":["10.0.0.1:200","10.0.0.2:200"]},"task":{"index":1,"type":"worker"}}"#
            )
        );
        assert_eq!(value("JAX_COORDINATOR_ADDRESS"), Some("10.0.0.1:300"));
        assert_eq!(value("DMLC_TRACKER_PORT"), Some("400"));
        let alone = variables(&all[..1], &Placing::of(0, &all[..1]), "run", (1, 5), "");
        assert!(alone.iter().all(|(name, _)| *name != "TF_CONFIG"));
    }
}
