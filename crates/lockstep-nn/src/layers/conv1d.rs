//! Convolution of sequences, which are images of one line.

use super::conv2d::Conv2d;
use crate::build::Site;
use crate::dims::Dims;
use crate::error::{LayerFault, NnError};
use crate::graph::{Flow, LayerGraph};
use crate::spec::LayerKind;

/// The settings of a convolution of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conv1d {
    /// Output channels.
    pub out: usize,
    /// Numbers of a window.
    pub kernel: usize,
    /// Numbers from one window to the next.
    pub stride: usize,
    /// Zeros on each side of the sequence.
    pub padding: usize,
    /// How many groups the channels are parted into; each output channel sees one of them.
    pub groups: usize,
    /// Whether a number a channel is added.
    pub bias: bool,
}

impl Conv1d {
    /// The same over images of one line.
    fn of_images(&self) -> Conv2d {
        Conv2d {
            out: self.out,
            kernel: [1, self.kernel],
            stride: [1, self.stride],
            padding: [0, self.padding],
            groups: self.groups,
            bias: self.bias,
        }
    }
}

impl LayerKind for Conv1d {
    fn build(&self, site: &mut Site<'_>) -> Result<(), NnError> {
        let input = site.chain.output();
        if input.height != 1 || input.width == 1 {
            return Err(LayerFault::NoSequence(input).of(site.name));
        }
        let weight = site.model.layout.tensors.len();
        self.of_images().build(site)?;
        // PyTorch's kernels of sequences have no height.
        site.model.layout.tensors[weight].shape.remove(2);
        Ok(())
    }

    fn write_graph(&self, flow: Flow, graph: &mut LayerGraph<'_>) -> Flow {
        self.of_images().write_graph(flow, graph)
    }

    fn torch_module(&self) -> String {
        self.of_images().torch_module()
    }

    fn sample() -> (Dims, Self) {
        let input = Dims::image(1, 9, 2);
        let layer = Self {
            out: 4,
            kernel: 3,
            stride: 2,
            padding: 1,
            groups: 2,
            bias: true,
        };
        (input, layer)
    }
}
