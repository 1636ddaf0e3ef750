//! Marks of a run's parameters, step by step, so that a later run of the same job can be held against it.
//!
//! The same job comes to the same bits, so a mark need not say much: a few numbers of every tensor, taken at
//! places that change from step to step, and the loss of a lane. Two runs whose marks agree at every step have,
//! for all that can be expected, agreed in every number; whole hashes at the ends of epochs make sure of it.
//! A step that is trained again after a failure is marked again, with the same mark.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The marks of some steps in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMarks {
    /// The first of the steps, counted from 1.
    pub step: u64,
    /// Steps from one mark to the next.
    pub every: u64,
    /// For each step the mark of its loss, then those of all tensors: eight hexadecimal digits each.
    pub marks: String,
}

/// One line of a run's `trace.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TraceLine {
    /// What the marks are of; comes first, and again when a run is gone on with.
    Tensors {
        /// The names of all tensors, in the order of their marks.
        tensors: Vec<String>,
    },
    /// Some steps.
    Marks(TraceMarks),
    /// The end of an epoch.
    Whole {
        /// Steps that were done.
        step: u64,
        /// A hash of each tensor, whole: sixteen hexadecimal digits each.
        whole: Vec<String>,
    },
}

/// Hexadecimal digits of a mark.
const DIGITS: usize = 8;

/// The marks of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    tensors: Vec<String>,
    /// By step, the mark of its loss and those of the tensors.
    steps: BTreeMap<u64, Vec<String>>,
    /// By step, the hashes of the tensors.
    whole: BTreeMap<u64, Vec<String>>,
    /// Steps that were trained twice and came to something else.
    torn: Vec<u64>,
}

/// Where two runs part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The first step, counted from 1, after which they are not the same.
    pub step: u64,
    /// The tensors that differ then, as far as can be told. If there are none, it is the loss of the step that
    /// differs: the batch, or a first layer, which is not looked at in every step.
    pub tensors: Vec<String>,
}

/// What comparing two traces came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Steps whose marks were compared.
    pub steps: usize,
    /// Steps after which all tensors were compared whole.
    pub whole: usize,
    /// Where they part, if they do.
    pub difference: Option<Difference>,
}

impl Trace {
    /// Reads the lines of a `trace.jsonl`. One that a crash cut short is passed over, and so is what a later
    /// version wrote.
    pub fn parse(text: &str) -> Self {
        let mut trace = Self::default();
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(TraceLine::Tensors { tensors }) => trace.tensors = tensors,
                Ok(TraceLine::Whole { step, whole }) => {
                    note(&mut trace.whole, &mut trace.torn, step, whole);
                }
                Ok(TraceLine::Marks(marks)) => trace.take(&marks),
                Err(_) => {}
            }
        }
        trace
    }

    fn take(&mut self, marks: &TraceMarks) {
        // Without the names it is not known where one step's marks end.
        if self.tensors.is_empty() {
            return;
        }
        let each = DIGITS * (self.tensors.len() + 1);
        for (number, text) in marks.marks.as_bytes().chunks_exact(each).enumerate() {
            let step = (number as u64)
                .saturating_mul(marks.every)
                .saturating_add(marks.step);
            let marks = text.chunks(DIGITS);
            let marks = marks.map(|mark| String::from_utf8_lossy(mark).into_owned());
            note(&mut self.steps, &mut self.torn, step, marks.collect());
        }
    }

    /// The last step that is marked; 0 if none is.
    pub fn last_step(&self) -> u64 {
        let last = self.steps.keys().chain(self.whole.keys()).max();
        last.copied().unwrap_or(0)
    }

    /// Whether nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.whole.is_empty()
    }

    /// A step that was trained twice after a failure and did not come to the same.
    pub fn torn_step(&self) -> Option<u64> {
        self.torn.iter().min().copied()
    }

    /// Holds another run of the same job against this one, as far as both are marked.
    pub fn compare(&self, other: &Trace) -> Comparison {
        let mut found: Vec<Difference> = Vec::new();
        let mut compare = |ours: &BTreeMap<u64, Vec<String>>,
                           theirs: &BTreeMap<u64, Vec<String>>,
                           first: usize| {
            let common = ours
                .iter()
                .filter_map(|(step, ours)| theirs.get(step).map(|theirs| (*step, ours, theirs)));
            let mut compared = 0;
            for (step, ours, theirs) in common {
                compared += 1;
                if ours != theirs {
                    found.push(Difference {
                        step,
                        tensors: self.different(&ours[first..], &theirs[first..]),
                    });
                    break;
                }
            }
            compared
        };
        let steps = compare(&self.steps, &other.steps, 1);
        let whole = compare(&self.whole, &other.whole, 0);
        Comparison {
            steps,
            whole,
            difference: found.into_iter().min_by_key(|found| found.step),
        }
    }

    /// The names of the tensors whose marks differ.
    fn different(&self, ours: &[String], theirs: &[String]) -> Vec<String> {
        let pairs = self.tensors.iter().zip(ours.iter().zip(theirs));
        let different = pairs.filter(|(_, (ours, theirs))| ours != theirs);
        different.map(|(name, _)| name.clone()).collect()
    }
}

/// Takes in the marks of a step, which may have been trained before.
fn note(
    steps: &mut BTreeMap<u64, Vec<String>>,
    torn: &mut Vec<u64>,
    step: u64,
    marks: Vec<String>,
) {
    let before = steps.insert(step, marks);
    if before.is_some_and(|before| before != steps[&step]) {
        torn.push(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of so many steps of two tensors; from `parts` on, `tensor` is another (2 is the loss).
    fn run(steps: u64, parts: Option<(u64, usize)>) -> String {
        let tensors = vec!["a".to_owned(), "b".to_owned()];
        let mut lines = vec![serde_json::to_string(&TraceLine::Tensors { tensors }).unwrap()];
        let differs = |step, tensor| parts.is_some_and(|(from, t)| step >= from && t == tensor);
        for first in (1..=steps).step_by(3) {
            let last = steps.min(first + 2);
            let mark = |step, tensor| {
                format!("{:08x}", step * 4 + u64::from(differs(step, tensor)) * 1000)
            };
            let of = |step| format!("{}{}{}", mark(step, 2), mark(step, 0), mark(step, 1));
            let marks = (first..=last).map(of).collect();
            let marks = TraceLine::Marks(TraceMarks {
                step: first,
                every: 1,
                marks,
            });
            lines.push(serde_json::to_string(&marks).unwrap());
        }
        lines.join("\n")
    }

    fn difference(ours: &str, theirs: &str) -> Option<(u64, Vec<String>)> {
        let comparison = Trace::parse(ours).compare(&Trace::parse(theirs));
        let found = comparison.difference;
        found.map(|found| (found.step, found.tensors))
    }

    #[test]
    fn runs_that_are_the_same_as_far_as_both_go_do_not_differ() {
        let (ours, theirs) = (Trace::parse(&run(10, None)), Trace::parse(&run(7, None)));
        let comparison = ours.compare(&theirs);
        assert_eq!((comparison.steps, comparison.difference), (7, None));
        assert_eq!(ours.last_step(), 10);
    }

    #[test]
    fn the_first_step_and_the_tensor_that_differ_are_named() {
        let changed = run(10, Some((5, 1)));
        assert_eq!(
            difference(&run(10, None), &changed),
            Some((5, vec!["b".to_owned()]))
        );
        let loss = run(10, Some((4, 2)));
        assert_eq!(difference(&run(10, None), &loss), Some((4, Vec::new())));
    }

    #[test]
    fn whole_hashes_find_what_marks_did_not_look_at() {
        let whole = |hash: &str| {
            let whole = vec![hash.to_owned(), "1".to_owned()];
            let line = TraceLine::Whole { step: 9, whole };
            format!(
                "{}\n{}",
                run(10, None),
                serde_json::to_string(&line).unwrap()
            )
        };
        assert_eq!(
            difference(&whole("x"), &whole("y")),
            Some((9, vec!["a".to_owned()]))
        );
    }

    #[test]
    fn a_step_that_was_trained_again_must_come_to_the_same() {
        let same = format!("{}\n{}", run(6, None), run(9, None));
        assert_eq!(Trace::parse(&same).torn_step(), None);
        let torn = format!("{}\n{}", run(6, None), run(9, Some((4, 0))));
        assert_eq!(Trace::parse(&torn).torn_step(), Some(4));
    }

    #[test]
    fn marks_without_names_and_steps_beyond_all_numbers_do_no_harm() {
        let text = run(9, None);
        let (_, without_names) = text.split_once('\n').unwrap();
        assert!(Trace::parse(without_names).is_empty());
        let vast = r#"{"tensors":["a"]}
{"step":18446744073709551615,"every":18446744073709551615,"marks":"00000000000000010000000000000001"}"#;
        assert_eq!(Trace::parse(vast).last_step(), u64::MAX);
    }

    #[test]
    fn a_line_that_was_cut_short_is_passed_over() {
        let text = run(9, None);
        let cut = &text[..text.len() - 9];
        assert_eq!(Trace::parse(cut).last_step(), 6);
    }
}
