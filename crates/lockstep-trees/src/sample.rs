//! Which rows and columns take part in a round: functions of the seed, the round and the row's or column's number.

use lockstep_base::random::Philox;

/// Keeps the draws for rows and for columns apart.
const ROWS: u64 = 0x726f_7773;
const COLUMNS: u64 = 0x636f_6c73;

/// Which rows take part in a round.
#[derive(Debug, Clone, Copy)]
pub struct RowSample {
    numbers: Philox,
    round: u64,
    below: u64,
}

impl RowSample {
    /// A share of the rows in a round; `None` if it is all of them.
    pub fn new(seed: u64, round: usize, share: f64) -> Option<Self> {
        (share < 1.0).then(|| Self {
            numbers: Philox::new(seed ^ ROWS),
            round: round as u64,
            below: (share.max(0.0) * 4_294_967_296.0) as u64,
        })
    }

    /// Whether the row of this number among all rows does.
    pub fn has(self, row: u64) -> bool {
        let counter = u128::from(self.round) << 64 | u128::from(row);
        u64::from(self.numbers.block(counter)[0]) < self.below
    }
}

/// The columns that take part in a round: so many of all, in order.
pub fn columns(seed: u64, round: usize, of: usize, chosen: usize) -> Vec<usize> {
    let numbers = Philox::new(seed ^ COLUMNS);
    let mut drawn: Vec<(u32, usize)> = (0..of)
        .map(|column| {
            let counter = (round as u128) << 64 | column as u128;
            (numbers.block(counter)[0], column)
        })
        .collect();
    drawn.sort_unstable();
    let mut columns: Vec<usize> = drawn
        .into_iter()
        .take(chosen)
        .map(|(_, column)| column)
        .collect();
    columns.sort_unstable();
    columns
}

#[cfg(test)]
mod tests {
    use super::{RowSample, columns};

    #[test]
    fn a_sample_has_about_its_share_and_another_each_round() {
        let share = |round| {
            let sample = RowSample::new(7, round, 0.7).unwrap();
            (0..100_000)
                .filter(|&row| sample.has(row))
                .collect::<Vec<_>>()
        };
        let (first, second) = (share(0), share(1));
        assert!(
            (first.len() as f64 - 70_000.0).abs() < 700.0,
            "{}",
            first.len()
        );
        assert_ne!(first, second);
        assert_eq!(first, share(0));
        assert!(RowSample::new(7, 0, 1.0).is_none());
    }

    #[test]
    fn chosen_columns_are_distinct_and_another_set_each_round() {
        let first = columns(1, 0, 28, 14);
        assert_eq!(first.len(), 14);
        assert!(first.is_sorted_by(|a, b| a < b));
        assert_ne!(first, columns(1, 1, 28, 14));
        assert_eq!(columns(1, 0, 3, 9), [0, 1, 2]);
    }
}
