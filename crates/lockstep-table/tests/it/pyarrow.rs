//! Tables go both ways between this crate and pyarrow, whatever types and codecs a file was written with.

use crate::tables::{all, columns, place};
use lockstep_table::{
    ColumnKind, ColumnNames, ColumnType, EmbeddingPart, Gaps, RowBatch, TableError, TableFormat,
    TableReader, TimeForm, WrittenColumn, find_files, look, write_part, write_table,
};
use lockstep_testkit::{python, succeed};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

const PACKAGES: &[&str] = &["pyarrow==26.0.1"];
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tables.py");

fn pyarrow(command: &str, folder: &Path) {
    succeed(
        Command::new(python("pyarrow", PACKAGES))
            .args([SCRIPT, command])
            .arg(folder),
    );
}

/// The files that pyarrow wrote.
fn written() -> &'static TempDir {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ray")).unwrap();
        pyarrow("write", folder.path());
        folder
    })
}

fn read(file: &str, columns: &ColumnNames) -> Result<RowBatch, TableError> {
    let file = place(written()).join(file)?;
    all(TableReader::open(
        &file,
        TableFormat::Parquet,
        columns,
        1 << 20,
    )?)
}

fn numbers() -> Vec<f32> {
    let row = |row: u8| (0..3u8).map(move |column| f32::from(row) + 0.5 * f32::from(column));
    (0..5).flat_map(row).collect()
}

#[test]
fn every_codec_kind_of_list_and_kind_of_label_is_read() {
    for codec in ["snappy", "zstd", "gzip", "lz4", "none"] {
        for version in ["1.0", "2.0"] {
            let file = format!("{codec}-{version}.parquet");
            for features in [
                &["list"][..],
                &["list64"],
                &["list16"],
                &["large"],
                &["fixed"],
                &["tensor"],
                &["x0", "x1", "x2"],
            ] {
                let batch = read(&file, &columns(features, None, None)).unwrap();
                assert_eq!((batch.rows, batch.width), (5, 3), "{file} {features:?}");
                assert_eq!(batch.features, numbers(), "{file} {features:?}");
            }
            for label in ["text", "large_text", "view", "binary", "dictionary"] {
                let batch = read(&file, &columns(&["x0"], Some(label), Some("path"))).unwrap();
                assert_eq!(
                    batch.labels.unwrap(),
                    ["pug", "husky", "pug", "mops", "husky"],
                    "{file} {label}"
                );
                assert_eq!(batch.paths.unwrap()[4], "train/4.jpg");
            }
        }
    }
    let labels = |label| {
        read(
            "none-2.0.parquet",
            &columns(&["ints", "x2"], Some(label), None),
        )
        .unwrap()
        .labels
        .unwrap()
    };
    assert_eq!(labels("int8"), ["2", "0", "2", "1", "0"]);
    assert_eq!(labels("uint64")[4], u64::MAX.to_string());
    assert_eq!(labels("bool"), ["true", "false", "true", "true", "false"]);
    assert_eq!(labels("float"), ["0.0", "1.0", "2.0", "3.0", "4.0"]);
}

#[test]
fn lists_and_numbers_are_laid_out_in_the_order_that_was_asked_for() {
    let batch = read(
        "snappy-1.0.parquet",
        &columns(&["x2", "ints", "x0"], None, None),
    )
    .unwrap();
    assert_eq!(batch.width, 5);
    assert_eq!(batch.features[5..10], [2.0, 2.0, 3.0, 4.0, 1.0]);
}

#[test]
fn nulls_and_numbers_that_are_none_are_kept_where_that_is_asked_for() {
    let columns = ColumnNames {
        gaps: Gaps::Keep,
        ..columns(&["holes", "nan"], None, None)
    };
    let batch = read("zstd-2.0.parquet", &columns).unwrap();
    let row = |row: usize| &batch.features[row * batch.width..][..batch.width];
    assert!(row(3)[1].is_nan() && row(4)[batch.width - 1].is_nan());
    assert_eq!(batch.features.iter().filter(|x| x.is_nan()).count(), 2);
}

#[test]
fn what_cannot_be_used_is_named_by_its_column_and_row() {
    let refusal = |features: &[&str], label| {
        let error = read("zstd-2.0.parquet", &columns(features, label, None))
            .unwrap_err()
            .to_string();
        let (file, rest) = error.split_once("zstd-2.0.parquet").unwrap();
        assert!(file.starts_with('/'), "{error}");
        rest.to_owned()
    };
    for (column, expected) in [
        (
            "ragged",
            ", row 2: the column `ragged` has a list of 2 numbers, where the rows before it have 1",
        ),
        (
            "hollow",
            ", row 2: the column `hollow` is null; every sample needs its numbers",
        ),
        (
            "holes",
            ", row 3: the column `holes` holds a null as number 1 of its list",
        ),
        (
            "nan",
            ", row 4: the column `nan` holds NaN; every value must be a finite number",
        ),
        (
            "huge",
            ", row 1: the column `huge` holds 1e300, which is too large for single precision",
        ),
        (
            "empty",
            ", row 0: the column `empty` has an empty list; a sample needs at least one number",
        ),
        ("tex", " has no column `tex`; did you mean `text`?"),
        (
            "text",
            ": the column `text` holds Utf8; numbers of a sample must be integers, floats or booleans, or lists of them",
        ),
    ] {
        assert_eq!(refusal(&[column], None), expected);
    }
    assert_eq!(
        refusal(&["x0"], Some("gap")),
        ", row 1: the column `gap` is null; every sample needs one"
    );
    assert!(refusal(&[], None).starts_with(" has no column `embedding`"));
}

#[test]
fn a_folder_of_ray_datas_is_read_file_after_file() {
    let batch = read("ray", &columns(&["tensor"], Some("text"), None)).unwrap();
    assert_eq!(batch.features, numbers());
    assert_eq!(
        batch.labels.unwrap(),
        ["pug", "husky", "pug", "mops", "husky"]
    );
}

#[test]
fn a_row_group_that_is_larger_than_the_memory_is_read_in_batches() {
    let file = place(written()).join("large.parquet").unwrap();
    let columns = ColumnNames::default();
    let reader = TableReader::open(&file, TableFormat::Parquet, &columns, 1 << 20).unwrap();
    let mut row = 0;
    for batch in reader {
        let batch = batch.unwrap();
        assert!(batch.features.len() * 4 <= 256 << 10, "{} rows", batch.rows);
        for numbers in batch.features.chunks(512) {
            assert_eq!(numbers[511], ((row * 512 + 511) % 1000) as f32);
            row += 1;
        }
    }
    assert_eq!(row, 20_000);
}

#[test]
fn pyarrow_reads_ours_with_sensible_types() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a/0.jpg", "b/1.jpg", "c/2.jpg"].map(String::from);
    let labels = [Some("a".to_owned()), None, Some("c".to_owned())];
    let embeddings: Vec<f32> = (0..12u8).map(|i| f32::from(i) - 0.5).collect();
    let part = EmbeddingPart {
        paths: &paths,
        labels: &labels,
        width: 4,
        embeddings: &embeddings,
    };
    let bytes = write_part(&part, &[("lockstep.model", "clip \u{1f436}")]).unwrap();
    fs::write(folder.path().join("part.parquet"), bytes).unwrap();
    let text = |cells: [Option<&str>; 2]| {
        let cells = cells.into_iter();
        WrittenColumn::Text(cells.map(|cell| cell.map(str::to_owned)).collect())
    };
    let predictions = [
        ("path", text([Some("a.jpg"), Some("b.jpg")])),
        ("label", text([Some("husky"), None])),
        ("predicted", text([Some("pug"); 2])),
        ("probability", WrittenColumn::Single(vec![Some(0.75); 2])),
        ("row", WrittenColumn::Whole(vec![Some(0), Some(1)])),
    ];
    let predictions = predictions.map(|(name, column)| (name.to_owned(), column));
    let bytes = write_table(predictions.into(), &[]).unwrap();
    fs::write(folder.path().join("predictions.parquet"), bytes).unwrap();
    pyarrow("read", folder.path());
}

#[test]
fn damaged_files_of_pyarrows_are_survived() {
    // Dictionaries, both versions of pages and every codec, which our own files do not have.
    let features = [
        "list", "list64", "list16", "fixed", "tensor", "ints", "x0", "x1", "x2", "empty", "bool",
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = place(&folder).join("x.parquet").unwrap();
    let mut random = 1u64;
    let mut draw = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % below
    };
    for codec in ["snappy", "zstd", "gzip", "lz4", "none"] {
        for version in ["1.0", "2.0"] {
            let name = format!("{codec}-{version}.parquet");
            let whole = fs::read(written().path().join(&name)).unwrap();
            for _ in 0..CHANGES {
                let mut bytes = whole.clone();
                for _ in 0..1 + draw(3) {
                    bytes[draw(whole.len())] = draw(256) as u8;
                }
                fs::write(folder.path().join("x.parquet"), bytes).unwrap();
                for label in ["text", "dictionary", "binary", "gap", "int8"] {
                    let columns = columns(&features, Some(label), Some("path"));
                    let reader = TableReader::open(&file, TableFormat::Parquet, &columns, 1 << 20);
                    let _ = all(reader.unwrap());
                }
            }
        }
    }
}

/// Damaged versions of each file.
const CHANGES: usize = 60;

#[test]
fn columns_of_other_types_than_numbers_are_found_and_read() {
    columns_are_read_from("mixed.parquet", TableFormat::Parquet);
}

#[test]
fn feather_files_are_read_as_parquet_is() {
    columns_are_read_from("mixed.feather", TableFormat::Arrow);
}

fn columns_are_read_from(name: &str, format: TableFormat) {
    let file = place(written()).join(name).unwrap();
    let known = ColumnNames {
        label: Some("amount".to_owned()),
        types: [("zip".to_owned(), ColumnType::Category)].into(),
        ..ColumnNames::default()
    };
    let files = find_files(&file, format).unwrap();
    let looked = look(&files, format, &known, 1 << 20).unwrap();
    let category = |values: [&str; 2]| ColumnKind::Category {
        values: values.map(String::from).into(),
    };
    let date = |form| ColumnKind::Date {
        form,
        day_first: false,
    };
    let expected = [
        ("town", category(["Bonn", "Ulm"])),
        ("paid", ColumnKind::Boolean),
        ("price", ColumnKind::Number),
        ("day", date(TimeForm::Day)),
        ("at", date(TimeForm::Both)),
        ("clock", date(TimeForm::Clock)),
        ("count", ColumnKind::Number),
        ("zip", category(["53111", "89073"])),
    ];
    let found = looked
        .features
        .iter()
        .map(String::as_str)
        .zip(looked.kinds.clone());
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(looked.left_out[0].name, "pair");
    let columns = ColumnNames {
        features: looked.features,
        kinds: looked.kinds,
        gaps: Gaps::Keep,
        ..known
    };
    let batch = all(TableReader::open(&file, format, &columns, 1 << 20).unwrap()).unwrap();
    let of_row = |row: usize| &batch.features[row * batch.width..][..batch.width];
    let date = [2024.0, 2.0, 29.0, 3.0];
    let first = [&[1.0, 1.0, 12.5][..], &date, &date, &[13.5, 6.75, 3.0, 1.0]].concat();
    let last = [&[0.0, 0.0, -0.25][..], &date, &date, &[13.5, 0.0, 5.0, 0.0]].concat();
    assert_eq!((of_row(0), of_row(2)), (&first[..], &last[..]));
    assert!(of_row(1).iter().all(|number| number.is_nan()));
    assert_eq!(batch.labels.unwrap(), ["1.5", "2.0", "3.0"]);
}

#[test]
fn a_column_that_is_said_to_be_text_is_left_out_whatever_it_holds() {
    let file = place(written()).join("mixed.parquet").unwrap();
    let files = find_files(&file, TableFormat::Parquet).unwrap();
    let said = ["at", "pair", "day", "town"].map(|name| (name.to_owned(), ColumnType::Text));
    let known = ColumnNames {
        types: said.into(),
        ..ColumnNames::default()
    };
    let looked = look(&files, TableFormat::Parquet, &known, 1 << 20).unwrap();
    let mut left_out: Vec<_> = looked
        .left_out
        .iter()
        .filter(|left| left.reason == "it is said to be text")
        .map(|left| left.name.as_str())
        .collect();
    left_out.sort_unstable();
    assert_eq!(left_out, ["at", "day", "pair", "town"]);
}
