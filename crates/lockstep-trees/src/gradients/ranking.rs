//! Gradients of rankings, as LambdaMART has them.
//!
//! Within a group, every pair of rows whose targets differ and of which one is among the first `top` pulls the better row up
//! and pushes the other down: the more, the less they are apart in the right order, and the more it would change the
//! measure if the two changed places. A group's gradients depend on its own rows alone, so they are the same wherever the
//! group is; they are computed in `f64`, in the order of the ranks.

use lockstep_base::math::{exp, ln};

/// What a ranking is to get right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankBy {
    /// Pairs in the right order (`rank:pairwise`).
    Pairs,
    /// The normalised discounted gain (`rank:ndcg`).
    Ndcg,
    /// The mean of the precisions at the ranks of relevant rows (`rank:map`).
    Map,
}

/// Below this, a difference of the margins makes no difference.
const SOFTENED: f64 = 0.01;
/// The least second derivative of a pair.
const LEAST: f64 = 1e-16;

/// The largest relevance of a row: beyond it, gains are no whole numbers that are exact.
pub(crate) const MOST_RELEVANT: f32 = 31.0;

/// What a row of this relevance, which is a whole number, adds to the gain.
pub(crate) fn gain(relevance: f32) -> f64 {
    ((1_u64 << relevance.clamp(0.0, MOST_RELEVANT) as u32) - 1) as f64
}

/// How much the gain at a rank, counted from 0, is worth.
pub(crate) fn discount(rank: usize) -> f64 {
    std::f64::consts::LN_2 / ln(rank as f64 + 2.0)
}

/// The places of a group's rows, highest margin first; of equal ones in their order.
pub(crate) fn order(margins: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..margins.len()).collect();
    order.sort_by(|&a, &b| margins[b].total_cmp(&margins[a]));
    order
}

/// The largest discounted gain that the first `top` of these rows can have.
pub(crate) fn ideal_gain(targets: &[f32], top: usize) -> f64 {
    let mut sorted = targets.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let first = sorted.iter().take(top).enumerate();
    first
        .map(|(rank, &target)| gain(target) * discount(rank))
        .sum()
}

/// The first and second derivatives of a group's rows.
pub(crate) fn derive(
    by: RankBy,
    top: usize,
    (margins, targets): (&[f32], &[f32]),
    both: &mut [(f64, f64)],
) {
    both.fill((0.0, 0.0));
    let order = order(margins);
    let (Some(&first), Some(&last)) = (order.first(), order.last()) else {
        return;
    };
    let is_apart = margins[first] != margins[last];
    let change = Change::new(by, top, &order, targets);
    let mut pulled = 0.0;
    for upper in 0..order.len().min(top) {
        for lower in upper + 1..order.len() {
            let (mut better, mut worse) = (order[upper], order[lower]);
            if targets[better] == targets[worse] {
                continue;
            }
            if targets[better] < targets[worse] {
                (better, worse) = (worse, better);
            }
            let apart = f64::from(margins[better]) - f64::from(margins[worse]);
            let mut weight = change.by_swapping(upper, lower);
            if is_apart {
                weight /= apart.abs() + SOFTENED;
            }
            let right = 1.0 / (1.0 + exp(-apart));
            let pull = (right - 1.0) * weight;
            let second = (right * (1.0 - right)).max(LEAST) * weight * 2.0;
            both[better].0 += pull;
            both[better].1 += second;
            both[worse].0 -= pull;
            both[worse].1 += second;
            pulled -= 2.0 * pull;
        }
    }
    // So that a group with many pairs does not drown the others.
    if pulled > 0.0 {
        let share = ln(1.0 + pulled) / std::f64::consts::LN_2 / pulled;
        for (g, h) in both {
            *g *= share;
            *h *= share;
        }
    }
}

/// By how much a measure changes if two rows change places.
enum Change {
    Pairs,
    Ndcg {
        /// The gain of the row at each rank.
        gains: Vec<f64>,
        per_ideal: f64,
    },
    Map {
        /// At each rank, whether the row there is relevant.
        relevant: Vec<bool>,
        /// At each rank, how many rows up to it are relevant.
        counts: Vec<f64>,
        /// The sum of 1 / rank over relevant rows up to it.
        shares: Vec<f64>,
    },
}

impl Change {
    fn new(by: RankBy, top: usize, order: &[usize], targets: &[f32]) -> Self {
        match by {
            RankBy::Pairs => Change::Pairs,
            RankBy::Ndcg => {
                let ideal = ideal_gain(targets, top);
                Change::Ndcg {
                    gains: order.iter().map(|&row| gain(targets[row])).collect(),
                    per_ideal: if ideal > 0.0 { 1.0 / ideal } else { 0.0 },
                }
            }
            RankBy::Map => {
                let relevant: Vec<bool> = order.iter().map(|&row| targets[row] > 0.0).collect();
                let (mut count, mut share) = (0.0, 0.0);
                let sums = relevant.iter().enumerate().map(|(rank, &is)| {
                    let is = f64::from(u8::from(is));
                    count += is;
                    share += is / (rank as f64 + 1.0);
                    (count, share)
                });
                let (counts, shares) = sums.unzip();
                Change::Map {
                    relevant,
                    counts,
                    shares,
                }
            }
        }
    }

    fn by_swapping(&self, upper: usize, lower: usize) -> f64 {
        match self {
            Change::Pairs => 1.0,
            Change::Ndcg { gains, per_ideal } => {
                let gains = gains[upper] - gains[lower];
                (gains * (discount(upper) - discount(lower)) * per_ideal).abs()
            }
            Change::Map {
                relevant,
                counts,
                shares,
            } => {
                let (first, second) = (upper as f64 + 1.0, lower as f64 + 1.0);
                let between = shares[lower - 1] - shares[upper];
                let all = counts.last().copied().unwrap_or(1.0);
                let change = match relevant[upper] {
                    true => counts[upper] / first - counts[lower] / second + between,
                    false => (counts[upper] + 1.0) / first - counts[lower] / second + between,
                };
                change.abs() / all
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGINS: [f32; 6] = [0.3, -1.0, 2.0, 0.1, 0.2, -0.5];

    /// The mean precision at relevant ranks, by its definition.
    fn mean_precision(order: &[usize], targets: &[f32]) -> f64 {
        let (mut found, mut sum) = (0.0, 0.0);
        for (rank, &row) in order.iter().enumerate() {
            if targets[row] > 0.0 {
                found += 1.0;
                sum += found / (rank as f64 + 1.0);
            }
        }
        sum / found
    }

    #[test]
    fn a_pair_counts_as_much_as_the_measure_changes_by_swapping_it() {
        let targets = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
        let order = order(&MARGINS);
        assert_eq!(order, [2, 0, 4, 3, 5, 1]);
        let map = Change::new(RankBy::Map, 32, &order, &targets);
        let ndcg = Change::new(RankBy::Ndcg, 32, &order, &targets);
        let gain_of = |order: &[usize]| -> f64 {
            let each = order.iter().enumerate();
            each.map(|(rank, &row)| gain(targets[row]) * discount(rank))
                .sum()
        };
        for upper in 0..6 {
            for lower in upper + 1..6 {
                if targets[order[upper]] == targets[order[lower]] {
                    continue;
                }
                let mut swapped = order.clone();
                swapped.swap(upper, lower);
                let expected =
                    mean_precision(&swapped, &targets) - mean_precision(&order, &targets);
                let found = map.by_swapping(upper, lower);
                assert!((found - expected.abs()).abs() < 1e-12, "{found} {expected}");
                let expected = (gain_of(&swapped) - gain_of(&order)) / ideal_gain(&targets, 32);
                let found = ndcg.by_swapping(upper, lower);
                assert!((found - expected.abs()).abs() < 1e-12, "{found} {expected}");
            }
        }
    }

    #[test]
    fn better_rows_are_pulled_up_and_a_groups_gradients_cancel() {
        let targets = [2.0, 0.0, 1.0, 0.0, 3.0, 0.0];
        for by in [RankBy::Pairs, RankBy::Ndcg, RankBy::Map] {
            let mut both = [(9.0, 9.0); 6];
            derive(by, 32, (&MARGINS, &targets), &mut both);
            let sum: f64 = both.iter().map(|one| one.0).sum();
            assert!(sum.abs() < 1e-12, "{both:?}");
            assert!(both[4].0 < 0.0 && both[3].0 > 0.0, "{both:?}");
            assert!(both.iter().all(|one| one.1 > 0.0), "{both:?}");
        }
        let mut both = [(9.0, 9.0); 2];
        derive(RankBy::Ndcg, 32, (&[1.0, 2.0], &[1.0, 1.0]), &mut both);
        assert_eq!(both, [(0.0, 0.0); 2], "there is nothing to tell apart");
    }
}
