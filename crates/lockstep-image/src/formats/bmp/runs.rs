//! Run-length coding of BMP: pairs of a count and a place in the palette, with escapes for moving on.

use super::{CUT, damaged};
use crate::ImageError;

/// Writes places in the palette, one a byte, in the order of the file's rows. What is jumped over is place 0.
pub(super) fn expand(
    data: &[u8],
    bits: usize,
    width: usize,
    places: &mut [u8],
) -> Result<(), ImageError> {
    places.fill(0);
    let height = places.len() / width;
    let (mut column, mut row) = (0, 0);
    let mut pairs = data;
    loop {
        let Some((&[count, value], rest)) = pairs.split_first_chunk::<2>() else {
            // Some writers end with the last row instead of saying so.
            return if row >= height || (row == height - 1 && column >= width) {
                Ok(())
            } else {
                Err(CUT)
            };
        };
        pairs = rest;
        let line = |row: usize| row.checked_mul(width).filter(|_| row < height);
        match (count, value) {
            (0, 0) => (column, row) = (0, row + 1),
            (0, 1) => return Ok(()),
            (0, 2) => {
                let (&[right, up], rest) = pairs.split_first_chunk::<2>().ok_or(CUT)?;
                pairs = rest;
                (column, row) = (column + usize::from(right), row + usize::from(up));
            }
            _ => {
                let length = usize::from(if count == 0 { value } else { count });
                let start = line(row)
                    .filter(|_| column + length <= width)
                    .ok_or_else(overrun)?;
                let run = &mut places[start + column..][..length];
                column += length;
                if count != 0 {
                    fill(run, bits, |_| value);
                } else {
                    // As they are, padded to an even number of bytes.
                    let bytes = (length * bits).div_ceil(8);
                    let raw = pairs.get(..bytes).ok_or(CUT)?;
                    pairs = pairs.get(bytes.next_multiple_of(2)..).unwrap_or_default();
                    fill(run, bits, |place| raw[place * bits / 8]);
                }
            }
        }
    }
}

/// Fills a run from bytes of one or two places each.
fn fill(run: &mut [u8], bits: usize, byte: impl Fn(usize) -> u8) {
    for (place, pixel) in run.iter_mut().enumerate() {
        let byte = byte(place);
        *pixel = match (bits, place % 2) {
            (8, _) => byte,
            (_, 0) => byte >> 4,
            _ => byte & 15,
        };
    }
}

fn overrun() -> ImageError {
    damaged("a run of pixels goes beyond its row")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(data: &[u8], bits: usize) -> Result<Vec<u8>, ImageError> {
        let mut places = vec![9; 12];
        expand(data, bits, 4, &mut places).map(|()| places)
    }

    #[test]
    fn runs_literals_and_jumps_are_expanded() {
        let data = [3, 7, 1, 8, 0, 0, 0, 3, 1, 2, 3, 0, 0, 2, 0, 1, 1, 5, 0, 1];
        assert_eq!(
            expanded(&data, 8).unwrap(),
            [7, 7, 7, 8, 1, 2, 3, 0, 0, 0, 0, 5]
        );
    }

    #[test]
    fn two_places_of_four_bits_alternate() {
        let data = [3, 0x12, 0, 0, 0, 3, 0x45, 0x60, 0, 0, 4, 0x77, 0, 1];
        assert_eq!(
            expanded(&data, 4).unwrap(),
            [1, 2, 1, 0, 4, 5, 6, 0, 7, 7, 7, 7]
        );
    }

    #[test]
    fn a_run_beyond_its_row_is_damage_and_a_missing_end_is_a_cut() {
        assert_eq!(expanded(&[5, 1, 0, 1], 8).unwrap_err().kind(), "damaged");
        assert_eq!(
            expanded(&[0, 2, 0, 3, 1, 1], 8).unwrap_err().kind(),
            "damaged"
        );
        assert_eq!(expanded(&[4, 1, 0, 0], 8).unwrap_err().kind(), "truncated");
        assert_eq!(expanded(&[0, 3, 1], 8).unwrap_err().kind(), "truncated");
    }
}
