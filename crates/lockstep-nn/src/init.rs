//! What a model's numbers are before training.

use crate::layout::Layout;
use crate::math::ln;
use lockstep_base::random::Stream;

/// Keeps initial weights apart from what is drawn elsewhere under the same seed.
const DOMAIN: u64 = u64::from_le_bytes(*b"initial.");

/// How one tensor begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Initial {
    /// Every number the same.
    Constant(f32),
    /// Even over `-bound..bound`.
    Uniform {
        /// The bound.
        bound: f32,
    },
    /// Normal with mean 0, after so many zeros.
    Normal {
        /// The zeros.
        zeros: usize,
        /// The deviation.
        deviation: f32,
    },
}

impl Initial {
    /// PyTorch's default for a layer's weight and bias: bounded by one over the root of its inputs.
    pub(crate) fn uniform_for_inputs(inputs: usize) -> Self {
        Self::Uniform {
            bound: 1.0 / (inputs as f32).sqrt(),
        }
    }

    /// Kaiming's for a layer that a ReLU follows, by its outputs: gradients keep their size on the way back.
    pub(crate) fn normal_for_outputs(outputs: usize) -> Self {
        Self::Normal {
            zeros: 0,
            deviation: (2.0 / outputs as f32).sqrt(),
        }
    }
}

/// The whole state vector. Every tensor has a stream of random numbers of its own, so that a layer's
/// first weights do not change when another layer does.
pub(crate) fn state(layout: &Layout, initial: &[Initial], seed: u64) -> Vec<f32> {
    let mut state = vec![0.0; layout.len()];
    for (i, (tensor, initial)) in layout.tensors.iter().zip(initial).enumerate() {
        let numbers = &mut state[tensor.range.clone()];
        match *initial {
            Initial::Constant(value) => numbers.fill(value),
            Initial::Uniform { bound } => {
                let mut stream = Stream::new(seed ^ DOMAIN, i as u64);
                let mut draw = || (stream.unit_f32() * 2.0 - 1.0) * bound;
                let drawn = std::iter::repeat_with(&mut draw).take(numbers.len());
                numbers.copy_from_slice(&tensor.arrange_drawn(drawn.collect()));
            }
            Initial::Normal { zeros, deviation } => {
                let mut stream = Stream::new(seed ^ DOMAIN, i as u64);
                for pair in numbers[zeros..].chunks_mut(2) {
                    let drawn = normal_pair(&mut stream).map(|x| x * deviation);
                    pair.copy_from_slice(&drawn[..pair.len()]);
                }
            }
        }
    }
    state
}

/// Two numbers of the normal distribution (Marsaglia's polar method): a point of the unit disc, tried until there is one,
/// and moved outwards.
fn normal_pair(stream: &mut Stream) -> [f32; 2] {
    loop {
        let point = [(); 2].map(|()| f64::from(stream.unit_f32()) * 2.0 - 1.0);
        let square = point[0] * point[0] + point[1] * point[1];
        if square > 0.0 && square < 1.0 {
            let factor = (-2.0 * ln(square) / square).sqrt();
            return point.map(|x| (x * factor) as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_the_moments_of_the_distribution() {
        let mut stream = Stream::new(3, 4);
        let drawn: Vec<f64> = (0..50_000)
            .flat_map(|_| normal_pair(&mut stream))
            .map(f64::from)
            .collect();
        let moment = |power| drawn.iter().map(|x| x.powi(power)).sum::<f64>() / drawn.len() as f64;
        for (power, expected, near) in [
            (1, 0.0, 0.02),
            (2, 1.0, 0.02),
            (3, 0.0, 0.05),
            (4, 3.0, 0.1),
        ] {
            let found = moment(power);
            assert!((found - expected).abs() < near, "{power}: {found}");
        }
    }
}
