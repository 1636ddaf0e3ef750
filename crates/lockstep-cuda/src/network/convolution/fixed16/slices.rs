//! What comes before the products: the largest magnitude of each operand, and its slices.

use super::super::super::divisor::Divisor;
use super::super::super::pass::{Pass, PassKind};
use super::super::super::planner::Planner;
use super::matrix::{SlicedMatrix, SlicedWeights};
use super::{PIECE, WORD, Weights};
use crate::arguments::{Pointer, arguments};
use crate::kernels::{FIXED16_SLICES, Kernel};
use crate::launch::Launch;
use crate::memory::{DeviceSlice, Plain};
use lockstep_nn::Dims;

arguments! {
    /// What numbers are multiplied by before they are rounded, and sums of their products afterwards.
    pub(super) struct Fixed16Scale {
        by: f32,
        factor: f32,
    }

    struct LargestTask {
        from: Pointer<f32>,
        largest: Pointer<u32>,
        lane_rows: Pointer<u32>,
        width: u64,
        parts: Divisor,
        blocks: u32,
    }

    struct Fixed16Begin {
        rows: LargestTask,
        weights: LargestTask,
        zeroed: Pointer<u32>,
        zeros: u32,
    }

    struct SlicedRows {
        from: Pointer<f32>,
        largest: Pointer<u32>,
        lane_rows: Pointer<u32>,
        lanes: u32,
        upper: Pointer<u8>,
        lower: Pointer<u8>,
        scales: Pointer<Fixed16Scale>,
        channels: u32,
        pixel: Divisor,
        row: Divisor,
        words: u32,
        blocks: u32,
    }

    struct Fixed16Slice {
        rows: SlicedRows,
        weights: SlicedWeights,
    }
}

// SAFETY: two numbers, without a gap.
unsafe impl Plain for Fixed16Scale {}

/// Threads of a block.
pub(super) const THREADS: usize = 128;
const BEGIN: Kernel<Fixed16Begin> = Kernel::new(&FIXED16_SLICES, "fixed16_begin", THREADS as u32);
const SLICE: Kernel<Fixed16Slice> = Kernel::new(&FIXED16_SLICES, "fixed16_slice", THREADS as u32);

/// Words of rows that a thread slices.
const WORDS_EACH: usize = 4;

/// Numbers of a group that are enough for a block that looks for the largest, and blocks that are enough for all groups.
const ENOUGH_NUMBERS: usize = 8192;
const ENOUGH_BLOCKS: usize = 512;

/// Both slices of an operand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slices {
    pub(super) upper: DeviceSlice<u32>,
    pub(super) lower: DeviceSlice<u32>,
}

impl Slices {
    pub(super) fn new(words: usize, mut take: impl FnMut(usize) -> DeviceSlice<u32>) -> Self {
        Self {
            upper: take(words),
            lower: take(words),
        }
    }

    /// Both, as bytes.
    pub(super) fn pointers(&self) -> [Pointer<u8>; 2] {
        [self.upper, self.lower].map(|slice| Pointer::to(slice.address()))
    }
}

/// Pieces of so many numbers.
pub(super) fn pieces(numbers: usize) -> usize {
    numbers.div_ceil(PIECE)
}

/// Words of so many pieces.
pub(super) fn words(numbers: usize) -> usize {
    pieces(numbers) * (PIECE / WORD)
}

/// Largest magnitudes. They are 0 until they are looked for, and again when their scales have been noted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Largest(DeviceSlice<u32>);

impl Largest {
    /// Of so many groups of rows, and of the weights, which are looked for together with a layer's input.
    fn new(planner: &mut Planner, groups: usize) -> Self {
        let words = planner.constant(vec![0; (groups + 1).div_ceil(2)]).words();
        Self(words.first(groups + 1))
    }

    fn groups(&self) -> Pointer<u32> {
        self.0.pointer()
    }

    fn weights(&self) -> Pointer<u32> {
        let groups = self.0.len() - 1;
        self.0.part(groups..groups + 1).pointer()
    }

    /// What a kernel that is told makes 0.
    pub(super) fn zeroed(&self) -> (Pointer<u32>, u32) {
        (self.0.pointer(), self.0.len() as u32)
    }
}

/// Images that are sliced: a layer's input, or the gradient by its output.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlicedImages {
    shape: Dims,
    words_of_pixel: usize,
    pub(super) slices: Slices,
    /// Of each image.
    pub(super) scales: DeviceSlice<Fixed16Scale>,
    /// Of each lane or image.
    pub(super) largest: Largest,
}

impl SlicedImages {
    fn new(
        (shape, words_of_pixel): (Dims, usize),
        rows: usize,
        planner: &mut Planner,
        take: fn(&mut Planner, usize) -> DeviceSlice<u32>,
    ) -> Self {
        let words = rows * shape.pixels() * words_of_pixel;
        Self {
            shape,
            words_of_pixel,
            largest: Largest::new(planner, rows.max(planner.most_lanes())),
            scales: planner.keep(rows),
            slices: Slices::new(words, |words| take(planner, words)),
        }
    }

    /// Room for those of so many images, which stays.
    pub(super) fn kept(
        shape: Dims,
        words_of_pixel: usize,
        rows: usize,
        planner: &mut Planner,
    ) -> Self {
        Self::new((shape, words_of_pixel), rows, planner, Planner::keep)
    }

    /// The same while a layer computes.
    pub(super) fn borrowed(shape: Dims, rows: usize, planner: &mut Planner) -> Self {
        let shape = (shape, words(shape.channels));
        Self::new(shape, rows, planner, Planner::borrow)
    }

    /// The lanes whose rows have a scale in common: none in an evaluation, where every row has its own.
    fn lanes(pass: &Pass<'_>) -> (Pointer<u32>, usize) {
        match pass.kind {
            PassKind::Train => (pass.lanes.rows.pointer(), pass.lanes.count()),
            PassKind::Evaluate => (Pointer::null(), 0),
        }
    }

    fn find_largest(&self, pass: &Pass<'_>, from: DeviceSlice<f32>) -> LargestTask {
        let (lane_rows, lanes) = Self::lanes(pass);
        let (groups, rows) = match lanes {
            0 => (pass.rows, 1),
            lanes => (lanes, pass.lanes.longest),
        };
        let numbers = rows * self.shape.len();
        let parts = numbers.div_ceil(ENOUGH_NUMBERS);
        let parts = parts.min(ENOUGH_BLOCKS.div_ceil(groups));
        LargestTask {
            from: from.pointer(),
            largest: self.largest.groups(),
            lane_rows,
            width: self.shape.len() as u64,
            parts: Divisor::new(parts),
            blocks: (groups * parts) as u32,
        }
    }

    fn slice(&self, pass: &Pass<'_>, from: DeviceSlice<f32>) -> SlicedRows {
        let (lane_rows, lanes) = Self::lanes(pass);
        let [upper, lower] = self.slices.pointers();
        let of_row = self.shape.pixels() * self.words_of_pixel;
        let words = pass.rows * of_row;
        SlicedRows {
            from: from.pointer(),
            largest: self.largest.groups(),
            lane_rows,
            lanes: lanes as u32,
            upper,
            lower,
            scales: self.scales.pointer(),
            channels: self.shape.channels as u32,
            pixel: Divisor::new(self.words_of_pixel),
            row: Divisor::new(of_row),
            words: words as u32,
            blocks: words.div_ceil(THREADS * WORDS_EACH) as u32,
        }
    }
}

/// Appends what slices a layer's input and its weights. What is looked for on the way back is 0 then.
pub(super) fn before_forward(
    pass: &mut Pass<'_>,
    (images, x): (&SlicedImages, DeviceSlice<f32>),
    (matrix, weights): (&SlicedMatrix, &Weights),
    errors: &SlicedImages,
) {
    let numbers = weights.range.len();
    let parts = numbers.div_ceil(ENOUGH_NUMBERS).min(ENOUGH_BLOCKS);
    let of_weights = LargestTask {
        from: pass.values(&weights.range),
        largest: images.largest.weights(),
        lane_rows: Pointer::null(),
        width: numbers as u64,
        parts: Divisor::new(parts),
        blocks: parts as u32,
    };
    let (zeroed, zeros) = errors.largest.zeroed();
    let begin = Fixed16Begin {
        rows: images.find_largest(pass, x),
        weights: of_weights,
        zeroed,
        zeros,
    };
    push_begin(pass, begin);
    let slice = Fixed16Slice {
        rows: images.slice(pass, x),
        weights: matrix.slice(pass, weights, Some(images.largest.weights())),
    };
    push_slice(pass, slice);
}

/// Appends what slices the gradient by a layer's output, and the weights too if the gradient by the input is wanted.
pub(super) fn before_backward(
    pass: &mut Pass<'_>,
    (errors, dy): (&SlicedImages, DeviceSlice<f32>),
    (matrix, weights): (&SlicedMatrix, &Weights),
    wants_dx: bool,
) {
    let begin = Fixed16Begin {
        rows: errors.find_largest(pass, dy),
        ..Default::default()
    };
    push_begin(pass, begin);
    let of_weights = wants_dx.then(|| matrix.slice(pass, weights, None));
    let slice = Fixed16Slice {
        rows: errors.slice(pass, dy),
        weights: of_weights.unwrap_or_default(),
    };
    push_slice(pass, slice);
}

fn push_begin(pass: &mut Pass<'_>, begin: Fixed16Begin) {
    let blocks = begin.rows.blocks + begin.weights.blocks;
    pass.push(Launch::new(&BEGIN, [blocks as usize, 1, 1], begin));
}

fn push_slice(pass: &mut Pass<'_>, slice: Fixed16Slice) {
    let blocks = slice.rows.blocks + slice.weights.blocks;
    pass.push(Launch::new(&SLICE, [blocks as usize, 1, 1], slice));
}
