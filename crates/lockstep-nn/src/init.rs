//! What a model's numbers are before training.

use crate::layout::Layout;
use lockstep_random::Stream;

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
}

impl Initial {
    /// PyTorch's default for a layer's weight and bias: bounded by one over the root of its inputs.
    pub(crate) fn uniform_for_inputs(inputs: usize) -> Self {
        Self::Uniform {
            bound: 1.0 / (inputs as f32).sqrt(),
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
        }
    }
    state
}
