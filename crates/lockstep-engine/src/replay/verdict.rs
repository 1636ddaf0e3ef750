//! What holding two runs against each other comes to.

use super::record::RunRecord;
use lockstep_events::Difference;
use lockstep_events::event::{UsedLibrary, UsedSet};
use serde_json::Value;

/// What the comparison came to.
#[derive(Debug)]
pub enum Verdict {
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
    /// Sets that hold other samples now.
    Data(Vec<ChangedSet>),
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

/// A set that held other samples, and what it is now, if it is there.
#[derive(Debug)]
pub struct ChangedSet {
    /// What it was.
    pub before: UsedSet,
    /// What it is.
    pub now: Option<UsedSet>,
}

/// A library of others that was another file, and what it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLibrary {
    /// What it was.
    pub before: UsedLibrary,
    /// What it is.
    pub now: UsedLibrary,
}

/// The libraries that are other files now.
pub(super) fn changed_libraries(
    before: &[UsedLibrary],
    now: &[UsedLibrary],
) -> Vec<ChangedLibrary> {
    let mut found = Vec::new();
    for old in before {
        let new = now.iter().find(|new| new.name == old.name);
        found.extend(new.filter(|&new| new != old).map(|new| ChangedLibrary {
            before: old.clone(),
            now: new.clone(),
        }));
    }
    found
}

impl Verdict {
    /// Whether the samples are others.
    pub fn of_data(before: &[UsedSet], now: &[UsedSet]) -> Option<Self> {
        let mut found = Vec::new();
        for old in before {
            let new = now.iter().find(|new| new.set == old.set);
            let is_same = |new: &UsedSet| old.sha256.is_empty() || old.sha256 == new.sha256;
            if !new.is_some_and(is_same) {
                found.push(ChangedSet {
                    before: old.clone(),
                    now: new.cloned(),
                });
            }
        }
        (!found.is_empty()).then_some(Self::Data(found))
    }

    /// Of two runs that are at their end.
    pub fn of(before: &RunRecord, now: &RunRecord) -> Self {
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

    /// Whether the two are the same.
    pub fn is_same(&self) -> bool {
        matches!(self, Self::Same { .. })
    }
}
