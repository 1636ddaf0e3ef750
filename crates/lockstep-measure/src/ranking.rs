//! How well a classifier of two classes puts samples in order: the curves behind its decisions, and the area under them.
//!
//! Each sample has a score, the probability of the positive class. Where the line between the classes is drawn decides how
//! many samples of the positive class are found, and how many others are taken for them; the curves show all lines at
//! once. Samples of equal score are on the same side of every line.

use crate::scores::ratio;
use serde::{Deserialize, Serialize};

/// Points of a curve that are kept: more cannot be seen.
const POINTS: usize = 200;

/// The curves of a classifier of two classes. The positive class is what is looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The share of samples of the other class that are taken for the positive, and the share of the positive that is
    /// found.
    pub roc: Vec<[f64; 2]>,
    /// The share of the positive class that is found, and the share of what is found that is of it.
    pub precision_recall: Vec<[f64; 2]>,
}

/// The areas under both curves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Areas {
    /// Under the ROC curve: how likely a sample of the positive class has a higher score than one of the other.
    pub(crate) auc: f64,
    /// The mean precision over all samples of the positive class.
    pub(crate) average_precision: f64,
}

/// The scores of samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranking(Vec<(f32, bool)>);

/// A line between the classes: samples with a score at least as high as some sample's.
struct Line {
    /// The lowest score above it.
    score: f32,
    /// Samples of the positive class above it, and of the other.
    found: u64,
    mistaken: u64,
}

impl Ranking {
    /// Takes in a sample: its score, and whether it is of the positive class.
    pub(crate) fn add(&mut self, score: f32, is_positive: bool) {
        self.0.push((score, is_positive));
    }

    /// The curves and their areas; none if there are not samples of both classes.
    pub(crate) fn finish(mut self) -> Option<(Areas, Curves)> {
        self.0.sort_by(|a, b| b.0.total_cmp(&a.0));
        let lines = self.lines();
        let last = lines.last()?;
        let (positive, other) = (last.found as f64, last.mistaken as f64);
        if positive == 0.0 || other == 0.0 {
            return None;
        }
        let roc = |line: &Line| [line.mistaken as f64 / other, line.found as f64 / positive];
        let precision = |line: &Line| line.found as f64 / (line.found + line.mistaken) as f64;
        let (mut auc, mut average_precision, mut before) = (0.0, 0.0, [0.0, 0.0]);
        for line in &lines {
            let [x, y] = roc(line);
            // Samples of equal score are half above each other.
            auc += (x - before[0]) * (y + before[1]) / 2.0;
            average_precision += (y - before[1]) * precision(line);
            before = [x, y];
        }
        let thin = thinned(&lines);
        let curves = Curves {
            roc: std::iter::once([0.0, 0.0])
                .chain(thin.iter().map(|line| roc(line)))
                .collect(),
            precision_recall: thin
                .iter()
                .map(|line| [roc(line)[1], precision(line)])
                .collect(),
        };
        let areas = Areas {
            auc,
            average_precision,
        };
        Some((areas, curves))
    }

    /// A line below every distinct score, the highest first.
    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let (mut found, mut mistaken) = (0, 0);
        for (at, &(score, is_positive)) in self.0.iter().enumerate() {
            match is_positive {
                true => found += 1,
                false => mistaken += 1,
            }
            if self.0.get(at + 1).is_none_or(|next| next.0 != score) {
                lines.push(Line {
                    score,
                    found,
                    mistaken,
                });
            }
        }
        lines
    }
}

/// What a threshold is chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThresholdBy {
    /// The highest F1 of the positive class.
    F1,
    /// The highest mean of both classes' recalls.
    BalancedAccuracy,
}

/// The probability of the positive class from which on it is best predicted, of samples each of which has such a
/// probability and may be of it. It lies in the middle between two samples' probabilities; of several that are equally
/// good, it is the highest. None if there are not samples of both classes.
pub fn best_threshold(by: ThresholdBy, samples: impl Iterator<Item = (f32, bool)>) -> Option<f64> {
    let mut ranking = Ranking(samples.collect());
    ranking.0.sort_by(|a, b| b.0.total_cmp(&a.0));
    let lines = ranking.lines();
    let (positive, other) = lines.last().map(|last| (last.found, last.mistaken))?;
    if positive == 0 || other == 0 {
        return None;
    }
    let value = |line: &Line| match by {
        ThresholdBy::F1 => ratio(2 * line.found, positive + line.found + line.mistaken),
        ThresholdBy::BalancedAccuracy => {
            (ratio(line.found, positive) + ratio(other - line.mistaken, other)) / 2.0
        }
    };
    let mut best = (0, value(&lines[0]));
    for (at, line) in lines.iter().enumerate().skip(1) {
        if value(line) > best.1 {
            best = (at, value(line));
        }
    }
    let (above, below) = (lines[best.0].score, lines.get(best.0 + 1));
    let below = below.map_or(0.0, |line| line.score);
    Some((f64::from(above) + f64::from(below)) / 2.0)
}

/// At most [`POINTS`] of the lines, evenly, the last among them.
fn thinned(lines: &[Line]) -> Vec<&Line> {
    let count = lines.len().min(POINTS);
    let place = |point: usize| (point + 1) * lines.len() / count - 1;
    (0..count).map(|point| &lines[place(point)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(samples: &[(f32, bool)]) -> Option<(Areas, Curves)> {
        let mut ranking = Ranking::default();
        for &(score, is_positive) in samples {
            ranking.add(score, is_positive);
        }
        ranking.finish()
    }

    /// The share of pairs in the right order, where equal scores count half: what the area means.
    fn by_pairs(samples: &[(f32, bool)]) -> f64 {
        let of = |class: bool| samples.iter().filter(move |sample| sample.1 == class);
        let mut right = 0.0;
        for second in of(true) {
            for first in of(false) {
                right += match second.0.total_cmp(&first.0) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                };
            }
        }
        right / (of(true).count() * of(false).count()) as f64
    }

    #[test]
    fn the_area_is_the_share_of_pairs_in_the_right_order() {
        let samples: Vec<(f32, bool)> = (0..400_u32)
            .map(|n| {
                let score = (n.wrapping_mul(2_654_435_761) >> 24) as f32 / 256.0;
                let is_positive = (n.wrapping_mul(40_503) >> 3) % 256 < (score * 300.0) as u32;
                (score, is_positive)
            })
            .collect();
        let (areas, curves) = ranking(&samples).unwrap();
        assert!((areas.auc - by_pairs(&samples)).abs() < 1e-12);
        assert!(curves.roc.len() <= POINTS + 1);
        assert_eq!(curves.roc.last(), Some(&[1.0, 1.0]));
        assert!(curves.roc.is_sorted_by(|a, b| a[0] <= b[0] && a[1] <= b[1]));
    }

    #[test]
    fn scikit_learns_example_has_its_average_precision() {
        let samples = [(0.1, false), (0.4, false), (0.35, true), (0.8, true)];
        let (areas, _) = ranking(&samples).unwrap();
        assert!((areas.average_precision - 0.833_333_333_333_333_3).abs() < 1e-12);
        assert_eq!(areas.auc, 0.75);
    }

    #[test]
    fn the_best_threshold_has_the_best_value_of_all() {
        let samples = [
            (0.9, true),
            (0.6, false),
            (0.5, true),
            (0.3, false),
            (0.2, false),
        ];
        let best = |by| best_threshold(by, samples.into_iter()).unwrap();
        let middle = f64::midpoint(f64::from(0.5_f32), f64::from(0.3_f32));
        // Both are found, with one mistake: F1 is 4/5, where the first alone has 2/3.
        assert_eq!(best(ThresholdBy::F1), middle);
        assert_eq!(best(ThresholdBy::BalancedAccuracy), middle);
        assert_eq!(
            best_threshold(ThresholdBy::F1, [(0.5, true)].into_iter()),
            None
        );
    }

    #[test]
    fn one_class_has_no_curve() {
        assert!(ranking(&[(0.5, true), (0.7, true)]).is_none());
        assert!(ranking(&[]).is_none());
    }
}
