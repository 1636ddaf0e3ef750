//! Products with a matrix that does not change.

use super::place::Placer;
use crate::arguments::{Pointer, arguments};
use crate::error::CudaError;
use crate::kernels::{ENCODER_DENSE, Kernel};
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use crate::network::{Divisor, MULTIPROCESSORS};
use lockstep_nn::encoder::{Activation, ClipParts, DenseParts};

arguments! {
    struct EncoderDense {
        x: Pointer<f32>,
        weight: Pointer<f32>,
        bias: Pointer<f32>,
        before: Pointer<f32>,
        y: Pointer<f32>,
        rows: u32,
        inputs: u32,
        outputs: u32,
        finish: u32,
        fours_of_input: u32,
        fours_of_weight: u32,
        across: Divisor,
    }

    struct EncoderPatches {
        images: Pointer<f32>,
        weight: Pointer<f32>,
        start: Pointer<f32>,
        y: Pointer<f32>,
        pictures: u32,
        hidden: u32,
        grid: Divisor,
        patches: Divisor,
        line: Divisor,
        depths: u32,
        image_line: u32,
        image: u32,
        fours_of_input: u32,
        fours_of_weight: u32,
        across: Divisor,
    }
}

/// Threads of a block that multiplies, and the numbers of a side of its tile; a narrow one has half as many across.
pub(super) const THREADS: u32 = 64;
pub(super) const TILE: usize = 64;
const NARROW: usize = 32;

const WIDE_KERNEL: Kernel<EncoderDense> =
    Kernel::new(&ENCODER_DENSE, "encoder_dense_wide", THREADS);
const NARROW_KERNEL: Kernel<EncoderDense> =
    Kernel::new(&ENCODER_DENSE, "encoder_dense_narrow", THREADS);
const PATCHES: Kernel<EncoderPatches> = Kernel::new(&ENCODER_DENSE, "encoder_patches", THREADS);

/// What becomes of a product.
#[derive(Debug, Clone, Copy)]
pub(super) enum Finish {
    /// Nothing.
    Keep,
    /// It is at least 0 and at most 6.
    Relu6,
    /// It is bent by a function.
    Bend(Activation),
    /// It is added to this.
    Add(DeviceSlice<f32>),
}

impl Finish {
    /// The number that the kernel has for it.
    fn number(self) -> u32 {
        match self {
            Self::Keep => 0,
            Self::Relu6 => 1,
            Self::Bend(Activation::Gelu) => 2,
            Self::Bend(Activation::QuickGelu) => 3,
            Self::Add(_) => 4,
        }
    }
}

/// Whether lines of so many numbers are copied by fours.
pub(super) fn in_fours(numbers: usize) -> u32 {
    numbers.is_multiple_of(4).into()
}

/// A dense layer.
pub(super) struct Product {
    weight: DeviceSlice<f32>,
    bias: DeviceSlice<f32>,
    inputs: usize,
    pub(super) outputs: usize,
}

impl Product {
    pub(super) fn new(parts: &DenseParts, placer: &mut Placer<'_>) -> Result<Self, CudaError> {
        Ok(Self {
            weight: placer.turned(&parts.weight, parts.inputs)?,
            bias: placer.numbers(&parts.bias)?,
            inputs: parts.inputs,
            outputs: parts.bias.len(),
        })
    }

    /// What computes so many rows.
    pub(super) fn launch(
        &self,
        rows: usize,
        x: DeviceSlice<f32>,
        y: DeviceSlice<f32>,
        finish: Finish,
    ) -> Launch {
        let Self {
            weight,
            bias,
            inputs,
            outputs,
        } = self;
        let down = rows.div_ceil(TILE);
        let wide = outputs.div_ceil(TILE);
        // Tiles that are half as wide keep more of a GPU busy.
        let is_wide = *outputs > NARROW && down * wide >= 2 * MULTIPROCESSORS;
        let (kernel, across) = match is_wide {
            true => (&WIDE_KERNEL, wide),
            false => (&NARROW_KERNEL, outputs.div_ceil(NARROW)),
        };
        let arguments = EncoderDense {
            x: x.pointer(),
            weight: weight.pointer(),
            bias: bias.pointer(),
            before: match finish {
                Finish::Add(before) => before.pointer(),
                _ => Pointer::null(),
            },
            y: y.pointer(),
            rows: rows as u32,
            inputs: *inputs as u32,
            outputs: *outputs as u32,
            finish: finish.number(),
            fours_of_input: in_fours(*inputs),
            fours_of_weight: in_fours(*outputs),
            across: Divisor::new(across),
        };
        Launch::new(kernel, [down * across, 1, 1], arguments)
    }
}

/// The product that makes tokens of patches.
pub(super) struct Patches {
    weight: DeviceSlice<f32>,
    start: DeviceSlice<f32>,
    hidden: usize,
    grid: usize,
    patch_side: usize,
    image_side: usize,
}

impl Patches {
    pub(super) fn new(parts: &ClipParts, placer: &mut Placer<'_>) -> Result<Self, CudaError> {
        let config = &parts.config;
        Ok(Self {
            weight: placer.numbers(&parts.patches)?,
            start: placer.numbers(&parts.start)?,
            hidden: config.hidden_size,
            grid: config.grid(),
            patch_side: config.patch_size,
            image_side: config.image_size,
        })
    }

    /// What makes the tokens of so many pictures.
    pub(super) fn launch(
        &self,
        pictures: usize,
        images: DeviceSlice<f32>,
        y: DeviceSlice<f32>,
    ) -> Launch {
        let (hidden, patches) = (self.hidden, self.grid * self.grid);
        let (line, image_line) = (3 * self.patch_side, 3 * self.image_side);
        let [down, across] = [(pictures * patches).div_ceil(TILE), hidden.div_ceil(TILE)];
        let arguments = EncoderPatches {
            images: images.pointer(),
            weight: self.weight.pointer(),
            start: self.start.pointer(),
            y: y.pointer(),
            pictures: pictures as u32,
            hidden: hidden as u32,
            grid: Divisor::new(self.grid),
            patches: Divisor::new(patches),
            line: Divisor::new(line),
            depths: (line * self.patch_side) as u32,
            image_line: image_line as u32,
            image: (image_line * self.image_side) as u32,
            fours_of_input: in_fours(line) & in_fours(image_line),
            fours_of_weight: in_fours(hidden),
            across: Divisor::new(across),
        };
        Launch::new(&PATCHES, [down * across, 1, 1], arguments)
    }
}
