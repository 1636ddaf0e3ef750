//! Optimizers: one pass over a slice of parameters, its gradient and its state.
//!
//! Updates work number by number, so any rank may update any slice and the result is the same. They
//! follow PyTorch's definitions, but for the smallest numbers: what is written is never subnormal (see `flushed`).

use crate::math::power;
use crate::simd::for_each_isa;
use serde::{Deserialize, Serialize};

/// How parameters follow their gradient.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Optimizer {
    /// Gradient descent.
    Sgd {
        /// How much of the last direction is kept.
        momentum: f32,
        /// Look ahead by one step of the momentum.
        nesterov: bool,
        /// Pull towards zero, added to the gradient.
        weight_decay: f32,
    },
    /// Adam and AdamW.
    Adam {
        /// Decay of the averages of the gradient and of its square.
        betas: [f32; 2],
        /// Added to the denominator.
        epsilon: f32,
        /// Pull towards zero.
        weight_decay: f32,
        /// AdamW: the pull acts on the parameters instead of being added to the gradient.
        decoupled: bool,
    },
    /// RMSprop.
    RmsProp {
        /// Decay of the average of the gradient's square.
        alpha: f32,
        /// Added to the denominator.
        epsilon: f32,
        /// How much of the last direction is kept.
        momentum: f32,
        /// Pull towards zero, added to the gradient.
        weight_decay: f32,
    },
    /// Lion: only the sign of a direction counts (Chen et al., "Symbolic Discovery of Optimization Algorithms").
    Lion {
        /// How much of the average is in the direction, and how much of it is kept.
        betas: [f32; 2],
        /// Pull towards zero, on the parameters.
        weight_decay: f32,
    },
}

/// An optimizer at one step: what does not depend on the parameter is computed once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The learning rate.
    pub rate: f32,
    /// `1 - beta^t` for both betas.
    pub corrections: [f64; 2],
    /// The gradient is multiplied by this first; 1 unless it was clipped.
    pub scale: f32,
}

impl Optimizer {
    /// Vectors of state it keeps beside the parameters.
    pub fn planes(&self) -> usize {
        match self {
            Self::Sgd { momentum, .. } => usize::from(*momentum != 0.0),
            Self::Adam { .. } => 2,
            Self::RmsProp { momentum, .. } => 1 + usize::from(*momentum != 0.0),
            Self::Lion { .. } => 1,
        }
    }

    /// The update of step `number`, counted from 0, at learning rate `rate`.
    pub fn at(&self, number: u64, rate: f32) -> Update {
        let corrections = match *self {
            Self::Sgd { .. } | Self::RmsProp { .. } | Self::Lion { .. } => [1.0; 2],
            Self::Adam { betas, .. } => betas.map(|beta| 1.0 - power(f64::from(beta), number + 1)),
        };
        Update {
            optimizer: *self,
            rate,
            corrections,
            scale: 1.0,
        }
    }
}

impl Update {
    /// The same update with the gradient multiplied by `scale` first.
    pub fn scaled(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    /// The same update at a part of its learning rate.
    pub fn at_part(self, part: f32) -> Self {
        Self {
            rate: self.rate * part,
            ..self
        }
    }

    /// Updates a slice of the parameters. `planes` holds the same slice of each state vector; only the
    /// first [`Optimizer::planes`] are used.
    pub fn apply(&self, parameters: &mut [f32], gradient: &[f32], planes: [&mut [f32]; 2]) {
        let [first, second] = planes;
        match self.optimizer {
            Optimizer::Sgd {
                momentum,
                nesterov,
                weight_decay,
            } => {
                let factors = [self.rate, momentum, weight_decay, self.scale];
                if momentum == 0.0 {
                    plain(parameters, gradient, factors);
                } else if nesterov {
                    look_ahead(parameters, gradient, first, factors);
                } else {
                    heavy_ball(parameters, gradient, first, factors);
                }
            }
            Optimizer::Adam {
                betas,
                epsilon,
                weight_decay,
                decoupled,
            } => {
                let (pull, added) = if decoupled {
                    (1.0 - self.rate * weight_decay, 0.0)
                } else {
                    (1.0, weight_decay)
                };
                let step = (f64::from(self.rate) / self.corrections[0]) as f32;
                let root = (1.0 / self.corrections[1].sqrt()) as f32;
                adam(
                    parameters,
                    gradient,
                    first,
                    second,
                    [
                        betas[0], betas[1], epsilon, added, pull, step, root, self.scale,
                    ],
                );
            }
            Optimizer::RmsProp {
                alpha,
                epsilon,
                momentum,
                weight_decay,
            } => {
                let factors = [
                    self.rate,
                    alpha,
                    epsilon,
                    momentum,
                    weight_decay,
                    self.scale,
                ];
                match momentum == 0.0 {
                    true => rms_prop(parameters, gradient, first, factors),
                    false => heavy_rms_prop(parameters, gradient, first, second, factors),
                }
            }
            Optimizer::Lion {
                betas,
                weight_decay,
            } => {
                let pull = 1.0 - self.rate * weight_decay;
                let factors = [self.rate, betas[0], betas[1], pull, self.scale];
                lion(parameters, gradient, first, factors);
            }
        }
    }
}

/// `x`, or 0 in the place of a subnormal number and of -0. NaN stays NaN.
///
/// Momentum of weights that never change decays to numbers so small that processors compute with them many times more
/// slowly, or replace them by 0, each in its own way. Here all do the same.
#[inline(always)]
fn flushed(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x }
}

for_each_isa! {
    /// Moves running statistics towards what a batch observed.
    pub fn blend(running: &mut [f32], observed: &[f32], share: f32) {
        for (running, &observed) in running.iter_mut().zip(observed) {
            *running = flushed(*running * (1.0 - share) + observed * share);
        }
    }

    fn plain(p: &mut [f32], g: &[f32], factors: [f32; 4]) {
        let [rate, _, decay, scale] = factors;
        for (p, &g) in p.iter_mut().zip(g) {
            *p = flushed(*p - rate * (g * scale + decay * *p));
        }
    }

    fn heavy_ball(p: &mut [f32], g: &[f32], velocity: &mut [f32], factors: [f32; 4]) {
        let [rate, momentum, decay, scale] = factors;
        for ((p, &g), v) in p.iter_mut().zip(g).zip(velocity) {
            *v = flushed(momentum * *v + (g * scale + decay * *p));
            *p = flushed(*p - rate * *v);
        }
    }

    fn look_ahead(p: &mut [f32], g: &[f32], velocity: &mut [f32], factors: [f32; 4]) {
        let [rate, momentum, decay, scale] = factors;
        for ((p, &g), v) in p.iter_mut().zip(g).zip(velocity) {
            let g = g * scale + decay * *p;
            *v = flushed(momentum * *v + g);
            *p = flushed(*p - rate * (g + momentum * *v));
        }
    }

    fn adam(p: &mut [f32], g: &[f32], mean: &mut [f32], square: &mut [f32], factors: [f32; 8]) {
        let [beta1, beta2, epsilon, added, pull, step, root, scale] = factors;
        for (((p, &g), m), s) in p.iter_mut().zip(g).zip(mean).zip(square) {
            let g = g * scale + added * *p;
            *m = flushed(beta1 * *m + (1.0 - beta1) * g);
            *s = flushed(beta2 * *s + (1.0 - beta2) * g * g);
            *p = flushed(*p * pull - step * *m / (s.sqrt() * root + epsilon));
        }
    }

    fn rms_prop(p: &mut [f32], g: &[f32], square: &mut [f32], factors: [f32; 6]) {
        let [rate, alpha, epsilon, _, decay, scale] = factors;
        for ((p, &g), s) in p.iter_mut().zip(g).zip(square) {
            let g = g * scale + decay * *p;
            *s = flushed(alpha * *s + (1.0 - alpha) * g * g);
            *p = flushed(*p - rate * (g / (s.sqrt() + epsilon)));
        }
    }

    fn heavy_rms_prop(
        p: &mut [f32], g: &[f32], square: &mut [f32], velocity: &mut [f32], factors: [f32; 6],
    ) {
        let [rate, alpha, epsilon, momentum, decay, scale] = factors;
        for (((p, &g), s), v) in p.iter_mut().zip(g).zip(square).zip(velocity) {
            let g = g * scale + decay * *p;
            *s = flushed(alpha * *s + (1.0 - alpha) * g * g);
            *v = flushed(momentum * *v + g / (s.sqrt() + epsilon));
            *p = flushed(*p - rate * *v);
        }
    }

    fn lion(p: &mut [f32], g: &[f32], mean: &mut [f32], factors: [f32; 5]) {
        let [rate, beta1, beta2, pull, scale] = factors;
        for ((p, &g), m) in p.iter_mut().zip(g).zip(mean) {
            let g = g * scale;
            let direction = beta1 * *m + (1.0 - beta1) * g;
            // 0 stays 0, and NaN stays NaN, so that a diverged run shows.
            let sign = if direction > 0.0 { 1.0 } else if direction < 0.0 { -1.0 } else { direction };
            *p = flushed(*p * pull - rate * sign);
            *m = flushed(beta2 * *m + (1.0 - beta2) * g);
        }
    }

    /// Moves averaged weights towards the present ones by a share of their distance.
    pub fn average(averaged: &mut [f32], present: &[f32], share: f32) {
        for (averaged, &present) in averaged.iter_mut().zip(present) {
            *averaged = flushed(*averaged + share * (present - *averaged));
        }
    }

    /// The sum of squares, in order, in `f64`.
    pub fn square_sum(x: &[f32]) -> f64 {
        // Eight chains, joined at the end: one alone would wait for each addition.
        let mut chains = [0.0f64; 8];
        for piece in x.chunks(8) {
            for (chain, &x) in chains.iter_mut().zip(piece) {
                *chain += f64::from(x) * f64::from(x);
            }
        }
        chains.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trains one number on `g = p` for three steps.
    fn three_steps(optimizer: Optimizer) -> f32 {
        let (mut p, mut a, mut b) = ([1.0f32], [0.0f32], [0.0f32]);
        for number in 0..3 {
            let g = p;
            optimizer
                .at(number, 0.1)
                .apply(&mut p, &g, [&mut a, &mut b]);
        }
        p[0]
    }

    #[test]
    fn lion_moves_by_the_sign_of_its_direction() {
        let lion = |weight_decay| Optimizer::Lion {
            betas: [0.9, 0.99],
            weight_decay,
        };
        assert!((three_steps(lion(0.0)) - 0.7).abs() < 1e-6);
        // p: 1, 0.9 * 0.95 ..., each step 5 % of itself and 0.1 less.
        let expected = ((1.0 * 0.95 - 0.1) * 0.95 - 0.1) * 0.95 - 0.1;
        assert!((three_steps(lion(0.5)) - expected).abs() < 1e-6);
        assert_eq!(lion(0.0).planes(), 1);
        let (mut p, mut mean) = ([1.0, 1.0, 1.0], [0.0; 3]);
        let update = lion(0.0).at(0, 0.5);
        update.apply(&mut p, &[0.0, -1e-30, f32::NAN], [&mut mean, &mut []]);
        assert_eq!(p[..2], [1.0, 1.5]);
        assert!(p[2].is_nan());
    }

    #[test]
    fn averaged_weights_follow_the_present_ones() {
        let mut averaged = [0.0, 8.0];
        average(&mut averaged, &[4.0, 8.0], 0.25);
        assert_eq!(averaged, [1.0, 8.0]);
    }

    #[test]
    fn sgd_follows_its_definition() {
        let plain = Optimizer::Sgd {
            momentum: 0.0,
            nesterov: false,
            weight_decay: 0.0,
        };
        assert!((three_steps(plain) - 0.9f32.powi(3)).abs() < 1e-6);
        assert_eq!(plain.planes(), 0);
        let heavy = Optimizer::Sgd {
            momentum: 0.9,
            nesterov: false,
            weight_decay: 0.0,
        };
        // v: 1, 1.8, 2.34; p: 0.9, 0.72, 0.486
        assert!((three_steps(heavy) - 0.486).abs() < 1e-6);
        let decayed = Optimizer::Sgd {
            momentum: 0.0,
            nesterov: false,
            weight_decay: 1.0,
        };
        assert!((three_steps(decayed) - 0.8f32.powi(3)).abs() < 1e-6);
    }

    #[test]
    fn the_first_step_of_adam_is_the_learning_rate() {
        let adam = Optimizer::Adam {
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
        };
        let (mut p, mut a, mut b) = ([5.0f32], [0.0f32], [0.0f32]);
        adam.at(0, 0.1).apply(&mut p, &[123.0], [&mut a, &mut b]);
        assert!((p[0] - 4.9).abs() < 1e-5, "{}", p[0]);
    }

    #[test]
    fn updating_in_two_slices_is_updating_in_one() {
        let adam = Optimizer::Adam {
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: 0.01,
            decoupled: true,
        };
        let start: Vec<f32> = (0..100).map(|i| i as f32 / 7.0).collect();
        let gradient: Vec<f32> = start.iter().map(|x| x - 5.0).collect();
        let run = |cut: usize| {
            let (mut p, mut a, mut b) = (start.clone(), vec![0.1; 100], vec![0.2; 100]);
            let update = adam.at(4, 1e-2).scaled(0.5);
            for range in [0..cut, cut..100] {
                let planes = [&mut a[range.clone()], &mut b[range.clone()]];
                update.apply(&mut p[range.clone()], &gradient[range], planes);
            }
            p
        };
        assert_eq!(run(0), run(37));
    }

    #[test]
    fn nothing_that_is_written_is_subnormal_and_nan_stays() {
        let sgd = |momentum, nesterov| Optimizer::Sgd {
            momentum,
            nesterov,
            weight_decay: 0.0,
        };
        let rms_prop = |momentum| Optimizer::RmsProp {
            alpha: 0.5,
            epsilon: 1.0,
            momentum,
            weight_decay: 0.0,
        };
        let adam = Optimizer::Adam {
            betas: [0.5; 2],
            epsilon: 1.0,
            weight_decay: 0.0,
            decoupled: false,
        };
        let lion = Optimizer::Lion {
            betas: [0.5; 2],
            weight_decay: 0.9,
        };
        // Half of the smallest normal number is subnormal, and so is most of what else becomes of these.
        const SMALLEST: f32 = f32::MIN_POSITIVE;
        let start = [SMALLEST, -0.0, SMALLEST, f32::NAN];
        let other = [SMALLEST, -0.0, 0.0, f32::NAN];
        let check = |what: &str, numbers: &[f32]| {
            let is_fine = |x: &f32| x.is_normal() || x.to_bits() == 0;
            assert!(numbers[..3].iter().all(is_fine), "{what}: {numbers:?}");
            assert!(numbers[3].is_nan(), "{what}");
        };
        let heavy = [sgd(0.5, false), sgd(0.5, true)];
        let scaled = [rms_prop(0.0), rms_prop(0.5), adam, lion];
        for optimizer in [sgd(0.0, false)].into_iter().chain(heavy).chain(scaled) {
            let (mut p, mut a, mut b) = (start, other, other);
            let update = optimizer.at(5, 0.5).scaled(0.5);
            update.apply(&mut p, &other, [&mut a, &mut b]);
            let written = [p, a, b];
            for vector in &written[..1 + optimizer.planes()] {
                check(&format!("{optimizer:?}"), vector);
            }
        }
        let none = [0.0, -0.0, 0.0, f32::NAN];
        let mut running = start;
        blend(&mut running, &none, 0.5);
        check("a running statistic", &running);
        let mut averaged = start;
        average(&mut averaged, &none, 0.5);
        check("an average", &averaged);
    }

    #[test]
    fn square_sum_counts_every_number_once() {
        let x: Vec<f32> = (0..1001).map(|i| i as f32).collect();
        assert_eq!(
            square_sum(&x),
            (0..1001u64).map(|i| i * i).sum::<u64>() as f64
        );
    }
}
