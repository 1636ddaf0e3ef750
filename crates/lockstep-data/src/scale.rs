//! Raw values to the numbers that a model sees: `(x - mean) / std` for each channel.
//!
//! The bits are the same on every machine: each number is one subtraction and one division of single
//! precision, which IEEE 754 defines to the last bit, whatever the vector unit. Channels lie beside
//! each other, so what is subtracted and divided by changes from number to number; it is laid out once
//! for a tile of whole pixels, and a line is done tile by tile with the machine's vectors.

use crate::layout::MOST_CHANNELS;

/// Numbers in a tile: a multiple of every possible number of channels and of the vectors' width.
const TILE: usize = 48;

const _: () = {
    let mut channels = 1;
    while channels <= MOST_CHANNELS {
        assert!(
            TILE.is_multiple_of(channels),
            "a tile must hold whole pixels"
        );
        channels += 1;
    }
};

/// Normalises lines of pixels.
pub(crate) struct Scale {
    channels: usize,
    shift: [f32; TILE],
    scale: [f32; TILE],
    /// What a raw 0 becomes.
    zero: [f32; TILE],
}

impl Scale {
    /// For pixels of so many channels; `of` gives what is subtracted from a channel and what it is
    /// then divided by.
    ///
    /// # Panics
    /// When there is no channel, or there are more than a decoded set can have.
    pub(crate) fn new(channels: usize, of: impl Fn(usize) -> (f32, f32)) -> Scale {
        assert!(
            (1..=MOST_CHANNELS).contains(&channels),
            "{channels} channels"
        );
        let of = |i| of(i % channels);
        Scale {
            channels,
            shift: std::array::from_fn(|i| of(i).0),
            scale: std::array::from_fn(|i| of(i).1),
            zero: std::array::from_fn(|i| (0.0 - of(i).0) / of(i).1),
        }
    }

    /// What is subtracted from a channel, and what it is divided by then.
    pub(crate) fn channel(&self, channel: usize) -> (f32, f32) {
        (self.shift[channel], self.scale[channel])
    }

    /// Normalises whole pixels in their order.
    #[inline(always)]
    pub(crate) fn forward<T: Copy + Into<f32>>(&self, raw: &[T], out: &mut [f32]) {
        let (tiles, rest) = out.as_chunks_mut::<TILE>();
        let (raw_tiles, raw_rest) = raw.as_chunks::<TILE>();
        for (out, raw) in tiles.iter_mut().zip(raw_tiles) {
            self.tile(raw, out);
        }
        self.tile(raw_rest, rest);
    }

    /// Normalises whole pixels from the last to the first.
    #[inline(always)]
    pub(crate) fn backward<T: Copy + Default + Into<f32>>(&self, raw: &[T], out: &mut [f32]) {
        let mut turned = [T::default(); TILE];
        for (out, raw) in out.chunks_mut(TILE).zip(raw.rchunks(TILE)) {
            match self.channels {
                1 => turn::<T, 1>(raw, &mut turned),
                2 => turn::<T, 2>(raw, &mut turned),
                3 => turn::<T, 3>(raw, &mut turned),
                _ => turn::<T, 4>(raw, &mut turned),
            }
            self.forward(&turned[..raw.len()], out);
        }
    }

    /// Whole pixels whose raw values are 0.
    #[inline(always)]
    pub(crate) fn zeros(&self, out: &mut [f32]) {
        for out in out.chunks_mut(TILE) {
            out.copy_from_slice(&self.zero[..out.len()]);
        }
    }

    #[inline(always)]
    fn tile<T: Copy + Into<f32>>(&self, raw: &[T], out: &mut [f32]) {
        let by = self.shift.iter().zip(&self.scale);
        for ((number, &value), (shift, scale)) in out.iter_mut().zip(raw).zip(by) {
            *number = (value.into() - shift) / scale;
        }
    }
}

/// Copies whole pixels of `C` channels from the last to the first.
#[inline(always)]
fn turn<T: Copy, const C: usize>(from: &[T], to: &mut [T; TILE]) {
    let pixels = from.as_chunks::<C>().0.iter().rev();
    for (to, from) in to.as_chunks_mut::<C>().0.iter_mut().zip(pixels) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_channels_and_pixels_is_normalised_by_channel_either_way() {
        for channels in 1..=MOST_CHANNELS {
            let of = |channel: usize| (0.3 * channel as f32, 1.0 + channel as f32);
            let scale = Scale::new(channels, of);
            for pixels in 0..60 {
                let raw: Vec<u8> = (0..channels * pixels).map(|i| (i * 7) as u8).collect();
                let expected: Vec<f32> = (0..raw.len())
                    .map(|i| (f32::from(raw[i]) - of(i % channels).0) / of(i % channels).1)
                    .collect();
                let mut out = vec![9.0; raw.len()];
                scale.forward(&raw, &mut out);
                assert_eq!(out, expected);
                scale.backward(&raw, &mut out);
                let turned: Vec<f32> = expected.chunks(channels).rev().flatten().copied().collect();
                assert_eq!(out, turned);
                scale.zeros(&mut out);
                let mut black = vec![9.0; raw.len()];
                scale.forward(&vec![0u8; raw.len()], &mut black);
                assert_eq!(out, black);
            }
        }
    }
}
