//! The distinct values of columns that have few.

use super::RankRows;
use crate::Together;
use std::ops::ControlFlow;

/// What is known of a column's distinct values.
pub(super) enum Distinct {
    /// All of them, as keys in order.
    Few(Vec<u32>),
    /// More than were looked for.
    TooMany,
}

/// The distinct values of all columns over all ranks, of a column with at most `most` of them; all of a column of
/// categories.
pub(super) fn of_all<T: Together>(
    rows: &mut RankRows<'_>,
    most: usize,
    together: &T,
) -> Result<Vec<Distinct>, T::Error> {
    let columns = rows.categorical.len();
    let own = of_rank(rows, most);
    // A slot for each key that a rank may have, and one that says that it has too many. Others leave a rank's slots at
    // 0, so that the sum is what the rank wrote. No key is 0.
    let slots = most + 1;
    let mut all = vec![0; together.ranks() * columns * slots];
    for (column, distinct) in own.iter().enumerate() {
        let from = (together.rank() * columns + column) * slots;
        let own = &mut all[from..from + slots];
        match distinct {
            Distinct::Few(keys) => {
                for (slot, &key) in own.iter_mut().zip(keys) {
                    *slot = u64::from(key);
                }
            }
            Distinct::TooMany => own[most] = 1,
        }
    }
    together.sum(&mut all)?;
    let merged = (0..columns).map(|column| {
        let mut keys = Vec::new();
        for rank in 0..together.ranks() {
            let from = (rank * columns + column) * slots;
            let of_rank = &all[from..from + slots];
            if of_rank[most] != 0 {
                return Distinct::TooMany;
            }
            keys.extend(
                of_rank[..most]
                    .iter()
                    .filter(|&&key| key != 0)
                    .map(|&key| key as u32),
            );
        }
        keys.sort_unstable();
        keys.dedup();
        match keys.len() <= most {
            true => Distinct::Few(keys),
            false => Distinct::TooMany,
        }
    });
    Ok(merged.collect())
}

/// The distinct keys of one rank. It stops looking at a column at the first one too many.
fn of_rank(rows: &mut RankRows<'_>, most: usize) -> Vec<Distinct> {
    let categorical = rows.categorical;
    let mut found: Vec<Distinct> = categorical
        .iter()
        .map(|_| Distinct::Few(Vec::new()))
        .collect();
    rows.walk(|part| {
        for (column, distinct) in found.iter_mut().enumerate() {
            match distinct {
                Distinct::TooMany => {}
                // Of categories, the largest says it all.
                Distinct::Few(keys) if categorical[column] => {
                    let largest = keys.iter().copied().chain(part.keys(column)).max();
                    *keys = largest.into_iter().collect();
                }
                Distinct::Few(keys) => {
                    if !add(keys, part.keys(column), most) {
                        *distinct = Distinct::TooMany;
                    }
                }
            }
        }
        match found.iter().all(|one| matches!(one, Distinct::TooMany)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found
}

/// Takes more keys into those that were found, which are in order; `false` if they become more than `most`.
fn add(found: &mut Vec<u32>, keys: impl Iterator<Item = u32>, most: usize) -> bool {
    let mut last = None;
    for key in keys {
        if last == Some(key) {
            continue;
        }
        last = Some(key);
        if let Err(place) = found.binary_search(&key) {
            if found.len() == most {
                return false;
            }
            found.insert(place, key);
        }
    }
    true
}
