//! Small IDX files whose classes can be learned.

use std::fs;
use std::path::Path;

/// The side of the images.
pub(crate) const SIDE: usize = 8;
/// The number of classes.
pub(crate) const CLASSES: usize = 4;

/// Writes images of noise, in each of which the rows of its class are brighter, and their labels.
pub(crate) fn write_set(images: &Path, labels: &Path, samples: usize, seed: u32) {
    let mut noise = seed.wrapping_mul(2_654_435_761).max(1);
    let mut draw = || {
        // xorshift32: any noise will do, as long as it is always the same.
        noise ^= noise << 13;
        noise ^= noise >> 17;
        noise ^= noise << 5;
        noise
    };
    let mut pixels = Vec::with_capacity(samples * SIDE * SIDE);
    let mut classes = Vec::with_capacity(samples);
    for _ in 0..samples {
        let class = draw() as usize % CLASSES;
        classes.push(class as u8);
        for row in 0..SIDE {
            let bright = if row * CLASSES / SIDE == class {
                120
            } else {
                0
            };
            pixels.extend((0..SIDE).map(|_| (bright + draw() % 120) as u8));
        }
    }
    fs::write(images, file(0x08, &[samples, SIDE, SIDE], &pixels)).unwrap();
    fs::write(labels, file(0x08, &[samples], &classes)).unwrap();
}

/// The bytes of an IDX file with elements of this type.
pub(crate) fn file(element: u8, shape: &[usize], elements: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, element, shape.len() as u8];
    for side in shape {
        bytes.extend((*side as u32).to_be_bytes());
    }
    bytes.extend(elements);
    bytes
}
