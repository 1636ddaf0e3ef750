//! What is written is what is read, and the bytes are always the same.

use crate::tables::{all, columns, folder, place, rows};
use lockstep_table::{
    ColumnNames, EmbeddingPart, TableFormat, TableReader, WrittenColumn, footer, metadata,
    write_part, write_table,
};
use proptest::prelude::*;

/// Embeddings of `rows` samples.
fn part(rows: usize, width: usize) -> (Vec<String>, Vec<Option<String>>, Vec<f32>) {
    let paths = (0..rows).map(|row| format!("dög/{row}.jpg")).collect();
    let labels = (0..rows)
        .map(|row| Some(format!("class {}", row % 3)))
        .collect();
    let numbers = (0..rows * width)
        .map(|i| (i % 251) as f32 * 0.37 - 40.0)
        .collect();
    (paths, labels, numbers)
}

fn bytes(rows: usize, width: usize, metadata: &[(&str, &str)]) -> Vec<u8> {
    let (paths, labels, embeddings) = part(rows, width);
    let part = EmbeddingPart {
        paths: &paths,
        labels: &labels,
        width,
        embeddings: &embeddings,
    };
    write_part(&part, metadata).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_part_is_read_as_it_was_written(
        (width, rows) in (1usize..40, 0usize..50),
        seed: u32,
        memory in prop_oneof![Just(1u64), 1u64..100_000, Just(1 << 30)],
    ) {
        let paths: Vec<String> = (0..rows).map(|row| format!("{row}/ü")).collect();
        let labels: Vec<Option<String>> = (0..rows).map(|row| Some((row % 7).to_string())).collect();
        let embeddings: Vec<f32> = (0..rows * width)
            .map(|i| f32::from_bits((i as u32).wrapping_mul(2_654_435_761) ^ seed))
            .map(|value| if value.is_finite() { value } else { 0.5 })
            .collect();
        let part = EmbeddingPart { paths: &paths, labels: &labels, width, embeddings: &embeddings };
        let folder = folder(&[("part.parquet", write_part(&part, &[]).unwrap())]);
        let columns = columns(&["embedding"], Some("label"), Some("path"));
        let read = all(TableReader::open(&place(&folder), TableFormat::Parquet, &columns, memory).unwrap()).unwrap();
        let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&read.features), bits(&embeddings));
        prop_assert_eq!(read.paths.unwrap_or_default(), paths);
        prop_assert_eq!(read.labels.unwrap_or_default(), labels.into_iter().flatten().collect::<Vec<_>>());
    }
}

#[test]
fn the_same_rows_are_the_same_bytes() {
    let first = bytes(500, 16, &[("lockstep.model", "clip"), ("b", "")]);
    assert_eq!(
        first,
        bytes(500, 16, &[("lockstep.model", "clip"), ("b", "")])
    );
    assert_ne!(first, bytes(500, 16, &[("lockstep.model", "vit")]));
    // Known length and checksum: a change of the bytes is a change of every part that users have.
    let sum = first.iter().fold(0u64, |sum, &byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    assert_eq!((first.len(), sum), (2287, 11_518_743_923_047_148_504));
}

#[test]
fn the_footer_says_what_the_writer_said() {
    let folder = folder(&[(
        "a.parquet",
        bytes(7, 3, &[("model", "clip \u{1f436}"), ("empty", "")]),
    )]);
    let file = place(&folder).join("a.parquet").unwrap();
    let said = metadata(&file).unwrap();
    assert_eq!(said.len(), 2);
    assert_eq!(
        (said["model"].as_str(), said["empty"].as_str()),
        ("clip \u{1f436}", "")
    );
    assert_eq!(footer(&file).unwrap().rows, 7);
    let missing = metadata(&place(&folder).join("b.parquet").unwrap()).unwrap_err();
    assert!(
        missing.to_string().ends_with("b.parquet does not exist"),
        "{missing}"
    );
}

#[test]
fn predictions_can_be_read_again() {
    let text =
        |cell: &dyn Fn(i64) -> Option<String>| WrittenColumn::Text((0..5).map(cell).collect());
    let written = [
        ("path", text(&|row| Some(format!("{row}.jpg")))),
        (
            "label",
            text(&|row| (row % 2 == 0).then(|| "pug".to_owned())),
        ),
        ("predicted", text(&|_| Some("husky".to_owned()))),
        (
            "probability",
            WrittenColumn::Single((0..5).map(|row| Some(0.25 * row as f32)).collect()),
        ),
        ("row", WrittenColumn::Whole((0..5).map(Some).collect())),
    ];
    let written = written.map(|(name, column)| (name.to_owned(), column));
    let bytes = write_table(written.into(), &[("model", "m")]).unwrap();
    let folder = folder(&[("p.parquet", bytes)]);
    let columns = columns(&["probability", "row"], Some("predicted"), Some("path"));
    let reader =
        TableReader::open(&place(&folder), TableFormat::Parquet, &columns, 1 << 20).unwrap();
    let batch = all(reader).unwrap();
    assert_eq!(
        batch.features,
        [0.0, 0.0, 0.25, 1.0, 0.5, 2.0, 0.75, 3.0, 1.0, 4.0]
    );
    assert_eq!(batch.labels.unwrap(), ["husky"; 5]);
    let known = ColumnNames {
        label: Some("label".into()),
        ..columns.clone()
    };
    let reader = TableReader::open(&place(&folder), TableFormat::Parquet, &known, 1 << 20).unwrap();
    let error = all(reader).unwrap_err().to_string();
    assert!(
        error.ends_with("p.parquet, row 1: the column `label` is null; every sample needs one"),
        "{error}"
    );
}

#[test]
fn files_follow_each_other_and_batches_keep_to_the_memory() {
    let folder = folder(&[
        ("b.parquet", bytes(300, 64, &[])),
        ("a.parquet", bytes(200, 64, &[])),
        ("c.parquet", bytes(0, 64, &[])),
    ]);
    let columns = columns(&["embedding"], None, Some("path"));
    let memory = 64 << 10;
    let reader =
        TableReader::open(&place(&folder), TableFormat::Parquet, &columns, memory).unwrap();
    let batches: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
    assert!(batches.len() > 4, "{}", batches.len());
    for batch in &batches {
        assert!(
            4 * batch.features.len() as u64 <= memory / 4,
            "{}",
            batch.rows
        );
    }
    let paths: Vec<_> = batches
        .iter()
        .flat_map(|batch| batch.paths.clone().unwrap())
        .collect();
    assert_eq!(paths.len(), 500);
    assert_eq!(
        (paths[0].as_str(), paths[199].as_str()),
        ("dög/0.jpg", "dög/199.jpg")
    );
    assert_eq!(rows(&batches), 500);
}

#[test]
fn parts_of_different_widths_are_refused_by_their_names() {
    let folder = folder(&[
        ("a.parquet", bytes(2, 3, &[])),
        ("b.parquet", bytes(2, 4, &[])),
    ]);
    let columns = columns(&["embedding"], None, None);
    let reader =
        TableReader::open(&place(&folder), TableFormat::Parquet, &columns, 1 << 20).unwrap();
    let error = all(reader).unwrap_err().to_string();
    assert!(
        error.contains("b.parquet: its rows have 4 numbers"),
        "{error}"
    );
    assert!(error.contains("a.parquet have 3"), "{error}");
}

#[test]
fn rows_that_do_not_fit_together_are_not_written() {
    let (paths, labels, embeddings) = part(3, 2);
    let whole = EmbeddingPart {
        paths: &paths,
        labels: &labels,
        width: 2,
        embeddings: &embeddings,
    };
    for uneven in [
        EmbeddingPart {
            paths: &paths[..2],
            ..whole
        },
        EmbeddingPart {
            labels: &labels[..2],
            ..whole
        },
        EmbeddingPart {
            embeddings: &embeddings[..5],
            ..whole
        },
        EmbeddingPart {
            width: 0,
            embeddings: &[],
            ..whole
        },
    ] {
        write_part(&uneven, &[]).unwrap_err();
    }
    write_part(&whole, &[]).unwrap();
}
