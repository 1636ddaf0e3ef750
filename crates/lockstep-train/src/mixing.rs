//! Mixup and cutmix: a training image is mixed with another, and so is what it is to be taken for.
//!
//! With mixup, values are added, each image's times its share. With cutmix, a part of the other image lies over the first,
//! and shares are those of the area. Which other image, how large a share and which part are functions of (seed, step,
//! sample): not of the batch around the sample. The other image is any of the training set, as it is seen in that step.

use crate::sets::Sets;
use lockstep_base::math::{exp, ln};
use lockstep_data::RandomBlocks;
use lockstep_resolve::TrainingSettings;
use std::ops::Range;

/// Keeps these numbers apart from those drawn elsewhere under the same seed.
const DOMAIN: u64 = u64::from_le_bytes(*b"mixture.");

/// Mixes images.
pub(crate) struct Mixer {
    /// How shares are spread: the parameter of a symmetric beta distribution.
    mixup: Option<f64>,
    cutmix: Option<f64>,
    random: RandomBlocks,
    /// Height and width, and channels.
    size: [usize; 2],
    channels: usize,
    /// The other image.
    other: Vec<f32>,
}

/// How an image is mixed with another in a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Mixture {
    /// The other sample.
    pub(crate) other: u32,
    /// Its share.
    pub(crate) share: f32,
    /// The rows and columns that show it, if it lies over the first.
    pub(crate) part: Option<[Range<usize>; 2]>,
}

impl Mixer {
    /// None where images are not mixed.
    pub(crate) fn new(settings: &TrainingSettings, sets: &Sets) -> Option<Self> {
        let augment = settings.augment.as_ref()?;
        let (mixup, cutmix) = (augment.mixup, augment.cutmix);
        let [channels, height, width] = sets.train.shape();
        (mixup.is_some() || cutmix.is_some()).then(|| Self {
            mixup,
            cutmix,
            random: RandomBlocks::new(settings.seed ^ DOMAIN),
            size: [height, width],
            channels,
            other: vec![0.0; sets.train.sample_len()],
        })
    }

    /// How a sample is mixed in a step with one of `samples`.
    pub(crate) fn mixture(&self, step: u64, sample: u32, samples: &[u32]) -> Mixture {
        let draws = |block| self.random.block(step, sample, block).map(unit);
        let [which, kind, across, down] = draws(0);
        let other = samples[((which * samples.len() as f64) as usize).min(samples.len() - 1)];
        let (spread, over) = match (self.mixup, self.cutmix) {
            (Some(_), Some(spread)) if kind < 0.5 => (spread, true),
            (None, Some(spread)) => (spread, true),
            (Some(spread), _) => (spread, false),
            (None, None) => unreachable!("a mixer mixes"),
        };
        let share = beta(spread, |attempt| draws(1 + attempt));
        if !over {
            return Mixture {
                other,
                share: share as f32,
                part: None,
            };
        }
        // Its sides are in the ratio of the image's, and it may reach beyond an edge.
        let side = share.sqrt();
        let span = |whole: usize, middle: f64| {
            let (half, middle) = (whole as f64 * side / 2.0, whole as f64 * middle);
            let begin = (middle - half).max(0.0) as usize;
            begin..((middle + half) as usize).min(whole)
        };
        let [height, width] = self.size;
        let part = [span(height, down), span(width, across)];
        let covered = part[0].len() * part[1].len();
        Mixture {
            other,
            share: (covered as f64 / (height * width) as f64) as f32,
            part: Some(part),
        }
    }

    /// Mixes the image in `row` with the other one as it is seen in this step.
    pub(crate) fn mix(&mut self, sets: &Sets, step: u64, mixture: &Mixture, row: &mut [f32]) {
        sets.gather_training(&[mixture.other], step, &mut self.other);
        let Some([rows, columns]) = &mixture.part else {
            for (own, other) in row.iter_mut().zip(&self.other) {
                *own += mixture.share * (other - *own);
            }
            return;
        };
        let line = self.size[1] * self.channels;
        for y in rows.clone() {
            let part =
                y * line + columns.start * self.channels..y * line + columns.end * self.channels;
            row[part.clone()].copy_from_slice(&self.other[part]);
        }
    }
}

/// A number in `(0, 1)`.
fn unit(draw: u32) -> f64 {
    (f64::from(draw) + 0.5) / 4_294_967_296.0
}

/// A share of a symmetric beta distribution (Jöhnk's method): of two powers of random numbers, tried until they add up to
/// at most 1, the first one's part.
fn beta(spread: f64, draws: impl Fn(u32) -> [f64; 4]) -> f64 {
    let power = |x: f64| exp(ln(x) / spread);
    let mut attempts = 0..;
    loop {
        let attempt = attempts.next().unwrap_or_default();
        let [a, b, c, d] = draws(attempt);
        for (x, y) in [(a, b), (c, d)] {
            let (x, y) = (power(x), power(y));
            if x + y <= 1.0 {
                return x / (x + y);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixer(mixup: Option<f64>, cutmix: Option<f64>) -> Mixer {
        Mixer {
            mixup,
            cutmix,
            random: RandomBlocks::new(3),
            size: [6, 10],
            channels: 2,
            other: Vec::new(),
        }
    }

    #[test]
    fn shares_are_spread_as_a_beta_distribution() {
        for spread in [0.2, 1.0, 2.0] {
            let mixer = mixer(Some(spread), None);
            let samples: Vec<u32> = (0..50).collect();
            let shares: Vec<f64> = (0..20_000)
                .map(|sample| f64::from(mixer.mixture(4, sample, &samples).share))
                .collect();
            let n = shares.len() as f64;
            let mean = shares.iter().sum::<f64>() / n;
            let variance = shares.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            assert!((mean - 0.5).abs() < 0.01, "{mean}");
            let wanted = 1.0 / (4.0 * (2.0 * spread + 1.0));
            assert!(
                (variance / wanted - 1.0).abs() < 0.05,
                "{variance} {wanted}"
            );
        }
    }

    #[test]
    fn a_part_has_the_share_that_it_covers_and_any_sample_may_be_the_other() {
        let mixer = mixer(Some(0.4), Some(1.0));
        let samples = [7, 9, 11];
        let mixtures: Vec<Mixture> = (0..3000)
            .map(|sample| mixer.mixture(1, sample, &samples))
            .collect();
        for sample in samples {
            let count = mixtures
                .iter()
                .filter(|mixture| mixture.other == sample)
                .count();
            assert!((900..1100).contains(&count), "{count}");
        }
        let parts = mixtures.iter().filter(|mixture| mixture.part.is_some());
        assert!((1400..1600).contains(&parts.clone().count()));
        for mixture in parts {
            let [rows, columns] = mixture.part.clone().unwrap();
            assert!(rows.end <= 6 && columns.end <= 10);
            assert_eq!(mixture.share, (rows.len() * columns.len()) as f32 / 60.0);
        }
        assert_eq!(mixer.mixture(1, 5, &samples), mixer.mixture(1, 5, &samples));
        assert_ne!(mixer.mixture(1, 5, &samples), mixer.mixture(2, 5, &samples));
    }
}
