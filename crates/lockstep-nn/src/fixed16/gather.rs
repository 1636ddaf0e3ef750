//! Windows of images as rows of a matrix.
//!
//! Each output of a convolution, and each number of its gradient by the input, is a sum over some places around a pixel:
//! `out[i][j] = sum over places of source[i * step + down][j * step + right] * weights`. A gather copies what the
//! outputs of some pixels see, place by place, into rows of bytes, with zeros where a place lies outside of the image.

use crate::dims::Dims;

/// Places that follow each other in a line of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Lines below the pixel.
    down: isize,
    /// Pixels to the right of it, of the first place.
    right: isize,
    count: usize,
}

/// What some outputs see of a source.
#[derive(Debug, Clone)]
pub(super) struct Gather {
    source: Dims,
    /// Pixels of the source from an output to the next.
    step: [usize; 2],
    /// Outputs from top to bottom and from left to right.
    outputs: [usize; 2],
    runs: Vec<Run>,
}

impl Gather {
    /// Places come with their lines below the pixel and the pixels to the right of it.
    pub(super) fn new(
        source: Dims,
        step: [usize; 2],
        outputs: [usize; 2],
        places: &[[isize; 2]],
    ) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for &[down, right] in places {
            match runs.last_mut() {
                Some(last) if last.down == down && last.right + last.count as isize == right => {
                    last.count += 1;
                }
                _ => runs.push(Run {
                    down,
                    right,
                    count: 1,
                }),
            }
        }
        Self {
            source,
            step,
            outputs,
            runs,
        }
    }

    /// Outputs of an image.
    pub(super) fn pixels(&self) -> usize {
        self.outputs[0] * self.outputs[1]
    }

    /// Numbers that an output sees.
    pub(super) fn depth(&self) -> usize {
        let places: usize = self.runs.iter().map(|run| run.count).sum();
        places * self.source.channels
    }

    /// The image, line and column of an output.
    pub(super) fn place(&self, pixel: usize) -> [usize; 3] {
        let (image, rest) = (pixel / self.pixels(), pixel % self.pixels());
        [image, rest / self.outputs[1], rest % self.outputs[1]]
    }

    /// Copies a part of what an output sees, from `first` on: as much as there is room for.
    #[inline]
    pub(super) fn copy(
        &self,
        source: [&[i8]; 2],
        [image, line, column]: [usize; 3],
        first: usize,
        mut to: [&mut [i8]; 2],
    ) {
        let Dims {
            height,
            width,
            channels,
        } = self.source;
        let mut skip = first;
        for run in &self.runs {
            let length = run.count * channels;
            if skip >= length {
                skip -= length;
                continue;
            }
            let room = to[0].len();
            if room == 0 {
                return;
            }
            let copied = (length - skip).min(room);
            let parts = to.map(|to| to.split_at_mut(copied));
            let [(upper, rest_upper), (lower, rest_lower)] = parts;
            to = [rest_upper, rest_lower];
            let y = (line * self.step[0]) as isize + run.down;
            // In numbers of a line of the source; negative to the left of it.
            let left = ((column * self.step[1]) as isize + run.right) * channels as isize;
            let left = left + skip as isize;
            skip = 0;
            if !(0..height as isize).contains(&y) {
                upper.fill(0);
                lower.fill(0);
                continue;
            }
            let row = (image * height + y as usize) * width * channels;
            let line = (width * channels) as isize;
            let before = (-left).clamp(0, copied as isize) as usize;
            let end = (line - left).clamp(before as isize, copied as isize) as usize;
            for (to, source) in [upper, lower].into_iter().zip(source) {
                to[..before].fill(0);
                to[end..].fill(0);
                if before < end {
                    let from = row + (left + before as isize) as usize;
                    to[before..end].copy_from_slice(&source[from..from + end - before]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_copies_what_an_output_sees_part_by_part() {
        let source = Dims::image(3, 4, 2);
        let number = |i: usize| (i + 1) as i8;
        let upper: Vec<i8> = (0..2 * source.len()).map(number).collect();
        let lower: Vec<i8> = upper.iter().map(|x| -x).collect();
        let places = [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 0], [0, 1], [1, 2]];
        let gather = Gather::new(source, [1, 2], [3, 2], &places);
        assert_eq!(
            (gather.runs.len(), gather.depth(), gather.pixels()),
            (3, 14, 6)
        );
        for pixel in 0..12 {
            let [image, line, column] = gather.place(pixel);
            assert_eq!((image * 3 + line) * 2 + column, pixel);
            let mut expected = Vec::new();
            for [down, right] in places {
                let (y, x) = (line as isize + down, 2 * column as isize + right);
                for channel in 0..2 {
                    let is_inside = (0..3).contains(&y) && (0..4).contains(&x);
                    let at = |y, x| ((image * 3 + y as usize) * 4 + x as usize) * 2 + channel;
                    expected.push(if is_inside { upper[at(y, x)] } else { 0 });
                }
            }
            for (first, length) in [(0, 14), (0, 3), (3, 6), (7, 7), (13, 1)] {
                let (mut a, mut b) = (vec![99; length], vec![99; length]);
                let place = [image, line, column];
                gather.copy([&upper, &lower], place, first, [&mut a, &mut b]);
                assert_eq!(a, expected[first..first + length]);
                assert!(a.iter().zip(b).all(|(&a, b)| a == -b));
            }
        }
    }
}
