//! Which part of a picture is looked at: the middle, or a part that the caller's random numbers choose.

/// Which part of a picture is cut out, and whether it is mirrored. The default is the middle, as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PictureView {
    /// Where the part lies: nothing for the middle, else how far from left and top, in parts of 2^32 of the room.
    pub at: Option<[u32; 2]>,
    /// Whether left and right change places.
    pub flip: bool,
}

impl PictureView {
    /// A view by three random numbers: how far from the left, how far from the top, mirrored or not. Every place that
    /// a part fits in is as likely as any other.
    pub fn random([left, top, flip]: [u32; 3]) -> PictureView {
        PictureView {
            at: Some([left, top]),
            flip: flip & 1 == 1,
        }
    }

    /// Left and top of a part of `part` pixels in a picture of `whole`, each width and height; negative where the part
    /// is larger. The middle is found as torchvision finds it: half a pixel goes to the even side.
    pub(crate) fn offset(&self, whole: (u32, u32), part: (u32, u32)) -> (i64, i64) {
        let room = (
            i64::from(whole.0) - i64::from(part.0),
            i64::from(whole.1) - i64::from(part.1),
        );
        match self.at {
            Some([left, top]) if room.0 >= 0 && room.1 >= 0 => {
                (choose(room.0, left), choose(room.1, top))
            }
            _ => (half(room.0), half(room.1)),
        }
    }

    /// Cuts the part out of RGB pixels of `whole` width and height into `out`, of `part` width and height; what lies
    /// outside is black.
    ///
    /// # Panics
    /// If a slice is not as long as its width and height say.
    pub fn cut(&self, pixels: &[u8], whole: (u32, u32), out: &mut [u8], part: (u32, u32)) {
        let bytes = |(width, height): (u32, u32)| width as usize * height as usize * 3;
        assert_eq!(
            (pixels.len(), out.len()),
            (bytes(whole), bytes(part)),
            "as many bytes as pixels ask for"
        );
        let offset = self.offset(whole, part);
        let frame = Overlap::new(whole, part, offset);
        if frame.size != part {
            out.fill(0);
        }
        let length = frame.size.0 as usize * 3;
        for row in 0..frame.size.1 as usize {
            let from = place(whole.0, frame.source, row);
            let to = place(part.0, frame.target, row);
            out[to..][..length].copy_from_slice(&pixels[from..][..length]);
        }
        self.mirror(out, part.0);
    }

    /// Mirrors RGB rows of this width if the view is mirrored.
    fn mirror(&self, pixels: &mut [u8], width: u32) {
        if self.flip && width > 0 {
            let (pixels, _) = pixels.as_chunks_mut::<3>();
            pixels
                .chunks_exact_mut(width as usize)
                .for_each(<[[u8; 3]]>::reverse);
        }
    }
}

/// Where the byte of a row's first pixel lies.
fn place(width: u32, (left, top): (u32, u32), row: usize) -> usize {
    ((top as usize + row) * width as usize + left as usize) * 3
}

/// What a part and a picture have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// Left and top in the picture.
    pub(crate) source: (u32, u32),
    /// Left and top in the part.
    pub(crate) target: (u32, u32),
    /// Width and height.
    pub(crate) size: (u32, u32),
}

impl Overlap {
    /// Of a part that lies at an offset in the picture.
    pub(crate) fn new(whole: (u32, u32), part: (u32, u32), offset: (i64, i64)) -> Overlap {
        let (left, right, width) = overlap(whole.0, part.0, offset.0);
        let (top, bottom, height) = overlap(whole.1, part.1, offset.1);
        Overlap {
            source: (left, top),
            target: (right, bottom),
            size: (width, height),
        }
    }
}

/// Start in the picture, start in the part, and length of what they have in common, along one side.
fn overlap(whole: u32, part: u32, offset: i64) -> (u32, u32, u32) {
    let source = offset.clamp(0, i64::from(whole));
    let target = (-offset).clamp(0, i64::from(part));
    let length = (i64::from(whole) - source).min(i64::from(part) - target);
    (source as u32, target as u32, length as u32)
}

/// One of `room + 1` places by a number in parts of 2^32.
fn choose(room: i64, number: u32) -> i64 {
    ((room + 1) * i64::from(number)) >> 32
}

/// Half of it, rounded as Python rounds: to the even neighbour. torchvision pads by rounding down.
fn half(room: i64) -> i64 {
    let down = room.div_euclid(2);
    if room < 0 {
        -((-room) / 2)
    } else {
        down + (room % 2) * (down % 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_where_python_rounds_it() {
        // int(round(room / 2.0)) in Python 3.
        let expected = [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (5, 2),
            (6, 3),
            (7, 4),
            (75, 38),
            (77, 38),
        ];
        for (room, middle) in expected {
            assert_eq!(half(room), middle, "{room}");
        }
    }

    #[test]
    fn every_place_is_reached_and_none_beyond() {
        assert_eq!(choose(0, u32::MAX), 0);
        assert_eq!(choose(9, 0), 0);
        assert_eq!(choose(9, u32::MAX), 9);
        let counts = (0..1000u32).fold([0; 10], |mut counts, step| {
            counts[choose(9, step * (u32::MAX / 1000)) as usize] += 1;
            counts
        });
        assert!(
            counts.iter().all(|&count| (99..=101).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_part_is_cut_where_the_numbers_say_and_mirrored() {
        let pixels: Vec<u8> = (0..12).flat_map(|pixel| [pixel; 3]).collect();
        let mut out = [0; 12];
        PictureView::random([0, u32::MAX, 0]).cut(&pixels, (4, 3), &mut out, (2, 2));
        assert_eq!(out, [4, 4, 4, 5, 5, 5, 8, 8, 8, 9, 9, 9]);
        PictureView::random([0, u32::MAX, 1]).cut(&pixels, (4, 3), &mut out, (2, 2));
        assert_eq!(out, [5, 5, 5, 4, 4, 4, 9, 9, 9, 8, 8, 8]);
    }

    #[test]
    fn what_lies_outside_is_black() {
        let mut out = [7; 27];
        PictureView::default().cut(&[1, 2, 3], (1, 1), &mut out, (3, 3));
        let mut expected = [0; 27];
        expected[12..15].copy_from_slice(&[1, 2, 3]);
        assert_eq!(out, expected);
    }
}
