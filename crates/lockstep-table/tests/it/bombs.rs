//! Small files that stand for gigabytes are refused, with the place and the key, in little memory.

mod file;
use crate::tables::{columns, folder, place};
use file::{Chunk, Codec, Encoding, Kind, differences, level_runs, parquet, run};
use flate2::{Compression, write::GzEncoder};
use lockstep_table::{CsvFormat, TableError, TableFormat, TableReader};
use lockstep_testkit::peak;
use proptest::prelude::*;
use std::io::Write;

/// What `data.memory` says in these tests.
const MEMORY: u64 = 64 << 20;

/// Reads all rows of a file; what became of it, and the most bytes that it took.
fn read(bytes: Vec<u8>, features: &str, label: Option<&str>) -> (Result<usize, TableError>, usize) {
    let folder = folder(&[("bomb.parquet", bytes)]);
    let file = place(&folder).join("bomb.parquet").unwrap();
    let columns = columns(&[features], label, None);
    peak(|| {
        let mut reader = TableReader::open(&file, TableFormat::Parquet, &columns, MEMORY)?;
        let mut rows = 0;
        while let Some(batch) = reader.next_batch()? {
            rows += batch.rows;
        }
        Ok(rows)
    })
}

/// Checks that a file is refused as too large, in `column` of row group 0, before it takes the memory.
#[track_caller]
fn refused(bytes: Vec<u8>, label: Option<&str>, column: &str) {
    let (result, peak) = read(bytes, "embedding", label);
    let error = result.unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, TableError::TooLarge { row_group: 0, .. }),
        "{text}"
    );
    for part in ["bomb.parquet", column, "row group 0", "data.memory"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    assert!(
        peak < MEMORY as usize,
        "{peak} bytes were taken to say: {text}"
    );
}

/// A column `embedding` whose rows have so many numbers each, all of them 1.
fn lists(lengths: &[u64]) -> Chunk {
    let mut repetitions = Vec::new();
    for &length in lengths {
        repetitions.extend(run(1, &[0]));
        if length > 1 {
            repetitions.extend(run(length - 1, &[1]));
        }
    }
    let all = lengths.iter().sum();
    let mut page = level_runs(&repetitions);
    page.extend(level_runs(&run(all, &[1])));
    page.push(1);
    page.extend(run(all, &[0]));
    Chunk {
        name: "embedding",
        kind: Kind::FloatList,
        dictionary: Some(1f32.to_le_bytes().to_vec()),
        values: all,
        encoding: Encoding::Dictionary,
        page,
        ..Chunk::default()
    }
}

/// A column `embedding` of so many numbers, each 1.
fn numbers(rows: u64) -> Chunk {
    Chunk {
        name: "embedding",
        kind: Kind::Float,
        page: [&[1], run(rows, &[0]).as_slice()].concat(),
        ..lists(&[rows])
    }
}

/// A column `label` of so many rows, which are all the one text of a dictionary.
fn one_label(rows: u64, length: usize) -> Chunk {
    let text = vec![b'x'; length];
    let dictionary = [&(length as u32).to_le_bytes(), text.as_slice()].concat();
    Chunk {
        name: "label",
        kind: Kind::Text,
        dictionary: Some(dictionary),
        ..numbers(rows)
    }
}

#[test]
fn files_made_here_are_read() {
    let (rows, _) = read(parquet(3, &[lists(&[4, 4, 4])]), "embedding", None);
    assert_eq!(rows.unwrap(), 3);
    let file = parquet(20_000, &[numbers(20_000), one_label(20_000, 7)]);
    let (rows, _) = read(file, "embedding", Some("label"));
    assert_eq!(rows.unwrap(), 20_000);
}

#[test]
fn a_row_of_a_billion_numbers_is_refused() {
    let file = parquet(1, &[lists(&[1_000_000_000])]);
    assert!(file.len() < 300, "{}", file.len());
    refused(file, None, "embedding");
}

#[test]
fn a_long_row_among_short_ones_is_refused() {
    let mut lengths = vec![1; 5000];
    lengths[3000] = 50_000_000;
    refused(parquet(5000, &[lists(&lengths)]), None, "embedding");
}

#[test]
fn a_billion_short_rows_stream_through() {
    let file = parquet(30_000_000, &[numbers(30_000_000)]);
    let (rows, peak) = read(file, "embedding", None);
    assert_eq!(rows.unwrap(), 30_000_000);
    assert!(peak < 8 << 20, "{peak}");
}

#[test]
fn one_long_text_in_every_row_is_refused() {
    let file = parquet(8192, &[numbers(8192), one_label(8192, 1 << 20)]);
    refused(file, Some("label"), "label");
}

#[test]
fn texts_that_repeat_the_one_before_are_refused() {
    let (rows, length) = (8192u64, 1u64 << 20);
    // Each text begins with all of the one before it and adds nothing.
    let shared = differences(rows, 0, length);
    let mut page = shared;
    page.extend(one_long_text(rows, length));
    let label = Chunk {
        name: "label",
        kind: Kind::Text,
        dictionary: None,
        values: rows,
        encoding: Encoding::DeltaTexts,
        page,
        ..Chunk::default()
    };
    refused(
        parquet(rows, &[numbers(rows), label]),
        Some("label"),
        "label",
    );
}

/// The suffixes of texts of which the first alone has letters.
fn one_long_text(rows: u64, length: u64) -> Vec<u8> {
    let mut own = vec![128, 1, 4];
    file::varint(&mut own, rows);
    file::varint(&mut own, 2 * length);
    let mut left = rows - 1;
    let mut first = true;
    while left > 0 {
        // Of the first block, the least difference is -length, and every other one is 0, `length` above it.
        if std::mem::take(&mut first) {
            file::varint(&mut own, 2 * length - 1);
            own.extend([21; 4]);
            let mut bits = vec![0u8; 128 * 21 / 8];
            for number in 1..128 {
                let at = number * 21 + 20;
                bits[at / 8] |= 1 << (at % 8);
            }
            own.extend(bits);
        } else {
            own.extend([0, 0, 0, 0, 0]);
        }
        left = left.saturating_sub(128);
    }
    own.resize(own.len() + length as usize, b'x');
    own
}

#[test]
fn a_page_that_says_it_unpacks_to_gigabytes_is_refused_before_it_is_unpacked() {
    for codec in [Codec::Zstd, Codec::Gzip, Codec::Snappy] {
        let chunk = Chunk {
            codec,
            unpacked: Some(2_000_000_000),
            dictionary: None,
            ..lists(&[4])
        };
        refused(parquet(1, &[chunk]), None, "embedding");
    }
}

#[test]
fn a_page_that_unpacks_to_more_than_it_says_is_refused() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&vec![0; 300 << 20]).unwrap();
    let chunk = Chunk {
        codec: Codec::Gzip,
        unpacked: Some(100),
        dictionary: None,
        page: packed.finish().unwrap(),
        ..lists(&[4])
    };
    let (result, peak) = read(parquet(1, &[chunk]), "embedding", None);
    let error = result.unwrap_err().to_string();
    assert!(
        error.contains("unpacks to more bytes than it says"),
        "{error}"
    );
    assert!(peak < MEMORY as usize, "{peak}");
}

#[test]
fn a_line_of_nothing_but_delimiters_takes_little() {
    let folder = folder(&[("bomb.csv", vec![b','; 100 << 20])]);
    let file = place(&folder).join("bomb.csv").unwrap();
    let format = TableFormat::Csv(CsvFormat::default());
    let columns = columns(&[], Some("label"), None);
    let (result, peak) = peak(|| {
        let mut reader = TableReader::open(&file, format, &columns, MEMORY)?;
        reader.next_batch().map(drop)
    });
    let error = result.unwrap_err().to_string();
    assert!(
        error.contains("bomb.csv") && error.contains("a line goes on"),
        "{error}"
    );
    assert!(peak < MEMORY as usize, "{peak}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_changed_bomb_takes_no_more_than_the_memory(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        kind in 0..3,
    ) {
        let (mut bytes, label) = match kind {
            0 => (parquet(1, &[lists(&[1_000_000_000])]), None),
            1 => (parquet(100, &[lists(&[3; 100])]), None),
            _ => (parquet(8192, &[numbers(8192), one_label(8192, 20_000)]), Some("label")),
        };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (_, peak) = read(bytes, "embedding", label);
        prop_assert!(peak < 2 * MEMORY as usize, "{peak}");
    }
}
