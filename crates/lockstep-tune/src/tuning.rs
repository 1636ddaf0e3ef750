//! A search: what was tried, what it came to, and what is next.

use crate::halving::{REDUCTION, generation};
use crate::sample::{Observed, combinations, suggest};
use crate::{Method, Space, TuneError};
use serde::{Deserialize, Serialize};

/// What a search is told once, and never again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// What varies.
    pub space: Space,
    /// How trials are chosen.
    pub method: Method,
    /// How many there are; of a grid no more than it has.
    pub trials: usize,
    /// What random numbers come from.
    pub seed: u64,
    /// The epochs at which trials are looked at.
    pub rungs: Vec<u32>,
    /// What they are compared by, such as `val.accuracy`.
    pub metric: String,
    /// Whether more of it is better.
    pub maximise: bool,
    /// What trials are trained in: an `epoch`, or a `round` of trees.
    #[serde(default = "epoch")]
    pub unit: String,
}

/// What searches of earlier versions called it.
fn epoch() -> String {
    "epoch".to_owned()
}

/// How far a trial came, and what it was worth there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// Epochs.
    pub epochs: u32,
    /// The metric, there.
    pub value: f64,
    /// The metric after each epoch so far.
    pub curve: Vec<f64>,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its number, counted from 0.
    pub number: usize,
    /// Where it lies in the space.
    pub point: Vec<f64>,
    /// What the job is told.
    pub values: Vec<(String, String)>,
    /// What it was worth at each rung that it reached.
    pub reached: Vec<Reached>,
    /// Why it ended early by itself, such as a loss that became NaN. It counts as the poorest.
    pub failed: Option<String>,
}

/// Trials that are to be trained now, to the same rung. They do not need each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The number of the rung.
    pub rung: usize,
    /// The epochs that it stands for.
    pub epochs: u32,
    /// The numbers of the trials.
    pub trials: Vec<usize>,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Its name, from which those of its runs are made.
    pub name: String,
    /// What it was told.
    pub rules: Rules,
    /// What was tried.
    pub trials: Vec<Trial>,
}

impl Tuning {
    /// A search in which nothing was tried yet.
    ///
    /// # Errors
    /// When there are to be no trials.
    pub fn new(name: String, mut rules: Rules) -> Result<Tuning, TuneError> {
        if rules.trials == 0 {
            return Err(TuneError::Zero { flag: "--trials" });
        }
        if rules.method == Method::Grid {
            rules.trials = rules.trials.min(combinations(&rules.space));
        }
        Ok(Tuning {
            name,
            rules,
            trials: Vec::new(),
        })
    }

    /// The name of a trial's run, known before the run is made.
    pub fn run_name(&self, number: usize) -> String {
        format!("{}-{number:03}", self.name)
    }

    /// What is to be done next; nothing when all is done. It is the same as often as it is asked, until a trial has come
    /// further.
    pub fn next_round(&mut self) -> Option<Round> {
        let of_generation = generation(&self.rules.rungs);
        let mut first = 0;
        while first < self.rules.trials {
            let last = (first + of_generation).min(self.rules.trials);
            while self.trials.len() < last {
                // From earlier generations alone, however many trials of this one are done.
                let observed = self.observed(first);
                let trial = self.suggest(self.trials.len(), &observed);
                self.trials.push(trial);
            }
            let mut left: Vec<usize> = (first..last).collect();
            for (rung, epochs) in self.rules.rungs.iter().copied().enumerate() {
                let waits = |trial: &usize| {
                    let trial = &self.trials[*trial];
                    trial.failed.is_none() && trial.reached.len() <= rung
                };
                let trials: Vec<usize> = left.iter().copied().filter(waits).collect();
                if !trials.is_empty() {
                    return Some(Round {
                        rung,
                        epochs,
                        trials,
                    });
                }
                left = self.best_third(left, rung);
            }
            first = last;
        }
        None
    }

    /// The best third of some trials that have reached a rung, at least one of them; the poorest are gone.
    fn best_third(&self, trials: Vec<usize>, rung: usize) -> Vec<usize> {
        let go_on = trials.len().div_ceil(REDUCTION);
        let mut sorted: Vec<usize> = trials
            .into_iter()
            .filter(|trial| self.trials[*trial].failed.is_none())
            .collect();
        // Of equal ones the earlier: the sort is stable.
        sorted.sort_by(|a, b| self.worth(*b, rung).total_cmp(&self.worth(*a, rung)));
        sorted.truncate(go_on);
        sorted.sort_unstable();
        sorted
    }

    /// What a trial was worth at a rung: more is better, and nothing is worse than one that failed.
    fn worth(&self, trial: usize, rung: usize) -> f64 {
        let trial = &self.trials[trial];
        let value = trial.reached.get(rung).map(|reached| reached.value);
        match value.filter(|value| value.is_finite() && trial.failed.is_none()) {
            Some(value) if self.rules.maximise => value,
            Some(value) => -value,
            None => f64::MIN,
        }
    }

    /// What the first trials came to. All have reached the first rung, so there they can be compared.
    pub(crate) fn observed(&self, first: usize) -> Vec<Observed> {
        let of = |trial: &Trial| (trial.point.clone(), self.worth(trial.number, 0));
        self.trials.iter().take(first).map(of).collect()
    }

    fn suggest(&self, number: usize, observed: &[Observed]) -> Trial {
        let Rules {
            space,
            method,
            seed,
            ..
        } = &self.rules;
        let point = suggest(space, *method, *seed, number, observed);
        Trial {
            number,
            values: space.values(&point),
            point,
            reached: Vec::new(),
            failed: None,
        }
    }

    /// The best of those that came furthest.
    pub fn best(&self) -> Option<&Trial> {
        let whole = |trial: &&Trial| trial.failed.is_none() && !trial.reached.is_empty();
        let rank = |trial: &&Trial| {
            let rung = trial.reached.len() - 1;
            (trial.reached.len(), self.worth(trial.number, rung))
        };
        let mut best: Option<&Trial> = None;
        for trial in self.trials.iter().filter(whole) {
            if best.is_none_or(|known| rank(&trial) > rank(&known)) {
                best = Some(trial);
            }
        }
        best
    }

    /// Epochs that were trained, all trials together.
    pub fn epochs(&self) -> u64 {
        let of = |trial: &Trial| {
            trial
                .reached
                .last()
                .map_or(0, |reached| u64::from(reached.epochs))
        };
        self.trials.iter().map(of).sum()
    }

    /// The search that was written, if it was told the same.
    ///
    /// # Errors
    /// When it was not; `folder` is where it lies.
    pub fn checked(self, rules: &Rules, folder: &str) -> Result<Tuning, TuneError> {
        let fresh = Tuning::new(self.name.clone(), rules.clone())?;
        let (own, given) = (&self.rules, &fresh.rules);
        let what = [
            ("--search", own.space != given.space),
            ("--method", own.method != given.method),
            ("--trials", own.trials != given.trials),
            ("--seed", own.seed != given.seed),
            ("the epochs, or --no-halving", own.rungs != given.rungs),
            ("--metric", own.metric != given.metric),
        ];
        match what.iter().find(|(_, differs)| *differs) {
            None => Ok(self),
            Some((what, _)) => Err(TuneError::Other {
                folder: folder.to_owned(),
                what: (*what).to_owned(),
            }),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rungs;

    pub(crate) fn tuning(method: Method, trials: usize, epochs: u32) -> Tuning {
        let searches = ["lr=log(1e-4,1)", "b=[1, 2, 3]"].map(str::to_owned);
        let rules = Rules {
            space: Space::parse(&searches).unwrap(),
            method,
            trials,
            seed: 7,
            rungs: rungs(epochs, true),
            metric: "val.accuracy".into(),
            maximise: true,
            unit: epoch(),
        };
        Tuning::new("t".into(), rules).unwrap()
    }

    /// What a trial would come to after so many epochs.
    fn worth(trial: &Trial, epochs: u32) -> f64 {
        let near = 1.0 - (trial.point[0] - 0.6).abs();
        near * (1.0 - 1.0 / f64::from(epochs + 1))
    }

    fn reach(trial: &mut Trial, epochs: u32) {
        let value = worth(trial, epochs);
        trial.reached.push(Reached {
            epochs,
            value,
            curve: vec![value],
        });
    }

    /// Searches to the end, `parallel` trials of a round at a time, the later ones done first, and as if killed after
    /// every round.
    pub(crate) fn search(mut tuning: Tuning, parallel: usize) -> Tuning {
        while let Some(round) = tuning.next_round() {
            for number in round.trials.iter().take(parallel).rev() {
                reach(&mut tuning.trials[*number], round.epochs);
            }
            let text = serde_json::to_string(&tuning).unwrap();
            tuning = serde_json::from_str(&text).unwrap();
        }
        tuning
    }

    #[test]
    fn the_same_is_tried_whatever_the_parallelism_and_however_often_it_is_killed() {
        for method in [Method::Random, Method::Tpe, Method::Grid] {
            let one = search(tuning(method, 40, 27), 1);
            for parallel in [2, 3, 100] {
                assert_eq!(
                    search(tuning(method, 40, 27), parallel),
                    one,
                    "{method:?} {parallel}"
                );
            }
            assert_eq!(
                one.trials.len(),
                if method == Method::Grid { 15 } else { 40 }
            );
        }
    }

    #[test]
    fn poor_trials_are_stopped_early_and_the_best_is_trained_to_the_end() {
        let done = search(tuning(Method::Random, 9, 27), 4);
        let mut reached: Vec<usize> = done
            .trials
            .iter()
            .map(|trial| trial.reached.len())
            .collect();
        reached.sort_unstable();
        assert_eq!(reached, [1, 1, 1, 1, 1, 1, 2, 2, 3]);
        assert_eq!(done.epochs(), 6 * 3 + 2 * 9 + 27);
        let best = done.best().unwrap();
        assert_eq!(best.reached.len(), 3);
        let better = done
            .trials
            .iter()
            .filter(|trial| worth(trial, 27) > worth(best, 27));
        assert_eq!(better.count(), 0);
    }

    #[test]
    fn a_trial_that_fails_is_the_poorest_and_stops_nothing() {
        let mut tuning = tuning(Method::Random, 9, 27);
        let round = tuning.next_round().unwrap();
        for number in round.trials {
            tuning.trials[number].failed = (number != 4).then(|| "the loss became NaN".to_owned());
            if number == 4 {
                reach(&mut tuning.trials[number], round.epochs);
            }
        }
        let done = search(tuning, 1);
        assert_eq!(done.best().unwrap().number, 4);
        assert_eq!(done.best().unwrap().reached.len(), 3);
    }

    #[test]
    fn another_search_is_not_gone_on_with() {
        let old = tuning(Method::Random, 9, 27);
        let mut rules = old.rules.clone();
        assert!(old.clone().checked(&rules, "x").is_ok());
        rules.seed = 8;
        let error = old.checked(&rules, "x").unwrap_err().to_string();
        assert!(error.contains("--seed"), "{error}");
    }
}
