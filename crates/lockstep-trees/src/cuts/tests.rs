//! Cuts are those of the sorted values, however the rows are divided.

use super::{RankRows, as_rows, cuts};
use crate::xgboost::Rows;
use crate::{Alone, Together};
use proptest::prelude::*;
use std::convert::Infallible;
use std::sync::{Arc, Barrier, Mutex};

/// Ranks that are threads of this process.
#[derive(Clone)]
struct Threads {
    rank: usize,
    ranks: usize,
    barrier: Arc<Barrier>,
    sums: Arc<Mutex<Vec<u64>>>,
}

impl Threads {
    fn gang(ranks: usize) -> Vec<Threads> {
        let (barrier, sums) = (Arc::new(Barrier::new(ranks)), Arc::default());
        let one = |rank| Threads {
            rank,
            ranks,
            barrier: Arc::clone(&barrier),
            sums: Arc::clone(&sums),
        };
        (0..ranks).map(one).collect()
    }
}

impl Together for Threads {
    type Error = Infallible;

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn sum(&self, numbers: &mut [u64]) -> Result<(), Self::Error> {
        {
            let mut sums = self.sums.lock().unwrap();
            sums.resize(numbers.len(), 0);
            for (sum, number) in sums.iter_mut().zip(&*numbers) {
                *sum += number;
            }
        }
        self.barrier.wait();
        numbers.copy_from_slice(&self.sums.lock().unwrap());
        if self.barrier.wait().is_leader() {
            self.sums.lock().unwrap().clear();
        }
        self.barrier.wait();
        Ok(())
    }

    fn largest(&self, _: &mut [f64]) -> Result<(), Self::Error> {
        unimplemented!("cuts have no use for it")
    }
}

fn cuts_of<T>(values: &[f32], categorical: &[bool], bins: usize, together: &T) -> Vec<Vec<f32>>
where
    T: Together<Error = Infallible>,
{
    let mut rows = RankRows {
        blocks: &mut Rows::new(values, categorical.len()),
        categorical,
    };
    let Ok(found) = cuts(&mut rows, bins, together);
    found
}

/// The same by sorting.
fn by_sorting(values: &[f32], bins: usize) -> Vec<f32> {
    let mut sorted: Vec<f32> = values
        .iter()
        .filter(|value| !value.is_nan())
        .map(|value| value + 0.0)
        .collect();
    sorted.sort_by(f32::total_cmp);
    let mut distinct = sorted.clone();
    distinct.dedup();
    if distinct.len() <= bins {
        return distinct;
    }
    let mut cuts: Vec<f32> = (0..bins).map(|k| sorted[k * sorted.len() / bins]).collect();
    cuts.dedup();
    cuts
}

/// Numbers of all kinds: gaps, both zeros, the smallest, the largest, and many that are alike.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        1 => Just(f32::NAN),
        1 => Just(-0.0),
        1 => Just(0.0),
        1 => Just(f32::from_bits(1)),
        1 => Just(3e38),
        4 => (-20_i8..20).prop_map(f32::from),
        8 => -1e3_f32..1e3,
        4 => 0.5_f32..0.5001,
    ]
}

proptest! {
    #[test]
    fn cuts_are_order_statistics_however_rows_are_divided(
        values in prop::collection::vec(number(), 0..600),
        bins in 2_usize..40,
        ranks in 1_usize..4,
        at in prop::collection::vec(0.0_f64..1.0, 3),
    ) {
        let columns = 3;
        let rows = values.len() / columns;
        let values = &values[..rows * columns];
        let categorical = vec![false; columns];
        let alone = cuts_of(values, &categorical, bins, &Alone);
        for (column, cuts) in alone.iter().enumerate() {
            let of_column: Vec<f32> = values.iter().skip(column).step_by(columns).copied().collect();
            prop_assert_eq!(cuts, &by_sorting(&of_column, bins));
        }
        let mut ends: Vec<usize> = at[..ranks - 1].iter().map(|at| (at * rows as f64) as usize).collect();
        ends.sort_unstable();
        ends.insert(0, 0);
        ends.push(rows);
        let divided: Vec<Vec<Vec<f32>>> = std::thread::scope(|scope| {
            let gang = Threads::gang(ranks).into_iter().map(|rank| {
                let shard = &values[ends[rank.rank] * columns..ends[rank.rank + 1] * columns];
                let categorical = &categorical;
                scope.spawn(move || cuts_of(shard, categorical, bins, &rank))
            });
            let gang: Vec<_> = gang.collect();
            gang.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        for cuts in divided {
            prop_assert_eq!(&cuts, &alone);
        }
    }
}

#[test]
fn categories_are_all_up_to_the_largest() {
    let values = [3.0, 1.0, f32::NAN];
    let all = cuts_of(&values, &[true], 2, &Alone);
    assert_eq!(all, [[0.0, 1.0, 2.0, 3.0]]);
}

#[test]
fn rows_of_cuts_have_gaps_where_columns_have_fewer() {
    let rows = as_rows(&[vec![1.0, 2.0], vec![], vec![5.0]]);
    assert_eq!(rows.len(), 6);
    assert_eq!((rows[0], rows[2], rows[3]), (1.0, 5.0, 2.0));
    assert!(rows[1].is_nan() && rows[4].is_nan() && rows[5].is_nan());
}
