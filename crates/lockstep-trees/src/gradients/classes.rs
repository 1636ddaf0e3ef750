//! Losses and derivatives of classes, of many rows at once.
//!
//! Exponentials and logarithms take most of the time. Those of a block of rows are computed together, several at a time
//! where the processor has vectors, with the same bits as one after the other.

use lockstep_base::math::{exp_each, ln_each};

/// Rows of a block: so few that all that is computed of them stays in the cache.
pub(super) const BLOCK: usize = 512;

/// The losses of rows of two classes: the logarithms of 1 + e^x, where x is how far a margin is on the wrong side.
pub(super) fn logistic_losses(margins: &[f32], targets: &[f32], losses: &mut [f64]) {
    for (loss, &margin) in losses.iter_mut().zip(margins) {
        *loss = -f64::from(margin).abs();
    }
    exp_each(losses);
    for loss in &mut *losses {
        *loss += 1.0;
    }
    ln_each(losses);
    for ((loss, &margin), &target) in losses.iter_mut().zip(margins).zip(targets) {
        let margin = f64::from(margin);
        let x = if target > 0.5 { -margin } else { margin };
        *loss += x.max(0.0);
    }
}

/// Both derivatives of rows of two classes.
pub(super) fn derive_logistic(margins: &[f32], targets: &[f32], both: &mut [(f64, f64)]) {
    let mut exponentials = [0.0; BLOCK];
    for ((margins, targets), both) in margins
        .chunks(BLOCK)
        .zip(targets.chunks(BLOCK))
        .zip(both.chunks_mut(BLOCK))
    {
        let exponentials = &mut exponentials[..margins.len()];
        for (exponential, &margin) in exponentials.iter_mut().zip(margins) {
            *exponential = -f64::from(margin);
        }
        exp_each(exponentials);
        for ((both, &exponential), &target) in both.iter_mut().zip(&*exponentials).zip(targets) {
            let p = 1.0 / (1.0 + exponential);
            *both = (p - f64::from(target), p * (1.0 - p));
        }
    }
}

/// The losses of rows of several classes.
pub(super) fn softmax_losses(classes: usize, margins: &[f32], targets: &[f32], losses: &mut [f64]) {
    let exponentials = softmax_exponentials(classes, margins);
    for (loss, exponentials) in losses.iter_mut().zip(exponentials.chunks_exact(classes)) {
        *loss = exponentials.iter().sum();
    }
    ln_each(losses);
    for ((loss, margins), &target) in losses
        .iter_mut()
        .zip(margins.chunks_exact(classes))
        .zip(targets)
    {
        let largest = largest(margins);
        let own = margins.get(target as usize).copied().unwrap_or(largest);
        *loss = (*loss + f64::from(largest) - f64::from(own)).max(0.0);
    }
}

/// Both derivatives of rows of several classes.
pub(super) fn derive_softmax(
    classes: usize,
    margins: &[f32],
    targets: &[f32],
    both: &mut [(f64, f64)],
) {
    let exponentials = softmax_exponentials(classes, margins);
    for ((exponentials, both), &target) in exponentials
        .chunks_exact(classes)
        .zip(both.chunks_exact_mut(classes))
        .zip(targets)
    {
        let sum: f64 = exponentials.iter().sum();
        for (class, (both, exponential)) in both.iter_mut().zip(exponentials).enumerate() {
            let p = exponential / sum;
            let is = f64::from(u8::from(class == target as usize));
            // XGBoost's factor: the softmax's margins are not independent of each other.
            *both = (p - is, 2.0 * p * (1.0 - p));
        }
    }
}

/// The exponentials of margins, beside the largest of their row, so that none overflows.
fn softmax_exponentials(classes: usize, margins: &[f32]) -> Vec<f64> {
    let mut exponentials = Vec::with_capacity(margins.len());
    for margins in margins.chunks_exact(classes) {
        let largest = f64::from(largest(margins));
        exponentials.extend(margins.iter().map(|&margin| f64::from(margin) - largest));
    }
    exp_each(&mut exponentials);
    exponentials
}

fn largest(margins: &[f32]) -> f32 {
    margins.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}
