//! The folders that the archives of CIFAR-10 and CIFAR-100 unpack to: which files are which part, and
//! what the classes are called.

use crate::DataError;
use crate::cifar::{Cifar, CifarKind};
use crate::file::regular;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// A part of CIFAR-10 or CIFAR-100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CifarSplit {
    /// The images to train on.
    Train,
    /// The images to test on.
    Test,
}

/// No list of a hundred names is as long.
const MOST_NAMES_BYTES: u64 = 64 << 10;

impl CifarKind {
    fn files(self, split: CifarSplit) -> &'static [&'static str] {
        match (self, split) {
            (CifarKind::Cifar10, CifarSplit::Train) => &[
                "data_batch_1.bin",
                "data_batch_2.bin",
                "data_batch_3.bin",
                "data_batch_4.bin",
                "data_batch_5.bin",
            ],
            (CifarKind::Cifar10, CifarSplit::Test) => &["test_batch.bin"],
            (CifarKind::Cifar100, CifarSplit::Train) => &["train.bin"],
            (CifarKind::Cifar100, CifarSplit::Test) => &["test.bin"],
        }
    }

    /// The file that names the classes, one a line.
    fn names_file(self) -> &'static str {
        match self {
            CifarKind::Cifar10 => "batches.meta.txt",
            CifarKind::Cifar100 => "fine_label_names.txt",
        }
    }

    fn is_in(self, folder: &Path) -> bool {
        let splits = [CifarSplit::Train, CifarSplit::Test];
        let mut files = splits.into_iter().flat_map(|split| self.files(split));
        files.any(|file| folder.join(file).exists())
    }
}

/// Whether the folder looks like one of CIFAR's.
pub(crate) fn is_cifar(folder: &Path) -> bool {
    [CifarKind::Cifar10, CifarKind::Cifar100]
        .into_iter()
        .any(|kind| kind.is_in(folder))
}

/// One part of the set in `folder`, and the names of its classes if they lie there.
///
/// All files of the part must be there: with one missing, the set would silently be a smaller one.
pub(crate) fn find(
    folder: &Path,
    split: CifarSplit,
) -> Result<(Cifar, Option<Vec<String>>), DataError> {
    let metadata = fs::metadata(folder).map_err(DataError::io("open", folder))?;
    let not_cifar = |reason| {
        Err(DataError::NotCifar {
            folder: folder.to_owned(),
            reason,
        })
    };
    if !metadata.is_dir() {
        return not_cifar("it is not a folder; name files in a list: { cifar = [\"…\"] }");
    }
    let kinds = [CifarKind::Cifar10, CifarKind::Cifar100];
    let Some(kind) = kinds.into_iter().find(|kind| kind.is_in(folder)) else {
        return not_cifar(
            "it has neither data_batch_1.bin to data_batch_5.bin and test_batch.bin, as CIFAR-10 has, \
             nor train.bin and test.bin, as CIFAR-100 has",
        );
    };
    let files = kind.files(split).iter().map(|name| folder.join(name));
    let files: Vec<_> = files.collect();
    for file in &files {
        regular(file)?;
    }
    let names = class_names(kind, &folder.join(kind.names_file()))?;
    Ok((Cifar { kind, files }, names))
}

/// The names in the file `path`, if there is such a file: one for each class.
fn class_names(kind: CifarKind, path: &Path) -> Result<Option<Vec<String>>, DataError> {
    if !path.exists() {
        return Ok(None);
    }
    regular(path)?;
    let mut text = String::new();
    let file = File::open(path).map_err(DataError::io("open", path))?;
    file.take(MOST_NAMES_BYTES)
        .read_to_string(&mut text)
        .map_err(DataError::io("read", path))?;
    let names: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    if names.len() == kind.classes() {
        return Ok(Some(names));
    }
    Err(DataError::Unfit {
        path: path.to_owned(),
        role: "names of classes",
        reason: format!(
            "it has {} names, and {} has {} classes",
            names.len(),
            kind.name(),
            kind.classes()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use crate::{Dataset, Source};
    use CifarSplit::{Test, Train};

    fn record(labels: &[u8]) -> Vec<u8> {
        [labels, &[0; 3072]].concat()
    }

    fn write(folder: &Folder, name: &str, bytes: &[u8]) {
        fs::write(folder.path().join(name), bytes).unwrap();
    }

    fn open(folder: &Folder, split: CifarSplit) -> Result<Dataset, DataError> {
        let path = folder.path().to_owned();
        Dataset::open(
            &Source::CifarFolder {
                folder: path,
                split,
            },
            &folder.cache(),
        )
    }

    fn cifar_10() -> Folder {
        let folder = Folder::new();
        for batch in 1..=5 {
            write(
                &folder,
                &format!("data_batch_{batch}.bin"),
                &record(&[batch]),
            );
        }
        write(&folder, "test_batch.bin", &record(&[9]));
        folder
    }

    #[test]
    fn each_split_has_its_files_and_names() {
        let folder = cifar_10();
        let (train, test) = (open(&folder, Train).unwrap(), open(&folder, Test).unwrap());
        assert_eq!(
            (train.labels(), test.labels()),
            (&[1, 2, 3, 4, 5][..], &[9][..])
        );
        assert_eq!(
            (train.classes(), train.class_names()[9].as_str()),
            (10, "9")
        );
        assert!(train.name().ends_with(" (train)"), "{}", train.name());
        test.check_against(&train).unwrap();

        write(
            &folder,
            "batches.meta.txt",
            b"airplane\na\nb\nc\nd\ne\nf\ng\nh\ntruck\n\n",
        );
        let names = open(&folder, Test).unwrap();
        assert_eq!(
            (names.classes(), names.class_names()[9].as_str()),
            (10, "truck")
        );
    }

    #[test]
    fn cifar_100_is_told_by_its_files() {
        let folder = Folder::new();
        write(&folder, "train.bin", &record(&[19, 99]));
        let train = open(&folder, Train).unwrap();
        assert_eq!((train.labels(), train.classes()), (&[99][..], 100));
        let missing = open(&folder, Test).unwrap_err().to_string();
        assert!(missing.ends_with("test.bin does not exist"), "{missing}");
    }

    #[test]
    fn a_missing_batch_is_named_rather_than_left_out() {
        let folder = cifar_10();
        fs::remove_file(folder.path().join("data_batch_4.bin")).unwrap();
        let error = open(&folder, Train).unwrap_err().to_string();
        assert!(
            error.ends_with("data_batch_4.bin does not exist"),
            "{error}"
        );
        open(&folder, Test).unwrap();
    }

    #[test]
    fn a_folder_without_the_files_is_told_what_it_lacks() {
        let folder = Folder::new();
        let error = open(&folder, Train).unwrap_err().to_string();
        assert!(
            error.starts_with(folder.path().to_str().unwrap()),
            "{error}"
        );
        assert!(
            error.contains("data_batch_1.bin") && error.contains("train.bin"),
            "{error}"
        );
        let file = Source::CifarFolder {
            folder: folder.file(b""),
            split: Train,
        };
        let error = Dataset::open(&file, &folder.cache())
            .unwrap_err()
            .to_string();
        assert!(error.contains("not a folder"), "{error}");
    }

    #[test]
    fn names_that_are_not_one_for_each_class_are_refused() {
        let folder = cifar_10();
        write(&folder, "batches.meta.txt", b"airplane\nautomobile\n");
        let error = open(&folder, Test).unwrap_err().to_string();
        let expected = "batches.meta.txt cannot be used as names of classes: it has 2 names, and \
                        CIFAR-10 has 10 classes";
        assert!(error.ends_with(expected), "{error}");
        write(&folder, "batches.meta.txt", &[0xff; 30]);
        let error = open(&folder, Test).unwrap_err().to_string();
        assert!(error.contains("batches.meta.txt"), "{error}");
    }
}
