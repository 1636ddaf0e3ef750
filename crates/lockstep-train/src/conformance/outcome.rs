//! What some steps come to, and how that is compared.

use super::specimen::Specimen;
use lockstep_nn::{LossSum, Model};

/// What some steps come to.
#[derive(PartialEq)]
pub(super) struct Outcome {
    /// Values, the optimizer's vectors, the average, and what the network says.
    pub(super) vectors: [Vec<u32>; 5],
    pub(super) losses: Vec<(u64, u64, u64)>,
    pub(super) recent: Vec<(u64, u64, u64)>,
    pub(super) marks: Vec<u32>,
    pub(super) norm: Option<u64>,
}

pub(super) fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

pub(super) fn sums(sums: &[LossSum]) -> Vec<(u64, u64, u64)> {
    let of = |sum: &LossSum| (sum.loss.to_bits(), sum.correct, sum.rows);
    sums.iter().map(of).collect()
}

impl Outcome {
    /// Says where two differ.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let names = ["values", "plane 0", "plane 1", "average", "scores"];
        for ((name, own), other) in names.iter().zip(&self.vectors).zip(&other.vectors) {
            let mut pairs = own.iter().zip(other);
            if own.len() != other.len() {
                return Some(format!("{name}: {} and {} numbers", own.len(), other.len()));
            }
            if let Some(at) = pairs.position(|(own, other)| own != other) {
                return Some(format!("{name} from number {at} on"));
            }
        }
        let rest = [
            ("losses", self.losses == other.losses),
            ("recent losses", self.recent == other.recent),
            ("marks", self.marks == other.marks),
            ("the norm", self.norm == other.norm),
        ];
        let first = rest.iter().find(|(_, same)| !same);
        first.map(|(name, _)| (*name).to_owned())
    }
}

/// Rows that the network is asked about in the end.
pub(super) fn questions(specimen: &Specimen, model: &Model) -> Vec<f32> {
    let mut rows = vec![0.0; 3 * specimen.sets.input_len()];
    specimen
        .sets
        .train
        .gather(&[2, 40, 7], &specimen.sets.normaliser, &mut rows);
    assert!(model.outputs() > 0);
    rows
}
