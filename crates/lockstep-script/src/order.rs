//! Which samples of an epoch each rank is handed, and which are left when the gang begins again.
//!
//! All ranks share one order of an epoch, which is a function of the seed and the epoch. With batches of `batch`
//! samples a rank and `workers` ranks, step `s` takes the next `batch * workers` samples of it, and rank `r` the
//! `r`-th part of those. What is left for the last step is divided as evenly as can be, so that no rank has a step
//! more than the others as long as there is a sample for each. When the gang begins again in mid-epoch, with other workers or another batch, what was
//! handed out before is left out, and the rest is handed out by the same rule.

use lockstep_data::lane_rows;
use serde::{Deserialize, Serialize};

/// A part of an epoch that was handed out by one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandedOut {
    /// Samples in a batch of a rank.
    pub(crate) batch: usize,
    /// Batches that each rank was handed.
    pub(crate) batches: Vec<u64>,
}

/// How far a data set is handed out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The epoch, counted from 0.
    pub(crate) epoch: u32,
    /// What was handed out of it, one rule after the other.
    pub(crate) parts: Vec<HandedOut>,
}

impl Position {
    /// What is left of an epoch's order.
    pub(crate) fn left(&self, mut order: Vec<u32>) -> Vec<u32> {
        for part in &self.parts {
            let workers = part.batches.len();
            let step = part.batch * workers;
            let mut kept = Vec::with_capacity(order.len());
            for (at, samples) in order.chunks(step).enumerate() {
                for rank in 0..workers {
                    if part.batches[rank] <= at as u64 {
                        kept.extend_from_slice(&samples[lane_rows(rank, workers, samples.len())]);
                    }
                }
            }
            order = kept;
        }
        order
    }
}

/// The part of a rank in step `at`.
pub(crate) fn rows(order: &[u32], at: u64, batch: usize, rank: usize, workers: usize) -> &[u32] {
    let step = batch * workers;
    let start = (at as usize * step).min(order.len());
    let samples = &order[start..(start + step).min(order.len())];
    &samples[lane_rows(rank, workers, samples.len())]
}

/// How many steps an order has, for every rank the same.
pub(crate) fn steps(order: &[u32], batch: usize, workers: usize, drop_last: bool) -> u64 {
    let step = batch * workers;
    let steps = match drop_last {
        true => order.len() / step,
        false => order.len().div_ceil(step),
    };
    steps as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed_out(order: &[u32], batch: usize, batches: &[u64]) -> Vec<u32> {
        let workers = batches.len();
        let mut all = Vec::new();
        for (rank, &count) in batches.iter().enumerate() {
            for at in 0..count {
                all.extend_from_slice(rows(order, at, batch, rank, workers));
            }
        }
        all
    }

    #[test]
    fn each_sample_is_handed_out_once_whatever_the_gang_was_before() {
        let order: Vec<u32> = (0..103).rev().collect();
        // Three ranks that were not in step; then two with another batch; then four to the end.
        let mut position = Position::default();
        let mut seen = Vec::new();
        for (batch, batches) in [(5, vec![2, 3, 2]), (4, vec![3, 3])] {
            let left = position.left(order.clone());
            seen.extend(handed_out(&left, batch, &batches));
            position.parts.push(HandedOut { batch, batches });
        }
        let left = position.left(order.clone());
        let count = steps(&left, 3, 4, false);
        seen.extend(handed_out(&left, 3, &[count; 4]));
        seen.sort_unstable();
        assert_eq!(seen, (0..103).collect::<Vec<_>>());
    }

    #[test]
    fn the_order_of_all_ranks_together_does_not_depend_on_how_many_they_are() {
        let order: Vec<u32> = (0..24).collect();
        for (workers, batch) in [(1, 6), (2, 3), (3, 2)] {
            let step = |at| {
                let of = |rank| rows(&order, at, batch, rank, workers).to_vec();
                (0..workers).flat_map(of).collect::<Vec<_>>()
            };
            let all: Vec<u32> = (0..4).flat_map(step).collect();
            assert_eq!(all, order);
        }
    }
}
