//! Group-norm and layer-norm: every row is normalised by itself.

use super::chain::{Backward, Forward, Layer};
use super::pass::Pass;
use super::planner::Planner;
use super::pointwise::Pointwise;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{GROUP_NORM, Kernel};
use crate::launch::Launch;
use crate::memory::{DeviceSlice, Plain};
use lockstep_nn::GroupNormPlaces;

arguments! {
    /// The mean and the inverse deviation of a group of a row.
    struct GroupStatistics {
        mean: f32,
        inverse: f32,
    }

    struct GroupNormForward {
        x: Pointer<f32>,
        y: Pointer<f32>,
        scale: Pointer<f32>,
        shift: Pointer<f32>,
        statistics: Pointer<GroupStatistics>,
        rows: u32,
        groups: u32,
        channels: u32,
        pixels: u32,
        epsilon: f64,
        then: Pointwise,
    }

    struct GroupNormInputGradient {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        dx: Pointer<f32>,
        scale: Pointer<f32>,
        statistics: Pointer<GroupStatistics>,
        rows: u32,
        groups: u32,
        channels: u32,
        pixels: u32,
        below: Pointwise,
    }

    struct GroupNormGradient {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        statistics: Pointer<GroupStatistics>,
        d_scale: Pointer<f32>,
        d_shift: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        each: u32,
        groups: u32,
        channels: u32,
        pixels: u32,
    }
}

// SAFETY: two numbers of 32 bits.
unsafe impl Plain for GroupStatistics {}

const FORWARD: Kernel<GroupNormForward> = Kernel::new(&GROUP_NORM, "group_norm_forward", 128);
const INPUT_GRADIENT: Kernel<GroupNormInputGradient> =
    Kernel::new(&GROUP_NORM, "group_norm_input_gradient", 128);
const GRADIENT: Kernel<GroupNormGradient> = Kernel::new(&GROUP_NORM, "group_norm_gradient", 256);

/// Groups of rows that a block has on the way there and on the way back, and channels whose chains a block has: as
/// `group_norm.cu` has them.
const FORTH: usize = 128 / 8;
const BACK: usize = 128 / 32;
const COLUMNS: usize = 8;

/// Groups of channels are brought to mean 0 and variance 1.
pub(crate) struct GroupNormLayer {
    norm: GroupNormPlaces,
    /// Rows here that a row of the batch is.
    each: usize,
    statistics: DeviceSlice<GroupStatistics>,
}

impl GroupNormLayer {
    pub(crate) fn new(norm: GroupNormPlaces, inputs: usize, planner: &mut Planner) -> Self {
        let each = inputs / (norm.channels * norm.pixels).max(1);
        Self {
            each,
            statistics: planner.keep(planner.rows * each * norm.groups),
            norm,
        }
    }
}

impl Layer for GroupNormLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let Self { norm, each, .. } = self;
        let rows = pass.rows * each;
        let arguments = GroupNormForward {
            x: x.pointer(),
            y: y.pointer(),
            scale: pass.values(&norm.scale),
            shift: pass.values(&norm.shift),
            statistics: self.statistics.pointer(),
            rows: rows as u32,
            groups: norm.groups as u32,
            channels: norm.channels as u32,
            pixels: norm.pixels as u32,
            epsilon: norm.epsilon,
            then,
        };
        let blocks = [(rows * norm.groups).div_ceil(FORTH), 1, 1];
        pass.push(Launch::new(&FORWARD, blocks, arguments));
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        let Self { norm, each, .. } = self;
        let [groups, channels, pixels] =
            [norm.groups, norm.channels, norm.pixels].map(|number| number as u32);
        if let Some(dx) = dx {
            let rows = pass.rows * each;
            let arguments = GroupNormInputGradient {
                x: x.pointer(),
                dy: dy.pointer(),
                dx: dx.pointer(),
                scale: pass.values(&norm.scale),
                statistics: self.statistics.pointer(),
                rows: rows as u32,
                groups,
                channels,
                pixels,
                below,
            };
            let blocks = [(rows * norm.groups).div_ceil(BACK), 1, 1];
            pass.push(Launch::new(&INPUT_GRADIENT, blocks, arguments));
        }
        if pass.is_trained(&norm.scale) {
            let arguments = GroupNormGradient {
                x: x.pointer(),
                dy: dy.pointer(),
                statistics: self.statistics.pointer(),
                d_scale: pass.gradient(&norm.scale),
                d_shift: pass.gradient(&norm.shift),
                stride: pass.stride(),
                lane_rows: pass.lanes.rows.pointer(),
                each: *each as u32,
                groups,
                channels,
                pixels,
            };
            let blocks = [norm.channels.div_ceil(COLUMNS), 1, pass.lanes.count()];
            pass.push(Launch::new(&GRADIENT, blocks, arguments));
        }
    }
}
