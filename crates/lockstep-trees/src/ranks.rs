//! How good rankings are: of each group, by the order of its rows' margins.

use crate::gradients::{discount, gain, ideal_gain, order};
use lockstep_measure::{Ranking, RankingScores};
use std::ops::Range;

/// Where each group of rows begins and ends, where rows of a group follow each other.
pub(crate) fn ranges(groups: &[u32]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (row, group) in groups.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if groups[range.start] == *group => range.end = row + 1,
            _ => ranges.push(row..row + 1),
        }
    }
    ranges
}

/// The rows that these are, the rows of a group beside each other: groups in their order, and rows as they were.
pub(crate) fn by_group(groups: &[u32], mut rows: Vec<u32>) -> Vec<u32> {
    rows.sort_by_key(|&row| groups[row as usize]);
    rows
}

/// What the order of one group's rows is worth. A group in which nothing is relevant cannot be ranked wrongly.
pub(crate) fn scores(margins: &[f32], targets: &[f32]) -> RankingScores {
    let order = order(margins);
    let ndcg = |top: usize| {
        let first = order.iter().take(top).enumerate();
        let found: f64 = first
            .map(|(rank, &row)| gain(targets[row]) * discount(rank))
            .sum();
        match ideal_gain(targets, top) {
            ideal if ideal > 0.0 => found / ideal,
            _ => 1.0,
        }
    };
    let (mut relevant, mut precisions) = (0.0, 0.0);
    for (rank, &row) in order.iter().enumerate() {
        if targets[row] > 0.0 {
            relevant += 1.0;
            precisions += relevant / (rank as f64 + 1.0);
        }
    }
    RankingScores {
        ndcg: ndcg(usize::MAX),
        ndcg10: ndcg(10),
        map: if relevant > 0.0 {
            precisions / relevant
        } else {
            1.0
        },
    }
}

/// What the margins of all rows of a set are worth, by the rows' groups and targets.
pub fn ranking(groups: &[u32], margins: &[f32], targets: &[f32]) -> Ranking {
    let rows = by_group(groups, (0..groups.len() as u32).collect());
    let of = |all: &[f32]| -> Vec<f32> { rows.iter().map(|&row| all[row as usize]).collect() };
    let (margins, targets) = (of(margins), of(targets));
    let sorted: Vec<u32> = rows.iter().map(|&row| groups[row as usize]).collect();
    let ranges = ranges(&sorted);
    let each = ranges.iter().cloned();
    let each = each.map(|range| scores(&margins[range.clone()], &targets[range]));
    Ranking::of(groups.len() as u64, each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_put_together_and_found_again() {
        let groups = [0, 1, 0, 2, 1];
        let rows = by_group(&groups, vec![0, 1, 2, 3, 4]);
        assert_eq!(rows, [0, 2, 1, 4, 3]);
        let sorted: Vec<u32> = rows.iter().map(|&row| groups[row as usize]).collect();
        assert_eq!(ranges(&sorted), [0..2, 2..4, 4..5]);
    }

    /// The numbers are those of scikit-learn's `ndcg_score` with exponential gains, and `average_precision_score`.
    #[test]
    fn rankings_are_measured_as_scikit_learn_does() {
        let found = scores(&[0.9, 0.8, 0.7], &[0.0, 2.0, 1.0]);
        let expected = (3.0 / 3_f64.log2() + 1.0 / 4_f64.log2()) / (3.0 + 1.0 / 3_f64.log2());
        assert!((found.ndcg - expected).abs() < 1e-12, "{found:?}");
        assert!(
            (found.map - (1.0 / 2.0 + 2.0 / 3.0) / 2.0).abs() < 1e-12,
            "{found:?}"
        );
        let right = scores(&[0.1, 0.8, 0.7], &[0.0, 2.0, 1.0]);
        assert!((right.ndcg - 1.0).abs() < 1e-12 && (right.map - 1.0).abs() < 1e-12);
        assert_eq!(scores(&[1.0, 2.0], &[0.0, 0.0]).ndcg, 1.0);
    }

    #[test]
    fn a_set_is_worth_the_mean_of_its_groups() {
        let found = ranking(&[7, 8, 7, 8], &[0.1, 0.9, 0.2, 0.1], &[1.0, 1.0, 0.0, 0.0]);
        assert_eq!((found.summary.samples, found.summary.groups), (4, 2));
        assert!((found.summary.scores.map - 0.75).abs() < 1e-12, "{found:?}");
    }
}
