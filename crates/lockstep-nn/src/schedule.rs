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
    /// It is multiplied by `factor` every time that a plateau ends, and never falls below `min`.
    Plateau {
        /// The factor.
        factor: f32,
        /// The lowest rate.
        min: f32,
        /// Plateaus so far.
        cuts: u32,
    },
    /// It climbs along half a cosine from `base / div_factor` to the base, and falls along another one to
    /// `base / (div_factor * final_div_factor)`, where it stays.
    OneCycle {
        /// The steps of the whole cycle.
        steps: u64,
        /// The share of them in which it climbs.
        pct_start: f32,
        /// How far below the base it begins.
        div_factor: f32,
        /// How far below its beginning it ends.
        final_div_factor: f32,
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
    /// The same after so many plateaus, where those cut the rate.
    pub fn after_cuts(mut self, plateaus: u32) -> Self {
        if let Decay::Plateau { cuts, .. } = &mut self.decay {
            *cuts = plateaus;
        }
        self
    }

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
                along_cosine(base, f64::from(min), done)
            }
            Decay::Plateau { factor, min, cuts } => {
                let cut = base * power(f64::from(factor), u64::from(cuts));
                cut.max(f64::from(min).min(base))
            }
            Decay::OneCycle {
                steps,
                pct_start,
                div_factor,
                final_div_factor,
            } => {
                let first = base / f64::from(div_factor);
                let last = first / f64::from(final_div_factor);
                let end = steps as f64 - 1.0;
                let top = f64::from(pct_start) * steps as f64 - 1.0;
                let number = (number as f64).min(end);
                // A cycle may be too short to climb.
                let done = |from: f64, to: f64| match to > from {
                    true => (number - from) / (to - from),
                    false => 1.0,
                };
                match number <= top {
                    true => along_cosine(first, base, done(0.0, top)),
                    false => along_cosine(base, last, done(top, end)),
                }
            }
        };
        rate as f32
    }
}

/// The way from one rate to another along half a cosine.
fn along_cosine(from: f64, to: f64, done: f64) -> f64 {
    to + (from - to) * 0.5 * (1.0 + cos_pi(done))
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

    #[test]
    fn every_plateau_cuts_the_rate_down_to_the_lowest() {
        let rates: Vec<f32> = (0..4)
            .map(|cuts| {
                let plateau = Decay::Plateau {
                    factor: 0.5,
                    min: 0.2,
                    cuts,
                };
                rates(2, plateau)[6]
            })
            .collect();
        assert_eq!(rates, [1.0, 0.5, 0.25, 0.2]);
    }

    #[test]
    fn one_cycle_climbs_falls_and_stays() {
        let cycle = |steps, pct_start| Decay::OneCycle {
            steps,
            pct_start,
            div_factor: 4.0,
            final_div_factor: 5.0,
        };
        let all = rates(0, cycle(6, 0.5));
        assert_eq!((all[0], all[2]), (0.25, 1.0));
        assert_eq!(all[5..], [0.05; 2]);
        assert!(all[1] > 0.25 && all[1] < 1.0 && all[3] > all[4]);
        // However short it is, every rate is a number.
        for (steps, share) in [(1, 0.3), (2, 0.0), (2, 1.0), (3, 0.1)] {
            let rates = rates(0, cycle(steps, share));
            assert!(
                rates.iter().all(|rate| (0.05..=1.0).contains(rate)),
                "{rates:?}"
            );
        }
    }
}
