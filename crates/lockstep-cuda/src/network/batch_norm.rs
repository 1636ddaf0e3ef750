//! Batch-norm: three kernels on the way there and three on the way back, since all rows of a lane have to be seen before
//! any of them can be normalised, and every sum is one chain. Lanes of few rows need but one each way.

use super::chain::{Backward, Forward, Layer};
use super::pass::{Pass, PassKind};
use super::planner::Planner;
use super::pointwise::Pointwise;
use super::walk;
use crate::arguments::{Pointer, arguments};
use crate::kernels::{BATCH_NORM, BATCH_NORM_FEW, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use lockstep_nn::BatchNormPlaces;

arguments! {
    struct BatchNormObserve {
        x: Pointer<f32>,
        parts: Pointer<f64>,
        lane_rows: Pointer<u32>,
        pixels: u32,
        features: u32,
    }

    struct BatchNormFinish {
        parts: Pointer<f64>,
        scale: Pointer<f32>,
        lines: Pointer<f32>,
        d_mean: Pointer<f32>,
        d_variance: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        pixels: u32,
        features: u32,
        batch: u32,
        epsilon: f32,
    }

    struct BatchNormRunning {
        mean: Pointer<f32>,
        variance: Pointer<f32>,
        scale: Pointer<f32>,
        lines: Pointer<f32>,
        features: u32,
        epsilon: f32,
    }

    struct BatchNormForward {
        x: Pointer<f32>,
        y: Pointer<f32>,
        lines: Pointer<f32>,
        shift: Pointer<f32>,
        lane_rows: Pointer<u32>,
        rows: u32,
        pixels: u32,
        features: u32,
        relu: u32,
        then: Pointwise,
    }

    struct BatchNormSums {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        lines: Pointer<f32>,
        shift: Pointer<f32>,
        parts: Pointer<f64>,
        lane_rows: Pointer<u32>,
        pixels: u32,
        features: u32,
        relu: u32,
    }

    struct BatchNormGradient {
        parts: Pointer<f64>,
        lines: Pointer<f32>,
        slopes: Pointer<f32>,
        d_scale: Pointer<f32>,
        d_shift: Pointer<f32>,
        stride: u64,
        lane_rows: Pointer<u32>,
        pixels: u32,
        features: u32,
    }

    struct BatchNormBackward {
        x: Pointer<f32>,
        dy: Pointer<f32>,
        dx: Pointer<f32>,
        lines: Pointer<f32>,
        shift: Pointer<f32>,
        slopes: Pointer<f32>,
        lane_rows: Pointer<u32>,
        rows: u32,
        pixels: u32,
        features: u32,
        relu: u32,
        below: Pointwise,
    }

    struct BatchNormFewForward {
        finish: BatchNormFinish,
        forward: BatchNormForward,
    }

    struct BatchNormFewBackward {
        gradient: BatchNormGradient,
        backward: BatchNormBackward,
    }
}

const OBSERVE: Kernel<BatchNormObserve> = Kernel::new(&BATCH_NORM, "batch_norm_observe", 128);
const FINISH: Kernel<BatchNormFinish> = Kernel::new(&BATCH_NORM, "batch_norm_finish", 256);
const RUNNING: Kernel<BatchNormRunning> = Kernel::new(&BATCH_NORM, "batch_norm_running", 128);
const FORWARD: Kernel<BatchNormForward> = Kernel::new(&BATCH_NORM, "batch_norm_forward", 256);
const SUMS: Kernel<BatchNormSums> = Kernel::new(&BATCH_NORM, "batch_norm_sums", 128);
const GRADIENT: Kernel<BatchNormGradient> = Kernel::new(&BATCH_NORM, "batch_norm_gradient", 256);
const BACKWARD: Kernel<BatchNormBackward> = Kernel::new(&BATCH_NORM, "batch_norm_backward", 256);
const FEW_FORWARD: Kernel<BatchNormFewForward> =
    Kernel::new(&BATCH_NORM_FEW, "batch_norm_few_forward", 256);
const FEW_BACKWARD: Kernel<BatchNormFewBackward> =
    Kernel::new(&BATCH_NORM_FEW, "batch_norm_few_backward", 256);

/// Rows that are added up in single precision, and columns whose chains a block has: as `batch_norm.cu` has them.
const BLOCK: usize = 64;
const COLUMNS: usize = 4;

/// The most rows of a lane for one kernel each way, and columns that a block of it has: as `batch_norm_few.cu` has them.
const FEW: usize = 4 * BLOCK;
const FEW_COLUMNS: usize = 16;

/// Every column is brought to mean 0 and variance 1 over a lane's rows.
pub(crate) struct BatchNormLayer {
    norm: BatchNormPlaces,
    /// Rows here that a row of the batch is.
    pixels: usize,
    /// What is made of every column of every lane: mean, inverse deviation, factor.
    lines: DeviceSlice<f32>,
    /// What the blocks of rows come to.
    parts: DeviceSlice<f64>,
    /// What is taken off the gradient of every column of every lane.
    slopes: DeviceSlice<f32>,
}

impl BatchNormLayer {
    pub(crate) fn new(norm: BatchNormPlaces, inputs: usize, planner: &mut Planner) -> Self {
        let (features, lanes) = (norm.features, planner.most_lanes().max(1));
        let pixels = inputs / features.max(1);
        // A lane's last block may have less rows than the others.
        let blocks = planner.rows * pixels / BLOCK + lanes;
        Self {
            pixels,
            lines: planner.keep(lanes * 3 * features),
            parts: planner.borrow(blocks * 2 * features),
            slopes: planner.borrow(lanes * 2 * features),
            norm,
        }
    }

    /// Whether it normalises by what it sees.
    fn observes(&self, pass: &Pass<'_>) -> bool {
        pass.kind == PassKind::Train && !self.norm.frozen
    }

    /// Which rows are normalised together, how many of them there are at the most, and how often.
    fn lanes(&self, pass: &Pass<'_>) -> (Pointer<u32>, usize, usize) {
        match self.observes(pass) {
            true => {
                let lanes = &pass.lanes;
                (lanes.rows.pointer(), lanes.longest, lanes.count())
            }
            false => (Pointer::to(0), pass.rows, 1),
        }
    }

    /// Blocks of which every thread has a column of a block of rows.
    fn blocks_of_rows(&self, pass: &Pass<'_>) -> [usize; 3] {
        let (_, rows, lanes) = self.lanes(pass);
        let blocks = (rows * self.pixels).div_ceil(BLOCK);
        [(blocks * self.norm.features).div_ceil(128), 1, lanes]
    }

    /// Blocks of which each has the chains of some columns.
    fn chains(&self, pass: &Pass<'_>) -> [usize; 3] {
        let (_, _, lanes) = self.lanes(pass);
        [self.norm.features.div_ceil(COLUMNS), 1, lanes]
    }

    /// Blocks that walk over all rows.
    fn walk(&self, pass: &Pass<'_>, pointwise: &Pointwise) -> [usize; 3] {
        let (_, rows, lanes) = self.lanes(pass);
        let features = self.norm.features;
        let side_by_side = pointwise.side_by_side(features);
        walk::blocks([rows * self.pixels, features], side_by_side, lanes)
    }

    /// Whether the columns of a lane fit a block, for kernels that do all at once.
    fn has_few_rows(&self, pass: &Pass<'_>) -> bool {
        self.observes(pass) && pass.lanes.longest * self.pixels <= FEW
    }

    /// Blocks of which each has some columns of a lane.
    fn few_blocks(&self, pass: &Pass<'_>) -> [usize; 3] {
        [
            self.norm.features.div_ceil(FEW_COLUMNS),
            1,
            pass.lanes.count(),
        ]
    }

    /// What works out the lines of all columns from what was observed.
    fn finish(&self, pass: &Pass<'_>) -> BatchNormFinish {
        let norm = &self.norm;
        BatchNormFinish {
            parts: self.parts.pointer(),
            scale: pass.values(&norm.scale),
            lines: self.lines.pointer(),
            d_mean: pass.gradient(&norm.mean),
            d_variance: pass.gradient(&norm.variance),
            stride: pass.stride(),
            lane_rows: pass.lanes.rows.pointer(),
            pixels: self.pixels as u32,
            features: norm.features as u32,
            batch: pass.samples as u32,
            epsilon: norm.epsilon,
        }
    }

    /// Appends what works out the lines of all columns.
    fn find_lines(&self, pass: &mut Pass<'_>, x: DeviceSlice<f32>) {
        let norm = &self.norm;
        if !self.observes(pass) {
            let arguments = BatchNormRunning {
                mean: pass.values(&norm.mean),
                variance: pass.values(&norm.variance),
                scale: pass.values(&norm.scale),
                lines: self.lines.pointer(),
                features: norm.features as u32,
                epsilon: norm.epsilon,
            };
            let blocks = [norm.features.div_ceil(128), 1, 1];
            return pass.push(Launch::new(&RUNNING, blocks, arguments));
        }
        let finish = self.finish(pass);
        let observe = BatchNormObserve {
            x: x.pointer(),
            parts: self.parts.pointer(),
            lane_rows: finish.lane_rows,
            pixels: finish.pixels,
            features: finish.features,
        };
        pass.push(Launch::new(&OBSERVE, self.blocks_of_rows(pass), observe));
        pass.push(Launch::new(&FINISH, self.chains(pass), finish));
    }
}

impl Layer for BatchNormLayer {
    fn is_pointwise_done(&self) -> bool {
        true
    }

    fn forward(&self, pass: &mut Pass<'_>, Forward { x, y, then }: Forward) {
        let (lane_rows, _, _) = self.lanes(pass);
        let forward = BatchNormForward {
            x: x.pointer(),
            y: y.pointer(),
            lines: self.lines.pointer(),
            shift: pass.values(&self.norm.shift),
            lane_rows,
            rows: pass.rows as u32,
            pixels: self.pixels as u32,
            features: self.norm.features as u32,
            relu: self.norm.relu.into(),
            then,
        };
        if self.has_few_rows(pass) {
            let finish = self.finish(pass);
            let both = BatchNormFewForward { finish, forward };
            return pass.push(Launch::new(&FEW_FORWARD, self.few_blocks(pass), both));
        }
        self.find_lines(pass, x);
        pass.push(Launch::new(&FORWARD, self.walk(pass, &then), forward));
    }

    fn backward(&self, pass: &mut Pass<'_>, Backward { x, dy, dx, below }: Backward) {
        let Self { norm, .. } = self;
        let (lane_rows, _, _) = self.lanes(pass);
        let [pixels, features] = [self.pixels, norm.features].map(|number| number as u32);
        let gradient = BatchNormGradient {
            parts: self.parts.pointer(),
            lines: self.lines.pointer(),
            slopes: self.slopes.pointer(),
            d_scale: pass.gradient(&norm.scale),
            d_shift: pass.gradient(&norm.shift),
            stride: pass.stride(),
            lane_rows,
            pixels,
            features,
        };
        let backward = BatchNormBackward {
            x: x.pointer(),
            dy: dy.pointer(),
            dx: dx.map_or(Pointer::to(0), |dx| dx.pointer()),
            lines: self.lines.pointer(),
            shift: pass.values(&norm.shift),
            slopes: match self.observes(pass) {
                true => self.slopes.pointer(),
                false => Pointer::to(0),
            },
            lane_rows,
            rows: pass.rows as u32,
            pixels,
            features,
            relu: norm.relu.into(),
            below,
        };
        if self.has_few_rows(pass) {
            let both = BatchNormFewBackward { gradient, backward };
            return pass.push(Launch::new(&FEW_BACKWARD, self.few_blocks(pass), both));
        }
        if self.observes(pass) {
            let sums = BatchNormSums {
                x: x.pointer(),
                dy: dy.pointer(),
                lines: self.lines.pointer(),
                shift: pass.values(&norm.shift),
                parts: self.parts.pointer(),
                lane_rows,
                pixels,
                features,
                relu: norm.relu.into(),
            };
            pass.push(Launch::new(&SUMS, self.blocks_of_rows(pass), sums));
            pass.push(Launch::new(&GRADIENT, self.chains(pass), gradient));
        }
        if dx.is_some() {
            pass.push(Launch::new(&BACKWARD, self.walk(pass, &below), backward));
        }
    }
}
