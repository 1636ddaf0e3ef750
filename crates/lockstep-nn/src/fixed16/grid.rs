//! Sliced images with margins of zeros, so that places around a pixel lie at the same distance from every pixel.
//!
//! A line is followed by its margin, which is that of the next line too, and an image by lines of margin, which are those
//! of the next image too. So all pixels, and the margins behind them, are *places* in one row; what a window sees of the
//! image lies where it would lie for any other place, and 16 places that follow each other are 16 rows of a left operand.

use super::block::DEPTH;
use super::cast::{bytes, bytes_mut};
use super::product::NOWHERE;
use super::scale::Scale;
use super::slices::slice;
use crate::dims::Dims;
use crate::layers::carved;
use crate::threads::{Threads, pieces, pieces_mut};

/// How images with margins lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct PixelGrid {
    image: Dims,
    /// Places of a line and lines of an image, with margins.
    pitch: usize,
    lines: usize,
    /// Places of margin before the first image.
    lead: usize,
    /// Places behind the last image that windows may see.
    tail: usize,
}

impl PixelGrid {
    /// A grid for windows of such a kernel, with so much margin above and before an image and as much below and behind it.
    /// None if the margin is as wide as the kernel: then a place does not stand for one window.
    pub(super) fn new(image: Dims, kernel: [usize; 2], margin: [usize; 2]) -> Option<Self> {
        if margin[0] >= kernel[0] || margin[1] >= kernel[1] {
            return None;
        }
        let pitch = image.width + margin[1];
        Some(Self {
            image,
            pitch,
            lines: image.height + margin[0],
            lead: margin[0] * pitch + margin[1],
            // What windows see, and what is read of whole blocks beyond it.
            tail: kernel[0] * pitch + kernel[1] + 4 * DEPTH,
        })
    }

    /// Places of so many images.
    pub(super) fn places(&self, images: usize) -> usize {
        images * self.lines * self.pitch
    }

    /// Places before the first.
    pub(super) fn lead(&self) -> usize {
        self.lead
    }

    /// Places of an image.
    pub(super) fn places_of_image(&self) -> usize {
        self.places(1)
    }

    /// From a place to what a window sees at a line and column of its kernel, in bytes of a slice that begins with the
    /// lead.
    pub(super) fn offset(&self, line: usize, column: usize) -> usize {
        (line * self.pitch + column) * self.image.channels
    }

    /// How far what a window sees may lie behind its place.
    pub(super) fn reach(&self, kernel: [usize; 2]) -> usize {
        (kernel[0] - 1) * self.pitch + kernel[1] - 1
    }

    /// Where places, from one on, lie among images of such a shape without margins: [`NOWHERE`] if they are none of their
    /// pixels.
    #[inline]
    pub(super) fn pixels(&self, first: usize, image: Dims, pixels: &mut [usize]) {
        let (mut line, mut column) = (first / self.pitch, first % self.pitch);
        let (number, within) = (line / self.lines, line % self.lines);
        line = within;
        let mut begin = number * image.len();
        for pixel in pixels {
            *pixel = match line < image.height && column < image.width {
                true => begin + (line * image.width + column) * image.channels,
                false => NOWHERE,
            };
            column += 1;
            if column == self.pitch {
                (line, column) = (line + 1, 0);
                if line == self.lines {
                    (begin, line) = (begin + image.len(), 0);
                }
            }
        }
    }

    /// Bytes of a slice of so many images.
    fn bytes(&self, images: usize) -> usize {
        (self.lead + self.places(images) + self.tail) * self.image.channels
    }

    /// Numbers of memory for both slices of so many images.
    pub(super) fn room(&self, images: usize) -> usize {
        2 * carved(self.bytes(images).div_ceil(4))
    }

    /// Slices images with their margins, each under its scale or all under one. Both slices begin with the lead.
    pub(super) fn slice<'a>(
        &self,
        threads: &Threads,
        x: &[f32],
        scales: &[Scale],
        room: &'a mut [f32],
    ) -> [&'a [i8]; 2] {
        let Dims {
            width, channels, ..
        } = self.image;
        let images = x.len() / self.image.len();
        let (upper, lower) = room.split_at_mut(room.len() / 2);
        let (lead, own) = (self.lead * channels, self.places_of_image() * channels);
        let slices = [&mut *upper, lower].map(|slice| {
            let slice = bytes_mut(slice);
            slice[..lead].fill(0);
            slice[lead + images * own..].fill(0);
            &mut slice[lead..lead + images * own]
        });
        let [of_upper, of_lower] = slices;
        let tiles = (
            pieces(x, self.image.len()),
            pieces_mut(of_upper, own),
            pieces_mut(of_lower, own),
        );
        let (line, padded) = (width * channels, self.pitch * channels);
        threads.each(tiles, |image, (x, upper, lower)| {
            let by = scales[image.min(scales.len() - 1)].by();
            let mut from = x.chunks_exact(line);
            let lines = upper
                .chunks_exact_mut(padded)
                .zip(lower.chunks_exact_mut(padded));
            for (upper, lower) in lines {
                let copied = from.next().unwrap_or_default();
                let (upper, margin) = upper.split_at_mut(copied.len());
                margin.fill(0);
                let (lower, margin) = lower.split_at_mut(copied.len());
                margin.fill(0);
                slice(copied, by, upper, lower);
            }
        });
        let (upper, lower) = room.split_at(room.len() / 2);
        [bytes(upper), bytes(lower)]
    }
}
