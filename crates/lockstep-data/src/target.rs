//! What a model is to say of samples: a class each, numbers, or labels of which each may have several.
//!
//! Numbers to predict are brought to mean 0 and deviation 1 over the samples that are trained on, so that
//! learning rates mean the same whatever the unit, and back again in what is predicted and measured. That
//! [`TargetScale`] is computed in one pass in the order of the samples: its bits do not depend on who
//! computes it.

use crate::Dataset;
use serde::{Deserialize, Serialize};

/// What a model is to say of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u64)]
pub enum TargetKind {
    /// Which class it is of: one of several.
    Classes = 1,
    /// One or several numbers.
    Numbers = 2,
    /// Which labels it has: any number of several.
    Labels = 3,
}

impl std::fmt::Display for TargetKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Classes => "classes",
            Self::Numbers => "numbers",
            Self::Labels => "labels that are 0 or 1",
        })
    }
}

impl TargetKind {
    pub(crate) const ALL: [TargetKind; 3] = [Self::Classes, Self::Numbers, Self::Labels];
}

/// How the numbers of a set become those that a model learns: `(y - mean) / std`, each column by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetScale {
    mean: Vec<f32>,
    std: Vec<f32>,
}

impl TargetScale {
    /// Changes nothing.
    pub fn identity(width: usize) -> Self {
        Self {
            mean: vec![0.0; width],
            std: vec![1.0; width],
        }
    }

    /// Brings the numbers of the samples `indices` to mean 0 and deviation 1. A column that is the same
    /// everywhere only loses its mean. Labels stay as they are.
    pub fn of(set: &Dataset, indices: &[u32]) -> Self {
        let width = set.outputs();
        if set.target_kind() != TargetKind::Numbers || indices.is_empty() {
            return Self::identity(width);
        }
        let rows = || {
            indices
                .iter()
                .map(|&index| &set.numbers()[index as usize * width..][..width])
        };
        let mut mean = vec![0.0; width];
        for row in rows() {
            for (sum, &y) in mean.iter_mut().zip(row) {
                *sum += f64::from(y);
            }
        }
        let count = indices.len() as f64;
        mean.iter_mut().for_each(|sum| *sum /= count);
        let mut squares = vec![0.0; width];
        for row in rows() {
            for ((sum, &y), mean) in squares.iter_mut().zip(row).zip(&mean) {
                *sum += (f64::from(y) - mean) * (f64::from(y) - mean);
            }
        }
        let std = squares.iter().map(|sum| (sum / count).sqrt() as f32);
        let usable = |std: f32| if std >= f32::MIN_POSITIVE { std } else { 1.0 };
        Self {
            // As they are written down: what is read back scales alike.
            mean: mean.iter().map(|&mean| mean as f32).collect(),
            std: std.map(usable).collect(),
        }
    }

    /// With a mean and a deviation for each column; `None` if they are not as many, not finite, or a deviation is
    /// not above 0.
    pub fn new(mean: Vec<f32>, std: Vec<f32>) -> Option<Self> {
        let fits = mean.len() == std.len()
            && mean.iter().all(|mean| mean.is_finite())
            && std.iter().all(|std| std.is_finite() && *std > 0.0);
        fits.then_some(Self { mean, std })
    }

    /// The mean of each column.
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// The deviation of each column.
    pub fn std(&self) -> &[f32] {
        &self.std
    }

    /// From what is in the set to what a model learns.
    pub(crate) fn forward(&self, numbers: &[f32], out: &mut [f32]) {
        let columns = numbers.iter().zip(self.mean.iter().zip(&self.std));
        for (out, (&y, (&mean, &std))) in out.iter_mut().zip(columns) {
            *out = ((f64::from(y) - f64::from(mean)) / f64::from(std)) as f32;
        }
    }

    /// From what a model says in a column to what that is in the set.
    ///
    /// # Panics
    /// When there is no such column.
    pub fn back(&self, column: usize, score: f32) -> f32 {
        let (mean, std) = (f64::from(self.mean[column]), f64::from(self.std[column]));
        (f64::from(score) * std + mean) as f32
    }
}
