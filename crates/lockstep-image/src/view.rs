//! Which part of a picture is cut out: the middle.

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
    /// Of a part that lies in the middle of the picture, each with its width and height. The middle is found as
    /// torchvision finds it: half a pixel goes to the even side.
    pub(crate) fn new(whole: (u32, u32), part: (u32, u32)) -> Overlap {
        let (left, right, width) = overlap(whole.0, part.0);
        let (top, bottom, height) = overlap(whole.1, part.1);
        Overlap {
            source: (left, top),
            target: (right, bottom),
            size: (width, height),
        }
    }
}

/// Start in the picture, start in the part, and length of what they have in common, along one side.
fn overlap(whole: u32, part: u32) -> (u32, u32, u32) {
    let offset = half(i64::from(whole) - i64::from(part));
    let source = offset.clamp(0, i64::from(whole));
    let target = (-offset).clamp(0, i64::from(part));
    let length = (i64::from(whole) - source).min(i64::from(part) - target);
    (source as u32, target as u32, length as u32)
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
}
