//! Why an encoder cannot be built.

/// Why an encoder cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EncoderError {
    /// The configuration is not what `config.json` of a CLIP model says.
    #[error("the model's configuration cannot be used: {reason}")]
    Config {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A variant that is not there.
    #[error("there is no EfficientNet-Lite{found} here; 0, 1 and 2 are known")]
    Variant {
        /// The variant asked for.
        found: u32,
    },
    /// A tensor that the source of weights does not give.
    #[error("the model's tensor {name} cannot be used: {reason}")]
    Tensor {
        /// Which tensor.
        name: String,
        /// What the source of weights says.
        reason: String,
    },
    /// A tensor of another size.
    #[error(
        "the model's tensor {name} has {found} numbers, but the configuration asks for the shape {expected:?}"
    )]
    Shape {
        /// Which tensor.
        name: String,
        /// The shape that was asked for.
        expected: Vec<usize>,
        /// The numbers that came.
        found: usize,
    },
}
