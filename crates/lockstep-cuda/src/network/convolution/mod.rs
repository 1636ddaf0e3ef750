//! Convolutions, each in the order of sums that lockstep-nn has chosen for it.

mod bias;
mod direct;
mod fixed16;
mod grouped;
mod winograd;

use super::chain::Layer;
use super::divisor::check_count;
use super::planner::Planner;
use crate::error::CudaError;
use direct::DirectLayer;
pub(crate) use fixed16::Fixed16Layer;
use grouped::GroupedLayer;
use lockstep_nn::{ConvolutionMethod, Dims, Window};
use std::ops::Range;
use winograd::WinogradLayer;

/// What is convolved, and with what.
#[derive(Debug, Clone)]
pub(crate) struct Convolution {
    pub(crate) window: Window,
    /// The shapes of an image that comes in, and of one that comes out.
    pub(crate) input: Dims,
    pub(crate) output: Dims,
    /// The kernels, and a number for each output channel: where they lie in the state vector.
    pub(crate) weight: Range<usize>,
    pub(crate) bias: Option<Range<usize>>,
}

impl Convolution {
    /// The layer that computes it by a method.
    ///
    /// # Errors
    /// When there are more numbers than its kernels can count.
    pub(crate) fn layer(
        self,
        method: ConvolutionMethod,
        planner: &mut Planner,
    ) -> Result<Box<dyn Layer>, CudaError> {
        let numbers = self.input.len().max(self.output.len());
        check_count("a convolution of images", planner.rows, numbers)?;
        Ok(match method {
            ConvolutionMethod::Winograd => Box::new(WinogradLayer::new(self, planner)),
            ConvolutionMethod::Direct => Box::new(DirectLayer::new(self, planner)),
            ConvolutionMethod::Fixed16 => Box::new(Fixed16Layer::convolution(self, planner)?),
            ConvolutionMethod::Grouped { groups } => {
                Box::new(GroupedLayer::new(self, groups, planner))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_numbers_than_a_kernel_counts_are_refused() {
        let shape = Dims::image(512, 512, 16);
        let convolution = Convolution {
            window: Window {
                kernel: [3, 3],
                stride: [1, 1],
                padding: [1, 1],
            },
            input: shape,
            output: shape,
            weight: 0..9 * 256,
            bias: None,
        };
        let layer = |method, input, rows: usize| {
            let mut planner = Planner::new([rows; 2], [(1, rows); 2], [0; 2]);
            let convolution = Convolution {
                input,
                output: input,
                ..convolution.clone()
            };
            let layer = convolution.layer(method, &mut planner);
            layer.map(|_| ())
        };
        layer(ConvolutionMethod::Winograd, shape, 511).unwrap();
        let error = layer(ConvolutionMethod::Winograd, shape, 512);
        let error = error.unwrap_err().to_string();
        let expected = "a convolution of images of 4194304 numbers, 512 at a time";
        assert!(error.contains(expected), "{error}");
        // In fixed point, a channel is filled up to 16.
        let thin = Dims::image(512, 512, 1);
        layer(ConvolutionMethod::Fixed16, thin, 511).unwrap();
        let error = layer(ConvolutionMethod::Fixed16, thin, 512);
        assert!(error.is_err(), "more than is counted");
    }
}
