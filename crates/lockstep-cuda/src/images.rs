//! Images in a GPU's memory as they are stored, and how a row of a batch shows one of them, or two.

use crate::arguments::{Pointer, arguments};
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::kernels::{IMAGES, Kernel};
use crate::launch::Launch;
use crate::memory::{Arena, DeviceMemory, DeviceSlice, Plain};
use crate::network::Divisor;
use crate::streams::Stream;
use std::ops::Range;

/// The most channels that an image may have.
const MOST_CHANNELS: usize = 4;

/// Threads of a block.
const THREADS: usize = 256;

/// Pixels that are worth a block of their own.
const PIXELS_OF_BLOCK: usize = 4 * THREADS;

/// Images of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Images<'a> {
    /// The channels of a pixel beside each other, pixel by pixel, line by line, image by image.
    pub values: ImageValues<'a>,
    /// Channels, height and width.
    pub shape: [usize; 3],
    /// Of each channel what is subtracted from its values, and what they are divided by then.
    pub scales: Vec<(f32, f32)>,
    /// The most that a value may become by a change of colours.
    pub most: f32,
    /// Whether the contrast of any may change.
    pub has_contrast: bool,
}

/// The values of images.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ImageValues<'a> {
    /// Bytes, which count as they are.
    Bytes(&'a [u8]),
    /// Numbers.
    Numbers(&'a [f32]),
}

impl ImageValues<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(values) => values.len(),
            Self::Numbers(values) => values.len(),
        }
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Bytes(values) => values.len(),
            Self::Numbers(values) => size_of_val(*values),
        }
    }
}

arguments! {
    /// How a row of a batch shows an image: a part of it as it is, unless more is said.
    pub struct SeenImage {
        is_mapped: u32,
        flip: u32,
        top: u32,
        left: u32,
        middle: [f32; 2],
        right: [f32; 2],
        down: [f32; 2],
        brightness: f32,
        contrast: f32,
        saturation: f32,
        erased_rows: [u32; 2],
        erased_columns: [u32; 2],
    }

    /// With what the image of a row is mixed.
    pub struct MixedImage {
        sample: u32,
        share: f32,
        is_over: u32,
        rows: [u32; 2],
        columns: [u32; 2],
        seen: SeenImage,
    }

    struct SeeImages {
        bytes: Pointer<u8>,
        numbers: Pointer<f32>,
        samples: Pointer<u32>,
        seen: Pointer<SeenImage>,
        x: Pointer<f32>,
        channels: u32,
        height: u32,
        width: u32,
        line: Divisor,
        shift: [f32; 4],
        scale: [f32; 4],
        most: f32,
    }

    struct MixImages {
        images: SeeImages,
        mixed: Pointer<MixedImage>,
    }
}

// SAFETY: numbers of 32 bits.
unsafe impl Plain for SeenImage {}
// SAFETY: as above.
unsafe impl Plain for MixedImage {}

const SEE_IMAGES: Kernel<SeeImages> = Kernel::new(&IMAGES, "see_images", THREADS as u32);
const MIX_IMAGES: Kernel<MixImages> = Kernel::new(&IMAGES, "mix_images", THREADS as u32);

/// An image that is interpolated between its pixels, in other colours.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageMap {
    /// The place in the image, `[across, down]` in pixels from its corner, of the middle of what is seen.
    pub middle: [f32; 2],
    /// How that place moves for a pixel to the right.
    pub right: [f32; 2],
    /// The same for one down.
    pub down: [f32; 2],
    /// What values are multiplied by.
    pub brightness: f32,
    /// How far they are from the mean grey then, in the place of 1.
    pub contrast: f32,
    /// How far they are from the grey of their pixel then, in the place of 1.
    pub saturation: f32,
    /// Rows and columns that are black.
    pub erased: Option<[Range<usize>; 2]>,
}

impl SeenImage {
    /// As many rows and columns as the image has, from these on; they may lie before it. What lies outside is black.
    pub fn part([top, left]: [isize; 2], flip: bool) -> Self {
        // The kernel adds them to rows and columns, which wraps around.
        let wrapped = |place: isize| place as i32 as u32;
        Self {
            flip: u32::from(flip),
            top: wrapped(top),
            left: wrapped(left),
            ..Self::default()
        }
    }

    /// By a map.
    pub fn mapped(map: &ImageMap) -> Self {
        let erased = map.erased.clone().unwrap_or_default();
        let [rows, columns] = erased.map(|range| [range.start as u32, range.end as u32]);
        Self {
            is_mapped: 1,
            middle: map.middle,
            right: map.right,
            down: map.down,
            brightness: map.brightness,
            contrast: map.contrast,
            saturation: map.saturation,
            erased_rows: rows,
            erased_columns: columns,
            ..Self::default()
        }
    }
}

impl MixedImage {
    /// With this share of another sample's values, as it is seen.
    pub fn blended(sample: u32, seen: SeenImage, share: f32) -> Self {
        Self {
            sample,
            share,
            seen,
            ..Self::default()
        }
    }

    /// With these rows and columns of another sample, as it is seen, over the first.
    pub fn over(sample: u32, seen: SeenImage, part: [Range<usize>; 2]) -> Self {
        let [rows, columns] = part.map(|range| [range.start as u32, range.end as u32]);
        Self {
            sample,
            is_over: 1,
            rows,
            columns,
            seen,
            ..Self::default()
        }
    }
}

/// Where images lie in a GPU's memory, and how they become rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageMemory {
    /// One of the two is empty.
    bytes: DeviceSlice<u8>,
    numbers: DeviceSlice<f32>,
    shape: [usize; 3],
    scales: [(f32, f32); MOST_CHANNELS],
    most: f32,
    has_contrast: bool,
}

impl ImageMemory {
    /// Brings images to a GPU. Their number is that of all of `values`.
    pub(crate) fn new(gpu: &Gpu, images: &Images<'_>) -> Result<(DeviceMemory, Self), CudaError> {
        let [channels, height, width] = images.shape;
        let wrong = |what, found: usize, expected: String| {
            Err(CudaError::Mismatch {
                what,
                found: found.to_string(),
                expected,
            })
        };
        if !(1..=MOST_CHANNELS).contains(&channels) {
            let expected = format!("1 to {MOST_CHANNELS}");
            return wrong("the channels of an image", channels, expected);
        }
        let numbers = images.values.len();
        if !numbers.is_multiple_of((channels * height * width).max(1)) {
            let expected = format!("whole images of {channels} x {height} x {width}");
            return wrong("the numbers of all images", numbers, expected);
        }
        if images.scales.len() != channels {
            let (found, expected) = (images.scales.len(), channels.to_string());
            return wrong("the scales of an image's channels", found, expected);
        }
        let memory = DeviceMemory::new(&gpu.device, images.values.bytes(), "the data set")?;
        let mut arena = Arena::new(memory.address());
        let stream = Stream::new(&gpu.device)?;
        let mut own = Self {
            bytes: arena.take(0),
            numbers: arena.take(0),
            shape: images.shape,
            scales: [(0.0, 1.0); MOST_CHANNELS],
            most: images.most,
            has_contrast: images.has_contrast,
        };
        own.scales[..channels].copy_from_slice(&images.scales);
        match images.values {
            ImageValues::Bytes(values) => {
                own.bytes = arena.take(values.len());
                memory.write(&stream, own.bytes, values)?;
            }
            ImageValues::Numbers(values) => {
                own.numbers = arena.take(values.len());
                memory.write(&stream, own.numbers, values)?;
            }
        }
        Ok((memory, own))
    }

    /// Numbers of an image.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        (self.bytes.len() + self.numbers.len()) / self.len().max(1)
    }

    /// What makes the inputs of a batch, of each row of which it is said which sample it is, how that is seen, and, if rows
    /// are mixed, with what.
    pub(crate) fn see(
        &self,
        (samples, seen, mixed): (
            DeviceSlice<u32>,
            DeviceSlice<SeenImage>,
            DeviceSlice<MixedImage>,
        ),
        x: DeviceSlice<f32>,
    ) -> impl Iterator<Item = Launch> {
        let [channels, height, width] = self.shape;
        // Contrast is about the mean of an image, which one block finds out.
        let parts = match self.has_contrast {
            true => 1,
            false => (height * width).div_ceil(PIXELS_OF_BLOCK),
        };
        let images = SeeImages {
            bytes: self.bytes.pointer_if_any(),
            numbers: self.numbers.pointer_if_any(),
            samples: samples.pointer(),
            seen: seen.pointer(),
            x: x.pointer(),
            channels: channels as u32,
            height: height as u32,
            width: width as u32,
            line: Divisor::new(width),
            shift: self.scales.map(|(shift, _)| shift),
            scale: self.scales.map(|(_, scale)| scale),
            most: self.most,
        };
        let grid = [seen.len(), parts, 1];
        let mix = (mixed.len() > 0).then(|| {
            let mixed = mixed.pointer();
            Launch::new(&MIX_IMAGES, grid, MixImages { images, mixed })
        });
        std::iter::once(Launch::new(&SEE_IMAGES, grid, images)).chain(mix)
    }
}
