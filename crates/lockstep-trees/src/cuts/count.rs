//! Order statistics by counting digits.

use super::RankRows;
use crate::Together;
use std::ops::ControlFlow;

/// Digits of the first count: all columns' counts are summed over the ranks at once.
const FIRST: u32 = 16;
/// Digits of each later count.
const LATER: u32 = 8;
const LATER_DIGITS: usize = 1 << LATER;

/// A value that is looked for: what is known of its key, and its rank among the values that begin so.
#[derive(Clone, Copy)]
struct Sought {
    prefix: u32,
    rank: u64,
}

/// For each of these columns, the keys of rank `k * n / bins` among its values, each once, in order.
pub(super) fn order_statistics<T: Together>(
    rows: &mut RankRows<'_>,
    columns: &[usize],
    bins: usize,
    together: &T,
) -> Result<Vec<Vec<u32>>, T::Error> {
    let mut sought = first(rows, columns, bins, together)?;
    for shift in [32 - FIRST - LATER, 0] {
        refine(rows, columns, &mut sought, shift, together)?;
    }
    let keys = sought.into_iter().map(|sought| {
        let mut keys: Vec<u32> = sought.into_iter().map(|sought| sought.prefix).collect();
        keys.dedup();
        keys
    });
    Ok(keys.collect())
}

/// The highest digits of all values that are looked for.
fn first<T: Together>(
    rows: &mut RankRows<'_>,
    columns: &[usize],
    bins: usize,
    together: &T,
) -> Result<Vec<Vec<Sought>>, T::Error> {
    let digits = 1 << FIRST;
    let mut counts = vec![0_u64; columns.len() * digits];
    rows.walk(|part| {
        for (&column, counts) in columns.iter().zip(counts.chunks_exact_mut(digits)) {
            for key in part.keys(column) {
                counts[(key >> (32 - FIRST)) as usize] += 1;
            }
        }
        ControlFlow::Continue(())
    });
    together.sum(&mut counts)?;
    let sought = counts.chunks_exact(digits).map(|counts| {
        let all: u64 = counts.iter().sum();
        // Ranks ascend, so one walk over the counts finds all of them.
        let (mut digit, mut before) = (0, 0);
        let found = (0..bins as u64).map(|k| {
            let rank = (u128::from(k) * u128::from(all) / bins as u128) as u64;
            while rank >= before + counts[digit] {
                before += counts[digit];
                digit += 1;
            }
            Sought {
                prefix: digit as u32,
                rank: rank - before,
            }
        });
        found.collect()
    });
    Ok(sought.collect())
}

/// The next digits of all values that are looked for: those above `shift` that are not known yet.
fn refine<T: Together>(
    rows: &mut RankRows<'_>,
    columns: &[usize],
    sought: &mut [Vec<Sought>],
    shift: u32,
    together: &T,
) -> Result<(), T::Error> {
    // Several values may begin alike: each beginning is counted once.
    let prefixes: Vec<Vec<u32>> = sought
        .iter()
        .map(|sought| {
            let mut prefixes: Vec<u32> = sought.iter().map(|sought| sought.prefix).collect();
            prefixes.dedup();
            prefixes
        })
        .collect();
    let sizes = prefixes
        .iter()
        .map(|prefixes| prefixes.len() * LATER_DIGITS);
    let mut counts = vec![0_u64; sizes.sum()];
    let places: Vec<Places<'_>> = prefixes
        .iter()
        .map(|prefixes| Places::of(prefixes, shift + LATER))
        .collect();
    rows.walk(|part| {
        let mut rest = counts.as_mut_slice();
        for (&column, places) in columns.iter().zip(&places) {
            let (own, others) = rest.split_at_mut(places.prefixes.len() * LATER_DIGITS);
            rest = others;
            for key in part.keys(column) {
                if let Some(place) = places.find(key) {
                    let digit = (key >> shift) as usize % LATER_DIGITS;
                    own[place * LATER_DIGITS + digit] += 1;
                }
            }
        }
        ControlFlow::Continue(())
    });
    together.sum(&mut counts)?;
    let mut rest = counts.as_slice();
    for (sought, prefixes) in sought.iter_mut().zip(&prefixes) {
        let (own, others) = rest.split_at(prefixes.len() * LATER_DIGITS);
        rest = others;
        let mut place = 0;
        for sought in sought {
            while prefixes[place] != sought.prefix {
                place += 1;
            }
            let counts = &own[place * LATER_DIGITS..][..LATER_DIGITS];
            let mut digit = 0;
            while sought.rank >= counts[digit] {
                sought.rank -= counts[digit];
                digit += 1;
            }
            sought.prefix = sought.prefix << LATER | digit as u32;
        }
    }
    Ok(())
}

/// Which of some beginnings a key has. Most keys have none, which one look at their highest digits tells.
struct Places<'a> {
    prefixes: &'a [u32],
    shift: u32,
    /// For each value of the highest digits, the first beginning that has them, and the first that is beyond.
    by_top: Vec<(u32, u32)>,
}

impl<'a> Places<'a> {
    fn of(prefixes: &'a [u32], shift: u32) -> Self {
        let mut by_top = vec![(0, 0); 1 << FIRST];
        for (place, prefix) in prefixes.iter().enumerate() {
            let top = (prefix << shift >> (32 - FIRST)) as usize;
            let range: &mut (u32, u32) = &mut by_top[top];
            if range.1 == 0 {
                range.0 = place as u32;
            }
            range.1 = place as u32 + 1;
        }
        Self {
            prefixes,
            shift,
            by_top,
        }
    }

    fn find(&self, key: u32) -> Option<usize> {
        let (from, to) = self.by_top[(key >> (32 - FIRST)) as usize];
        if from == to {
            return None;
        }
        let prefix = key >> self.shift;
        let among = &self.prefixes[from as usize..to as usize];
        let place = among.binary_search(&prefix).ok()?;
        Some(from as usize + place)
    }
}
