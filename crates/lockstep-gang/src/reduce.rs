//! Adding the partial sums of a chunk in the order of the lanes' tree.
//!
//! The owner of a chunk gets one vector for each [`Partial`] of the plan. [`TreeSum`] adds them as
//! the tree over all lanes would, so that the result has the same bits however the lanes are spread
//! over workers. A partial sum may be *absent*: all of its lanes are empty in a short batch. A node of
//! which one side is absent is its other side; nothing is added, not even a zero.

use crate::{Partial, Plan, tree};
use std::ops::Range;

/// Numbers that are carried through the whole tree at a time, so that sums between stay in the
/// first-level cache.
const BLOCK: usize = 2048;

/// The summation of one gang's partial sums, with its working memory.
#[derive(Debug)]
pub struct TreeSum {
    partials: Vec<Partial>,
    root: Node,
    /// One block for each level on which a right-hand sum has to be kept aside.
    scratch: Vec<f32>,
}

/// The tree above the partial sums.
#[derive(Debug)]
enum Node {
    /// A partial sum, by its place in the plan's list.
    Leaf(usize),
    Sum(Box<Node>, Box<Node>),
}

impl TreeSum {
    /// The summation that `plan` asks of `rank` for the chunks that it owns.
    pub fn new(plan: &Plan, rank: usize) -> Self {
        Self::of_node(0..plan.lanes(), plan.partials_for(rank))
    }

    /// The summation of one node of the tree, of which these are all partial sums in lane order.
    pub(crate) fn of_node(node: Range<usize>, partials: Vec<Partial>) -> Self {
        let mut next = 0;
        let root = Node::build(node, &partials, &mut next);
        let scratch = vec![0.0; root.scratch_levels() * BLOCK];
        Self {
            partials,
            root,
            scratch,
        }
    }

    /// Sums the vectors that `partial` gives, `None` for an absent one, into `out`. If all are
    /// absent, `out` is zero. Allocates nothing; `partial` may be asked many times for the same.
    ///
    /// # Panics
    /// If a vector is shorter than `out`.
    pub fn sum<'a>(&mut self, partial: impl Fn(&Partial) -> Option<&'a [f32]>, out: &mut [f32]) {
        let leaf = |index: usize| partial(&self.partials[index]);
        // With at most two partial sums nothing is kept aside: one pass without blocks.
        let block = match &self.root {
            Node::Leaf(_) => out.len(),
            Node::Sum(left, right) => match (&**left, &**right) {
                (Node::Leaf(_), Node::Leaf(_)) => out.len(),
                _ => BLOCK,
            },
        };
        for (index, out) in out.chunks_mut(block.max(1)).enumerate() {
            let range = index * block..index * block + out.len();
            if !self.root.sum(&leaf, range, out, &mut self.scratch) {
                out.fill(0.0);
            }
        }
    }
}

impl Node {
    fn build(lanes: Range<usize>, partials: &[Partial], next: &mut usize) -> Self {
        if partials[*next].lanes == lanes {
            *next += 1;
            return Self::Leaf(*next - 1);
        }
        let mid = tree::split(&lanes).expect("a plan's partial sums are nodes of the tree");
        let left = Self::build(lanes.start..mid, partials, next);
        let right = Self::build(mid..lanes.end, partials, next);
        Self::Sum(Box::new(left), Box::new(right))
    }

    fn scratch_levels(&self) -> usize {
        match self {
            Self::Leaf(_) => 0,
            Self::Sum(left, right) => {
                let aside = match **right {
                    Self::Leaf(_) => 0,
                    Self::Sum(..) => 1 + right.scratch_levels(),
                };
                aside.max(left.scratch_levels())
            }
        }
    }

    /// Sums this node over `range` into `out`; false, and `out` untouched, if it is absent.
    fn sum<'a>(
        &self,
        leaf: &impl Fn(usize) -> Option<&'a [f32]>,
        range: Range<usize>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> bool {
        let part = |index| leaf(index).map(|all| &all[range.clone()]);
        let (left, right) = match self {
            Self::Leaf(index) => {
                return match part(*index) {
                    Some(only) => {
                        out.copy_from_slice(only);
                        true
                    }
                    None => false,
                };
            }
            Self::Sum(left, right) => (&**left, &**right),
        };
        match (left, right) {
            (Self::Leaf(a), Self::Leaf(b)) => match (part(*a), part(*b)) {
                (Some(a), Some(b)) => add(a, b, out),
                (Some(only), None) | (None, Some(only)) => out.copy_from_slice(only),
                (None, None) => return false,
            },
            (_, Self::Leaf(b)) => match (left.sum(leaf, range.clone(), out, scratch), part(*b)) {
                (true, Some(b)) => add_to(out, b),
                (true, None) => {}
                (false, Some(only)) => out.copy_from_slice(only),
                (false, None) => return false,
            },
            _ => {
                if !left.sum(leaf, range.clone(), out, scratch) {
                    return right.sum(leaf, range, out, scratch);
                }
                let (aside, scratch) = scratch.split_at_mut(BLOCK);
                let aside = &mut aside[..out.len()];
                if right.sum(leaf, range, aside, scratch) {
                    add_to(out, aside);
                }
            }
        }
        true
    }
}

fn add(a: &[f32], b: &[f32], out: &mut [f32]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a + b;
    }
}

fn add_to(out: &mut [f32], b: &[f32]) {
    for (out, b) in out.iter_mut().zip(b) {
        *out += b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The tree's definition, one number at a time.
    fn reference(node: Range<usize>, lanes: &[Option<Vec<f32>>], at: usize) -> Option<f32> {
        let Some(mid) = tree::split(&node) else {
            return lanes[node.start].as_ref().map(|lane| lane[at]);
        };
        match (
            reference(node.start..mid, lanes, at),
            reference(mid..node.end, lanes, at),
        ) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        }
    }

    fn lanes_and_length() -> impl Strategy<Value = (Vec<Option<Vec<f32>>>, usize)> {
        (
            1usize..14,
            prop_oneof![1usize..40, 2040usize..2060, 4090usize..4100],
            any::<u64>(),
        )
            .prop_map(|(lanes, len, seed)| {
                let mut state = seed | 1;
                let mut next = || {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state
                };
                // Magnitudes far apart make every change of the order of summation visible.
                let lanes = (0..lanes)
                    .map(|_| {
                        (next() % 4 != 0).then(|| {
                            (0..len)
                                .map(|_| {
                                    let bits = next();
                                    let mantissa = (bits >> 40) as f32 / 8_388_608.0 - 1.0;
                                    mantissa * 2f32.powi((bits % 24) as i32 - 12)
                                })
                                .collect()
                        })
                    })
                    .collect();
                (lanes, len)
            })
    }

    proptest! {
        #[test]
        fn the_sum_has_the_same_bits_however_lanes_are_spread((lanes, len) in lanes_and_length()) {
            let total = lanes.len();
            let expected: Vec<u32> = (0..len)
                .map(|at| reference(0..total, &lanes, at).unwrap_or(0.0).to_bits())
                .collect();
            for workers in 1..=total {
                let plan = Plan::new(std::iter::once(0..len).collect(), total, workers).unwrap();
                let planned = plan.partials_for(0);
                let partials: Vec<Option<Vec<f32>>> = planned
                    .iter()
                    .map(|partial| {
                        (0..len).map(|at| reference(partial.lanes.clone(), &lanes, at)).collect()
                    })
                    .collect();
                let mut sum = vec![f32::NAN; len];
                TreeSum::new(&plan, 0).sum(
                    |wanted| {
                        let index = planned.iter().position(|p| p == wanted).unwrap();
                        partials[index].as_deref()
                    },
                    &mut sum,
                );
                let found: Vec<u32> = sum.iter().map(|x| x.to_bits()).collect();
                prop_assert_eq!(&found, &expected, "{} workers", workers);
            }
        }
    }

    #[test]
    fn an_absent_lane_adds_nothing_not_even_a_zero() {
        let plan = Plan::new(std::iter::once(0..1).collect(), 3, 3).unwrap();
        let mut sum = [1.0];
        TreeSum::new(&plan, 0).sum(|p| (p.rank == 1).then_some(&[-0.0][..]), &mut sum);
        assert_eq!(sum[0].to_bits(), (-0.0f32).to_bits());
    }

    #[test]
    fn a_chunk_with_no_lane_at_all_is_zero() {
        let plan = Plan::new(std::iter::once(0..2).collect(), 5, 2).unwrap();
        let mut sum = [1.0, 2.0];
        TreeSum::new(&plan, 0).sum(|_| None, &mut sum);
        assert_eq!(sum, [0.0, 0.0]);
    }
}
