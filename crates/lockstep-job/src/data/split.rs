//! `data.split`: what decides which rows are trained, validated and tested on.

use crate::field::Field;
use crate::keys::{Any, keys};

/// More would test on next to nothing.
const MOST_FOLDS: usize = 1000;

keys! {
    /// What decides which rows are trained, validated and tested on, in place of chance.
    pub struct JobSplit (Eq): all default {
        /// The column of a table, of dates or numbers, that puts its rows in order: the last ones are tested on, the ones
        /// before these are validated on.
        by: Option<String> = optional => Any;
        /// The column of a table whose values are groups: no group is in two parts.
        group: Option<String> = optional => Any;
        /// How many folds there are, each of which is tested on once.
        folds: Option<usize> = optional => 2..=MOST_FOLDS;
        /// The fold that this run tests on, from 1 on.
        fold: Option<usize> = optional => 1..=MOST_FOLDS;
    }
}

impl JobSplit {
    /// Itself, unless its keys contradict each other.
    pub(super) fn checked(self, field: &Field<'_>) -> Option<Self> {
        if self.by.is_some() && self.group.is_some() {
            return field.reject("has both `by` and `group`", "leave one out");
        }
        match (self.fold, self.folds) {
            (Some(fold), Some(folds)) if fold > folds => field.reject(
                format!("tests on fold {fold}, and there are {folds}"),
                format!("choose a `fold` from 1 to {folds}"),
            ),
            (Some(_), None) | (None, Some(_)) => field.reject(
                "has one of `fold` and `folds`",
                "write both, as in { fold = 1, folds = 5 }; `lockstep run --folds 5` sets them for each run",
            ),
            _ => Some(self),
        }
    }
}
