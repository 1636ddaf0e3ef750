//! For how long a measure on validation data has not got better: what `train.patience` and the schedule
//! `"plateau"` wait for.
//!
//! Every rank computes the same metrics to the bit, so each decides by itself and all decide alike. What was
//! seen travels in checkpoints, as bits.

use lockstep_measure::BestBy;
use serde::{Deserialize, Serialize};

/// The best value so far, and how many epochs have passed since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Improvement {
    /// The bits of the best value; none before the first epoch.
    best_bits: Option<u64>,
    /// Epochs in a row that were not better.
    pub(crate) epochs_since: u32,
}

impl Improvement {
    /// Takes in an epoch's value, which counts as better if it is so by more than `change`. A value that is no
    /// number is not.
    pub(crate) fn note(&mut self, best_by: &BestBy, change: f64, value: f64) {
        let best = self.best_bits.map(f64::from_bits);
        let better = match best {
            Some(best) => best_by.is_better_by(change, value, best),
            None => !value.is_nan(),
        };
        match better {
            true => {
                *self = Self {
                    best_bits: Some(value.to_bits()),
                    epochs_since: 0,
                };
            }
            false => self.epochs_since += 1,
        }
    }
}

/// The plateaus that a learning rate was cut after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plateaus {
    improvement: Improvement,
    /// How many there were.
    pub(crate) cuts: u32,
}

impl Plateaus {
    /// Takes in an epoch's value. A plateau is `patience` epochs in a row that are not better by more than `change`.
    pub(crate) fn note(&mut self, best_by: &BestBy, (patience, change): (u32, f64), value: f64) {
        self.improvement.note(best_by, change, value);
        if self.improvement.epochs_since >= patience {
            self.improvement.epochs_since = 0;
            self.cuts += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_measure::Measure;

    fn waited(measure: Measure, change: f64, values: &[f64]) -> Vec<u32> {
        let mut improvement = Improvement::default();
        let note = |&value| {
            improvement.note(&BestBy::Measure(measure), change, value);
            improvement.epochs_since
        };
        values.iter().map(note).collect()
    }

    #[test]
    fn epochs_count_until_one_is_better_by_more_than_the_change() {
        let losses = [1.0, 0.9, 0.95, 0.9, 0.89, 0.5];
        assert_eq!(waited(Measure::Loss, 0.0, &losses), [0, 0, 1, 2, 0, 0]);
        assert_eq!(waited(Measure::Loss, 0.15, &losses), [0, 1, 2, 3, 4, 0]);
        assert_eq!(waited(Measure::Accuracy, 0.0, &[0.5, 0.5, 0.6]), [0, 1, 0]);
    }

    #[test]
    fn every_so_many_epochs_that_are_not_better_are_a_plateau() {
        let mut plateaus = Plateaus::default();
        let note = |value| {
            plateaus.note(&BestBy::Measure(Measure::Loss), (2, 0.0), value);
            plateaus.cuts
        };
        let values = [1.0, 1.0, 0.9, 0.9, 0.9, 1.0, 0.95, 0.8, 0.9];
        assert_eq!(values.map(note), [0, 0, 0, 0, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn what_is_no_number_is_never_better() {
        let values = [f64::NAN, 0.5, f64::NAN, 0.6];
        assert_eq!(waited(Measure::Auc, 0.0, &values), [1, 0, 1, 0]);
    }
}
