//! Lanes, who owns them, and the one tree in which they are summed.
//!
//! A lane is a share of every batch that is computed by itself; its bits do not depend on who
//! computes it. Floating-point addition is not associative, so the *order* in which lanes are summed
//! decides the bits of the result. It is fixed here once:
//!
//! ```text
//! sum(lo, hi) = sum(lo, mid) + sum(mid, hi)    mid - lo = the largest power of two below hi - lo
//! ```
//!
//! A worker may sum in advance only lanes that form a whole node of that tree. Then any number of
//! workers from 1 to the number of lanes gives the same bits. The shape of a node depends on its
//! length alone, never on where it begins.

use std::ops::Range;

/// The lanes that worker `rank` of `workers` owns: contiguous, and as even as can be.
pub fn lanes_of(rank: usize, workers: usize, lanes: usize) -> Range<usize> {
    rank * lanes / workers..(rank + 1) * lanes / workers
}

/// The rank that computes `lane`: the inverse of [`lanes_of`].
pub fn rank_of(lane: usize, workers: usize, lanes: usize) -> usize {
    // The last rank whose lanes begin at or before this one.
    ((lane + 1) * workers - 1) / lanes
}

/// Where the tree splits the node `lo..hi`; a node of one lane is a leaf and has no split.
pub fn split(node: &Range<usize>) -> Option<usize> {
    match node.len() {
        0 | 1 => None,
        len => Some(node.start + len.next_power_of_two() / 2),
    }
}

/// The fewest nodes of the tree over `0..total` that together cover exactly `lanes`, in lane order.
///
/// These are the sums that a worker which owns `lanes` may form by itself.
pub fn maximal_subtrees(lanes: Range<usize>, total: usize) -> Vec<Range<usize>> {
    fn visit(node: Range<usize>, lanes: &Range<usize>, found: &mut Vec<Range<usize>>) {
        if lanes.start <= node.start && node.end <= lanes.end {
            if !node.is_empty() {
                found.push(node);
            }
        } else if node.start < lanes.end
            && lanes.start < node.end
            && let Some(mid) = split(&node)
        {
            visit(node.start..mid, lanes, found);
            visit(mid..node.end, lanes, found);
        }
    }
    let mut found = Vec::new();
    visit(0..total, &lanes, &mut found);
    found
}

/// How many sums are complete once the lanes of `node` up to and including `lane` are computed, in
/// order, and earlier sums were formed as soon as they could be.
///
/// This is how to sum a node while computing its lanes one after the other, with a stack as deep as
/// the tree: push each lane's vector, then `merges_after` times pop two and push their sum. At the
/// end the stack holds the node's sum alone. An absent lane is pushed as "nothing", and the sum of
/// nothing and x is x.
///
/// # Panics
/// If `lane` is not in `node`.
pub fn merges_after(node: Range<usize>, lane: usize) -> usize {
    assert!(node.contains(&lane), "lane {lane} is not in {node:?}");
    let mut node = node;
    let mut merges = 0;
    while let Some(mid) = split(&node) {
        if lane < mid {
            // Whatever ends with this lane ends inside the left half.
            node = node.start..mid;
            merges = 0;
        } else {
            node = mid..node.end;
            merges += 1;
        }
    }
    merges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_is_of_the_rank_that_computes_it() {
        for lanes in 1..30 {
            for workers in 1..=lanes {
                for lane in 0..lanes {
                    let rank = rank_of(lane, workers, lanes);
                    assert!(
                        lanes_of(rank, workers, lanes).contains(&lane),
                        "{lane} {workers} {lanes}"
                    );
                }
            }
        }
    }
    use proptest::prelude::*;
    use std::slice;

    #[test]
    fn the_tree_splits_at_the_largest_power_of_two_below_its_length() {
        let mids: Vec<_> = (2..=9).map(|len| split(&(0..len)).unwrap()).collect();
        assert_eq!(mids, [1, 2, 2, 4, 4, 4, 4, 8]);
        assert_eq!(split(&(3..10)), Some(7));
        assert_eq!(split(&(3..4)), None);
    }

    #[test]
    fn a_worker_sums_whole_subtrees_only() {
        assert_eq!(maximal_subtrees(0..8, 8), slice::from_ref(&(0..8)));
        assert_eq!(maximal_subtrees(2..5, 8), [2..4, 4..5]);
        assert_eq!(maximal_subtrees(1..7, 8), [1..2, 2..4, 4..6, 6..7]);
        assert_eq!(maximal_subtrees(4..6, 6), slice::from_ref(&(4..6)));
    }

    /// A lane's sum as a formula: two sums have the same bits if they are the same formula.
    fn formula(node: Range<usize>) -> String {
        match split(&node) {
            None => node.start.to_string(),
            Some(mid) => format!("({}+{})", formula(node.start..mid), formula(mid..node.end)),
        }
    }

    proptest! {
        #[test]
        fn workers_own_all_lanes_once_and_none_is_idle(lanes in 1usize..70, workers in 1usize..70) {
            prop_assume!(workers <= lanes);
            let mut next = 0;
            for rank in 0..workers {
                let own = lanes_of(rank, workers, lanes);
                prop_assert_eq!(own.start, next);
                prop_assert!(!own.is_empty());
                next = own.end;
            }
            prop_assert_eq!(next, lanes);
        }

        #[test]
        fn maximal_subtrees_cover_the_lanes_and_no_two_are_siblings(
            total in 1usize..70, a in 0usize..70, b in 0usize..70,
        ) {
            let (lo, hi) = (a.min(b).min(total), a.max(b).min(total));
            let found = maximal_subtrees(lo..hi, total);
            let covered: Vec<usize> = found.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (lo..hi).collect::<Vec<_>>());
            // Every node of the tree, by its halves: no two found nodes may be one node's halves.
            let mut nodes: Vec<_> = std::iter::once(0..total).collect();
            while let Some(node) = nodes.pop() {
                if let Some(mid) = split(&node) {
                    let (left, right) = (node.start..mid, mid..node.end);
                    prop_assert!(!(found.contains(&left) && found.contains(&right)));
                    nodes.extend([left, right]);
                }
            }
        }

        #[test]
        fn merging_lane_by_lane_gives_the_tree(start in 0usize..20, len in 1usize..40) {
            let node = start..start + len;
            let mut stack: Vec<String> = Vec::new();
            for lane in node.clone() {
                stack.push(lane.to_string());
                for _ in 0..merges_after(node.clone(), lane) {
                    let right = stack.pop().unwrap();
                    let left = stack.pop().unwrap();
                    stack.push(format!("({left}+{right})"));
                }
            }
            prop_assert_eq!(stack, vec![formula(node)]);
        }
    }
}
