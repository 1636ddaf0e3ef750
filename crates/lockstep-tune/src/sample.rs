//! What is tried next.
//!
//! *Grid* goes through all combinations. *Random* draws every key by itself. *TPE* (Bergstra et al. 2011, "Algorithms for
//! hyper-parameter optimization") looks at what the best quarter of the trials had in common: it estimates for every key
//! where good trials lie and where others do, draws candidates near the good ones, and takes the one that is most likely
//! good and least likely not. All draw from a stream that the seed and the trial's number name, so a trial is the same
//! whenever it is asked for.

use crate::space::{Dimension, Range, Space};
use lockstep_base::random::Stream;
use serde::{Deserialize, Serialize};

/// How trials are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// All combinations.
    Grid,
    /// Anything.
    Random,
    /// What good trials have in common.
    Tpe,
}

/// Levels of a range of numbers in a grid.
const LEVELS: usize = 5;
/// Trials that are drawn at random before anything is learned from them.
const AT_RANDOM: usize = 8;
/// The share of trials that count as good.
const GOOD: f64 = 0.25;
/// Candidates that are drawn for each trial.
const CANDIDATES: usize = 24;

/// A point, and what it came to: more is better.
pub(crate) type Observed = (Vec<f64>, f64);

/// How many combinations a grid has.
pub(crate) fn combinations(space: &Space) -> usize {
    let levels = space
        .dimensions
        .iter()
        .map(|dimension| dimension.range.levels(LEVELS).len());
    levels.fold(1, usize::saturating_mul)
}

/// The point of trial number `trial`.
pub(crate) fn suggest(
    space: &Space,
    method: Method,
    seed: u64,
    trial: usize,
    observed: &[Observed],
) -> Vec<f64> {
    let mut random = Stream::new(seed, trial as u64);
    match method {
        Method::Grid => grid(space, trial),
        Method::Tpe if observed.len() >= AT_RANDOM => tpe(space, observed, &mut random),
        Method::Random | Method::Tpe => {
            space.dimensions.iter().map(|_| unit(&mut random)).collect()
        }
    }
}

/// A number from 0 up to 1.
fn unit(random: &mut Stream) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn grid(space: &Space, trial: usize) -> Vec<f64> {
    let mut rest = trial;
    let mut point = Vec::new();
    for dimension in &space.dimensions {
        let levels = dimension.range.levels(LEVELS);
        point.push(levels[rest % levels.len()]);
        rest /= levels.len();
    }
    point
}

fn tpe(space: &Space, observed: &[Observed], random: &mut Stream) -> Vec<f64> {
    let mut sorted: Vec<&Observed> = observed.iter().collect();
    // The best first; of equal ones the earlier, since the sort is stable.
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let good = ((GOOD * sorted.len() as f64).ceil() as usize).max(2);
    let (good, others) = sorted.split_at(good.min(sorted.len() - 1));
    let mut point = Vec::new();
    for (at, dimension) in space.dimensions.iter().enumerate() {
        let of = |trials: &[&Observed]| trials.iter().map(|trial| trial.0[at]).collect();
        point.push(best_candidate(dimension, of(good), of(others), random));
    }
    point
}

fn best_candidate(
    dimension: &Dimension,
    good: Vec<f64>,
    others: Vec<f64>,
    random: &mut Stream,
) -> f64 {
    let density: fn(&Dimension, &[f64], f64) -> f64 = match dimension.range {
        Range::Choice { .. } => frequency,
        _ => smoothed,
    };
    let mut best = (f64::MIN, 0.5);
    for _ in 0..CANDIDATES {
        let near = good[random.below(good.len() as u32) as usize];
        let candidate = match dimension.range {
            // Now and then any value, so that none is given up for good.
            Range::Choice { .. } if unit(random) < 0.2 => unit(random),
            Range::Choice { .. } => near,
            _ => (near + width(good.len()) * normal(random)).clamp(0.0, 1.0),
        };
        let score = density(dimension, &good, candidate) / density(dimension, &others, candidate);
        if score > best.0 {
            best = (score, candidate);
        }
    }
    best.1
}

/// How far a trial is taken to speak for its neighbours: less, the more there are.
fn width(trials: usize) -> f64 {
    0.5 / (1.0 + trials as f64).sqrt()
}

/// How dense trials lie at `unit`, with a floor everywhere.
fn smoothed(_: &Dimension, trials: &[f64], unit: f64) -> f64 {
    let width = width(trials.len());
    let bell = |trial: &f64| (-0.5 * ((unit - trial) / width).powi(2)).exp() / width;
    (1.0 + trials.iter().map(bell).sum::<f64>()) / (1.0 + trials.len() as f64)
}

/// How often the value at `unit` was tried, each value once more than it was.
fn frequency(dimension: &Dimension, trials: &[f64], unit: f64) -> f64 {
    let text = dimension.range.text(unit);
    let same = trials
        .iter()
        .filter(|trial| dimension.range.text(**trial) == text);
    (1.0 + same.count() as f64) / (dimension.range.values().unwrap_or(1) + trials.len()) as f64
}

/// A number of the normal distribution (Box and Muller).
fn normal(random: &mut Stream) -> f64 {
    let (first, second) = (1.0 - unit(random), unit(random));
    (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        let searches = ["a=log(1e-4,1)", "b=[1, 2, 3]", "c=uniform(0,1)"].map(str::to_owned);
        Space::parse(&searches).unwrap()
    }

    /// Best at a = 0.3 and b = 2; c says nothing.
    fn worth(point: &[f64]) -> f64 {
        let wrong = (point[0] - 0.3).abs();
        1.0 - wrong
            - if (0.34..0.66).contains(&point[1]) {
                0.0
            } else {
                0.3
            }
    }

    fn best_after(method: Method, seed: u64, trials: usize) -> f64 {
        let mut observed: Vec<Observed> = Vec::new();
        for trial in 0..trials {
            let point = suggest(&space(), method, seed, trial, &observed);
            let worth = worth(&point);
            observed.push((point, worth));
        }
        observed
            .iter()
            .map(|trial| trial.1)
            .fold(f64::MIN, f64::max)
    }

    #[test]
    fn what_was_learned_helps() {
        let mean = |method| {
            (0..20)
                .map(|seed| best_after(method, seed, 40))
                .sum::<f64>()
                / 20.0
        };
        let (random, tpe) = (mean(Method::Random), mean(Method::Tpe));
        assert!(tpe > random + 0.005, "{random} {tpe}");
    }

    #[test]
    fn a_grid_has_every_combination_once() {
        let all = combinations(&space());
        assert_eq!(all, 5 * 3 * 5);
        let mut points: Vec<String> = (0..all)
            .map(|trial| format!("{:?}", suggest(&space(), Method::Grid, 0, trial, &[])))
            .collect();
        points.sort();
        points.dedup();
        assert_eq!(points.len(), all);
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = |seed| suggest(&space(), Method::Random, seed, 3, &[]);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
