//! The learning rate as a function of the step.

use crate::math::{cos_pi, power};

/// What the rate does after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decay {
    /// It stays.
    Constant,
    /// It is multiplied by `gamma` every so many steps.
    Step {
        /// Steps between two cuts.
        every: u64,
        /// The factor.
        gamma: f32,
    },
    /// It falls along half a cosine from the base to `min` over `steps`, and stays there.
    Cosine {
        /// The steps the fall takes, warm-up included.
        steps: u64,
        /// Where it ends.
        min: f32,
    },
}

/// The rate over a whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The rate after the warm-up.
    pub base: f32,
    /// Steps over which the rate climbs evenly from `base / warmup` to `base`.
    pub warmup: u64,
    /// What comes then.
    pub decay: Decay,
}

impl Schedule {
    /// The rate of step `number`, counted from 0.
    pub fn rate(&self, number: u64) -> f32 {
        let base = f64::from(self.base);
        if number < self.warmup {
            return (base * (number + 1) as f64 / self.warmup as f64) as f32;
        }
        let rate = match self.decay {
            Decay::Constant => base,
            Decay::Step { every, gamma } => base * power(f64::from(gamma), number / every.max(1)),
            Decay::Cosine { steps, min } => {
                let span = steps.saturating_sub(self.warmup).max(1);
                let done = ((number - self.warmup) as f64 / span as f64).min(1.0);
                let min = f64::from(min);
                min + (base - min) * 0.5 * (1.0 + cos_pi(done))
            }
        };
        rate as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(warmup: u64, decay: Decay) -> Vec<f32> {
        let schedule = Schedule {
            base: 1.0,
            warmup,
            decay,
        };
        (0..7).map(|n| schedule.rate(n)).collect()
    }

    #[test]
    fn warm_up_climbs_evenly_and_ends_at_the_base() {
        assert_eq!(
            rates(4, Decay::Constant),
            [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0]
        );
    }

    #[test]
    fn steps_cut_the_rate() {
        let step = Decay::Step {
            every: 2,
            gamma: 0.5,
        };
        assert_eq!(rates(0, step), [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125]);
    }

    #[test]
    fn a_cosine_begins_at_the_base_passes_the_middle_and_stays_at_its_end() {
        let cosine = Decay::Cosine { steps: 4, min: 0.2 };
        let rates = rates(0, cosine);
        assert_eq!(rates[0], 1.0);
        assert!((rates[2] - 0.6).abs() < 1e-6);
        assert_eq!(rates[4..], [0.2; 3]);
    }
}
