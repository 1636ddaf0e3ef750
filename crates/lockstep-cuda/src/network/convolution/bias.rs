//! The gradient of a convolution's bias: sums over the pixels of each image, and over the images of each lane.

use super::super::divisor::Divisor;
use super::super::pass::Pass;
use super::super::planner::Planner;
use super::Convolution;
use crate::arguments::{Pointer, arguments};
use crate::memory::DeviceSlice;

arguments! {
    /// The sums of every image, or of every lane if images have one pixel: a task of the blocks that begin a backward pass.
    pub(super) struct ImageSums {
        dy: Pointer<f32>,
        to: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        pixels: u32,
        channels: Divisor,
        groups: Divisor,
        blocks: u32,
    }

    /// The sums of every lane: a task of those that end it.
    pub(super) struct BiasSums {
        images: Pointer<f32>,
        to: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        channels: Divisor,
        lanes: u32,
        blocks: u32,
    }
}

/// Threads of a block that has one of the tasks, and channels that a block of the first has.
const THREADS: usize = 128;
const CHANNELS: usize = 32;

/// Room for the sums of every image.
#[derive(Debug, Clone, Copy)]
pub(super) struct BiasMemory(DeviceSlice<f32>);

impl BiasMemory {
    /// Borrows it.
    pub(super) fn new(convolution: &Convolution, planner: &mut Planner) -> Self {
        let numbers = match convolution.bias {
            Some(_) => planner.trained_rows * convolution.output.channels,
            None => 0,
        };
        Self(planner.borrow(numbers))
    }

    /// The two tasks. They have no blocks if there is no bias, or it does not learn; the second has none either if the first
    /// does all.
    pub(super) fn tasks(
        &self,
        pass: &Pass<'_>,
        convolution: &Convolution,
        dy: DeviceSlice<f32>,
    ) -> (ImageSums, BiasSums) {
        let channels = convolution.output.channels;
        let groups = channels.div_ceil(CHANNELS);
        let lanes = pass.lanes.count();
        let bias = convolution.bias.as_ref();
        let Some(bias) = bias.filter(|bias| pass.is_trained(bias)) else {
            return Default::default();
        };
        let images = ImageSums {
            dy: dy.pointer(),
            to: self.0.pointer(),
            stride: channels as u64,
            lane_rows: Pointer::null(),
            pixels: convolution.output.pixels() as u32,
            channels: Divisor::new(channels),
            groups: Divisor::new(groups),
            blocks: (pass.rows * groups) as u32,
        };
        if convolution.output.pixels() == 1 {
            let lanes = ImageSums {
                to: pass.gradient(bias),
                stride: pass.stride(),
                lane_rows: pass.lanes.rows.pointer(),
                blocks: (lanes * groups) as u32,
                ..images
            };
            return (lanes, BiasSums::default());
        }
        let sums = BiasSums {
            images: self.0.pointer(),
            to: pass.gradient(bias),
            stride: pass.stride(),
            lane_rows: pass.lanes.rows.pointer(),
            channels: Divisor::new(channels),
            lanes: lanes as u32,
            blocks: (lanes * channels).div_ceil(THREADS) as u32,
        };
        (images, sums)
    }
}
