//! How long the cuts of a table take on one processor: `cargo run --release --package lockstep-trees --example cuts_rate`.
//!
//! 1,000,000 rows of 28 numbers, 256 bins, as in `make bench-trees`; the median, and the best, of several times.

use lockstep_trees::Alone;
use lockstep_trees::cuts::{RankRows, cuts};
use lockstep_trees::xgboost::Rows;
use std::time::Instant;

const ROWS: usize = 1_000_000;
const COLUMNS: usize = 28;
const BINS: usize = 256;
const TIMES: usize = 9;

fn main() {
    // Sums of four even numbers, so that some are more frequent than others.
    let mut state = 1_u64;
    let mut even = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..ROWS * COLUMNS)
        .map(|_| even() + even() + even() + even())
        .collect();
    let mut rows = RankRows {
        blocks: &mut Rows::new(&values, COLUMNS),
        categorical: &[false; COLUMNS],
    };
    let mut seconds: Vec<f64> = (0..TIMES)
        .map(|_| {
            let began = Instant::now();
            let Ok(found) = cuts(&mut rows, BINS, &Alone);
            assert!(found.iter().all(|cuts| cuts.len() == BINS));
            began.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!(
        "cuts of {ROWS} rows of {COLUMNS} numbers: {:.3} s (best {:.3} s)",
        seconds[TIMES / 2],
        seconds[0]
    );
}
