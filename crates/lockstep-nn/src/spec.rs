//! Layers as they are asked for, and as they were built.

use crate::dims::Dims;

/// A table of learned vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EmbeddingTable {
    /// Vectors. The first stands for what is not known, and begins as zeros.
    pub rows: usize,
    /// Numbers of a vector.
    pub width: usize,
}

/// One layer as asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum LayerSpec {
    /// A dense layer with so many outputs. An image is flattened before it.
    Linear {
        /// Number of outputs.
        out: usize,
    },
    /// `max(x, 0)`.
    Relu,
    /// `x` times the share of a standard normal distribution below `x`.
    Gelu,
    /// `x`, or a part of it below 0.
    LeakyRelu {
        /// What a number below 0 is multiplied by.
        slope: f64,
    },
    /// `x` times its sigmoid.
    Silu,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// Normalisation of every pixel over its channels; of a vector, over its numbers.
    LayerNorm,
    /// Normalisation of groups of channels over the image, row by row.
    GroupNorm {
        /// How many groups the channels are parted into.
        groups: usize,
    },
    /// Zeroes this share while training.
    Dropout {
        /// The share, in `0..1`.
        p: f64,
    },
    /// Batch normalisation of every channel.
    BatchNorm,
    /// A convolution. Sizes are `[vertical, horizontal]`.
    Conv2d {
        /// Output channels.
        out: usize,
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels from one window to the next.
        stride: [usize; 2],
        /// Zeros around the image, on each side.
        padding: [usize; 2],
        /// How many groups the channels are parted into; each output channel sees one of them.
        groups: usize,
        /// Whether a number a channel is added.
        bias: bool,
    },
    /// A convolution of sequences, which are images of one line.
    Conv1d {
        /// Output channels.
        out: usize,
        /// Numbers of a window.
        kernel: usize,
        /// Numbers from one window to the next.
        stride: usize,
        /// Zeros on each side of the sequence.
        padding: usize,
        /// How many groups the channels are parted into; each output channel sees one of them.
        groups: usize,
        /// Whether a number a channel is added.
        bias: bool,
    },
    /// The largest number of each window, channel by channel.
    MaxPool {
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels from one window to the next.
        stride: [usize; 2],
        /// Margin around the image, on each side, that never is the largest.
        padding: [usize; 2],
    },
    /// The mean of each window, channel by channel.
    AvgPool {
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels from one window to the next.
        stride: [usize; 2],
        /// Zeros around the image, on each side, that count.
        padding: [usize; 2],
    },
    /// The mean of the image, channel by channel.
    GlobalPool,
    /// The image as one vector, channel after channel, as PyTorch flattens.
    Flatten,
    /// A vector as an image of this shape, channel after channel, as PyTorch unflattens. A sequence is an image of one line.
    Unflatten {
        /// The shape.
        shape: Dims,
    },
    /// Learned vectors in place of the last inputs, which are places in tables; what comes before them goes on as it is.
    Embedding {
        /// The tables, one for each of those inputs.
        tables: Vec<EmbeddingTable>,
    },
    /// Two paths from the same input, added: `body(x) + shortcut(x)`.
    Residual {
        /// The one path; at least one layer.
        body: Vec<NamedLayer>,
        /// The other; the input as it is when there are no layers.
        shortcut: Vec<NamedLayer>,
    },
}

/// Names every kind of layer once: what is missing does not compile.
macro_rules! kinds {
    ($($kind:pat => $name:literal,)*) => {
        impl LayerSpec {
            /// The names of all kinds, as in a job file.
            pub const KINDS: &[&str] = &[$($name),*];

            /// The name of its kind.
            pub fn kind(&self) -> &'static str {
                match self {
                    $($kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    Self::Linear { .. } => "linear",
    Self::Relu => "relu",
    Self::Gelu => "gelu",
    Self::LeakyRelu { .. } => "leaky-relu",
    Self::Silu => "silu",
    Self::Sigmoid => "sigmoid",
    Self::Tanh => "tanh",
    Self::LayerNorm => "layer-norm",
    Self::GroupNorm { .. } => "group-norm",
    Self::Dropout { .. } => "dropout",
    Self::BatchNorm => "batch-norm",
    Self::Conv2d { .. } => "conv2d",
    Self::Conv1d { .. } => "conv1d",
    Self::MaxPool { .. } => "max-pool",
    Self::AvgPool { .. } => "avg-pool",
    Self::GlobalPool => "global-pool",
    Self::Flatten => "flatten",
    Self::Unflatten { .. } => "unflatten",
    Self::Embedding { .. } => "embedding",
    Self::Residual { .. } => "residual",
}

/// A layer and what it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedLayer {
    /// The prefix of its tensors' names.
    pub name: String,
    /// What it is.
    pub spec: LayerSpec,
}

impl NamedLayer {
    /// A layer of this name.
    pub fn new(name: impl Into<String>, spec: LayerSpec) -> Self {
        Self {
            name: name.into(),
            spec,
        }
    }

    /// Layers in a row, called `layers.0`, `layers.1` and so on, as in a PyTorch `Sequential`.
    pub fn stack(specs: impl IntoIterator<Item = LayerSpec>) -> Vec<Self> {
        let named = |(i, spec)| Self::new(format!("layers.{i}"), spec);
        specs.into_iter().enumerate().map(named).collect()
    }
}

/// One layer as it was built, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSummary {
    /// Its name, the prefix of its tensors' names.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// The shape of a row of its output.
    pub output: Dims,
    /// Parameters, running statistics not counted.
    pub parameters: usize,
}
