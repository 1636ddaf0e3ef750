//! Damaged files of every kind through the front door: no panic, and no memory beyond what the header promises.
//!
//! Two seconds of it run with the other tests, always the same ones. `LOCKSTEP_FUZZ_SECONDS=600` goes on for longer,
//! and `LOCKSTEP_FUZZ_SEED` begins elsewhere. A file that is handled badly is kept for a look.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use crate::common::{names, read};
use lockstep_image::{Limits, Transform, Transformer, decode, probe};
use lockstep_testkit::{held, peak};

/// Small and fast and good enough.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// A file with one to six changes.
fn mutated(random: &mut Random, files: &[Vec<u8>]) -> Vec<u8> {
    let mut file = files[random.below(files.len())].clone();
    for _ in 0..=random.below(6) {
        // Headers are where most can go wrong.
        let reach = if random.below(2) == 0 {
            file.len().min(200)
        } else {
            file.len()
        };
        let at = random.below(reach);
        let end = (at + 1 + random.below(16)).min(file.len());
        match random.below(8) {
            0 => file[at] ^= 1 << random.below(8),
            1 => file[at] = random.next() as u8,
            2 => file[at] = [0, 1, 0x7f, 0x80, 0xff, 0xd9, 0xda, 0xc4][random.below(8)],
            3 => file.truncate(at.max(1)),
            4 => drop(file.drain(at..end)),
            5 => {
                let piece = file[at..end].to_vec();
                file.splice(at..at, piece);
            }
            6 => {
                let other = &files[random.below(files.len())];
                let from = random.below(other.len());
                let piece = &other[from..(from + 64).min(other.len())];
                let end = (at + piece.len()).min(file.len());
                file.splice(at..end, piece.iter().copied());
            }
            _ => {
                let number = [0, 1, 255, 65_535, 1 << 24, u32::MAX][random.below(6)];
                let bytes = if random.below(2) == 0 {
                    number.to_be_bytes()
                } else {
                    number.to_le_bytes()
                };
                let width = 1 + random.below(4);
                for (place, byte) in file[at..].iter_mut().zip(&bytes[4 - width..]) {
                    *place = *byte;
                }
            }
        }
        if file.is_empty() {
            file.push(random.next() as u8);
        }
    }
    if file.starts_with(b"\x89PNG") && random.below(4) > 0 {
        repair_checksums(&mut file);
    }
    file
}

/// Makes a PNG's checksums right again: behind them are the decoders that are to be tried.
fn repair_checksums(png: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = png.get(at..at + 4) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let end = (at + 8).saturating_add(length);
        if end.saturating_add(4) > png.len() {
            break;
        }
        let checksum = crc32(&png[at + 4..end]);
        png[end..end + 4].copy_from_slice(&checksum.to_be_bytes());
        at = end + 4;
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)
        })
    })
}

/// A megapixel, so that thousands of files are tried.
const LIMITS: Limits = Limits {
    max_memory: 16 << 20,
    max_side: 1 << 16,
};

/// What is wrong with how this file is handled, if anything.
fn fault(file: &[u8]) -> Option<String> {
    let header = probe(file);
    let (decoded, taken) = peak(|| decode(file, &LIMITS));
    let taken = taken as u64;
    // Segments of metadata are copied out of the file, some of them twice. What a damaged WebP may ask for beside
    // that is in the words of `PictureHeader::memory`.
    let (copies, more) = if file.starts_with(b"RIFF") {
        (1024, 16 << 20)
    } else {
        (3, 0)
    };
    let promised = match &header {
        Ok(header) if header.memory() <= LIMITS.max_memory => header.memory(),
        _ => 1 << 20,
    } + copies * file.len() as u64
        + more;
    if taken > promised {
        return Some(format!(
            "took {taken} bytes where {promised} were promised; {header:?}"
        ));
    }
    match decoded {
        Err(error) if error.to_string().contains("gave up") => Some("its decoder panicked".into()),
        Ok(picture) => {
            let header = header.ok()?;
            let whole = picture.rgb.len() as u64 == 3 * header.pixels();
            let size = (picture.width, picture.height) == header.upright();
            (!whole || !size)
                .then(|| format!("is not of the size that its header says: {header:?}"))
        }
        Err(_) => None,
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn damaged_files_neither_panic_nor_take_more_memory_than_their_header_says() {
    let files: Vec<Vec<u8>> = names().iter().map(|name| read(name)).collect();
    for (name, file) in names().iter().zip(&files) {
        assert_eq!(fault(file), None, "{name}");
    }
    let seconds = setting("LOCKSTEP_FUZZ_SECONDS", 0);
    let mut random = Random(setting("LOCKSTEP_FUZZ_SEED", 1));
    let (start, mut tried, mut faults) = (Instant::now(), 0u64, 0);
    while tried < 6_000 || start.elapsed() < Duration::from_secs(seconds) {
        let file = mutated(&mut random, &files);
        tried += 1;
        let found =
            catch_unwind(|| fault(&file)).unwrap_or(Some("a panic came through the door".into()));
        if let Some(found) = found {
            faults += 1;
            let path = std::env::temp_dir().join(format!("lockstep-image-fault-{faults}"));
            std::fs::write(&path, &file).unwrap();
            eprintln!("file {tried}, kept as {}: {found}", path.display());
            if faults == 20 {
                break;
            }
        }
    }
    println!(
        "{tried} files tried in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    assert_eq!(faults, 0, "of {tried} files");
}

#[test]
fn a_transformer_takes_no_more_memory_than_its_estimate_and_keeps_none_growing() {
    let transform = Transform {
        resize: Some(30),
        crop: Some([24, 28]),
        ..Transform::default()
    };
    for name in names() {
        let file = read(&name);
        let estimate = transform.memory(&probe(&file).unwrap());
        let ((), taken) = peak(|| {
            let mut transformer = Transformer::new(&transform, LIMITS).unwrap();
            let mut out = vec![0; transformer.output_len()];
            transformer.apply(&file, &mut out).unwrap();
            let after_one = held();
            for _ in 0..5 {
                transformer.apply(&file, &mut out).unwrap();
            }
            assert_eq!(
                held(),
                after_one,
                "{name}: memory grows from picture to picture"
            );
        });
        assert!(
            taken as u64 <= estimate,
            "{name}: {taken} bytes of {estimate}"
        );
    }
}
