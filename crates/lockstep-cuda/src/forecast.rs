//! What a training needs of a GPU's memory, and for what.

use std::fmt;

/// Bytes of a GPU's memory that a training needs, beside the data set and what the driver takes for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryNeeded {
    /// Rows of batches: inputs, targets, scores and losses; those that the host has prepared ahead, too.
    pub batches: usize,
    /// The state vector, another one to score with, and the optimizer's vectors.
    pub parameters: usize,
    /// A gradient for each lane.
    pub gradients: usize,
    /// What layers keep of every row, and what they need while they compute.
    pub activations: usize,
}

impl MemoryNeeded {
    /// All of it.
    pub fn total(&self) -> usize {
        self.batches + self.parameters + self.gradients + self.activations
    }
}

impl fmt::Display for MemoryNeeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
        write!(
            f,
            "activations {}, gradients of the lanes {}, parameters and the optimizer's vectors {}, rows of batches {}",
            mb(self.activations),
            mb(self.gradients),
            mb(self.parameters),
            mb(self.batches)
        )
    }
}
