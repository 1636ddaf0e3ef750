//! Why a model cannot be built.

use crate::dims::Dims;
use crate::layers::max_pool::MAX_AREA;

/// Why a model cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NnError {
    /// A layer cannot be built.
    #[error("layer {layer} {fault}")]
    Layer {
        /// Which layer.
        layer: String,
        /// What is wrong with it.
        fault: LayerFault,
    },
    /// A stack that does not end in logits.
    #[error("the last layer must be linear: its outputs are the scores")]
    NoLastLinear,
}

/// What is wrong with a layer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerFault {
    /// No outputs.
    #[error("has 0 outputs; it needs at least 1")]
    NoOutputs,
    /// Dropout with something that is not a share.
    #[error("drops with probability {0}; it must be at least 0 and below 1")]
    Probability(f32),
    /// More layers than dropout can tell apart.
    #[error("drops units after more than 255 other layers; put it before them")]
    TooManyLayers,
    /// A residual layer without a body.
    #[error("is residual without layers in its body; it needs at least 1")]
    EmptyBody,
    /// Two paths whose outputs cannot be added.
    #[error("adds its body's {body} to its shortcut's {shortcut}; they must be the same shape")]
    Paths {
        /// The shape of the body's output.
        body: Dims,
        /// The shape of the shortcut's.
        shortcut: Dims,
    },
    /// Windows without pixels, or that do not move.
    #[error(
        "has windows of {0} x {1} pixels, {2} x {3} apart; each number must be at least 1",
        kernel[0], kernel[1], stride[0], stride[1]
    )]
    NoWindow {
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels between windows.
        stride: [usize; 2],
    },
    /// Windows larger than what they slide over.
    #[error(
        "has windows of {0} x {1} pixels, but its input is {input} and has a margin of {2} x {3}; {4}",
        kernel[0], kernel[1], padding[0], padding[1], room_for_windows(input)
    )]
    TooSmall {
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels of margin on each side.
        padding: [usize; 2],
        /// The shape of the input.
        input: Dims,
    },
    /// A pool whose windows may lie outside the image, or are too large to be told apart.
    #[error(
        "pools windows of {0} x {1} pixels with a margin of {2} x {3}; the margin may be half a window, and a window \
         {most} pixels",
        kernel[0], kernel[1], padding[0], padding[1], most = MAX_AREA
    )]
    Pool {
        /// Pixels of a window.
        kernel: [usize; 2],
        /// Pixels of margin on each side.
        padding: [usize; 2],
    },
    /// Groups that do not part their channels.
    #[error("parts {channels} channels into {groups} groups; they must be parted evenly")]
    Groups {
        /// The groups asked for.
        groups: usize,
        /// The channels of its input or output.
        channels: usize,
    },
    /// A convolution of sequences over something else.
    #[error(
        "convolves sequences, and its input is {0}; use `conv2d`, or put \
         `{{ kind = \"unflatten\", shape = [channels, length] }}` before it to read a row of numbers as a sequence"
    )]
    NoSequence(Dims),
    /// Rows that cannot be read as this shape.
    #[error("reads rows as {shape}, which is {0} numbers, and its input is {input}", shape.len())]
    Unflatten {
        /// The shape asked for.
        shape: Dims,
        /// The shape of the input.
        input: Dims,
    },
    /// Tables that there are no inputs for, or that are empty.
    #[error(
        "has {tables} tables of vectors for the last numbers of {input}; each table needs vectors, and rows of \
         numbers as many as there are tables at least"
    )]
    Embedding {
        /// How many tables it has.
        tables: usize,
        /// The shape of the input.
        input: Dims,
    },
}

/// What makes room for windows that are larger than their input.
fn room_for_windows(input: &Dims) -> &'static str {
    match input.pixels() {
        1 => {
            "that is a row of numbers, not an image: put this layer before `flatten`, `linear` and `global-pool`"
        }
        _ => "use a smaller kernel, more padding, or fewer pools before it",
    }
}

impl LayerFault {
    /// The error of the layer with this name.
    pub(crate) fn of(self, layer: &str) -> NnError {
        NnError::Layer {
            layer: layer.to_owned(),
            fault: self,
        }
    }
}

impl NnError {
    /// The name of the layer that cannot be built, if it is one.
    pub fn layer(&self) -> Option<&str> {
        match self {
            Self::Layer { layer, .. } => Some(layer),
            Self::NoLastLinear => None,
        }
    }
}
