//! Prediction of samples of which nothing is known: each is predicted as it is where its label is beside it.

use crate::common::bitmap::bitmap;
use crate::common::{Place, run_folder, text};
use lockstep_place::{Access, Place as Location};
use lockstep_table::{ColumnNames, FrameElement, FrameReader, TableFormat, TableReader};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PICTURES: &str = r#"
name = "pictures"

[data]
train = "photos/train/"
test = "photos/test/"
transform = { resize = 8, crop = 8 }

[model]
kind = "mlp"
hidden = [8]

[train]
epochs = 2
batch = 8
optimizer = { kind = "adam" }
lanes = 2
workers = 2
"#;

const TABLE: &str = r#"
name = "table"

[data]
train = DATA
test = DATA

[model]
kind = "mlp"
hidden = [8]

[train]
epochs = 3
batch = 8
optimizer = { kind = "adam" }
lanes = 2
workers = 2
"#;

/// A place with two classes of pictures, those to test on also flat in `flat`, and the run of a model.
pub(super) fn pictures() -> (Place, String) {
    let place = Place::new();
    fs::create_dir(place.path("flat")).unwrap();
    for (set, count) in [("train", 12), ("test", 5)] {
        for (class, name) in ["wide", "tall"].into_iter().enumerate() {
            let folder = place.path(&format!("photos/{set}/{name}"));
            fs::create_dir_all(&folder).unwrap();
            for number in 0..count {
                let picture = bitmap(12 + number % 7, 10 + number % 5, class as u32, number);
                fs::write(folder.join(format!("{number}.bmp")), &picture).unwrap();
                if set == "test" {
                    fs::write(place.path(&format!("flat/{name}-{number}.bmp")), picture).unwrap();
                }
            }
        }
    }
    let run = train(&place, PICTURES);
    (place, run)
}

/// A place with tables of three numbers: `known.csv` with what is right in `label`, `new.csv` without.
fn tables(data: &str, label: impl Fn(usize, &[f32; 3]) -> String) -> (Place, String) {
    let place = Place::new();
    let (mut known, mut new) = ("a,label,b,c\n".to_owned(), "a,b,c\n".to_owned());
    for row in 0..40 {
        let [a, b, c] = [row % 7, row % 5, row % 3].map(|n| n as f32 / 4.0 - 0.6);
        let label = label(row, &[a, b, c]);
        known += &format!("{a},{label},{b},{c}\n");
        new += &format!("{a},{b},{c}\n");
    }
    fs::write(place.path("known.csv"), known).unwrap();
    fs::write(place.path("new.csv"), new).unwrap();
    let run = train(&place, &TABLE.replace("DATA", data));
    (place, run)
}

fn train(place: &Place, job: &str) -> String {
    place.write_job(job);
    place.train(&[])["run_dir"].as_str().unwrap().to_owned()
}

/// What is predicted of these, in JSON lines on standard output.
fn predict(place: &Place, run: &str, data: &[&str]) -> Vec<Value> {
    let data: Vec<&str> = data.iter().flat_map(|data| ["--data", data]).collect();
    let ran = place.run(&[&["predict", run, "--out", "-"], &data[..]].concat());
    assert_eq!(ran.code, Some(0), "{data:?}: {}", ran.stderr);
    ran.events()
}

/// Predictions without what tells how samples were named, and without labels.
fn said(rows: &[Value]) -> Vec<Value> {
    let said = |row: &Value| {
        let mut row = row.clone();
        let keys = row.as_object_mut().unwrap();
        for key in ["path", "label", "row"] {
            keys.remove(key);
        }
        row
    };
    rows.iter().map(said).collect()
}

fn paths(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["path"].as_str().unwrap())
        .collect()
}

#[test]
fn a_flat_folder_is_predicted_as_its_pictures_are_in_folders_of_classes() {
    let (place, run) = pictures();
    let known = predict(&place, &run, &[]);
    assert_eq!(known.len(), 10);
    assert!(known.iter().all(|row| row["label"].is_string()));
    for name in ["flat/", "flat"] {
        let flat = predict(&place, &run, &[name]);
        // `tall/3.bmp` and `tall-3.bmp` have the same place in their orders.
        assert_eq!(said(&flat), said(&known));
        assert_eq!(paths(&flat)[3], "tall-3.bmp");
        assert!(flat.iter().all(|row| row.get("label").is_none()));
        assert!((0..).zip(&flat).all(|(number, row)| row["row"] == number));

        let ran = place.run(&["evaluate", &run, "--data", name]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert!(ran.stderr.contains("tall-0.bmp"), "{}", ran.stderr);
    }
    // Some in folders, some not: nobody can say what their classes are.
    let mixed = place.path("photos/test/3.bmp");
    fs::copy(place.path("flat/wide-3.bmp"), &mixed).unwrap();
    let rows = predict(&place, &run, &[]);
    assert_eq!((rows.len(), paths(&rows)[0]), (11, "3.bmp"));
    assert!(rows.iter().all(|row| row.get("label").is_none()));
    assert_eq!(said(&rows[1..]), said(&known));
    assert_eq!(said(&rows[..1]), said(&known[8..9]));
}

#[test]
fn pictures_are_named_one_by_one_or_together_with_folders() {
    let (place, run) = pictures();
    let known = predict(&place, &run, &[]);
    let by_path: BTreeMap<&str, &Value> = paths(&known).into_iter().zip(&known).collect();

    let one = predict(&place, &run, &["photos/test/wide/2.bmp"]);
    assert_eq!(paths(&one), ["photos/test/wide/2.bmp"]);
    assert_eq!(said(&one)[0], said(&[by_path["wide/2.bmp"].clone()])[0]);
    assert!(one[0].get("label").is_none(), "{}", one[0]);

    let (there, two) = (place.path("flat/tall-4.bmp"), "flat/wide-1.bmp");
    let out = place.path("some.jsonl");
    let args = [
        "predict",
        &run,
        "--data",
        text(&there),
        two,
        two,
        "flat/",
        "photos/test",
    ];
    let ran = place.run(&[&args[..], &["--out", text(&out)]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("23 rows"), "{}", ran.stdout);
    let file = fs::read_to_string(&out).unwrap();
    let rows: Vec<Value> = file
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!((0..).zip(&rows).all(|(number, row)| row["row"] == number));
    let named = paths(&rows);
    assert_eq!(named[..4], [text(&there), two, two, "flat/tall-0.bmp"]);
    assert_eq!(named[13], "photos/test/tall/0.bmp");
    let first = ["tall/4.bmp", "wide/1.bmp", "wide/1.bmp"].map(|path| by_path[path].clone());
    assert_eq!(said(&rows), said(&[&first[..], &known, &known].concat()));
    let labels = rows.iter().map(|row| row.get("label").is_some());
    assert_eq!(labels.filter(|known| *known).count(), 10);

    let ran = place.run(&["predict", &run, "--data", "flat/none.bmp", "--out", "-"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("none.bmp"), "{}", ran.stderr);
}

#[test]
fn a_table_without_its_labels_is_predicted_as_with_them() {
    let class = |row: usize, _: &[f32; 3]| ["ant", "bee", "cat"][row % 3].to_owned();
    let (place, run) = tables("'known.csv'", class);
    let known = predict(&place, &run, &[]);
    assert_eq!(known[1]["label"], "bee");
    let new = predict(&place, &run, &["new.csv"]);
    assert_eq!(said(&new), said(&known));
    assert!(new.iter().all(|row| row.get("label").is_none()));
    assert_eq!(predict(&place, &run, &["known.csv"]), known);
    assert_eq!(
        said(&predict(&place, &run, &["new.csv", "known.csv"]))[40..],
        said(&known)
    );

    let ran = place.run(&["evaluate", &run, "--data", "new.csv"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("no column `label`"), "{}", ran.stderr);
    fs::write(place.path("narrow.csv"), "a,b\n1,2\n").unwrap();
    let ran = place.run(&["predict", &run, "--data", "narrow.csv", "--out", "-"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let said = "narrow.csv has no column `c`";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn columns_that_nobody_named_are_found_by_their_names() {
    let class = |row: usize, _: &[f32; 3]| ["ant", "bee", "cat"][row % 3].to_owned();
    let (place, run) = tables("'known.csv'", class);
    let known = said(&predict(&place, &run, &["new.csv"]));
    let new = fs::read_to_string(place.path("new.csv")).unwrap();
    let turned = new.lines().map(|line| {
        let [a, b, c] = line.split(',').collect::<Vec<_>>().try_into().unwrap();
        format!("{b},{c},{a}\n")
    });
    fs::write(place.path("turned.csv"), turned.collect::<String>()).unwrap();
    assert_eq!(said(&predict(&place, &run, &["turned.csv"])), known);
}

#[test]
fn a_table_has_the_columns_of_the_one_that_was_trained_on() {
    let number = |_: usize, [a, b, _]: &[f32; 3]| format!("{}", 2.0 * a - b + 0.5);
    let data = "{ csv = 'known.csv', features = ['c', 'a'], label = 'label' }";
    let (place, run) = tables(data, number);
    let known = predict(&place, &run, &[]);
    assert!(known[0]["predicted"]["label"].is_number(), "{}", known[0]);
    // In another order, beside words.
    let new = fs::read_to_string(place.path("new.csv")).unwrap();
    let turned = new.lines().enumerate().map(|(row, line)| {
        let [a, b, c] = line.split(',').collect::<Vec<_>>().try_into().unwrap();
        let word = if row == 0 { "note" } else { "words" };
        format!("{c},{word},{b},{a}\n")
    });
    fs::write(place.path("turned.csv"), turned.collect::<String>()).unwrap();
    let new = predict(&place, &run, &["turned.csv"]);
    assert_eq!(said(&new), said(&known));
    assert!(new.iter().all(|row| row.get("label").is_none()));
    fs::write(place.path("other.csv"), "a,b\n1,2\n").unwrap();
    let ran = place.run(&["predict", &run, "--data", "other.csv", "--out", "-"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("no column `c`"), "{}", ran.stderr);
}

/// The cells of the rows of a CSV file, which have no quotes.
fn cells(path: &PathBuf) -> Vec<Vec<String>> {
    let file = fs::read_to_string(path).unwrap();
    let row = |line: &str| line.split(',').map(str::to_owned).collect();
    file.lines().map(row).collect()
}

#[test]
fn every_format_says_the_same_of_what_is_not_labelled() {
    let write = |place: &Place, run: &str, name: &str| {
        let out = place.path(name);
        let ran = place.run(&["predict", run, "--data", "new.csv", "--out", text(&out)]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        out
    };
    let class = |row: usize, _: &[f32; 3]| ["ant", "bee", "cat"][row % 3].to_owned();
    let (place, run) = tables("'known.csv'", class);
    let lines = predict(&place, &run, &["new.csv"]);
    let table = cells(&write(&place, &run, "said.csv"));
    // What nothing is known of has no column.
    assert_eq!(table[0], ["path", "predicted", "probability", "row"]);
    for (row, (cells, line)) in table[1..].iter().zip(&lines).enumerate() {
        let probability: f64 = cells[2].parse().unwrap();
        assert_eq!(json!(probability), line["probability"]);
        assert_eq!(cells[1], line["predicted"].as_str().unwrap());
        let row = row.to_string();
        assert_eq!([&cells[0], &cells[3]], [&row, &row]);
    }
    let columns = ColumnNames {
        features: vec!["probability".to_owned(), "row".to_owned()],
        label: Some("predicted".to_owned()),
        ..ColumnNames::default()
    };
    let said = read(&write(&place, &run, "said.parquet"), &columns);
    assert_eq!((said.rows, lines.len()), (40, 40));
    for (row, line) in lines.iter().enumerate() {
        let probability = line["probability"].as_f64().unwrap() as f32;
        assert_eq!(said.features[2 * row..][..2], [probability, row as f32]);
        assert_eq!(line["predicted"], said.labels.as_ref().unwrap()[row]);
    }

    let number = |_: usize, [a, b, _]: &[f32; 3]| format!("{}", 2.0 * a - b + 0.5);
    let (place, run) = tables("'known.csv'", number);
    let lines = predict(&place, &run, &["new.csv"]);
    let table = cells(&write(&place, &run, "said.csv"));
    assert_eq!(table[0], ["path", "predicted_label", "row"]);
    let columns = ColumnNames {
        features: vec!["predicted_label".to_owned()],
        ..ColumnNames::default()
    };
    let said = read(&write(&place, &run, "said.parquet"), &columns);
    assert_eq!(said.rows, 40);
    for ((line, cells), said) in lines.iter().zip(&table[1..]).zip(said.features) {
        let predicted = line["predicted"]["label"].as_f64().unwrap();
        assert_eq!(cells[1].parse::<f64>().unwrap(), predicted);
        assert_eq!(said, predicted as f32);
    }
    place.assert_no_process_is_left();
}

#[test]
fn ids_and_kept_columns_stand_beside_predictions_as_they_are() {
    let class = |row: usize, _: &[f32; 3]| ["ant", "bee", "cat"][row % 3].to_owned();
    let (place, run) = tables("'known.csv'", class);
    let new = fs::read_to_string(place.path("new.csv")).unwrap();
    let first = 9_007_199_254_740_993_i64;
    let named = new.lines().enumerate().map(|(row, line)| match row {
        0 => format!("{line},id,code,price\n"),
        row => format!(
            "{line},{},{row:03},{}\n",
            first + row as i64,
            row as f32 / 2.0
        ),
    });
    fs::write(place.path("named.csv"), named.collect::<String>()).unwrap();
    let args = ["--data", "named.csv", "--id", "id", "--keep", "code,price"];
    let predict = |out: &str| {
        let ran = place.run(&[&["predict", &run, "--out", out], &args[..]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran
    };
    let lines = predict("-").events();
    assert_eq!(lines[4]["id"], first + 5);
    assert_eq!(
        (&lines[4]["code"], &lines[4]["price"]),
        (&json!("005"), &json!(2.5))
    );
    assert!(lines.iter().all(|line| line.get("path").is_none()));
    predict("said.csv");
    let table = cells(&place.path("said.csv"));
    let head = ["id", "code", "price", "predicted", "probability", "row"];
    assert_eq!(table[0], head);
    let id = (first + 5).to_string();
    assert_eq!(table[5][..3], [&id[..], "005", "2.5"]);
    predict("said.parquet");
    let file = Location::parse(text(&place.path("said.parquet")), &Access::default()).unwrap();
    let files = lockstep_table::find_files(&file, TableFormat::Parquet).unwrap();
    let mut frame = FrameReader::open(files, TableFormat::Parquet, 1 << 20).unwrap();
    let elements: Vec<FrameElement> = frame.schema().columns[..3]
        .iter()
        .map(|c| c.element)
        .collect();
    let expected = [
        FrameElement::Int64,
        FrameElement::UInt8,
        FrameElement::Float64,
    ];
    assert_eq!(elements, expected);
    let block = frame.next_block().unwrap().unwrap();
    assert_eq!(block.columns[0].values[32..40], (first + 5).to_ne_bytes());

    for (args, expected) in [
        (["--keep", "nothing"], "has no column `nothing`"),
        (["--keep", "predicted"], "no column `predicted`"),
        (["--id", "label"], "two columns `label`"),
    ] {
        let all = ["predict", &run, "--data", "known.csv", "--out", "no.csv"];
        let ran = place.run(&[&all[..], &args].concat());
        assert_eq!(ran.code, Some(1), "{args:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
    let ran = place.run(&["predict", &run, "--shap", "--out", "no.csv"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("for boosted trees alone"),
        "{}",
        ran.stderr
    );
    assert!(!place.path("no.csv").exists());
}

#[test]
fn rows_whose_label_is_empty_are_predicted() {
    let class = |row: usize, _: &[f32; 3]| ["ant", "bee", "cat"][row % 3].to_owned();
    let number = |_: usize, [a, b, _]: &[f32; 3]| format!("{}", 2.0 * a - b + 0.5);
    for label in [&class as &dyn Fn(usize, &[f32; 3]) -> String, &number] {
        let (place, run) = tables("'known.csv'", label);
        let known = predict(&place, &run, &[]);
        let some = cells(&place.path("known.csv")).into_iter().enumerate();
        let some = some.map(|(row, mut cells)| {
            if row > 0 && row % 4 == 0 {
                cells[1] = ["", "NA"][row / 4 % 2].to_owned();
            }
            format!("{}\n", cells.join(","))
        });
        fs::write(place.path("some.csv"), some.collect::<String>()).unwrap();
        let rows = predict(&place, &run, &["some.csv"]);
        assert_eq!(said(&rows), said(&known));
        for (row, line) in rows.iter().enumerate() {
            assert_eq!(
                line.get("label").is_none(),
                (row + 1) % 4 == 0,
                "{row}: {line}"
            );
        }
        let ran = place.run(&["predict", &run, "--data", "some.csv", "--out", "said.csv"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let table = cells(&place.path("said.csv"));
        assert_eq!((&table[0][1][..], &table[4][1][..]), ("label", ""));
        assert_ne!(table[3][1], "");
        // Whoever measures must know what is right.
        let ran = place.run(&["evaluate", &run, "--data", "some.csv"]);
        assert_eq!(ran.code, Some(1));
        assert!(
            ran.stderr.contains("line 5: the column `label`"),
            "{}",
            ran.stderr
        );
    }
}

fn read(file: &Path, columns: &ColumnNames) -> lockstep_table::RowBatch {
    let table = Location::parse(text(file), &Access::default()).unwrap();
    let mut table = TableReader::open(&table, TableFormat::Parquet, columns, 1 << 20).unwrap();
    table.next_batch().unwrap().unwrap()
}

#[test]
fn parquet_without_labels_is_read_too() {
    let class = |row: usize, _: &[f32; 3]| ["ant", "bee"][row % 2].to_owned();
    let (place, run) = tables("{ csv = 'known.csv', features = ['a', 'b', 'c'] }", class);
    let known = predict(&place, &run, &[]);
    // A file of predictions is one of numbers: so is one without classes.
    let paths: Vec<String> = (0..40).map(|row| format!("sample {row}")).collect();
    let numbers: Vec<f32> = cells(&place.path("new.csv"))[1..]
        .iter()
        .flatten()
        .map(|cell| cell.parse().unwrap())
        .collect();
    let part = lockstep_table::EmbeddingPart {
        paths: &paths,
        labels: &vec![None; 40],
        width: 3,
        embeddings: &numbers,
    };
    let bytes = lockstep_table::write_part(&part, &[]).unwrap();
    fs::write(place.path("new.parquet"), bytes).unwrap();
    let data = "{ parquet = 'new.parquet', path = 'path' }";
    let data = data.replace("new.parquet", text(&place.path("new.parquet")));
    let new = predict(&place, &run, &[&data]);
    assert_eq!(said(&new), said(&known));
    assert_eq!(
        (&new[7]["path"], new[7].get("label")),
        (&json!("sample 7"), None)
    );
}

#[test]
fn probabilities_of_all_classes_are_written_in_every_format() {
    let place = Place::new();
    let run = run_folder(&place.train(&[]));
    let predict = |out: &str| {
        let args = ["predict", text(&run), "--probabilities", "--out", out];
        place.said(&args)
    };
    let lines: Vec<Value> = predict("-")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (table, parquet) = (place.path("said.csv"), place.path("said.parquet"));
    predict(text(&table));
    predict(text(&parquet));
    let table = fs::read_to_string(table).unwrap();
    let mut rows = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let classes: Vec<String> = (0..4).map(|class| format!("probability_{class}")).collect();
    assert_eq!(rows.next().unwrap()[5..], classes);
    let columns = ColumnNames {
        features: classes,
        label: None,
        ..ColumnNames::default()
    };
    let parquet = Location::parse(text(&parquet), &Access::default()).unwrap();
    let mut parquet = TableReader::open(&parquet, TableFormat::Parquet, &columns, 1 << 20).unwrap();
    let numbers = parquet.next_batch().unwrap().unwrap().features;
    assert_eq!((lines.len(), numbers.len()), (203, 4 * 203));
    for (at, (line, row)) in lines.iter().zip(rows).enumerate() {
        for class in 0..4 {
            let said = line["probabilities"][class.to_string()].as_f64().unwrap() as f32;
            assert_eq!(row[5 + class].parse::<f32>().unwrap(), said);
            assert_eq!(numbers[4 * at + class], said);
        }
    }
}
