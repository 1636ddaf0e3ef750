//! Gradients and second derivatives, rounded so that sums of them are exact.
//!
//! Each number is a multiple of a power of two, the *step* of the [`Grid`]. The largest of all rows is at most 2^24
//! steps, which an `f32` holds exactly; and a sum over up to 2^29 rows has at most 53 bits, which an `f64` holds exactly.
//! Additions that are exact give the same in any order. With more rows the grid is coarser.

mod classes;
mod grid;
mod objective;
mod ranking;

pub use grid::Grid;
pub(crate) use grid::{counted, exponent_above};
pub use objective::Objective;
pub use ranking::RankBy;
pub(crate) use ranking::{MOST_RELEVANT, discount, gain, ideal_gain, order};

use crate::Together;
use crate::sample::RowSample;
use classes::BLOCK;
use std::ops::Range;

/// What the gradients of a rank's rows are computed from.
#[derive(Debug, Clone, Copy)]
pub struct RankTargets<'a> {
    /// What is to be predicted of each row: the class, or the number.
    pub targets: &'a [f32],
    /// How much each row counts; all alike without.
    pub weights: Option<&'a [f32]>,
    /// The target of the positive class, and how much a row with it counts beside others, times its weight.
    pub positive: (f32, f64),
    /// Where each group begins and ends, of rows that are ranked; else none.
    pub groups: &'a [Range<usize>],
    /// The number of the first row among the rows of all ranks; the others follow it.
    pub first_row: u64,
    /// Rows of all ranks together.
    pub all_rows: u64,
}

impl RankTargets<'_> {
    fn is_weighted(&self) -> bool {
        self.weights.is_some() || self.positive.1 != 1.0
    }

    fn weight(&self, row: usize) -> f64 {
        let own = self.weights.map_or(1.0, |weights| f64::from(weights[row]));
        match self.targets[row] == self.positive.0 {
            true => own * self.positive.1,
            false => own,
        }
    }
}

/// The gradients of a rank's rows, a number for each row and output.
#[derive(Debug, Default)]
pub struct Gradients {
    /// Both derivatives of rows that are ranked, before they are rounded.
    ranked: Vec<(f64, f64)>,
    /// First derivatives of the loss by the margin.
    pub first: Vec<f32>,
    /// Second derivatives; none is 0 but those of rows that take no part.
    pub second: Vec<f32>,
}

impl Gradients {
    /// Computes them for the rows' margins; rows that are not in the sample get zeros.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn compute<T: Together>(
        &mut self,
        objective: Objective,
        rows: RankTargets<'_>,
        margins: &[f32],
        sample: Option<RowSample>,
        together: &T,
    ) -> Result<(), T::Error> {
        let outputs = objective.outputs();
        self.first.resize(margins.len(), 0.0);
        self.second.resize(margins.len(), 0.0);
        if let Objective::Rank { by, top } = objective {
            self.ranked.resize(margins.len(), (0.0, 0.0));
            for group in rows.groups {
                let of_group = (&margins[group.clone()], &rows.targets[group.clone()]);
                ranking::derive(by, top, of_group, &mut self.ranked[group.clone()]);
            }
        }
        let (first_grid, second_grid) = self.grids(objective, rows, margins, together)?;
        let Self {
            ranked,
            first,
            second,
        } = self;
        for_each_block(objective, (rows, margins), ranked, |row, both| {
            let numbers = row * outputs..row * outputs + both.len();
            let (first, second) = (&mut first[numbers.clone()], &mut second[numbers]);
            for (&(g, h), (first, second)) in both.iter().zip(first.iter_mut().zip(&mut *second)) {
                *first = first_grid.round(g);
                *second = second_grid.round_up_from_zero(h);
            }
            let Some(sample) = sample else { return };
            let of_rows = first
                .chunks_exact_mut(outputs)
                .zip(second.chunks_exact_mut(outputs));
            for (row, (first, second)) in (rows.first_row + row as u64..).zip(of_rows) {
                if !sample.has(row) {
                    first.fill(0.0);
                    second.fill(0.0);
                }
            }
        });
        Ok(())
    }

    /// The grids of both derivatives. Where they may be of any size, the largest of all ranks decides.
    fn grids<T: Together>(
        &self,
        objective: Objective,
        rows: RankTargets<'_>,
        margins: &[f32],
        together: &T,
    ) -> Result<(Grid, Grid), T::Error> {
        if objective.is_bounded() && !rows.is_weighted() {
            let grid = Grid::new(1.0, rows.all_rows);
            return Ok((grid, grid));
        }
        let mut largest = [0.0_f64; 2];
        for_each_block(objective, (rows, margins), &self.ranked, |_, both| {
            for &(g, h) in both {
                largest[0] = largest[0].max(g.abs());
                largest[1] = largest[1].max(h.abs());
            }
        });
        together.largest(&mut largest)?;
        Ok((
            Grid::new(largest[0], rows.all_rows),
            Grid::new(largest[1], rows.all_rows),
        ))
    }
}

/// Hands out both derivatives of the rows of a block, times their weights, with the block's first row: by the rows'
/// margins, or what their groups came to.
fn for_each_block(
    objective: Objective,
    (rows, margins): (RankTargets<'_>, &[f32]),
    ranked: &[(f64, f64)],
    mut each: impl FnMut(usize, &[(f64, f64)]),
) {
    let outputs = objective.outputs();
    let mut both = Vec::new();
    for (block, targets) in rows.targets.chunks(BLOCK).enumerate() {
        let first = block * BLOCK;
        let numbers = first * outputs..(first + targets.len()) * outputs;
        both.clear();
        if let Objective::Rank { .. } = objective {
            both.extend_from_slice(&ranked[numbers]);
        } else {
            both.resize(numbers.len(), (0.0, 0.0));
            objective.derive_rows(&margins[numbers], targets, &mut both);
        }
        if rows.is_weighted() {
            for (row, both) in (first..).zip(both.chunks_exact_mut(outputs)) {
                let weight = rows.weight(row);
                for (g, h) in both {
                    (*g, *h) = (*g * weight, *h * weight);
                }
            }
        }
        each(first, &both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Alone;
    use proptest::prelude::*;

    fn targets(targets: &[f32]) -> RankTargets<'_> {
        RankTargets {
            targets,
            weights: None,
            positive: (1.0, 1.0),
            groups: &[],
            first_row: 0,
            all_rows: targets.len() as u64,
        }
    }

    proptest! {
        #[test]
        fn sums_of_gradients_do_not_depend_on_their_order(
            margins in prop::collection::vec(-30_f32..30.0, 1..300),
            seed in any::<u64>(),
        ) {
            let labels: Vec<f32> = margins.iter().map(|m| m.to_bits() as f32 * 1e-3).collect();
            let weights: Vec<f32> = margins.iter().map(|m| m.abs().exp2()).collect();
            let rows = RankTargets { weights: Some(&weights), ..targets(&labels) };
            let mut gradients = Gradients::default();
            let _ = gradients.compute(Objective::SquaredError, rows, &margins, None, &Alone);
            let mut shuffled: Vec<(u64, f32)> = gradients.first.iter().enumerate()
                .map(|(i, &g)| ((i as u64 + 1).wrapping_mul(seed | 1), g)).collect();
            shuffled.sort_by_key(|one| one.0);
            let in_order: f64 = gradients.first.iter().map(|&g| f64::from(g)).sum();
            let in_another: f64 = shuffled.iter().map(|one| f64::from(one.1)).sum();
            prop_assert_eq!(in_order.to_bits(), in_another.to_bits());
        }
    }

    #[test]
    fn rows_outside_the_sample_have_no_gradient() {
        let labels = [1.0_f32; 1000];
        let sample = RowSample::new(3, 5, 0.5);
        let mut gradients = Gradients::default();
        let margins = [0.25; 1000];
        let Ok(()) = gradients.compute(
            Objective::Logistic,
            targets(&labels),
            &margins,
            sample,
            &Alone,
        );
        for (row, (&g, &h)) in gradients.first.iter().zip(&gradients.second).enumerate() {
            let is_in = sample.unwrap().has(row as u64);
            assert_eq!((g != 0.0, h != 0.0), (is_in, is_in));
        }
    }
}
