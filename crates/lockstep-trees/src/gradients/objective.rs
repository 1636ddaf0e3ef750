//! What trees are to get right: the derivatives of the losses.

use super::RankBy;
use super::classes::{self, BLOCK};
use lockstep_base::math::{exp, ln};

/// What is minimised. The names in brackets are XGBoost's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objective {
    /// One of two classes, 0 and 1 (`binary:logistic`).
    Logistic,
    /// One of several classes (`multi:softprob`).
    Softmax {
        /// How many.
        classes: usize,
    },
    /// A number, by the square of the error (`reg:squarederror`).
    SquaredError,
    /// A number, by an error that grows as a square at first and straight later (`reg:pseudohubererror`).
    PseudoHuber,
    /// A count (`count:poisson`).
    Poisson,
    /// A positive number whose spread grows with it (`reg:gamma`).
    Gamma,
    /// A number, by the size of the error (`reg:absoluteerror`).
    AbsoluteError,
    /// The number that a share of all is below (`reg:quantileerror`).
    Quantile {
        /// The share.
        share: f64,
    },
    /// The order of the rows of a group (`rank:pairwise`, `rank:ndcg`, `rank:map`).
    Rank {
        /// What the order is to get right.
        by: RankBy,
        /// Pairs of rows count if one of them is among so many first ones.
        top: usize,
    },
}

/// The hessian of a count is that of a rate this much larger, as XGBoost's `max_delta_step` has it.
const POISSON_STEP: f64 = 0.7;

impl Objective {
    /// Margins of a row.
    pub fn outputs(self) -> usize {
        match self {
            Objective::Softmax { classes } => classes,
            _ => 1,
        }
    }

    /// The one that XGBoost calls so, where there are so many classes and this share is meant by a quantile.
    pub fn of_xgboost(name: &str, classes: usize, share: f64) -> Option<Self> {
        let all = [
            Objective::Logistic,
            Objective::Softmax { classes },
            Objective::SquaredError,
            Objective::PseudoHuber,
            Objective::Poisson,
            Objective::Gamma,
            Objective::AbsoluteError,
            Objective::Quantile { share },
            Objective::rank(RankBy::Ndcg),
            Objective::rank(RankBy::Map),
            Objective::rank(RankBy::Pairs),
        ];
        all.into_iter().find(|one| one.xgboost_name() == name)
    }

    /// A ranking by this, in which pairs count as XGBoost counts them by default.
    pub fn rank(by: RankBy) -> Self {
        Objective::Rank { by, top: 32 }
    }

    /// The quantile that leaves are set to after a tree was grown; none if they stay as they are.
    pub(crate) fn quantile(self) -> Option<f64> {
        match self {
            Objective::AbsoluteError => Some(0.5),
            Objective::Quantile { share } => Some(share),
            _ => None,
        }
    }

    /// The class that margins speak for: of equally likely ones the first.
    pub(crate) fn class(self, margins: &[f32]) -> usize {
        match self {
            Objective::Logistic => usize::from(margins[0] > 0.0),
            _ => {
                let mut best = 0;
                for (class, &margin) in margins.iter().enumerate() {
                    if margin > margins[best] {
                        best = class;
                    }
                }
                best
            }
        }
    }

    /// How many rows' margins speak for the class that is right.
    pub(crate) fn count_right(self, margins: &[f32], targets: &[f32]) -> u64 {
        // Counted without branches: whether a row is right cannot be foreseen.
        let right: usize = match self {
            Objective::Logistic => {
                let rows = margins.iter().zip(targets);
                let class = |margin: f32| f32::from(u8::from(margin > 0.0));
                rows.map(|(&margin, &target)| usize::from(class(margin) == target))
                    .sum()
            }
            _ => {
                let rows = margins.chunks_exact(self.outputs()).zip(targets);
                rows.map(|(margins, &target)| usize::from(self.class(margins) as f32 == target))
                    .sum()
            }
        };
        right as u64
    }

    /// The number that a margin stands for.
    pub(crate) fn value(self, margin: f32) -> f64 {
        match self {
            Objective::Logistic => 1.0 / (1.0 + exp(-f64::from(margin))),
            Objective::Poisson | Objective::Gamma => exp(f64::from(margin)),
            _ => f64::from(margin),
        }
    }

    /// How wrong a row's margins are: not below 0, and 0 if they could not be better.
    pub(crate) fn loss(self, margins: &[f32], target: f32) -> f64 {
        let (margin, target_number) = (f64::from(margins[0]), f64::from(target));
        match self {
            Objective::Logistic | Objective::Softmax { .. } => self.losses(margins, &[target])[0],
            Objective::SquaredError => (margin - target_number) * (margin - target_number),
            Objective::PseudoHuber => {
                let error = margin - target_number;
                (1.0 + error * error).sqrt() - 1.0
            }
            // It is not rows that are right or wrong, but the order of them.
            Objective::Rank { .. } => 0.0,
            Objective::AbsoluteError => (margin - target_number).abs(),
            Objective::Quantile { share } => match target_number - margin {
                error if error >= 0.0 => share * error,
                error => (share - 1.0) * error,
            },
            // Twice these is the deviance, which is 0 where the prediction is the target.
            Objective::Poisson => {
                let at_best = match target_number > 0.0 {
                    true => target_number * ln(target_number) - target_number,
                    false => 0.0,
                };
                (exp(margin) - target_number * margin + at_best).max(0.0)
            }
            Objective::Gamma => {
                let ratio = target_number * exp(-margin);
                match ratio > f64::MIN_POSITIVE {
                    true => (ratio - 1.0 - ln(ratio)).max(0.0),
                    false => 0.0,
                }
            }
        }
    }

    /// How wrong the margins of each row are, as [`Objective::loss`] has it of one.
    pub(crate) fn losses(self, margins: &[f32], targets: &[f32]) -> Vec<f64> {
        let outputs = self.outputs();
        let mut losses = vec![0.0; targets.len()];
        let blocks = losses.chunks_mut(BLOCK).zip(targets.chunks(BLOCK));
        for ((losses, targets), margins) in blocks.zip(margins.chunks(BLOCK * outputs)) {
            match self {
                Objective::Logistic => classes::logistic_losses(margins, targets, losses),
                Objective::Softmax { classes } => {
                    classes::softmax_losses(classes, margins, targets, losses);
                }
                _ => {
                    let rows = margins.chunks_exact(outputs).zip(targets);
                    for (loss, (margins, &target)) in losses.iter_mut().zip(rows) {
                        *loss = self.loss(margins, target);
                    }
                }
            }
        }
        losses
    }

    /// Both derivatives by the margins of each row, as [`Objective::derive`] has them of one.
    pub(super) fn derive_rows(self, margins: &[f32], targets: &[f32], both: &mut [(f64, f64)]) {
        match self {
            Objective::Logistic => classes::derive_logistic(margins, targets, both),
            Objective::Softmax { classes } => {
                classes::derive_softmax(classes, margins, targets, both);
            }
            _ => {
                for ((margin, &target), both) in
                    margins.chunks(1).zip(targets).zip(both.chunks_mut(1))
                {
                    self.derive(margin, target, both);
                }
            }
        }
    }

    /// What XGBoost calls it.
    pub fn xgboost_name(self) -> &'static str {
        match self {
            Objective::Logistic => "binary:logistic",
            Objective::Softmax { .. } => "multi:softprob",
            Objective::SquaredError => "reg:squarederror",
            Objective::PseudoHuber => "reg:pseudohubererror",
            Objective::Poisson => "count:poisson",
            Objective::Gamma => "reg:gamma",
            Objective::AbsoluteError => "reg:absoluteerror",
            Objective::Quantile { .. } => "reg:quantileerror",
            Objective::Rank { by, .. } => match by {
                RankBy::Ndcg => "rank:ndcg",
                RankBy::Map => "rank:map",
                RankBy::Pairs => "rank:pairwise",
            },
        }
    }

    /// Whether no derivative of a row with weight 1 is larger than 1.
    pub(super) fn is_bounded(self) -> bool {
        matches!(
            self,
            Objective::Logistic
                | Objective::Softmax { .. }
                | Objective::AbsoluteError
                | Objective::Quantile { .. }
        )
    }

    /// The first and second derivative by each of a row's margins.
    pub(super) fn derive(self, margins: &[f32], target: f32, both: &mut [(f64, f64)]) {
        let target_number = f64::from(target);
        match self {
            Objective::Logistic => classes::derive_logistic(margins, &[target], both),
            Objective::Softmax { classes } => {
                classes::derive_softmax(classes, margins, &[target], both);
            }
            Objective::SquaredError => both[0] = (f64::from(margins[0]) - target_number, 1.0),
            Objective::PseudoHuber => {
                let error = f64::from(margins[0]) - target_number;
                let root = (1.0 + error * error).sqrt();
                both[0] = (error / root, 1.0 / (root * root * root));
            }
            // A row by itself has no rank.
            Objective::Rank { .. } => both[0] = (0.0, 0.0),
            // The second derivative is 0 nearly everywhere; XGBoost counts rows instead.
            Objective::AbsoluteError => {
                let error = f64::from(margins[0]) - target_number;
                let sign = f64::from(u8::from(error > 0.0)) - f64::from(u8::from(error < 0.0));
                both[0] = (sign, 1.0);
            }
            Objective::Quantile { share } => {
                let is_below = f64::from(margins[0]) < target_number;
                both[0] = (if is_below { -share } else { 1.0 - share }, 1.0);
            }
            Objective::Poisson => {
                let margin = f64::from(margins[0]);
                both[0] = (exp(margin) - target_number, exp(margin + POISSON_STEP));
            }
            Objective::Gamma => {
                let share = target_number * exp(-f64::from(margins[0]));
                both[0] = (1.0 - share, share);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Objective;

    /// The loss whose derivatives are checked.
    fn loss(objective: Objective, margins: &[f64], target: f64) -> f64 {
        let m = margins[0];
        match objective {
            Objective::Logistic => (1.0 + m.exp()).ln() - target * m,
            Objective::Softmax { .. } => {
                let sum: f64 = margins.iter().map(|m| m.exp()).sum();
                sum.ln() - margins[target as usize]
            }
            Objective::SquaredError => 0.5 * (m - target) * (m - target),
            Objective::PseudoHuber => (1.0 + (m - target) * (m - target)).sqrt(),
            Objective::Poisson => m.exp() - target * m,
            Objective::Gamma => m + target * (-m).exp(),
            Objective::Rank { .. } => unreachable!("rows by themselves have no rank"),
            Objective::AbsoluteError => (m - target).abs(),
            Objective::Quantile { share } => {
                let error = target - m;
                (share * error).max((share - 1.0) * error)
            }
        }
    }

    #[test]
    fn every_objective_that_a_job_may_name_is_known() {
        for name in lockstep_job::OBJECTIVES {
            let found = Objective::of_xgboost(name, 3, 0.5).map(Objective::xgboost_name);
            assert_eq!(found, Some(name));
        }
    }

    #[test]
    fn first_derivatives_are_those_of_the_loss() {
        let all = [
            (Objective::Logistic, 1.0),
            (Objective::Softmax { classes: 3 }, 2.0),
            (Objective::SquaredError, 1.5),
            (Objective::PseudoHuber, -3.0),
            (Objective::Poisson, 4.0),
            (Objective::Gamma, 2.5),
            (Objective::AbsoluteError, -3.0),
            (Objective::Quantile { share: 0.9 }, 1.5),
            (Objective::Quantile { share: 0.9 }, -1.5),
        ];
        let margins = [0.3_f32, -1.2, 0.7];
        for (objective, target) in all {
            let outputs = objective.outputs();
            let margins = &margins[..outputs];
            let mut both = vec![(0.0, 0.0); outputs];
            objective.derive(margins, target, &mut both);
            for output in 0..outputs {
                let at = |by: f64| {
                    let mut moved: Vec<f64> = margins.iter().map(|&m| f64::from(m)).collect();
                    moved[output] += by;
                    loss(objective, &moved, f64::from(target))
                };
                let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
                assert!(
                    (slope - both[output].0).abs() < 1e-8,
                    "{objective:?}: {slope} {both:?}"
                );
                assert!(both[output].1 > 0.0);
            }
        }
    }
}
