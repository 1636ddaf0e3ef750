//! What the labels of a table are: found out or said, scaled and back.

use lockstep_base::fs::CacheDir;
use lockstep_data::{
    ColumnNames, ColumnType, CsvFormat, DataError, Dataset, Source, TableFormat, TableSource,
    TargetKind, TargetScale,
};
use lockstep_place::{Access, Place};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder for tables, and a cache in it.
struct Folder {
    folder: TempDir,
    cache: CacheDir,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cache = CacheDir::at(&folder.path().join("cache")).unwrap();
        Self { folder, cache }
    }

    /// A new table with this text.
    fn file(&self, text: &[u8]) -> PathBuf {
        let number = fs::read_dir(self.folder.path()).unwrap().count();
        let path = self.folder.path().join(format!("{number}.csv"));
        fs::write(&path, text).unwrap();
        path
    }
}

fn place(path: &Path) -> Place {
    Place::parse(path.to_str().unwrap(), &Access::default()).unwrap()
}

fn labelled(file: &Path, labels: &[&str], target: Option<TargetKind>) -> Source {
    let labels: Vec<String> = labels.iter().map(|&name| name.to_owned()).collect();
    let (label, numbers) = match &labels[..] {
        [one] => (Some(one.clone()), Vec::new()),
        _ => (None, labels),
    };
    Source::Table(TableSource {
        place: place(file),
        format: TableFormat::Csv(CsvFormat::default()),
        columns: ColumnNames {
            features: vec!["x".into()],
            label,
            numbers,
            ..ColumnNames::default()
        },
        target,
        memory: 1 << 20,
    })
}

#[test]
fn what_the_labels_are_is_found_out_or_said() {
    let folder = Folder::new();
    let file = folder.file(
        b"x,word,whole,decimal,point,flag,other,mixed\n\
          1,a,3,0.5,1.0,0,1,1.5\n\
          2,b,1,-2e3,2.0,1,true,old\n",
    );
    let open = |labels: &[&str], target| {
        let set = Dataset::open(&labelled(&file, labels, target), &folder.cache).unwrap();
        let names = set.output_names().join(" ");
        (
            set.target_kind(),
            names,
            set.numbers().to_vec(),
            set.labels().to_vec(),
        )
    };
    use TargetKind::{Classes, Labels, Numbers};
    let classes =
        |names: &str, labels: &[u32]| (Classes, names.to_owned(), Vec::new(), labels.to_vec());
    let numbers =
        |kind, names: &str, numbers: &[f32]| (kind, names.to_owned(), numbers.to_vec(), Vec::new());
    assert_eq!(open(&["word"], None), classes("a b", &[0, 1]));
    assert_eq!(open(&["whole"], None), classes("1 3", &[1, 0]));
    assert_eq!(open(&["mixed"], None), classes("1.5 old", &[0, 1]));
    assert_eq!(open(&["flag"], None), classes("0 1", &[0, 1]));
    assert_eq!(
        open(&["decimal"], None),
        numbers(Numbers, "decimal", &[0.5, -2e3])
    );
    assert_eq!(
        open(&["point"], None),
        numbers(Numbers, "point", &[1.0, 2.0])
    );
    assert_eq!(
        open(&["whole"], Some(Numbers)),
        numbers(Numbers, "whole", &[3.0, 1.0])
    );
    assert_eq!(
        open(&["decimal"], Some(Classes)),
        classes("-2e3 0.5", &[1, 0])
    );
    let both = numbers(Labels, "flag other", &[0.0, 1.0, 1.0, 1.0]);
    assert_eq!(open(&["flag", "other"], None), both);
    let both = numbers(Numbers, "flag whole", &[0.0, 3.0, 1.0, 1.0]);
    assert_eq!(open(&["flag", "whole"], None), both);

    let refused = |labels: &[&str], target| {
        let set = Dataset::open(&labelled(&file, labels, target), &folder.cache);
        set.unwrap_err().to_string()
    };
    let error = refused(&["flag", "whole"], Some(Labels));
    assert!(
        error.ends_with("row 0: the column `whole` holds 3; labels are 0 or 1, false or true"),
        "{error}"
    );
    let error = refused(&["flag", "whole"], Some(Classes));
    assert!(error.contains("`whole` is a second column"), "{error}");
    let error = refused(&["word"], Some(Numbers));
    assert!(
        error.contains("line 2: the column `word` holds `a`, which is not a number"),
        "{error}"
    );
}

#[test]
fn many_whole_numbers_are_numbers_unless_they_count_classes_or_are_said_to_be_classes() {
    let folder = Folder::new();
    let open = |label: &dyn Fn(u32) -> u32, rows: u32, target, is_category: bool| {
        let rows = (0..rows).map(|row| format!("1,{}\n", label(row)));
        let file = folder.file(("x,y\n".to_owned() + &rows.collect::<String>()).as_bytes());
        let mut source = labelled(&file, &["y"], target);
        if let (true, Source::Table(table)) = (is_category, &mut source) {
            (table.columns.types).insert("y".to_owned(), ColumnType::Category);
        }
        let set = Dataset::open(&source, &folder.cache).unwrap();
        (set.target_kind(), set.classes_as_numbers(), set.classes())
    };
    use TargetKind::{Classes, Numbers};
    let sparse = |row| row % 300 * 7 + 10;
    let consecutive = |row| row % 300;
    assert_eq!(open(&sparse, 900, None, false), (Numbers, Some(300), 0));
    assert_eq!(
        open(&|row| row % 256 * 7, 900, None, false),
        (Classes, None, 256)
    );
    assert_eq!(open(&consecutive, 900, None, false), (Classes, None, 300));
    assert_eq!(
        open(&|row| row % 300 + 1, 900, None, false),
        (Classes, None, 300)
    );
    assert_eq!(
        open(&sparse, 900, Some(Classes), false),
        (Classes, None, 300)
    );
    assert_eq!(open(&sparse, 900, None, true), (Classes, None, 300));
    // More than there can be classes of.
    let ids = open(&|row| row, 70_000, None, false);
    assert_eq!(ids, (Numbers, Some(70_000), 0));
}

#[test]
fn more_decimals_than_there_can_be_classes_are_numbers() {
    let folder = Folder::new();
    let rows = (0..70_000).map(|row| format!("1,{row}.5\n"));
    let file = folder.file(("x,y\n".to_owned() + &rows.collect::<String>()).as_bytes());
    let set = Dataset::open(&labelled(&file, &["y"], None), &folder.cache).unwrap();
    assert_eq!(
        (set.target_kind(), set.len()),
        (TargetKind::Numbers, 70_000)
    );
    let text = fs::read_to_string(&file).unwrap() + "1,last\n";
    let file = folder.file(text.as_bytes());
    let error = Dataset::open(&labelled(&file, &["y"], None), &folder.cache).unwrap_err();
    assert!(
        matches!(error, DataError::NoNumber { row: 70_001, .. }),
        "{error}"
    );
}

#[test]
fn numbers_are_scaled_by_the_rows_that_are_trained_on_and_back() {
    let folder = Folder::new();
    let file = folder.file(b"x,y,z\n1,10,0.5\n2,14,0.5\n3,999,7\n");
    let source = labelled(&file, &["y", "z"], Some(TargetKind::Numbers));
    let set = Dataset::open(&source, &folder.cache).unwrap();
    let scale = TargetScale::of(&set, &[0, 1]);
    assert_eq!(
        (scale.mean(), scale.std()),
        (&[12.0, 0.5][..], &[2.0, 1.0][..])
    );
    let mut out = [9.0; 6];
    set.gather_numbers(&[1, 0, 2], &scale, &mut out);
    assert_eq!(out, [1.0, 0.0, -1.0, 0.0, 493.5, 6.5]);
    assert_eq!((scale.back(0, -1.0), scale.back(1, 6.5)), (10.0, 7.0));
    let whole = TargetScale::new(scale.mean().to_vec(), scale.std().to_vec());
    assert_eq!(whole.as_ref(), Some(&scale));
    assert_eq!(TargetScale::new(vec![0.0], vec![0.0]), None);
    let other = set.sha256();
    let file = folder.file(b"x,y,z\n1,10,0.5\n2,14,0.5\n3,998,7\n");
    let source = labelled(&file, &["y", "z"], Some(TargetKind::Numbers));
    let set = Dataset::open(&source, &folder.cache).unwrap();
    assert_ne!(
        set.sha256(),
        other,
        "what is to be predicted is in the hash"
    );
}
