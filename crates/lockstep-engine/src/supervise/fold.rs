//! Folds identical lines of several workers into one.
//!
//! Workers of a gang do the same things, so they tend to say the same things. A line waits for a
//! moment; the same line from other workers joins it instead of being shown again. Two promises hold
//! whatever the timing: nothing is swallowed that was not identical and from another worker, and each
//! worker's lines keep their order.

use lockstep_events::event::LogLine;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a line waits for its likes from other workers.
pub(crate) const WINDOW: Duration = Duration::from_millis(100);

/// How many lines wait at most; a worker that writes faster is not held back for folding's sake.
const MOST_WAITING: usize = 1024;

/// Lines that wait, oldest first.
pub(crate) struct LineFolder {
    workers: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    since: Instant,
    line: LogLine,
    /// The ranks that said it; `line.rank` is the first of them.
    ranks: Vec<usize>,
}

impl LineFolder {
    /// For a gang of this many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers,
            waiting: VecDeque::new(),
        }
    }

    /// Takes a line that a worker wrote at `now`.
    pub(crate) fn push(&mut self, rank: usize, pid: u32, line: String, now: Instant) {
        // Joining a line ahead of this worker's own last one would turn its order around.
        let own_last = self
            .waiting
            .iter()
            .rposition(|waiting| waiting.ranks.contains(&rank))
            .map_or(0, |last| last + 1);
        let twin = self
            .waiting
            .range_mut(own_last..)
            .find(|waiting| waiting.line.line == line);
        match twin {
            Some(waiting) => {
                waiting.ranks.push(rank);
                waiting.line.count += 1;
            }
            None => self.waiting.push_back(Waiting {
                since: now,
                line: LogLine {
                    rank,
                    pid,
                    line,
                    count: 1,
                },
                ranks: vec![rank],
            }),
        }
    }

    /// The next line whose wait is over at `now`: its window passed, every worker said it, or too
    /// many wait behind it.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<LogLine> {
        let first = self.waiting.front()?;
        let complete = first.ranks.len() == self.workers;
        let ripe = now.saturating_duration_since(first.since) >= WINDOW;
        if complete || ripe || self.waiting.len() > MOST_WAITING {
            self.pop_any()
        } else {
            None
        }
    }

    /// The next line, whether or not others might still join it.
    pub(crate) fn pop_any(&mut self) -> Option<LogLine> {
        self.waiting.pop_front().map(|waiting| waiting.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `(rank, line)` pairs that are said at once and returns what comes out.
    fn fold(workers: usize, said: &[(usize, &str)]) -> Vec<(usize, String, usize)> {
        let now = Instant::now();
        let mut folder = LineFolder::new(workers);
        for &(rank, line) in said {
            folder.push(rank, 100 + rank as u32, line.to_string(), now);
        }
        std::iter::from_fn(|| folder.pop_any())
            .map(|line| (line.rank, line.line, line.count))
            .collect()
    }

    fn line(rank: usize, text: &str, count: usize) -> (usize, String, usize) {
        (rank, text.to_string(), count)
    }

    #[test]
    fn identical_lines_of_different_workers_become_one_with_a_count() {
        assert_eq!(fold(3, &[(0, "a"), (1, "a"), (2, "a")]), [line(0, "a", 3)]);
    }

    #[test]
    fn a_worker_that_repeats_itself_is_heard_each_time() {
        assert_eq!(
            fold(2, &[(0, "a"), (0, "a"), (1, "a")]),
            [line(0, "a", 2), line(0, "a", 1)]
        );
    }

    #[test]
    fn lines_that_differ_in_anything_stay_apart() {
        assert_eq!(
            fold(2, &[(0, "loss 1"), (1, "loss 2")]),
            [line(0, "loss 1", 1), line(1, "loss 2", 1)]
        );
    }

    #[test]
    fn each_workers_order_is_kept() {
        assert_eq!(
            fold(2, &[(0, "a"), (0, "b"), (1, "b"), (1, "a")]),
            [line(0, "a", 1), line(0, "b", 2), line(1, "a", 1)]
        );
    }

    #[test]
    fn every_line_of_every_worker_is_counted_once() {
        let words = ["x", "y", "z"];
        let said: Vec<(usize, &str)> = (0..200).map(|i| (i * 7 % 4, words[i * 5 % 3])).collect();
        let counted: usize = fold(4, &said).iter().map(|(_, _, count)| count).sum();
        assert_eq!(counted, said.len());
    }

    #[test]
    fn a_line_waits_for_its_window_unless_every_worker_said_it() {
        let start = Instant::now();
        let mut folder = LineFolder::new(2);
        folder.push(0, 100, "a".to_string(), start);
        assert_eq!(folder.pop(start + WINDOW / 2), None);
        folder.push(1, 101, "a".to_string(), start + WINDOW / 2);
        assert_eq!(
            folder.pop(start + WINDOW / 2).map(|line| line.count),
            Some(2)
        );
        folder.push(0, 100, "b".to_string(), start);
        assert_eq!(folder.pop(start + WINDOW).map(|line| line.count), Some(1));
    }
}
