//! The loop over turns.

use crate::machine::load;
use crate::{Busy, Comparison, MachineFacts, Measured, Network, Plan, Setting, Turn};

/// What a setting is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Nothing is counted: files come into memory, data is decoded.
    WarmUp,
    /// It counts.
    Turn,
}

/// How measuring ended.
#[derive(Debug)]
pub enum BenchEnd<E> {
    /// Every turn was measured.
    Complete,
    /// Somebody asked to stop.
    Stopped,
    /// A turn failed.
    Failed(E),
}

/// Measures a setting once; nothing where somebody asked to stop.
pub type MeasureOne<'a, E> = dyn FnMut(Part, &Setting) -> Result<Option<Measured>, E> + 'a;

/// All that is known before the first turn.
#[derive(Debug, Clone)]
pub struct Bench {
    /// What is measured.
    pub plan: Plan,
    /// Where.
    pub machine: MachineFacts,
    /// The job's name.
    pub job: String,
    /// The command, to be given again.
    pub command: String,
    /// When it began, in UTC.
    pub created: String,
    /// Threads of a worker.
    pub threads: usize,
    /// Numbers of workers to forecast, and the network between them.
    pub predict: Option<(Vec<usize>, Network)>,
}

impl Bench {
    /// Measures every setting in its turns.
    ///
    /// `one` measures a setting and returns nothing where somebody asked to stop. `keep` is given what is known after
    /// every turn, and once more at the end.
    ///
    /// # Errors
    /// When what was measured cannot be kept. A turn that fails is no error: what was measured before it is returned.
    pub fn measure<E: std::fmt::Display>(
        &self,
        one: &mut MeasureOne<'_, E>,
        keep: &mut dyn FnMut(&Comparison) -> Result<(), E>,
    ) -> Result<(Comparison, BenchEnd<E>), E> {
        let mut turns = Vec::new();
        let ended = self.turns(&mut turns, one, keep)?;
        let error = match &ended {
            BenchEnd::Complete => None,
            BenchEnd::Stopped => Some("interrupted".to_owned()),
            BenchEnd::Failed(error) => Some(format!("{error:#}")),
        };
        let comparison = Comparison::of(self, &turns, error, load());
        if !turns.is_empty() {
            keep(&comparison)?;
        }
        Ok((comparison, ended))
    }

    fn turns<E>(
        &self,
        turns: &mut Vec<Turn>,
        one: &mut MeasureOne<'_, E>,
        keep: &mut dyn FnMut(&Comparison) -> Result<(), E>,
    ) -> Result<BenchEnd<E>, E> {
        for setting in &self.plan.settings {
            match one(Part::WarmUp, setting) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(BenchEnd::Stopped),
                Err(error) => return Ok(BenchEnd::Failed(error)),
            }
        }
        let order = self.plan.turns();
        let last = order.len();
        for (number, (round, setting)) in order.into_iter().enumerate() {
            let before = Busy::now();
            let measured = match one(Part::Turn, &self.plan.settings[setting]) {
                Ok(Some(measured)) => measured,
                Ok(None) => return Ok(BenchEnd::Stopped),
                Err(error) => return Ok(BenchEnd::Failed(error)),
            };
            let taken = before.and_then(|before| before.since());
            turns.push(Turn {
                round,
                setting,
                measured,
                taken: taken.unwrap_or_default(),
            });
            if number + 1 < last {
                let so_far = Some("not all turns are measured yet".to_owned());
                keep(&Comparison::of(self, turns, so_far, load()))?;
            }
        }
        Ok(BenchEnd::Complete)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn bench(workers: &[usize], rounds: usize) -> Bench {
        let mut machine = MachineFacts::find();
        machine.machine.cores = 64;
        machine.threads_per_core = 1;
        machine.cgroup_cores = None;
        Bench {
            plan: Plan::new(workers, &[], Some(32), rounds, false)
                .unwrap()
                .with_limits(),
            machine,
            job: "small".into(),
            command: "lockstep bench small.toml".into(),
            created: "2026-11-16 22:00".into(),
            threads: 1,
            predict: None,
        }
    }

    /// A machine on which n workers take the n-th part of 12 seconds, and a bit.
    pub(crate) fn steady(setting: &Setting) -> Measured {
        let workers = setting.workers as f64;
        Measured {
            training_s: 12.0 / workers + 0.5 * (workers - 1.0),
            start_s: 0.1,
            total_s: 12.1 / workers,
            samples_per_s: 100.0 * workers,
            accuracy: Some(0.9),
            weights_sha256: Some("ab".into()),
            ..Measured::default()
        }
    }

    #[test]
    fn the_speedup_is_that_of_the_medians_and_all_is_kept_after_every_turn() {
        let mut kept = 0;
        let (comparison, ended) = bench(&[1, 2], 3)
            .measure::<String>(&mut |_, setting| Ok(Some(steady(setting))), &mut |_| {
                kept += 1;
                Ok(())
            })
            .unwrap();
        assert!(matches!(ended, BenchEnd::Complete));
        assert_eq!(kept, 9, "three settings in three rounds");
        assert!(comparison.complete);
        let compared = comparison.comparison.unwrap();
        assert!((compared.speedup - 12.0 / 6.5).abs() < 1e-9);
        assert!((compared.efficiency - 6.0 / 6.5).abs() < 1e-9);
        assert_eq!(compared.limit_speedup, Some(2.0));
        assert_eq!(compared.same_weights, Some(true));
    }

    #[test]
    fn a_turn_that_fails_leaves_what_was_measured_before() {
        let mut turns = 0;
        let (comparison, ended) = bench(&[1, 2], 3)
            .measure::<String>(
                &mut |part, setting| {
                    turns += usize::from(part == Part::Turn);
                    match turns {
                        5.. => Err("the disk is full".into()),
                        _ => Ok(Some(steady(setting))),
                    }
                },
                &mut |_| Ok(()),
            )
            .unwrap();
        assert!(matches!(ended, BenchEnd::Failed(_)));
        assert_eq!(comparison.turns.len(), 4);
        assert_eq!(comparison.error.as_deref(), Some("the disk is full"));
        assert!(!comparison.complete);
    }
}
