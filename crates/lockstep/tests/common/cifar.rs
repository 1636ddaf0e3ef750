//! Small files in the binary format of CIFAR-10 whose classes can be learned.

use std::fs;
use std::path::Path;

/// Height and width of the images.
const SIDE: usize = 32;

/// The names of the classes.
const CLASSES: [&str; 10] = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
];

/// Makes `folder` look as CIFAR-10's archive unpacks: five batches that share `train` images as evenly
/// as they can, a test batch of `test`, and the names of the classes.
///
/// Images are noise in which a band of lines is brighter in one colour; which band and colour is the
/// class. Mirroring and small shifts do not hide it.
pub(crate) fn write_folder(folder: &Path, train: usize, test: usize, seed: u32) {
    fs::create_dir_all(folder).unwrap();
    for batch in 0..5 {
        let images = (batch + 1) * train / 5 - batch * train / 5;
        let name = format!("data_batch_{}.bin", batch + 1);
        fs::write(folder.join(name), records(images, seed + batch as u32)).unwrap();
    }
    fs::write(folder.join("test_batch.bin"), records(test, seed + 5)).unwrap();
    fs::write(folder.join("batches.meta.txt"), CLASSES.join("\n") + "\n\n").unwrap();
}

/// Records of CIFAR-10: a label, then the image's red, green and blue.
pub(crate) fn records(images: usize, seed: u32) -> Vec<u8> {
    // Any numbers will do, as long as they are always the same: xorshift32.
    let mut noise = seed.wrapping_mul(2_654_435_761).max(1);
    let mut draw = || {
        noise ^= noise << 13;
        noise ^= noise >> 17;
        noise ^= noise << 5;
        noise
    };
    let mut bytes = Vec::with_capacity(images * (1 + 3 * SIDE * SIDE));
    for _ in 0..images {
        let class = draw() as usize % CLASSES.len();
        bytes.push(class as u8);
        for colour in 0..3 {
            for line in 0..SIDE {
                let bright = colour == class % 3 && line * 4 / SIDE == class / 3;
                let base = if bright { 120 } else { 0 };
                bytes.extend((0..SIDE).map(|_| (base + draw() % 120) as u8));
            }
        }
    }
    bytes
}
