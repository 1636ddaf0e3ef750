//! Whatever bytes a file holds, reading it ends in rows or in an error, never in a panic.

use crate::tables::{all, columns, folder, place};
use lockstep_table::{CsvFormat, EmbeddingPart, TableFormat, TableReader, metadata, write_part};
use proptest::prelude::*;

/// A whole file, small enough that most changes hit something that matters.
fn whole() -> Vec<u8> {
    let paths: Vec<String> = (0..20).map(|row| format!("{row}.jpg")).collect();
    let labels: Vec<_> = (0..20).map(|row| Some((row % 3).to_string())).collect();
    let embeddings: Vec<f32> = (0..60).map(|i| i as f32).collect();
    let part = EmbeddingPart {
        paths: &paths,
        labels: &labels,
        width: 3,
        embeddings: &embeddings,
    };
    write_part(&part, &[("key", "value")]).unwrap()
}

/// Reads `bytes`; what it says if it does not read.
fn refusal(bytes: Vec<u8>, format: TableFormat) -> Option<String> {
    let name = match format {
        TableFormat::Parquet => "x.parquet",
        TableFormat::Csv(_) => "x.csv",
        TableFormat::Arrow => "x.arrow",
        TableFormat::JsonLines => "x.jsonl",
    };
    let folder = folder(&[(name, bytes)]);
    let file = place(&folder).join(name).unwrap();
    if format == TableFormat::Parquet {
        let _ = metadata(&file);
    }
    let columns = columns(&["embedding"], Some("label"), Some("path"));
    let reader = TableReader::open(&file, format, &columns, 1 << 20).unwrap();
    all(reader).err().map(|error| error.to_string())
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused_with_its_name() {
    let whole = whole();
    assert_eq!(refusal(whole.clone(), TableFormat::Parquet), None);
    for length in (0..20).chain((20..whole.len()).step_by(13)) {
        let error = refusal(whole[..length].to_vec(), TableFormat::Parquet).unwrap();
        assert!(error.contains("x.parquet"), "{error}");
        let expected = match length {
            0..12 => "is not a Parquet file: it has",
            _ => {
                "is damaged or truncated: it begins as a Parquet file does, but its end is missing"
            }
        };
        assert!(error.contains(expected), "{length}: {error}");
    }
}

#[test]
fn what_is_no_parquet_file_is_said_to_be_none() {
    let error = refusal(
        b"path,label,embedding\n1,2,3\n".to_vec(),
        TableFormat::Parquet,
    )
    .unwrap();
    assert!(
        error.contains("x.parquet is not a Parquet file: it begins with [70, 61, 74, 68]"),
        "{error}"
    );
    let encrypted = [&b"PAR1"[..], &[0; 20], b"PARE"].concat();
    let error = refusal(encrypted, TableFormat::Parquet).unwrap();
    assert!(error.ends_with("it is encrypted"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn damaged_parquet_is_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = whole();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(error) = refusal(bytes, TableFormat::Parquet) {
            prop_assert!(error.contains("x.parquet"), "{error}");
        }
    }

    #[test]
    fn damaged_footers_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = whole();
        let length = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize;
        let first = bytes.len() - 8 - length;
        for (at, byte) in changes {
            let at = first + at.index(length + 4);
            bytes[at] = byte;
        }
        refusal(bytes, TableFormat::Parquet);
    }

    #[test]
    fn any_text_is_survived_as_csv(text in "(path|label|embedding|[0-9,;\"\r\n\\-e. é]){0,60}") {
        refusal(text.into_bytes(), TableFormat::Csv(CsvFormat::default()));
    }

    #[test]
    fn any_bytes_are_survived_as_csv(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        refusal([b"path,label,embedding\n", bytes.as_slice()].concat(), TableFormat::Csv(CsvFormat::default()));
        // As they are, they may look like UTF-16.
        refusal(bytes, TableFormat::Csv(CsvFormat::default()));
    }

    #[test]
    fn any_text_is_survived_as_json_lines(text in "([{}:,\"\\[\\]\n]|\"label\"|\"embedding\"|null|[0-9a-e.\\\\]){0,40}") {
        refusal(text.into_bytes(), TableFormat::JsonLines);
    }
}
