//! Whatever bytes a file holds, reading it ends in data or in an error: never in a panic, and never
//! in more memory than a fixed bound, whatever the header promises.

use flate2::{Compression, write::GzEncoder};
use lockstep_data::DataError;
use lockstep_data::idx::{IdxHeader, IdxReader};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::path::Path;

/// What reading a file may take: its buffers and the state of the decoder.
const MOST_BYTES: usize = 1 << 20;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts the bytes that each thread holds.
struct Counting;

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get().wrapping_add(layout.size()));
        PEAK.set(PEAK.get().max(LIVE.get()));
        // SAFETY: the caller keeps the promises that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get().wrapping_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads `bytes` as a file; returns what it was, how many bytes of elements it held, and the most
/// memory that this took.
fn read(bytes: &[u8]) -> (Result<(IdxHeader, u64), DataError>, usize) {
    // Counted from zero; what other code of this thread frees meanwhile is its own.
    LIVE.set(0);
    PEAK.set(0);
    let mut length = 0;
    let result = IdxReader::new(Path::new("file"), bytes, bytes.len() as u64).and_then(|reader| {
        let header = reader.header().clone();
        reader.for_each_block(|block| {
            length += block.len() as u64;
            Ok(())
        })?;
        Ok((header, length))
    });
    (result, PEAK.get())
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
