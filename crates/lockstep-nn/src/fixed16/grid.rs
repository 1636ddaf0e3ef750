//! Sliced images with margins of zeros, so that what windows see lies at the same distance from every window.
//!
//! A line is followed by its margin, which is that of the next line too, and an image by lines of margin, which are those
//! of the next image too. So windows are *places* in one row, and 16 places that follow each other are 16 rows of a left
//! operand, wherever they begin; those that begin in a margin are computed as well, and dropped. Where windows move by
//! several lines, each of these lines lies in a part of its own, so that places of the next line follow again.

use super::block::{DEPTH, ROWS};
use super::cast::{bytes, bytes_mut};
use super::product::NOWHERE;
use super::scale::Scale;
use super::slices::slice;
use crate::dims::Dims;
use crate::layers::carved;
use crate::threads::{SharedMut, Threads};

/// How images with margins lie. Pairs are `[vertical, horizontal]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PixelGrid {
    image: Dims,
    /// Zeros above and before an image.
    lead: [usize; 2],
    /// Pixels from a place to the next.
    step: [usize; 2],
    /// Lines of places of an image, and places of a line.
    places: [usize; 2],
    /// Bytes behind the last image: zeros that windows see, and what is read of whole blocks beyond them.
    tail: usize,
    /// Bytes of a part of a slice.
    part: usize,
}

/// Some pixels of images without margins, of which each belongs to a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) image: Dims,
    /// The pixel of the first place.
    pub(super) first: [usize; 2],
    /// Pixels from one to the next.
    pub(super) step: [usize; 2],
}

impl PixelGrid {
    /// A grid for at most so many images, whose windows see so many lines of places below their own.
    pub(super) fn new(
        image: Dims,
        lead: [usize; 2],
        step: [usize; 2],
        places: [usize; 2],
        (images, below): (usize, usize),
    ) -> Self {
        let tail = (below + 2) * places[1] + 3 * DEPTH + ROWS;
        let of_place = step[1] * image.channels;
        let tail = tail * of_place + DEPTH;
        let part = images * places[0] * places[1] * of_place + tail;
        Self {
            image,
            lead,
            step,
            places,
            tail,
            part: part.next_multiple_of(DEPTH),
        }
    }

    /// Places of an image.
    pub(super) fn places_of_image(&self) -> usize {
        self.places[0] * self.places[1]
    }

    /// Places of a line.
    pub(super) fn pitch(&self) -> usize {
        self.places[1]
    }

    /// Bytes from a place to the next.
    pub(super) fn stride(&self) -> usize {
        self.step[1] * self.image.channels
    }

    /// The byte of a slice where a line and column begins, counted with the margins, of all images one below the other.
    pub(super) fn offset(&self, line: usize, column: usize) -> usize {
        line % self.step[0] * self.part
            + line / self.step[0] * self.pitch() * self.stride()
            + column * self.image.channels
    }

    /// The pixels of the target that places belong to, from one on: where they lie, or [`NOWHERE`].
    #[inline]
    pub(super) fn pixels(&self, first: usize, target: Target, pixels: &mut [usize]) {
        let Target { image, step, .. } = target;
        let [lines, pitch] = self.places.map(|count| count as u32);
        let (line, column) = (first as u32 / pitch, first as u32 % pitch);
        let (number, mut line) = ((line / lines) as usize, (line % lines) as usize);
        let mut begin = number * image.len();
        let mut column = column as usize;
        let mut y = target.first[0] + line * step[0];
        let mut x = target.first[1] + column * step[1];
        for pixel in pixels {
            *pixel = match y < image.height && x < image.width {
                true => begin + (y * image.width + x) * image.channels,
                false => NOWHERE,
            };
            (column, x) = (column + 1, x + step[1]);
            if column == self.places[1] {
                (line, column) = (line + 1, 0);
                (y, x) = (y + step[0], target.first[1]);
                if line == self.places[0] {
                    (begin, line, y) = (begin + image.len(), 0, target.first[0]);
                }
            }
        }
    }

    /// Numbers of memory for both slices.
    pub(super) fn room(&self) -> usize {
        2 * carved((self.step[0] * self.part).div_ceil(4))
    }

    /// Slices images with their margins, each under its scale.
    pub(super) fn slice<'a>(
        &self,
        threads: &Threads,
        x: &[f32],
        scales: &[Scale],
        room: &'a mut [f32],
    ) -> [&'a [i8]; 2] {
        let Dims {
            height,
            width,
            channels,
        } = self.image;
        let images = x.len() / self.image.len();
        let (upper, lower) = room.split_at_mut(room.len() / 2);
        let end = images * self.places_of_image() * self.stride();
        let slices = [&mut *upper, lower].map(|slice| {
            let slice = bytes_mut(slice);
            for part in slice.chunks_exact_mut(self.part).take(self.step[0]) {
                part[end..end + self.tail].fill(0);
            }
            SharedMut::new(slice)
        });
        let (length, lead) = (self.pitch() * self.stride(), self.lead[1] * channels);
        threads.each(0..images, |_, image| {
            let by = scales[image].by();
            let x = &x[image * self.image.len()..][..self.image.len()];
            let lines = self.places[0] * self.step[0];
            for line in 0..lines {
                let at = self.offset(image * lines + line, 0);
                // SAFETY: lines do not overlap.
                let [upper, lower] =
                    (slices.each_ref()).map(|x| unsafe { x.part(at..at + length) });
                let y = line.wrapping_sub(self.lead[0]);
                if y >= height {
                    upper.fill(0);
                    lower.fill(0);
                    continue;
                }
                let own = lead..lead + width * channels;
                let x = &x[y * own.len()..][..own.len()];
                for line in [&mut *upper, &mut *lower] {
                    line[..own.start].fill(0);
                    line[own.end..].fill(0);
                }
                slice(x, by, &mut upper[own.clone()], &mut lower[own]);
            }
        });
        let (upper, lower) = room.split_at(room.len() / 2);
        [bytes(upper), bytes(lower)]
    }
}
