//! What holding two runs against each other comes to.

use super::record::RunRecord;
use crate::view::count;
use lockstep_events::event::UsedSet;
use lockstep_events::{Difference, Trace};
use serde_json::{Value, json};

/// Tensors that are named; of more, their number is said.
const NAMED: usize = 4;

/// What the comparison came to.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The same to the bit.
    Same {
        /// Steps that were compared.
        steps: usize,
        /// Steps after which all tensors were compared whole.
        whole: usize,
        /// Reports of a script that were compared.
        reports: usize,
        /// The hash of what was learned, if both came to one.
        weights: Option<String>,
    },
    /// Sets that hold other samples now, as sentences.
    Data(Vec<String>),
    /// They part after a step.
    Parted(Difference),
    /// A script reported something else.
    Reported {
        /// The number of the report.
        report: u64,
        /// What was reported before, and now.
        values: [String; 2],
    },
    /// No step differs that can be compared, but the hashes do.
    Weights([String; 2]),
    /// The first run was not one with itself: a step that it trained twice came to something else.
    Torn(u64),
}

impl Verdict {
    /// Whether the samples are others.
    pub(super) fn of_data(before: &[UsedSet], now: &[UsedSet]) -> Option<Self> {
        let mut found = Vec::new();
        for old in before {
            let set = &old.set;
            match now.iter().find(|new| new.set == *set) {
                None => found.push(format!("data.{set} is not there any more")),
                Some(new) if !old.sha256.is_empty() && old.sha256 != new.sha256 => {
                    found.push(format!(
                        "data.{set} ({}) holds other samples: {} with SHA-256 {} now, {} with {} then",
                        new.name,
                        count(new.samples as u64),
                        short(&new.sha256),
                        count(old.samples as u64),
                        short(&old.sha256)
                    ));
                }
                Some(_) => {}
            }
        }
        (!found.is_empty()).then_some(Self::Data(found))
    }

    /// Where marks differ.
    pub(super) fn of_traces(before: &Trace, now: &Trace) -> Option<Self> {
        before.compare(now).difference.map(Self::Parted)
    }

    /// Of two runs that are at their end.
    pub(super) fn of(before: &RunRecord, now: &RunRecord) -> Self {
        if let Some(step) = before.trace.torn_step() {
            return Self::Torn(step);
        }
        let compared = before.trace.compare(&now.trace);
        if let Some(difference) = compared.difference {
            return Self::Parted(difference);
        }
        let mut reports = 0;
        for (report, values) in &before.reports {
            let Some((_, others)) = now.reports.iter().find(|(other, _)| other == report) else {
                continue;
            };
            if values != others {
                let text = |values| Value::Object(values).to_string();
                return Self::Reported {
                    report: *report,
                    values: [text(values.clone()), text(others.clone())],
                };
            }
            reports += 1;
        }
        match (before.weights(), now.weights()) {
            (Some(old), Some(new)) if old != new => Self::Weights([old, new].map(str::to_owned)),
            (old, new) => Self::Same {
                steps: compared.steps,
                whole: compared.whole,
                reports,
                weights: old.and(new).map(str::to_owned),
            },
        }
    }

    pub(super) fn is_same(&self) -> bool {
        matches!(self, Self::Same { .. })
    }

    /// For people.
    pub(super) fn words(&self, run: &str) -> String {
        match self {
            Self::Same {
                steps,
                whole,
                reports,
                weights,
            } => {
                let mut compared = Vec::new();
                if *steps > 0 {
                    let steps = count(*steps as u64);
                    compared.push(format!("{steps} steps, {whole} times all weights"));
                }
                if *reports > 0 {
                    compared.push(format!("{reports} reports"));
                }
                if let Some(weights) = weights {
                    compared.push(format!("weights {}", short(weights)));
                }
                format!("the same as {run}, to the bit: {}", compared.join(", "))
            }
            Self::Data(found) => {
                format!(
                    "{run} cannot be trained again as it was: {}",
                    found.join("; ")
                )
            }
            Self::Parted(Difference { step, tensors }) if tensors.is_empty() => format!(
                "not the same as {run}: the loss of step {} differs, so its batch was another, or the \
                 weights of the first layer were",
                count(*step)
            ),
            Self::Parted(Difference { step, tensors }) => format!(
                "not the same as {run}: after step {} these differ: {}",
                count(*step),
                names(tensors)
            ),
            Self::Reported {
                report,
                values: [then, now],
            } => format!(
                "not the same as {run}: report {report} was {then} then and is {now} now. A script comes to the \
                 same only if all that it does is fixed by its seed"
            ),
            Self::Weights([then, now]) => format!(
                "not the same as {run}: the weights were {then} then and are {now} now, though no step that was \
                 marked differs"
            ),
            Self::Torn(step) => format!(
                "{run} is not one with itself: step {} was trained twice, after a failure, and came to something \
                 else the second time; this is a bug, or the memory of a machine is bad",
                count(*step)
            ),
        }
    }

    /// For programs.
    pub(super) fn json(&self, run: &str) -> Value {
        let difference = match self {
            Self::Same { .. } => Value::Null,
            Self::Data(found) => json!({ "kind": "data", "sets": found }),
            Self::Parted(Difference { step, tensors }) => {
                json!({ "kind": "step", "step": step, "tensors": tensors })
            }
            Self::Reported { report, values } => {
                json!({ "kind": "report", "report": report, "values": values })
            }
            Self::Weights(hashes) => json!({ "kind": "weights", "weights_sha256": hashes }),
            Self::Torn(step) => json!({ "kind": "torn", "step": step }),
        };
        let (steps, weights) = match self {
            Self::Same { steps, weights, .. } => (*steps, weights.clone()),
            _ => (0, None),
        };
        json!({
            "event": "replayed", "run": run, "same": self.is_same(), "steps": steps,
            "weights_sha256": weights, "difference": difference,
        })
    }
}

/// The beginning of a hash: enough to tell two apart.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Some names, and how many more there are.
fn names(names: &[String]) -> String {
    let named = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
