//! The one thing that is wanted of EXIF: which way is up.

use crate::Orientation;

const ORIENTATION: u16 = 0x0112;

/// The orientation in a TIFF block of EXIF. Anything that cannot be read leaves the picture as it is, as viewers do.
pub(crate) fn orientation(exif: &[u8]) -> Orientation {
    let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    find(tiff)
        .and_then(Orientation::from_exif)
        .unwrap_or(Orientation::Upright)
}

/// The value of the orientation tag in the first directory.
fn find(tiff: &[u8]) -> Option<u16> {
    let big = match tiff.get(..4)? {
        b"II*\0" => false,
        b"MM\0*" => true,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    };
    let offset = tiff.get(4..8)?.try_into().ok()?;
    let start = if big {
        u32::from_be_bytes(offset)
    } else {
        u32::from_le_bytes(offset)
    } as usize;
    let entries = usize::from(short(start)?);
    (0..entries)
        .map(|entry| start.saturating_add(2 + 12 * entry))
        .find(|&at| short(at) == Some(ORIENTATION))
        .and_then(|at| short(at.checked_add(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn little(value: u16) -> Vec<u8> {
        let mut tiff = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
        tiff.extend(value.to_le_bytes());
        tiff.extend([0; 6]);
        tiff
    }

    fn big(value: u16) -> Vec<u8> {
        let mut tiff = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".to_vec();
        tiff.extend(value.to_be_bytes());
        tiff.extend([0; 6]);
        tiff
    }

    #[test]
    fn both_byte_orders_are_read() {
        for value in 1..=8 {
            let expected = Orientation::from_exif(value).unwrap();
            assert_eq!(orientation(&little(value)), expected);
            assert_eq!(orientation(&big(value)), expected);
        }
    }

    #[test]
    fn values_that_do_not_exist_leave_the_picture_as_it_is() {
        for value in [0, 9, 65_535] {
            assert_eq!(orientation(&little(value)), Orientation::Upright);
        }
    }

    #[test]
    fn a_block_that_is_cut_or_points_outside_is_no_orientation() {
        let whole = little(6);
        for length in 0..19 {
            assert_eq!(
                orientation(&whole[..length]),
                Orientation::Upright,
                "{length}"
            );
        }
        let mut outside = whole;
        outside[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(orientation(&outside), Orientation::Upright);
    }
}
