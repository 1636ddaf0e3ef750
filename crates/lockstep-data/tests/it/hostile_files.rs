//! Whatever bytes a file holds, reading it ends in data or in an error: never in a panic, and never
//! in more memory than a fixed bound, whatever the header promises.

use flate2::{Compression, write::GzEncoder};
use lockstep_base::fs::CacheDir;
use lockstep_data::idx::{IdxHeader, IdxReader};
use lockstep_data::{DataError, Dataset, Source};
use lockstep_testkit::peak;
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::path::Path;

/// What reading a file may take: its buffers and the state of the decoder.
const MOST_BYTES: usize = 1 << 20;

/// Reads `bytes` as a file; returns what it was, how many bytes of elements it held, and the most
/// memory that this took.
fn read(bytes: &[u8]) -> (Result<(IdxHeader, u64), DataError>, usize) {
    peak(|| {
        let mut length = 0;
        let reader = IdxReader::new(Path::new("file"), bytes, bytes.len() as u64)?;
        let header = reader.header().clone();
        reader.for_each_block(|block| {
            length += block.len() as u64;
            Ok(())
        })?;
        Ok((header, length))
    })
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Checks the promise on `bytes`, and that what was accepted is consistent.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (result, peak) = read(bytes);
    prop_assert!(peak <= MOST_BYTES, "{peak} bytes of memory");
    if let Ok((header, length)) = result {
        let elements: u64 = header.dims.iter().map(|&dim| dim as u64).product();
        prop_assert_eq!(elements * header.element.size() as u64, length);
    }
    Ok(())
}

fn valid_file() -> impl Strategy<Value = Vec<u8>> {
    let codes = prop::sample::select(vec![(8, 1), (9, 1), (11, 2), (12, 4), (13, 4), (14, 8)]);
    (codes, prop::collection::vec(0u32..6, 1..5), any::<u8>()).prop_map(
        |((code, size), dims, fill)| {
            let mut file = vec![0, 0, code, dims.len() as u8];
            file.extend(dims.iter().flat_map(|dim| dim.to_be_bytes()));
            file.resize(
                file.len() + size * dims.iter().product::<u32>() as usize,
                fill,
            );
            file
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes)?;
        check(&gzipped(&bytes))?;
        check(&[&[0x1f, 0x8b, 8, 0], bytes.as_slice()].concat())?;
    }

    #[test]
    fn arbitrary_headers_are_survived(
        code in 7u8..16,
        dims in prop::collection::vec(any::<u32>(), 0..6),
        rest in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut bytes = vec![0, 0, code, dims.len() as u8];
        bytes.extend(dims.iter().flat_map(|dim| dim.to_be_bytes()));
        bytes.extend(rest);
        check(&bytes)?;
        check(&gzipped(&bytes))?;
    }

    #[test]
    fn valid_files_are_read_and_mutated_ones_survived(
        file in valid_file(),
        packed: bool,
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = if packed { gzipped(&file) } else { file };
        prop_assert!(read(&file).0.is_ok());
        let shorter = &file[..cut.index(file.len())];
        prop_assert!(read(shorter).0.is_err());
        check(shorter)?;
        for (place, byte) in mutations {
            let place = place.index(file.len());
            file[place] = byte;
        }
        check(&file)?;
    }
}

#[test]
fn a_small_file_that_unpacks_into_a_large_one_takes_no_memory() {
    let count = 64u32 << 20;
    let mut content = vec![0, 0, 8, 1];
    content.extend(count.to_be_bytes());
    content.resize(content.len() + count as usize, 0);
    let packed = gzipped(&content);
    drop(content);
    let (result, peak) = read(&packed);
    assert_eq!(result.unwrap().1, u64::from(count));
    assert!(
        peak <= MOST_BYTES,
        "{peak} bytes of memory for {} packed ones",
        packed.len()
    );
}

/// Opens `bytes` as a file of CIFAR-10; returns the number of samples, and the most memory that this
/// took.
fn open_cifar(bytes: &[u8]) -> (Result<usize, DataError>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.bin");
    fs::write(&file, bytes).unwrap();
    let cache = CacheDir::at(&folder.path().join("cache")).unwrap();
    let files = vec![file];
    peak(|| Ok(Dataset::open(&Source::CifarFiles { files }, &cache)?.len()))
}

/// Records of CIFAR-10 with these labels.
fn records(labels: &[u8], fill: u8) -> Vec<u8> {
    let records = labels.iter().flat_map(|&label| {
        let pixels = std::iter::repeat_n(fill, 3072);
        std::iter::once(label).chain(pixels)
    });
    records.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_are_read_if_and_only_if_they_are_whole_and_their_labels_are_classes(
        labels in prop::collection::vec(0u8..12, 0..70),
        fill: u8,
        packed: bool,
        cut in prop_oneof![Just(0usize), 1usize..4000],
    ) {
        let mut bytes = records(&labels, fill);
        bytes.truncate(bytes.len().saturating_sub(cut));
        let left = &labels[..bytes.len().div_ceil(3073)];
        let right = !bytes.is_empty()
            && bytes.len().is_multiple_of(3073)
            && left.iter().all(|&label| label < 10);
        let (result, peak) = open_cifar(&if packed { gzipped(&bytes) } else { bytes });
        prop_assert!(peak <= MOST_BYTES, "{peak} bytes of memory");
        match result {
            Ok(samples) => prop_assert!(right && samples == left.len()),
            Err(error) => {
                prop_assert!(!right, "{error}");
                prop_assert!(error.to_string().contains("file.bin"), "{error}");
            }
        }
    }
}

#[test]
fn many_packed_records_take_no_memory() {
    let packed = gzipped(&records(&[7; 20_000], 0));
    let (result, peak) = open_cifar(&packed);
    assert_eq!(result.unwrap(), 20_000);
    assert!(peak <= MOST_BYTES, "{peak} bytes of memory");
}
