//! Zeroes a share of the activations while training and scales up the rest.

use super::{Pass, Pointwise};
use crate::build::Site;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::graph::{Flow, LayerGraph};
use crate::operation::Operation;
use crate::simd::for_each_isa;
use crate::spec::LayerKind;
use crate::threads::{NUMBERS, pieces, pieces_mut, rows_of_a_tile};
use lockstep_base::random::Philox;

/// The settings of a dropout, which zeroes a share while training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The share, in `0..1`.
    pub p: f64,
}

impl LayerKind for Dropout {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let Site { model, chain, .. } = site;
        let p = self.p as f32;
        if !(0.0..1.0).contains(&p) {
            return Err(LayerFault::Probability(p).of(site.name));
        }
        let number = u8::try_from(site.number);
        let number = number.map_err(|_| LayerFault::TooManyLayers.of(site.name))?;
        let dropout = DropoutLayer::new(p, number, chain.output().len(), model.rows);
        chain.push_in_place(Box::new(dropout));
        Ok(())
    }

    /// Drops nothing where nothing is trained.
    fn write_graph(&self, flow: Flow, _: &mut LayerGraph<'_>) -> Flow {
        flow
    }

    fn torch_module(&self) -> String {
        format!("nn.Dropout({:?})", self.p)
    }

    fn sample() -> (Dims, Self) {
        (Dims::vector(6), Self { p: 0.3 })
    }
}

/// Random numbers that are drawn for one row at a time.
const PIECE: usize = 256;

/// Keeps dropout's numbers apart from those drawn elsewhere under the same seed.
pub const DOMAIN: u64 = u64::from_le_bytes(*b"dropout.");

/// Whether number j of a sample's row is kept in a step is a function of (seed, step, sample, layer, j).
///
/// Two decisions share a 32-bit draw, so the probability is a multiple of 2^-16; the scale is the exact
/// inverse of the share that is kept.
pub(crate) struct DropoutLayer {
    /// A draw below this drops.
    threshold: u16,
    scale: f32,
    layer: u8,
    features: usize,
    kept: Vec<u8>,
    active: bool,
}

impl DropoutLayer {
    /// For rows of `features` numbers, at most `rows` of them. `layer` tells several dropouts apart.
    pub(crate) fn new(probability: f32, layer: u8, features: usize, rows: usize) -> Self {
        let threshold = (f64::from(probability) * 65_536.0).round().min(65_535.0) as u16;
        Self {
            threshold,
            scale: (65_536.0 / (65_536.0 - f64::from(threshold))) as f32,
            layer,
            features,
            kept: vec![0; rows * features],
            active: false,
        }
    }
}

impl Pointwise for DropoutLayer {
    fn operation(&self) -> Operation {
        let &Self {
            threshold,
            scale,
            layer,
            ..
        } = self;
        Operation::Dropout {
            threshold,
            scale,
            layer,
        }
    }

    fn forward(&mut self, pass: Pass<'_>, y: &mut [f32]) {
        self.active = pass.step.is_some();
        let Some(step) = pass.step else {
            return;
        };
        let philox = Philox::new(step.seed ^ DOMAIN);
        let place = u128::from(self.layer) << 120 | u128::from(step.number) << 64;
        let (features, threshold, scale) = (self.features, self.threshold, self.scale);
        let rows = rows_of_a_tile(features);
        let kept = pieces_mut(&mut self.kept, rows * features);
        let tiles = (
            pieces(step.samples, rows),
            kept,
            pieces_mut(y, rows * features),
        );
        pass.threads.each(tiles, |_, (samples, kept, y)| {
            let rows = kept.chunks_exact_mut(features);
            let rows = rows.zip(y.chunks_exact_mut(features));
            for (&sample, (kept, y)) in samples.iter().zip(rows) {
                let counter = place | u128::from(sample) << 32;
                draw(philox, counter, threshold, kept);
                apply(kept, scale, y);
            }
        });
    }

    fn backward(&mut self, pass: Pass<'_>, _: &[f32], dy: &mut [f32]) {
        if self.active {
            let tiles = (pieces(&self.kept, NUMBERS), pieces_mut(dy, NUMBERS));
            (pass.threads).each(tiles, |_, (kept, dy)| apply(kept, self.scale, dy));
        }
    }
}

for_each_isa! {
    /// Decides for one row: 1 keeps, 0 drops.
    fn draw(philox: Philox, counter: u128, threshold: u16, kept: &mut [u8]) {
        let mut draws = [0u32; PIECE / 2];
        for (i, piece) in kept.chunks_mut(PIECE).enumerate() {
            let draws = &mut draws[..piece.len().div_ceil(2)];
            philox.fill(counter + (i * PIECE / 8) as u128, draws);
            // The halves are taken as two runs rather than in turns: that is what vectorises.
            let (low, high) = piece.split_at_mut(draws.len());
            for (kept, &draw) in low.iter_mut().zip(&*draws) {
                *kept = u8::from(draw as u16 >= threshold);
            }
            for (kept, &draw) in high.iter_mut().zip(&*draws) {
                *kept = u8::from((draw >> 16) as u16 >= threshold);
            }
        }
    }

    fn apply(kept: &[u8], scale: f32, y: &mut [f32]) {
        for (y, &kept) in y.iter_mut().zip(kept) {
            *y = if kept == 0 { 0.0 } else { *y * scale };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Step;
    use super::*;
    use crate::threads::Threads;

    fn run(
        layer: u8,
        number: u64,
        samples: &[u32],
        features: usize,
        p: f32,
    ) -> (DropoutLayer, Vec<f32>) {
        let mut dropout = DropoutLayer::new(p, layer, features, samples.len());
        let mut y = vec![1.0; samples.len() * features];
        let step = Step {
            seed: 7,
            number,
            samples,
            batch: samples.len(),
        };
        let pass = Pass {
            threads: &Threads::default(),
            step: Some(step),
            lanes: &[],
        };
        dropout.forward(pass, &mut y);
        (dropout, y)
    }

    #[test]
    fn a_samples_mask_does_not_depend_on_its_place_or_its_neighbours() {
        let (_, together) = run(1, 3, &[10, 11, 12], 700, 0.25);
        let (_, alone) = run(1, 3, &[12], 700, 0.25);
        assert_eq!(together[1400..], alone);
    }

    #[test]
    fn masks_differ_between_steps_samples_and_layers() {
        let (_, base) = run(1, 3, &[10], 512, 0.5);
        for (layer, step, sample) in [(2, 3, 10), (1, 4, 10), (1, 3, 11)] {
            assert_ne!(base, run(layer, step, &[sample], 512, 0.5).1);
        }
    }

    #[test]
    fn the_share_and_the_mean_are_right() {
        let samples: Vec<u32> = (0..200).collect();
        let (_, y) = run(0, 0, &samples, 513, 0.25);
        let dropped = y.iter().filter(|&&y| y == 0.0).count() as f64 / y.len() as f64;
        let mean = y.iter().map(|&y| f64::from(y)).sum::<f64>() / y.len() as f64;
        assert!((dropped - 0.25).abs() < 0.005, "{dropped}");
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn backward_applies_the_mask_of_forward_and_evaluation_changes_nothing() {
        let (mut dropout, y) = run(0, 1, &[5, 6], 30, 0.5);
        let mut dy = vec![1.0; 60];
        let (threads, mut same) = (Threads::default(), vec![3.0; 60]);
        dropout.backward(Pass::evaluation(&threads), &y, &mut dy);
        assert_eq!(dy, y);
        dropout.forward(Pass::evaluation(&threads), &mut same);
        assert_eq!(same, vec![3.0; 60]);
    }
}
