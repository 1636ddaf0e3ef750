//! What a built network computes, layer by layer, for back ends that compute it on another device.
//!
//! Shapes are followed, tensors placed and methods chosen when a [`Model`](crate::Model) is built. A back end takes
//! these decisions from here instead of making them again: two places that decide would come to differ, and with them
//! the bits. The enum is matched without a default, so that the compiler names every back end that lacks a new layer.

use crate::dims::Dims;
use crate::factors::Factored;
use crate::fixed16::Precision;
use crate::layers::window::Window;
use std::ops::Range;

/// What one layer computes. Ranges are places in the state vector; shapes are of one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// `y = x W + b`.
    Dense {
        /// Where W and b lie.
        layer: Factored,
        /// How the products are computed.
        precision: Precision,
    },
    /// Every window of an image times the kernels, plus a bias.
    Convolution {
        /// In which order the products are summed.
        method: ConvolutionMethod,
        /// The windows.
        window: Window,
        /// The shape of the image.
        input: Dims,
        /// The shape of the output.
        output: Dims,
        /// The kernels: `[height, width, in / groups, out]`.
        weight: Range<usize>,
        /// A number for each output channel, if there is one.
        bias: Option<Range<usize>>,
    },
    /// Every feature is brought to mean 0 and variance 1 over a lane's rows, then scaled and shifted.
    BatchNorm(BatchNormPlaces),
    /// Groups of channels are brought to mean 0 and variance 1, each row by itself, then scaled and shifted.
    GroupNorm(GroupNormPlaces),
    /// The largest number of each window, channel by channel.
    MaxPool {
        /// The windows.
        window: Window,
        /// The shape of the image.
        input: Dims,
    },
    /// The mean of each window, channel by channel.
    AvgPool {
        /// The windows.
        window: Window,
        /// The shape of the image.
        input: Dims,
    },
    /// The mean of the image, channel by channel.
    GlobalPool {
        /// The shape of the image.
        input: Dims,
    },
    /// `max(x, 0)`.
    Relu,
    /// `x`, or a part of it below 0.
    LeakyRelu {
        /// The part.
        slope: f32,
    },
    /// `x` times the share of a standard normal distribution below `x`.
    Gelu,
    /// `x` times its sigmoid.
    Silu,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// Zeroes a share of the numbers while training, and scales up the rest.
    Dropout {
        /// A draw of 16 bits below this drops.
        threshold: u16,
        /// What is kept is multiplied by this.
        scale: f32,
        /// Tells the draws of several layers apart.
        layer: u8,
    },
    /// Rows of tables in place of the last inputs; what comes before those goes on as it is.
    Embedding {
        /// Numbers of a row of the input.
        inputs: usize,
        /// Numbers of a row of the output.
        outputs: usize,
        /// The tables.
        tables: Vec<TablePlace>,
    },
    /// Every row is a matrix, and is transposed.
    Transpose {
        /// Numbers of a line of the matrix that comes in.
        width: usize,
        /// Its lines.
        height: usize,
    },
    /// The input as it is, in memory that the layers after it may change.
    Copy,
    /// Two paths from the same input, added.
    Residual {
        /// The one path.
        body: OperationChain,
        /// The other; if there is none, the input itself is added.
        shortcut: Option<OperationChain>,
    },
}

/// A batch-norm.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNormPlaces {
    /// Numbers that are normalised apart from each other: channels, innermost in a row.
    pub features: usize,
    /// Whether what is below 0 becomes 0.
    pub relu: bool,
    /// Whether the running statistics are used in training too, and none are observed.
    pub frozen: bool,
    /// Added to the variance.
    pub epsilon: f32,
    /// What each feature is multiplied by.
    pub scale: Range<usize>,
    /// What is then added to it.
    pub shift: Range<usize>,
    /// The running mean.
    pub mean: Range<usize>,
    /// The running variance.
    pub variance: Range<usize>,
}

/// A group-norm or a layer-norm.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupNormPlaces {
    /// Channels, innermost in a row.
    pub channels: usize,
    /// How many groups they are parted into.
    pub groups: usize,
    /// Pixels that are normalised together. A row that has more of them is several rows.
    pub pixels: usize,
    /// Added to the variance.
    pub epsilon: f64,
    /// What each channel is multiplied by.
    pub scale: Range<usize>,
    /// What is then added to it.
    pub shift: Range<usize>,
}

/// A table of an embedding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlace {
    /// Its rows. What points beyond them means the last.
    pub rows: usize,
    /// Numbers of a row.
    pub width: usize,
    /// Which input points to its rows.
    pub input: usize,
    /// Where the row goes in the output.
    pub output: usize,
    /// The table, row by row.
    pub weight: Range<usize>,
}

/// How a convolution computes its products, and in which order it sums them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvolutionMethod {
    /// Window by window.
    Direct,
    /// In fixed point, where sums are exact and have no order.
    Fixed16,
    /// By Winograd's transformation of tiles.
    Winograd,
    /// Window by window, each output channel over one group of the input channels.
    Grouped {
        /// How many groups there are.
        groups: usize,
    },
}

/// Layers in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationChain {
    /// The shape of a row of the input.
    pub input: Dims,
    /// The layers.
    pub layers: Vec<BuiltLayer>,
    /// The first layer that learns. No gradient is needed below it, unless the chain's input needs one.
    pub first_trained: Option<usize>,
}

/// One layer of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltLayer {
    /// What it computes.
    pub operation: Operation,
    /// Whether it changes the newest activation where it lies, instead of making a new one.
    pub in_place: bool,
    /// The shape in which the next layer takes a row of its output.
    pub output: Dims,
}

impl OperationChain {
    /// The shape of a row of the output.
    pub fn output(&self) -> Dims {
        self.layers.last().map_or(self.input, |layer| layer.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, zoo};

    /// All operations, those inside of others too.
    fn flat<'a>(chain: &'a OperationChain, found: &mut Vec<&'a BuiltLayer>) {
        for layer in &chain.layers {
            found.push(layer);
            if let Operation::Residual { body, shortcut } = &layer.operation {
                flat(body, found);
                shortcut.iter().for_each(|shortcut| flat(shortcut, found));
            }
        }
    }

    #[test]
    fn the_operations_of_a_network_have_its_shapes_and_cover_its_state() {
        let input = Dims::image(12, 12, 3);
        let model = Model::new(&zoo::resnet18(4, true), input, 2).unwrap();
        let chain = model.operations();
        assert_eq!(
            (chain.input, chain.output().len()),
            (input, model.outputs())
        );
        assert_eq!(chain.first_trained, Some(0));
        let mut layers = Vec::new();
        flat(&chain, &mut layers);
        let mut ranges = Vec::new();
        let mut methods = Vec::new();
        for layer in layers {
            match &layer.operation {
                Operation::Dense { layer, .. } => ranges.extend([layer.weight(), layer.bias()]),
                Operation::Convolution {
                    weight,
                    bias,
                    method,
                    output,
                    ..
                } => {
                    assert_eq!(*output, layer.output);
                    methods.push(*method);
                    ranges.extend([Some(weight.clone()), bias.clone()].into_iter().flatten());
                }
                Operation::BatchNorm(norm) => {
                    let own = [&norm.scale, &norm.shift, &norm.mean, &norm.variance];
                    ranges.extend(own.map(Range::clone));
                }
                _ => {}
            }
        }
        ranges.sort_by_key(|range| range.start);
        let tensors = model.layout().tensors.iter();
        assert!(tensors.map(|tensor| &tensor.range).eq(&ranges));
        assert!(methods.contains(&ConvolutionMethod::Winograd));
        assert!(methods.contains(&ConvolutionMethod::Direct));
    }

    #[test]
    fn layers_in_place_and_what_follows_them_are_told_apart() {
        let model = Model::new(&zoo::mlp(&[8], 0.25, false, 4), Dims::image(2, 3, 1), 2).unwrap();
        let chain = model.operations();
        let in_place: Vec<bool> = chain.layers.iter().map(|layer| layer.in_place).collect();
        assert_eq!(in_place, [false, true, true, false]);
        let Operation::Dropout {
            threshold, scale, ..
        } = chain.layers[2].operation
        else {
            panic!("{chain:?}");
        };
        assert_eq!((threshold, scale), (16_384, 4.0 / 3.0));
    }
}
