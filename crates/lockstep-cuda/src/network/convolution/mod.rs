//! Convolutions, each in the order of sums that lockstep-nn has chosen for it.

mod bias;
mod direct;
mod grouped;
mod winograd;

use super::chain::Layer;
use super::planner::Planner;
use direct::DirectLayer;
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
    pub(crate) fn layer(self, method: ConvolutionMethod, planner: &mut Planner) -> Box<dyn Layer> {
        match method {
            ConvolutionMethod::Winograd => Box::new(WinogradLayer::new(self, planner)),
            ConvolutionMethod::Direct => Box::new(DirectLayer::new(self, planner)),
            ConvolutionMethod::Grouped { groups } => {
                Box::new(GroupedLayer::new(self, groups, planner))
            }
        }
    }
}
