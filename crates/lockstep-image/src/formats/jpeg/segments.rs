//! The outline of a JPEG: segments between markers, and whether the last one is there.

/// Whether the end-of-image marker follows the picture's data.
///
/// Every cut file lacks it: inside of the data the marker's bytes cannot occur, and those of an embedded thumbnail lie
/// inside of a segment, which is stepped over as a whole.
pub(super) fn ends(bytes: &[u8]) -> bool {
    // Nearly every file ends right there, perhaps with zeros after it; the walk is for trailers.
    let padding = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    bytes[..bytes.len() - padding].ends_with(&[MARK, END]) || walk(bytes).is_some()
}

const MARK: u8 = 0xff;
const END: u8 = 0xd9;
const SCAN: u8 = 0xda;
const PROGRESSIVE: u8 = 0xc2;

/// Steps from marker to marker until the end.
fn walk(bytes: &[u8]) -> Option<()> {
    let mut at = 0;
    loop {
        match next_segment(bytes, &mut at)? {
            (END, _) => return Some(()),
            (SCAN, _) => skip_data(bytes, &mut at)?,
            _ => {}
        }
    }
}

/// Whether the picture's data is one scan of all components, so that pixels come out row by row.
pub(super) fn is_one_scan(bytes: &[u8], components: u8) -> bool {
    let mut at = 0;
    loop {
        match next_segment(bytes, &mut at) {
            Some((SCAN, segment)) => return segment.first() == Some(&components),
            None | Some((PROGRESSIVE, _)) => return false,
            _ => {}
        }
    }
}

/// Bytes of all coefficients of a picture, two each: of colours that are stored at half the width and height, a quarter
/// as many. Nothing if the header of the frame cannot be read.
pub(super) fn coefficient_bytes(bytes: &[u8]) -> Option<u64> {
    let mut at = 0;
    let frame = loop {
        match next_segment(bytes, &mut at)? {
            (SCAN | END, _) => return None,
            // Start of a frame; the codes between are of tables.
            (0xc0..=0xcf, segment)
                if !matches!(bytes[at - segment.len() - 3], 0xc4 | 0xc8 | 0xcc) =>
            {
                break segment;
            }
            _ => {}
        }
    };
    let side = |at: usize| {
        let &[high, low] = frame.get(at..)?.first_chunk()?;
        Some(u64::from(u16::from_be_bytes([high, low])))
    };
    let (height, width) = (side(1)?, side(3)?);
    let components = frame.get(6..)?.chunks_exact(3);
    let samples = components.map(|of| (u64::from(of[1] >> 4), u64::from(of[1] & 15)));
    let samples: Vec<(u64, u64)> = samples.collect();
    let across = 8 * samples
        .iter()
        .map(|of| of.0)
        .max()
        .filter(|&most| most > 0)?;
    let down = 8 * samples
        .iter()
        .map(|of| of.1)
        .max()
        .filter(|&most| most > 0)?;
    let units = width.div_ceil(across) * height.div_ceil(down);
    let blocks: u64 = samples.iter().map(|(across, down)| across * down).sum();
    Some(2 * 64 * units * blocks)
}

/// The code of the next marker and what its segment holds.
fn next_segment<'a>(bytes: &'a [u8], at: &mut usize) -> Option<(u8, &'a [u8])> {
    let code = next_marker(bytes, at)?;
    // Start and end of the image, restarts and the like stand alone.
    if matches!(code, 0x01 | 0xd0..=0xd9) {
        return Some((code, &[]));
    }
    let &[high, low] = bytes.get(*at..)?.first_chunk()?;
    let segment = bytes.get(*at + 2..*at + usize::from(u16::from_be_bytes([high, low])))?;
    *at += 2 + segment.len();
    Some((code, segment))
}

/// The code of the next marker; stray bytes before it are passed over, as decoders do.
fn next_marker(bytes: &[u8], at: &mut usize) -> Option<u8> {
    loop {
        *at += bytes.get(*at..)?.iter().position(|&byte| byte == MARK)?;
        *at += bytes[*at..].iter().position(|&byte| byte != MARK)?;
        *at += 1;
        match bytes[*at - 1] {
            0 => {}
            code => return Some(code),
        }
    }
}

/// Moves to the marker after compressed data, in which a mark is followed by zero or a restart.
fn skip_data(bytes: &[u8], at: &mut usize) -> Option<()> {
    loop {
        *at += bytes.get(*at..)?.iter().position(|&byte| byte == MARK)?;
        match bytes.get(*at + 1)? {
            0 | 0xd0..=0xd7 => *at += 2,
            &MARK => *at += 1,
            _ => return Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thumbnail with an end of its own in a segment, data with a stuffed mark and a restart.
    const WHOLE: &[u8] = &[
        0xff, 0xd8, 0xff, 0xe1, 0, 6, 0xff, 0xd8, 0xff, 0xd9, 0xff, 0xda, 0, 2, 1, 0xff, 0, 2,
        0xff, 0xd0, 3, 0xff, 0xd9,
    ];

    #[test]
    fn every_cut_is_seen() {
        assert!(ends(WHOLE));
        for length in 0..WHOLE.len() {
            // A cut right behind the thumbnail looks whole from its last bytes, and has no picture to decode.
            assert!(!ends(&WHOLE[..length]) || length == 10, "{length}");
        }
    }

    #[test]
    fn colours_of_half_the_size_have_a_quarter_of_the_coefficients() {
        let frame = |luma: u8| {
            let head = [0xff, 0xd8, 0xff, 0xc4, 0, 3, 7, 0xff, 0xc2, 0, 17, 8];
            let sides = [0, 32, 0, 64, 3];
            [&head[..], &sides, &[1, luma, 0, 2, 0x11, 0, 3, 0x11, 0]].concat()
        };
        assert_eq!(coefficient_bytes(&frame(0x11)), Some(2 * 3 * 64 * 32));
        assert_eq!(coefficient_bytes(&frame(0x22)), Some(2 * 64 * 32 * 3 / 2));
        for length in 0..frame(0x22).len() {
            assert_eq!(coefficient_bytes(&frame(0x22)[..length]), None, "{length}");
        }
    }

    #[test]
    fn what_follows_the_end_is_of_no_matter() {
        assert!(ends(&[WHOLE, &[0; 100]].concat()));
        assert!(ends(&[WHOLE, b"a trailer"].concat()));
        assert!(!ends(&[&WHOLE[..WHOLE.len() - 2], b"a trailer"].concat()));
    }
}
