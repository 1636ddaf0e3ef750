//! Which way up a picture is stored, and turning it.

/// How stored pixels become an upright picture, in the order of EXIF's values 1 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orientation {
    /// As stored (1).
    Upright,
    /// Mirrored left to right (2).
    Mirrored,
    /// Turned by half (3).
    UpsideDown,
    /// Mirrored top to bottom (4).
    MirroredUpsideDown,
    /// Rows become columns (5).
    Transposed,
    /// Turned a quarter clockwise (6).
    QuarterRight,
    /// Rows become columns, then turned by half (7).
    TransposedUpsideDown,
    /// Turned a quarter anticlockwise (8).
    QuarterLeft,
}

impl Orientation {
    /// The orientation of an EXIF value from 1 to 8.
    pub fn from_exif(value: u16) -> Option<Orientation> {
        use Orientation::*;
        let all = [
            Upright,
            Mirrored,
            UpsideDown,
            MirroredUpsideDown,
            Transposed,
            QuarterRight,
            TransposedUpsideDown,
            QuarterLeft,
        ];
        all.get(usize::from(value).checked_sub(1)?).copied()
    }

    /// Whether width and height change places.
    pub fn swaps_sides(self) -> bool {
        use Orientation::*;
        matches!(
            self,
            Transposed | QuarterRight | TransposedUpsideDown | QuarterLeft
        )
    }

    /// Writes the pixels of a stored picture of `width` columns upright into `upright`, of the same length.
    pub(crate) fn turn<T: Copy>(self, stored: &[T], width: usize, upright: &mut [T]) {
        use Orientation::*;
        let height = stored.len() / width;
        let (right, down) = (width - 1, (height - 1) * width);
        // Where the first pixel comes from, and how far the next one in the row and in the column are.
        let (start, across, along) = match self {
            Upright => (0, 1, width as isize),
            Mirrored => (right, -1, width as isize),
            UpsideDown => (down + right, -1, -(width as isize)),
            MirroredUpsideDown => (down, 1, -(width as isize)),
            Transposed => (0, width as isize, 1),
            QuarterRight => (down, -(width as isize), 1),
            TransposedUpsideDown => (down + right, -(width as isize), -1),
            QuarterLeft => (right, width as isize, -1),
        };
        let columns = if self.swaps_sides() { height } else { width };
        let mut first = start as isize;
        for row in upright.chunks_exact_mut(columns) {
            let mut from = first;
            for pixel in row {
                *pixel = stored[from as usize];
                from += across;
            }
            first += along;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 3 x 2 pixels, `abc` over `def`, turned.
    fn turned(value: u16) -> String {
        let mut upright = [0; 6];
        let orientation = Orientation::from_exif(value).unwrap();
        orientation.turn(b"abcdef", 3, &mut upright);
        let columns = if orientation.swaps_sides() { 2 } else { 3 };
        upright
            .chunks(columns)
            .map(String::from_utf8_lossy)
            .collect::<Vec<_>>()
            .join("/")
    }

    #[test]
    fn every_orientation_is_turned_as_exif_means_it() {
        let expected = [
            "abc/def", "cba/fed", "fed/cba", "def/abc", "ad/be/cf", "da/eb/fc", "fc/eb/da",
            "cf/be/ad",
        ];
        for (value, expected) in (1..).zip(expected) {
            assert_eq!(turned(value), expected, "orientation {value}");
        }
    }
}
