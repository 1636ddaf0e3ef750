//! Which rows of one set are trained on, which ones choose the best epoch, and which ones are only tested on.
//!
//! A [`SplitRule`] parts a set by chance, by chance within each class, by the order of a column, or by groups. It is a
//! function of the rule, its seed and the rows alone, so every process parts a set alike. Rows that must not be torn apart
//! are not: a group is in one part, and so are rows of the same time.

use crate::order::{SPLIT, quotas};
use lockstep_base::random::Stream;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::ops::Range;

/// How a set is parted. Shares are those of all rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitRule {
    /// What decides which rows go where.
    pub by: SplitBy,
    /// The share that chooses the best epoch. With folds, of the rows that are not in the fold.
    pub val: f64,
    /// The share that is tested on, where there are no folds.
    pub test: f64,
    /// Which of several folds is tested on.
    pub fold: Option<Fold>,
    /// Where chance comes from.
    pub seed: u64,
}

/// What decides which rows go where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SplitBy {
    /// Chance.
    Chance,
    /// Chance, with the same share of every class.
    Classes,
    /// The order of this column: what comes last is tested on, what comes before it chooses.
    Order(String),
    /// This column, whose values are groups that stay together.
    Group(String),
}

/// One of several parts of about the same size, each of which is tested on once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    /// Which, from 1 on.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

/// A part of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitPart {
    /// What is trained on.
    Train,
    /// What chooses the best epoch.
    Val,
    /// What is tested on.
    Test,
}

impl SplitPart {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        }
    }
}

/// What is known of the rows that a rule parts.
pub(crate) enum SplitKeys<'a> {
    /// How many there are.
    Count(usize),
    /// The class of each.
    Classes(&'a [u32]),
    /// What puts each in order; none is NaN.
    Order(Vec<f64>),
    /// The group of each.
    Groups(&'a [u32]),
}

/// The rows of each part, in ascending order. Of a fold by order, rows that come after it are in none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) train: Vec<u32>,
    pub(crate) val: Vec<u32>,
    pub(crate) test: Vec<u32>,
}

impl Parts {
    /// The rows of one part.
    pub(crate) fn take(self, part: SplitPart) -> Vec<u32> {
        match part {
            SplitPart::Train => self.train,
            SplitPart::Val => self.val,
            SplitPart::Test => self.test,
        }
    }
}

impl SplitRule {
    /// Whether rows are tested on.
    pub fn tests(&self) -> bool {
        self.test > 0.0 || self.fold.is_some()
    }

    /// How many of `rows` rows are validated on and tested on, as near as the rule can hold it.
    pub fn counts(&self, rows: usize) -> (usize, usize) {
        let test = match self.fold {
            Some(fold) => fold_range(fold, rows).len(),
            None => share_of(rows, self.test),
        };
        let of = if self.fold.is_some() {
            rows - test
        } else {
            rows
        };
        (share_of(of, self.val).min(rows - test), test)
    }

    /// Parts the rows that `keys` are of. A part may come out empty.
    pub(crate) fn part(&self, keys: &SplitKeys<'_>) -> Parts {
        let mut parts = match keys {
            SplitKeys::Count(rows) => self.by_chance(*rows),
            SplitKeys::Classes(classes) => self.by_classes(classes),
            SplitKeys::Order(order) => self.by_order(order),
            SplitKeys::Groups(groups) => self.by_groups(groups),
        };
        for rows in [&mut parts.train, &mut parts.val, &mut parts.test] {
            rows.sort_unstable();
        }
        parts
    }

    fn shuffled(&self, count: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(count).collect();
        Stream::new(self.seed, SPLIT).shuffle(&mut order);
        order
    }

    fn by_chance(&self, rows: usize) -> Parts {
        let mut train = self.shuffled(rows);
        let (val, test) = self.counts(rows);
        let test = match self.fold {
            Some(fold) => train.drain(fold_range(fold, rows)).collect(),
            None => train.split_off(rows - test),
        };
        let val = train.split_off(train.len() - val);
        Parts { train, val, test }
    }

    fn by_classes(&self, classes: &[u32]) -> Parts {
        let mut parts = Parts::default();
        let class = |row: u32| classes[row as usize] as usize;
        let mut rest = self.shuffled(classes.len());
        let (val, _) = self.counts(classes.len());
        match self.fold {
            // Dealt out class by class, every fold gets as many of each as any other, or one more.
            Some(fold) => {
                rest.sort_by_key(|&row| class(row));
                let mut at = 0;
                rest.retain(|&row| {
                    let tested = at % fold.of == fold.number - 1;
                    at += 1;
                    parts.test.extend(tested.then_some(row));
                    !tested
                });
            }
            None => {
                let all = counted(rest.iter().map(|&row| class(row)));
                (parts.test, rest) = taken(rest, quotas(&all, self.test), class);
            }
        }
        let left = counted(rest.iter().map(|&row| class(row)));
        let share = val.min(rest.len()) as f64 / rest.len().max(1) as f64;
        let val = quotas(&left, share);
        (parts.val, parts.train) = taken(rest, val, class);
        parts
    }

    fn by_order(&self, order: &[f64]) -> Parts {
        let mut rows: Vec<u32> = (0..).take(order.len()).collect();
        rows.sort_by(|&a, &b| order[a as usize].total_cmp(&order[b as usize]));
        let key = |at: usize| order[rows[at] as usize];
        let cut = |wanted: usize| nearest_cut(wanted, rows.len(), &|at| key(at - 1) != key(at));
        let tested = match self.fold {
            // Every fold is tested on by what came before it, so the first rows are in none.
            Some(fold) => {
                let block = |number: usize| cut(rows.len() * number / (fold.of + 1));
                block(fold.number)..block(fold.number + 1)
            }
            None => cut(rows.len() - share_of(rows.len(), self.test))..rows.len(),
        };
        let of = match self.fold {
            Some(_) => tested.start,
            None => rows.len(),
        };
        let val = cut(tested.start.saturating_sub(share_of(of, self.val)));
        Parts {
            train: rows[..val.min(tested.start)].to_vec(),
            val: rows[val.min(tested.start)..tested.start].to_vec(),
            test: rows[tested].to_vec(),
        }
    }

    fn by_groups(&self, groups: &[u32]) -> Parts {
        let sizes = counted(groups.iter().map(|&group| group as usize));
        let mut order = self.shuffled(sizes.len());
        let size = |group: u32| sizes[group as usize];
        let mut part = vec![SplitPart::Train; sizes.len()];
        let rows = groups.len();
        let (val, test) = self.counts(rows);
        if let Some(fold) = self.fold {
            // The largest first, each to the fold that has the fewest rows.
            order.sort_by_key(|&group| Reverse(size(group)));
            let mut folds = vec![0; fold.of];
            order.retain(|&group| {
                let fewest = (0..fold.of).min_by_key(|&at| folds[at]).unwrap_or(0);
                folds[fewest] += size(group);
                let tested = fewest == fold.number - 1;
                if tested {
                    part[group as usize] = SplitPart::Test;
                }
                !tested
            });
        }
        let wanted = [
            (SplitPart::Test, if self.fold.is_some() { 0 } else { test }),
            (SplitPart::Val, val),
        ];
        for (name, wanted) in wanted {
            let mut taken = 0;
            order.retain(|&group| {
                // A group is taken where that comes nearer to what is wanted.
                let nearer = 2 * taken + size(group) <= 2 * wanted || (taken == 0 && wanted > 0);
                if nearer {
                    taken += size(group);
                    part[group as usize] = name;
                }
                !nearer
            });
        }
        let mut parts = Parts::default();
        for (row, &group) in (0..).zip(groups) {
            match part[group as usize] {
                SplitPart::Train => parts.train.push(row),
                SplitPart::Val => parts.val.push(row),
                SplitPart::Test => parts.test.push(row),
            }
        }
        parts
    }
}

/// So many rows are this share, in whole ones.
fn share_of(rows: usize, share: f64) -> usize {
    ((rows as f64 * share).round() as usize).min(rows)
}

/// The places of a fold among `rows` shuffled rows.
fn fold_range(fold: Fold, rows: usize) -> Range<usize> {
    rows * (fold.number - 1) / fold.of..rows * fold.number / fold.of
}

/// How often each number comes.
fn counted(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut counts = Vec::new();
    for number in numbers {
        if counts.len() <= number {
            counts.resize(number + 1, 0);
        }
        counts[number] += 1;
    }
    counts
}

/// Takes so many rows of each class, the first ones; these, and those that are left.
fn taken(
    rows: Vec<u32>,
    mut wanted: Vec<usize>,
    class: impl Fn(u32) -> usize,
) -> (Vec<u32>, Vec<u32>) {
    rows.into_iter().partition(|&row| {
        let wanted = &mut wanted[class(row)];
        let is_taken = *wanted > 0;
        *wanted -= usize::from(is_taken);
        is_taken
    })
}

/// The place nearest to `wanted` where rows may be cut: at their ends, or where `is_between` two different ones.
fn nearest_cut(wanted: usize, rows: usize, is_between: &dyn Fn(usize) -> bool) -> usize {
    let may = |at: usize| at == 0 || at >= rows || is_between(at);
    let away = (0..=rows).find(|&away| {
        let before = wanted.checked_sub(away).is_some_and(may);
        before || (wanted + away <= rows && may(wanted + away))
    });
    let away = away.unwrap_or(0);
    match wanted.checked_sub(away).filter(|&at| may(at)) {
        Some(at) => at,
        None => wanted + away,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(by: SplitBy, val: f64, test: f64, fold: Option<Fold>) -> SplitRule {
        SplitRule {
            by,
            val,
            test,
            fold,
            seed: 3,
        }
    }

    fn all(parts: &Parts) -> Vec<u32> {
        let mut rows = [&parts.train[..], &parts.val, &parts.test].concat();
        rows.sort_unstable();
        rows
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_part_and_shares_are_held(
            rows in 1usize..200, val in 0.0..0.5f64, test in 0.0..0.5f64, classes in 1u32..4,
        ) {
            let labels: Vec<u32> = (0..rows as u32).map(|row| row * row % classes).collect();
            let rule = rule(SplitBy::Chance, val, test, None);
            for keys in [SplitKeys::Count(rows), SplitKeys::Classes(&labels)] {
                let parts = rule.part(&keys);
                prop_assert_eq!(all(&parts), (0..rows as u32).collect::<Vec<_>>());
                prop_assert_eq!((parts.val.len(), parts.test.len()), rule.counts(rows));
            }
        }

        #[test]
        fn folds_test_every_row_once(rows in 5usize..120, of in 2usize..5, groups in 5u32..9) {
            let groups: Vec<u32> = (0..rows as u32).map(|row| (row * 7 % rows as u32) % groups).collect();
            for keys in [
                SplitKeys::Count(rows),
                SplitKeys::Classes(&groups),
                SplitKeys::Groups(&groups),
            ] {
                let mut tested: Vec<u32> = (1..=of).flat_map(|number| {
                    let fold = Some(Fold { number, of });
                    let parts = rule(SplitBy::Chance, 0.2, 0.0, fold).part(&keys);
                    assert_eq!(all(&parts).len(), rows);
                    parts.test
                }).collect();
                tested.sort_unstable();
                prop_assert_eq!(tested, (0..rows as u32).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_comes_last_is_tested_on_and_equal_times_stay_together() {
        let days = [5.0, 1.0, 2.0, 3.0, 3.0, 3.0, 4.0, 1.0, 2.0, 5.0];
        let rule = rule(SplitBy::Order("day".into()), 0.2, 0.2, None);
        let parts = rule.part(&SplitKeys::Order(days.to_vec()));
        let of = |rows: &[u32]| {
            rows.iter()
                .map(|&row| days[row as usize])
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&parts.test), [5.0, 5.0]);
        assert_eq!(of(&parts.val), [4.0]);
        assert_eq!(parts.train.len(), 7);
    }

    #[test]
    fn a_fold_by_order_is_tested_by_what_came_before_it() {
        let order: Vec<f64> = (0..12).rev().map(f64::from).collect();
        for number in 1..=3 {
            let fold = Some(Fold { number, of: 3 });
            let rule = rule(SplitBy::Order("day".into()), 0.0, 0.0, fold);
            let parts = rule.part(&SplitKeys::Order(order.clone()));
            let at = |row: &u32| order[*row as usize];
            let latest = parts.train.iter().map(at).fold(f64::MIN, f64::max);
            assert!(parts.test.iter().map(at).all(|time| time > latest));
            assert_eq!((parts.train.len(), parts.test.len()), (3 * number, 3));
        }
    }

    #[test]
    fn no_group_is_in_two_parts() {
        let groups: Vec<u32> = (0..100).map(|row| row * row % 17).collect();
        let parts =
            rule(SplitBy::Group("who".into()), 0.2, 0.3, None).part(&SplitKeys::Groups(&groups));
        let of = |rows: &[u32]| {
            let mut of: Vec<u32> = rows.iter().map(|&row| groups[row as usize]).collect();
            of.sort_unstable();
            of.dedup();
            of
        };
        let (train, val, test) = (of(&parts.train), of(&parts.val), of(&parts.test));
        assert!(!train.is_empty() && !val.is_empty() && !test.is_empty());
        assert!(val.iter().chain(&test).all(|group| !train.contains(group)));
        assert!(val.iter().all(|group| !test.contains(group)));
        assert_eq!(all(&parts).len(), 100);
    }
}
