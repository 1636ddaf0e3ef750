//! What the trees are worth after a round: sums over all ranks' rows that do not depend on how these are divided.

use crate::Together;
use crate::exact_sum::exact_sums;
use crate::gradients::Objective;
use crate::ranks;
use lockstep_events::Metrics;
use lockstep_measure::{Measure, Measured as Of};
use std::ops::Range;

/// What rows are measured against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub(crate) objective: Objective,
    /// This rank's targets.
    pub(crate) targets: &'a [f32],
    /// Where each of this rank's groups begins and ends, of rows that are ranked.
    pub(crate) groups: &'a [Range<usize>],
    /// The mean squared distance of all rows' targets from their mean; of numbers alone.
    pub(crate) variance: f64,
    /// Rows of all ranks.
    pub(crate) all_rows: u64,
}

/// What rounds can be chosen by.
pub(crate) fn measures(objective: Objective) -> &'static [Measure] {
    Measure::all_of(match objective {
        Objective::Logistic => Of::Classes(2),
        Objective::Softmax { classes } => Of::Classes(classes),
        Objective::Rank { .. } => Of::Rankings,
        _ => Of::Numbers,
    })
}

/// The names of what is measured after every round, what is minimised first.
pub fn metric_names(objective: Objective) -> &'static [&'static str] {
    match objective {
        Objective::Logistic | Objective::Softmax { .. } => &["loss", "accuracy"],
        Objective::Rank { .. } => &["loss", "ndcg", "ndcg10", "map"],
        _ => &["loss", "mse", "mae", "r2"],
    }
}

impl Measured<'_> {
    /// The metrics of these margins.
    pub(crate) fn metrics<T: Together>(
        &self,
        margins: &[f32],
        together: &T,
    ) -> Result<Metrics, T::Error> {
        let outputs = self.objective.outputs();
        let rows = || margins.chunks_exact(outputs).zip(self.targets);
        let count = self.all_rows.max(1) as f64;
        if matches!(
            self.objective,
            Objective::Logistic | Objective::Softmax { .. }
        ) {
            let losses = self.objective.losses(margins, self.targets);
            let [loss] = exact_sums(together, || losses.iter().map(|&loss| [loss]))?;
            let mut right = [self.objective.count_right(margins, self.targets)];
            together.sum(&mut right)?;
            let right = right[0] as f64;
            return Ok(Metrics::from([
                ("loss", loss / count),
                ("accuracy", right / count),
            ]));
        }
        if let Objective::Rank { .. } = self.objective {
            let [ndcg, ndcg10, map, groups] = exact_sums(together, || {
                self.groups.iter().map(|group| {
                    let targets = &self.targets[group.clone()];
                    let scores = ranks::scores(&margins[group.clone()], targets);
                    [scores.ndcg, scores.ndcg10, scores.map, 1.0]
                })
            })?;
            let [ndcg, ndcg10, map] = [ndcg, ndcg10, map].map(|sum| sum / groups.max(1.0));
            return Ok(Metrics::from([
                ("loss", 1.0 - ndcg),
                ("ndcg", ndcg),
                ("ndcg10", ndcg10),
                ("map", map),
            ]));
        }
        let losses = self.objective.losses(margins, self.targets);
        let [loss, squares, sizes] = exact_sums(together, || {
            rows().zip(&losses).map(|((margins, &target), &loss)| {
                let error = self.objective.value(margins[0]) - f64::from(target);
                // What is left out of a loss that can be below 0 is the same for all margins.
                [loss, error * error, error.abs()]
            })
        })?;
        let mse = squares / count;
        let r2 = match self.variance > 0.0 {
            true => 1.0 - mse / self.variance,
            false => 0.0,
        };
        Ok(Metrics::from([
            ("loss", loss / count),
            ("mse", mse),
            ("mae", sizes / count),
            ("r2", r2),
        ]))
    }
}

/// The mean squared distance of numbers from their mean.
pub(crate) fn variance(numbers: impl Iterator<Item = f32> + Clone) -> f64 {
    let (mut count, mut sum) = (0.0, 0.0);
    for number in numbers.clone() {
        count += 1.0;
        sum += f64::from(number);
    }
    let mean = if count > 0.0 { sum / count } else { 0.0 };
    let squares: f64 = numbers
        .map(|number| (f64::from(number) - mean).powi(2))
        .sum();
    if count > 0.0 { squares / count } else { 0.0 }
}
