//! The hardest mistakes: wrong predictions that the model was surest of.

use crate::Outcome;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A sample that was taken for what it is not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mistake {
    /// Which sample of the set, counted from 0.
    pub row: u64,
    /// Where the sample came from, if the set knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its class.
    pub actual: String,
    /// What it was taken for.
    pub predicted: String,
    /// How sure the model was.
    pub probability: f32,
}

/// Keeps the hardest mistakes of those that it is shown, in any order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hardest {
    seen: Vec<Outcome>,
}

impl Hardest {
    /// Mistakes after which those are forgotten that cannot be among the hardest.
    const ENOUGH: usize = 4096;
    /// The most that can be asked for.
    pub(crate) const MOST: usize = 1000;

    pub(crate) fn show(&mut self, outcome: &Outcome) {
        self.seen.push(*outcome);
        if self.seen.len() >= Self::ENOUGH {
            self.seen.sort_by(harder);
            self.seen.truncate(Self::MOST);
        }
    }

    /// The hardest `most`, hardest first; of equal ones that with the smaller row.
    pub(crate) fn take(mut self, most: usize) -> Vec<Outcome> {
        self.seen.sort_by(harder);
        self.seen.truncate(most.min(Self::MOST));
        self.seen
    }
}

/// A probability that is not a number is the least sure of all.
fn harder(a: &Outcome, b: &Outcome) -> Ordering {
    let sure = |outcome: &Outcome| match outcome.probability.is_nan() {
        true => -1.0,
        false => outcome.probability,
    };
    sure(b).total_cmp(&sure(a)).then(a.row.cmp(&b.row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(row: u64, probability: f32) -> Outcome {
        Outcome {
            row,
            actual: 0,
            predicted: 1,
            probability,
            in_top5: true,
        }
    }

    #[test]
    fn the_surest_come_first_and_of_equal_ones_the_earlier_row() {
        let mut hardest = Hardest::default();
        for (row, probability) in [(3, 0.5), (1, f32::NAN), (2, 0.9), (0, 0.5)] {
            hardest.show(&outcome(row, probability));
        }
        let rows: Vec<u64> = hardest.take(9).iter().map(|mistake| mistake.row).collect();
        assert_eq!(rows, [2, 0, 3, 1]);
    }

    #[test]
    fn forgetting_what_is_not_hard_changes_nothing() {
        let all = (0..20_000).map(|row| outcome(row, (row * 7919 % 10_007) as f32 / 10_007.0));
        let all: Vec<Outcome> = all.collect();
        let (mut forward, mut backward) = (Hardest::default(), Hardest::default());
        all.iter().for_each(|outcome| forward.show(outcome));
        all.iter().rev().for_each(|outcome| backward.show(outcome));
        let mut sorted = all.clone();
        sorted.sort_by(harder);
        sorted.truncate(20);
        assert_eq!(forward.take(20), sorted);
        assert_eq!(backward.take(20), sorted);
    }
}
