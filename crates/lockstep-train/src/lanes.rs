//! Which lanes a worker computes in a step, and in which order their gradients are added.
//!
//! A worker computes its lanes one after the other and may add up whole subtrees of the lanes' tree
//! only. What is added to what depends on which lanes have rows, and so on the batch's size alone: it is
//! worked out once for a full batch and once for the short last one, and a step just follows it.

use lockstep_cuda::PeerSum;
use lockstep_data::lane_rows;
use lockstep_gang::{Plan, tree};
use std::ops::Range;

/// One lane's part of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaneWork {
    /// The lane.
    pub(crate) lane: usize,
    /// Its rows within the batch.
    pub(crate) rows: Range<usize>,
    /// Which of this worker's partial sums it belongs to.
    pub(crate) partial: usize,
    /// Which buffer its gradient goes to: 0 is the partial sum itself, the others are kept aside.
    pub(crate) buffer: usize,
    /// Sums to form then, each `(into, from)` by buffers.
    pub(crate) sums: Vec<(usize, usize)>,
}

impl LaneWork {
    /// The buffer that the lane's gradient is added to at once, so that it needs none of its own.
    pub(crate) fn joins(&self) -> Option<usize> {
        let first = self.sums.first();
        first.and_then(|&(into, from)| (from == self.buffer).then_some(into))
    }

    /// The sums to form when the lane's gradient is in its buffer, or was added to the one that it joins.
    pub(crate) fn other_sums(&self) -> &[(usize, usize)] {
        &self.sums[usize::from(self.joins().is_some())..]
    }
}

/// One worker's part of a step on a batch of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaneProgram {
    /// Samples in the batch.
    pub(crate) batch: usize,
    /// The lanes that have rows, in order.
    pub(crate) work: Vec<LaneWork>,
    /// For every partial sum that this rank adds up, by the rank that it is named after, whether any of its lanes has
    /// rows.
    pub(crate) present: Vec<Vec<bool>>,
    /// All lanes that have rows, as one worker would compute them: the order in which an owner adds up
    /// gradients that it forms from all lanes' factors.
    pub(crate) forming: Vec<LaneWork>,
    /// How many buffers are kept aside.
    pub(crate) aside: usize,
}

impl LaneProgram {
    /// The program of `rank` for a batch of `batch` samples.
    pub(crate) fn new(plan: &Plan, rank: usize, batch: usize) -> Self {
        let rows = |lane| lane_rows(lane, plan.lanes(), batch);
        let has_rows = |lanes: &Range<usize>| lanes.clone().any(|lane| !rows(lane).is_empty());
        let work = program(plan.partials_of(rank), rows);
        let forming = program(std::slice::from_ref(&(0..plan.lanes())), rows);
        let kept = work.iter().filter(|work| work.joins().is_none());
        let aside = kept.map(|work| work.buffer).max().unwrap_or(0);
        let mut present = vec![Vec::new(); plan.workers()];
        for partial in plan.partials_for(rank) {
            present[partial.rank].push(has_rows(&partial.lanes));
        }
        Self {
            batch,
            work,
            present,
            forming,
            aside,
        }
    }
}

/// All ranks' partial sums that have rows in a batch of so many samples, in the order in which each rank adds them up if it
/// has all of them.
pub(crate) fn peer_sums(plan: &Plan, batch: usize) -> Vec<PeerSum> {
    let has_rows = |node: &Range<usize>| {
        (node.clone()).any(|lane| !lane_rows(lane, plan.lanes(), batch).is_empty())
    };
    let mut nodes = Vec::new();
    for rank in 0..plan.workers() {
        let present = plan.partials_of(rank).iter().filter(|&node| has_rows(node));
        let sums = present.enumerate().map(|(partial, node)| {
            let merges = 0;
            let sum = PeerSum {
                rank,
                partial,
                merges,
            };
            (node.clone(), sum)
        });
        nodes.extend(sums);
    }
    let mut sums = Vec::new();
    add_in_tree(0..plan.lanes(), &nodes, &mut sums);
    sums
}

/// Appends the sums that a node of the tree is added up of. Says whether there are any.
fn add_in_tree(
    node: Range<usize>,
    nodes: &[(Range<usize>, PeerSum)],
    sums: &mut Vec<PeerSum>,
) -> bool {
    if let Some((_, sum)) = nodes.iter().find(|(other, _)| *other == node) {
        sums.push(*sum);
        return true;
    }
    let Some(middle) = tree::split(&node) else {
        return false;
    };
    let left = add_in_tree(node.start..middle, nodes, sums);
    let right = add_in_tree(middle..node.end, nodes, sums);
    if let (true, true, Some(last)) = (left, right, sums.last_mut()) {
        last.merges += 1;
    }
    left || right
}

/// The lanes of some nodes of the tree that have rows, each node summed into its buffer 0.
fn program(nodes: &[Range<usize>], rows: impl Fn(usize) -> Range<usize>) -> Vec<LaneWork> {
    let mut program = Vec::new();
    for (partial, node) in nodes.iter().enumerate() {
        let first = program.len();
        // Sums that wait for their other half, each by its buffer; absent ones have none.
        let mut stack: Vec<Option<usize>> = Vec::new();
        let mut free = Vec::new();
        let mut buffers = 0;
        for lane in node.clone() {
            let buffer = (!rows(lane).is_empty()).then(|| {
                free.pop().unwrap_or_else(|| {
                    buffers += 1;
                    buffers - 1
                })
            });
            stack.push(buffer);
            if let Some(buffer) = buffer {
                program.push(LaneWork {
                    lane,
                    rows: rows(lane),
                    partial,
                    buffer,
                    sums: Vec::new(),
                });
            }
            for _ in 0..tree::merges_after(node.clone(), lane) {
                let (right, left) = (stack.pop().flatten(), stack.pop().flatten());
                if let (Some(left), Some(right)) = (left, right) {
                    free.push(right);
                    // A lane without rows may complete sums: they are formed with the last that has some.
                    if let Some(work) = program[first..].last_mut() {
                        work.sums.push((left, right));
                    }
                }
                stack.push(left.or(right));
            }
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One chunk.
    fn whole() -> Vec<Range<usize>> {
        std::iter::once(0..8).collect()
    }

    fn program(lanes: usize, workers: usize, rank: usize, batch: usize) -> LaneProgram {
        let plan = Plan::new(whole(), lanes, workers).unwrap();
        LaneProgram::new(&plan, rank, batch)
    }

    /// Follows a program with the lanes' expressions as values.
    fn expressions(program: &LaneProgram) -> Vec<String> {
        let partials = program
            .work
            .iter()
            .map(|work| work.partial)
            .max()
            .map_or(0, |p| p + 1);
        let most = program
            .work
            .iter()
            .map(|work| work.buffer + 1)
            .max()
            .unwrap_or(1);
        let mut buffers = vec![vec![String::new(); most]; partials];
        for work in &program.work {
            let buffers = &mut buffers[work.partial];
            buffers[work.buffer] = work.lane.to_string();
            for &(into, from) in &work.sums {
                buffers[into] = format!("({}+{})", buffers[into], buffers[from]);
            }
        }
        buffers
            .into_iter()
            .map(|buffers| buffers[0].clone())
            .collect()
    }

    #[test]
    fn lanes_are_added_in_the_trees_order_into_the_first_buffer() {
        assert_eq!(
            expressions(&program(6, 1, 0, 32)),
            ["(((0+1)+(2+3))+(4+5))"]
        );
        assert_eq!(
            expressions(&program(7, 1, 0, 32)),
            ["(((0+1)+(2+3))+((4+5)+6))"]
        );
        assert_eq!(expressions(&program(6, 2, 0, 32)), ["(0+1)", "2"]);
        assert_eq!(expressions(&program(6, 2, 1, 32)), ["3", "(4+5)"]);
    }

    #[test]
    fn lanes_without_rows_are_left_out() {
        // 3 rows on 6 lanes: lanes 1, 3 and 5 have one each.
        let program = program(6, 1, 0, 3);
        assert_eq!(expressions(&program), ["((1+3)+5)"]);
        assert_eq!(program.present, [[true]]);
    }

    /// The tree's sum of the lanes that have rows, as an expression.
    fn by_definition(node: Range<usize>, lanes: usize, batch: usize) -> Option<String> {
        let Some(mid) = tree::split(&node) else {
            return (!lane_rows(node.start, lanes, batch).is_empty())
                .then(|| node.start.to_string());
        };
        let left = by_definition(node.start..mid, lanes, batch);
        let right = by_definition(mid..node.end, lanes, batch);
        match (left, right) {
            (Some(left), Some(right)) => Some(format!("({left}+{right})")),
            (left, right) => left.or(right),
        }
    }

    #[test]
    fn partial_sums_of_all_ranks_come_to_the_trees_sum_whoever_has_which_lanes() {
        for (lanes, batch) in (1..12).flat_map(|lanes| (1..14).map(move |batch| (lanes, batch))) {
            for workers in 1..=lanes {
                let plan = Plan::new(whole(), lanes, workers).unwrap();
                let partials = (0..workers).map(|rank| {
                    let program = LaneProgram::new(&plan, rank, batch);
                    let all = expressions(&program).into_iter();
                    all.filter(|sum| !sum.is_empty()).collect::<Vec<_>>()
                });
                let partials: Vec<_> = partials.collect();
                let mut waiting: Vec<String> = Vec::new();
                for sum in peer_sums(&plan, batch) {
                    waiting.push(partials[sum.rank][sum.partial].clone());
                    for _ in 0..sum.merges {
                        let (right, left) = (waiting.pop().unwrap(), waiting.pop().unwrap());
                        waiting.push(format!("({left}+{right})"));
                    }
                }
                let expected = by_definition(0..lanes, lanes, batch).unwrap();
                assert_eq!(
                    waiting,
                    [expected],
                    "{lanes} lanes, {workers} workers, {batch}"
                );
            }
        }
    }

    #[test]
    fn whatever_lanes_are_without_rows_the_sums_are_the_trees() {
        for lanes in 1..=20 {
            for batch in 1..=2 * lanes {
                let expected = by_definition(0..lanes, lanes, batch);
                for workers in [1, 2, lanes.div_ceil(2), lanes] {
                    for rank in 0..workers.min(lanes) {
                        let plan = Plan::new(whole(), lanes, workers.min(lanes)).unwrap();
                        let program = LaneProgram::new(&plan, rank, batch);
                        let formed = LaneProgram {
                            work: program.forming.clone(),
                            ..program.clone()
                        };
                        assert_eq!(
                            expressions(&formed).first(),
                            expected.as_ref(),
                            "{lanes} {batch}"
                        );
                        let nodes = plan.partials_of(rank).iter().enumerate();
                        for (partial, node) in nodes {
                            let expected =
                                by_definition(node.clone(), lanes, batch).unwrap_or_default();
                            let found = expressions(&program)
                                .get(partial)
                                .cloned()
                                .unwrap_or_default();
                            assert_eq!(found, expected, "{lanes} lanes, batch {batch}, {node:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_worker_may_have_nothing_to_do() {
        let program = program(8, 4, 0, 2);
        assert!(program.work.is_empty());
        assert_eq!(program.present.iter().flatten().filter(|&&p| p).count(), 2);
    }

    #[test]
    fn what_is_formed_from_factors_is_added_like_one_workers_lanes() {
        assert_eq!(program(6, 3, 2, 32).forming, program(6, 1, 0, 32).work);
    }

    #[test]
    fn a_single_lane_keeps_nothing_aside() {
        assert_eq!(program(2, 2, 1, 32).aside, 0);
        assert_eq!(program(2, 1, 0, 32).aside, 0);
        assert_eq!(program(4, 1, 0, 32).aside, 1);
    }
}
