//! What a gang would send over a network in a step, wherever its workers are.

use lockstep_gang::Plan;
use serde_json::{Value, json};

/// The bytes that are sent in a step.
pub(crate) struct Traffic {
    workers: usize,
    /// By the busiest worker, where each is on a host of its own.
    worker: u64,
    /// For each number of hosts that have equally many workers, and several each, by the busiest host.
    hosts: Vec<(usize, u64)>,
}

impl Traffic {
    /// Of a gang with this plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let workers = plan.workers();
        let busiest = |bytes: Vec<u64>| bytes.into_iter().max().unwrap_or(0);
        let of_hosts = |hosts: usize| {
            let tree = plan.on_hosts(&vec![workers / hosts; hosts]).ok()?;
            Some((hosts, busiest(tree.bytes_between_hosts())))
        };
        let divisors = (2..workers).filter(|hosts| workers.is_multiple_of(*hosts));
        Self {
            workers,
            worker: busiest(plan.bytes_sent()),
            hosts: divisors.filter_map(of_hosts).collect(),
        }
    }

    /// For people; nothing where nothing is exchanged.
    pub(crate) fn words(&self) -> Option<String> {
        if self.workers == 1 {
            return None;
        }
        let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let mut words = format!(
            "on a machine of its own, each worker sends {} a step",
            megabytes(self.worker)
        );
        for &(hosts, bytes) in &self.hosts {
            let each = self.workers / hosts;
            words += &format!("; {hosts} machines of {each}, {} each", megabytes(bytes));
        }
        Some(words)
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let hosts = self.hosts.iter();
        let hosts: Vec<Value> = hosts
            .map(|(hosts, bytes)| json!({ "hosts": hosts, "by_host": bytes }))
            .collect();
        json!({ "by_worker": self.worker, "with_hosts": hosts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_several_workers_sends_what_one_worker_would() {
        let chunks = (0..64).map(|c| 1000 * c..1000 * (c + 1)).collect();
        let traffic = Traffic::of(&Plan::new(chunks, 8, 8).unwrap());
        assert_eq!(traffic.worker, (8 * 7 + 56) * 4000);
        assert_eq!(traffic.hosts, [(2, 64 * 4000), (4, (16 * 3 + 48) * 4000)]);
        let words = traffic.words().unwrap();
        assert!(
            words.ends_with("; 2 machines of 4, 0.3 MB each; 4 machines of 2, 0.4 MB each"),
            "{words}"
        );
        let alone = Traffic::of(&Plan::new(vec![0..4, 4..8], 2, 1).unwrap());
        assert_eq!(alone.words(), None);
    }
}
