//! What is measured, and in which order.

use crate::{BenchError, Peer};
use serde::Serialize;

/// How a setting is measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A gang trains together.
    Together,
    /// As many runs of one worker each, with their share of the batch, at the same time: they exchange nothing and never
    /// wait for each other, so no gang can be faster on this machine.
    Apart,
    /// Another system trains the same job.
    Peer(Peer),
}

/// One thing that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// How.
    pub how: How,
    /// Workers.
    pub workers: usize,
    /// The samples of a step, over all workers; none where the job has no batch.
    pub batch: Option<u64>,
    /// What is compared with each other has the same: the batch, or with `--weak` that of one worker.
    pub group: Option<u64>,
}

impl Setting {
    /// What people call it.
    pub fn name(&self) -> String {
        let workers = match self.workers {
            1 => "1 worker".to_owned(),
            n => format!("{n} workers"),
        };
        let batch = self.batch.map(|batch| format!(", batch {batch}"));
        let batch = batch.unwrap_or_default();
        match &self.how {
            How::Together => workers + &batch,
            How::Apart => format!("{} runs apart{batch}", self.workers),
            How::Peer(peer) => format!("{peer}, {workers}{batch}"),
        }
    }
}

/// All that is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The settings; the first of each group is what the others of it are held against.
    pub settings: Vec<Setting>,
    /// How often each is measured.
    pub rounds: usize,
    /// Whether the batch per worker is the same, instead of the batch.
    pub weak: bool,
}

impl Plan {
    /// A plan for all `workers` with all `batches`; none means as the job has it, which is `own`.
    ///
    /// # Errors
    /// When a list is empty, a number is zero, or there is nothing to compare.
    pub fn new(
        workers: &[usize],
        batches: &[u64],
        own: Option<u64>,
        rounds: usize,
        weak: bool,
    ) -> Result<Plan, BenchError> {
        if workers.is_empty() {
            return Err(BenchError::Empty { flag: "--workers" });
        }
        if workers.contains(&0) {
            return Err(BenchError::Zero { flag: "--workers" });
        }
        if batches.contains(&0) {
            return Err(BenchError::Zero { flag: "--batch" });
        }
        if rounds == 0 {
            return Err(BenchError::Zero { flag: "--repeat" });
        }
        if weak && batches.is_empty() && own.is_none() {
            return Err(BenchError::NoBatch);
        }
        let mut workers = workers.to_vec();
        workers.sort_unstable();
        workers.dedup();
        let mut groups: Vec<Option<u64>> = batches.iter().copied().map(Some).collect();
        groups.sort_unstable();
        groups.dedup();
        if groups.is_empty() {
            groups.push(own);
        }
        if workers.len() == 1 && groups.len() == 1 {
            let workers = workers[0];
            return Err(BenchError::OneSetting { workers });
        }
        let setting = |group: Option<u64>, workers: usize| Setting {
            how: How::Together,
            workers,
            batch: group.map(|group| if weak { group * workers as u64 } else { group }),
            group,
        };
        let settings = groups
            .into_iter()
            .flat_map(|group| workers.iter().map(move |n| setting(group, *n)))
            .collect();
        Ok(Plan {
            settings,
            rounds,
            weak,
        })
    }

    /// Measures beside every gang what its workers do without each other.
    pub fn with_limits(mut self) -> Plan {
        let apart = |setting: &Setting| {
            let parts = setting.workers as u64;
            let divides = setting.batch.is_some_and(|batch| batch % parts == 0);
            (parts > 1 && divides).then(|| Setting {
                how: How::Apart,
                ..setting.clone()
            })
        };
        let limits: Vec<Setting> = self.settings.iter().filter_map(apart).collect();
        self.settings.extend(limits);
        self
    }

    /// Measures beside every gang what these other systems do with as many workers.
    pub fn with_peers(mut self, peers: &[Peer]) -> Plan {
        let gangs: Vec<Setting> = self
            .settings
            .iter()
            .filter(|one| one.how == How::Together)
            .cloned()
            .collect();
        for peer in peers {
            let of_peer = gangs.iter().map(|gang| Setting {
                how: How::Peer(*peer),
                ..gang.clone()
            });
            self.settings.extend(of_peer);
        }
        self
    }

    /// The turns in their order, each a round and the number of a setting. Every round begins with another setting, so
    /// that none always comes after the same.
    pub fn turns(&self) -> Vec<(usize, usize)> {
        let number = self.settings.len();
        let round = |round: usize| (0..number).map(move |at| (round, (at + round) % number));
        (0..self.rounds).flat_map(round).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(workers: &[usize], batches: &[u64], weak: bool) -> Plan {
        Plan::new(workers, batches, Some(32), 2, weak).unwrap()
    }

    #[test]
    fn every_round_measures_every_setting_once_and_begins_with_another() {
        let plan = plan(&[2, 1, 4, 2], &[64, 128], false).with_limits();
        assert_eq!(plan.settings.len(), 6 + 4);
        let turns = plan.turns();
        for round in 0..2 {
            let mut seen: Vec<usize> = turns
                .iter()
                .filter(|turn| turn.0 == round)
                .map(|turn| turn.1)
                .collect();
            assert_eq!(seen[0], round);
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..10));
        }
    }

    #[test]
    fn with_weak_scaling_the_batch_of_a_worker_stays() {
        let batches = |weak| {
            let settings = plan(&[1, 2], &[], weak).settings;
            settings
                .iter()
                .map(|s| (s.batch, s.group))
                .collect::<Vec<_>>()
        };
        let same = Some(32);
        assert_eq!(batches(true), [(same, same), (Some(64), same)]);
        assert_eq!(batches(false), [(same, same), (same, same)]);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let error = |workers: &[usize], batches: &[u64], rounds| {
            let plan = Plan::new(workers, batches, Some(32), rounds, false);
            plan.unwrap_err().to_string()
        };
        assert_eq!(
            error(&[1, 0], &[], 1),
            "--workers: found 0, and it must be at least 1"
        );
        assert_eq!(
            error(&[1, 2], &[0], 1),
            "--batch: found 0, and it must be at least 1"
        );
        assert_eq!(
            error(&[1, 2], &[], 0),
            "--repeat: found 0, and it must be at least 1"
        );
        assert!(error(&[], &[], 1).contains("nothing is in the list"));
        assert!(error(&[2, 2], &[], 1).contains("nothing to compare with"));
    }
}
