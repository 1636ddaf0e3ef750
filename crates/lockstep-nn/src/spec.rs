//! Layers as they are asked for, and as they were built.
//!
//! A kind of layer is one file in `layers/`: its settings, its checks and tensors, its operations in ONNX, its module in
//! PyTorch and its computing. [`LayerSpec`] is the one list of all kinds, and [`LayerKind`] what each must say of itself.

use crate::NnError;
use crate::build::Site;
use crate::dims::Dims;
use crate::graph::{Flow, LayerGraph};
use crate::layers::{
    AvgPool, AvgPool1d, BatchNorm, Conv1d, Conv2d, Dropout, Embedding, Flatten, Gelu, GlobalPool,
    GroupNorm, LayerNorm, LeakyRelu, Linear, MaxPool, MaxPool1d, Relu, Residual, Sigmoid, Silu,
    Tanh, Unflatten,
};

/// All that must be known of a kind of layer, beside how it computes. Its implementer is its settings.
pub(crate) trait LayerKind {
    /// Appends the layer to a chain, after checking that it can follow what is there, and places its tensors in the
    /// layout, with the names that PyTorch has for them.
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError>;

    /// Writes the operations that it is in ONNX when nothing is trained.
    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow;

    /// The module that it is in PyTorch, as Python writes it. What is not of `torch.nn` is a class of `peer.py`.
    fn torch_module(&self) -> String;

    /// Whether its tensors belong to parts with names of their own, by which they are frozen or slowed.
    fn has_named_parts(&self) -> bool {
        false
    }

    /// A small example, and the shape of a row that it takes: what tests try with every kind.
    fn sample() -> (Dims, Self)
    where
        Self: Sized;
}

/// Lists every kind of layer once: those that have settings, and those that have none.
macro_rules! layers {
    (
        with settings { $($(#[doc = $doc:literal])* $name:literal $kind:ident,)* }
        without { $($(#[doc = $plain_doc:literal])* $plain_name:literal $plain:ident,)* }
    ) => {
        /// One layer as asked for.
        #[derive(Debug, Clone, PartialEq)]
        pub enum LayerSpec {
            $($(#[doc = $doc])* $kind($kind),)*
            $($(#[doc = $plain_doc])* $plain,)*
        }

        impl LayerSpec {
            /// The names of all kinds, as layers are listed by them.
            pub const KINDS: &[&str] = &[$($name,)* $($plain_name,)*];

            /// The name of its kind.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $name,)*
                    $(Self::$plain => $plain_name,)*
                }
            }

            /// A small example of every kind, and the shape of a row that it takes: for tests of whatever must know
            /// every kind.
            pub fn samples() -> Vec<(Dims, LayerSpec)> {
                let mut samples = Vec::new();
                $(let (input, layer) = $kind::sample(); samples.push((input, Self::$kind(layer)));)*
                $(let (input, $plain) = $plain::sample(); samples.push((input, Self::$plain));)*
                samples
            }

            /// What there is to know of its kind.
            pub(crate) fn definition(&self) -> &dyn LayerKind {
                match self {
                    $(Self::$kind(layer) => layer,)*
                    $(Self::$plain => &$plain,)*
                }
            }
        }
    };
}

layers! {
    with settings {
        /// A dense layer. An image is flattened before it.
        "linear" Linear,
        /// `x`, or a part of it below 0.
        "leaky-relu" LeakyRelu,
        /// Normalisation of groups of channels over the image, row by row.
        "group-norm" GroupNorm,
        /// Zeroes a share while training.
        "dropout" Dropout,
        /// A convolution.
        "conv2d" Conv2d,
        /// A convolution of sequences, which are images of one line.
        "conv1d" Conv1d,
        /// The largest number of each window, channel by channel.
        "max-pool" MaxPool,
        /// The same of sequences, and listed as the same.
        "max-pool" MaxPool1d,
        /// The mean of each window, channel by channel.
        "avg-pool" AvgPool,
        /// The same of sequences, and listed as the same.
        "avg-pool" AvgPool1d,
        /// A vector as an image, channel after channel, as PyTorch unflattens. A sequence is an image of one line.
        "unflatten" Unflatten,
        /// Learned vectors in place of the last inputs, which are places in tables; what comes before them goes on as it is.
        "embedding" Embedding,
        /// Two paths from the same input, added: `body(x) + shortcut(x)`.
        "residual" Residual,
    }
    without {
        /// `max(x, 0)`.
        "relu" Relu,
        /// `x` times the share of a standard normal distribution below `x`.
        "gelu" Gelu,
        /// `x` times its sigmoid.
        "silu" Silu,
        /// `1 / (1 + e^-x)`.
        "sigmoid" Sigmoid,
        /// The hyperbolic tangent.
        "tanh" Tanh,
        /// Normalisation of every pixel over its channels; of a vector, over its numbers.
        "layer-norm" LayerNorm,
        /// Batch normalisation of every channel.
        "batch-norm" BatchNorm,
        /// The mean of the image, channel by channel.
        "global-pool" GlobalPool,
        /// The image as one vector, channel after channel, as PyTorch flattens.
        "flatten" Flatten,
    }
}

impl LayerSpec {
    /// The module that it is in PyTorch, as Python writes it: `nn.GELU()`. What is not of `torch.nn` is a class of
    /// `peer.py`.
    pub fn torch_module(&self) -> String {
        self.definition().torch_module()
    }
}

/// How the weights of a layer are drawn at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstWeights {
    /// As PyTorch's module of this kind does.
    Default,
    /// Those of a convolution as torchvision's ResNets do: normal numbers, as wide as the square root of 2 by the number
    /// of outputs that an input has a part in.
    KaimingNormal,
}

/// A layer and what it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedLayer {
    /// The prefix of its tensors' names.
    pub name: String,
    /// What it is.
    pub spec: LayerSpec,
    /// How its weights are drawn.
    pub weights: FirstWeights,
}

impl NamedLayer {
    /// A layer of this name.
    pub fn new(name: impl Into<String>, spec: LayerSpec) -> Self {
        Self {
            name: name.into(),
            spec,
            weights: FirstWeights::Default,
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
