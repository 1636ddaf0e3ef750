//! Where a data set comes from.

use crate::DataError;
use crate::cifar::{Cifar, CifarKind};
use crate::cifar_folder::{self, CifarSplit};
use crate::decoded::Recipe;
use crate::file::{regular, shown};
use crate::idx_pair::IdxPair;
use crate::known;
use crate::part::{PartSet, PartSource};
use crate::pictures::{PictureSet, Pictures};
use crate::table::TableSet;
use crate::target::TargetKind;
use lockstep_base::fs::CacheDir;
use lockstep_base::known::Content;
use lockstep_place::Place;
use lockstep_table::{
    ColumnNames, Gaps, InputColumn, KeptColumn, TableFormat, find_files, keep_columns,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where a data set comes from. It can be told to another process, which is told the secrets of its places too.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "a job has a few of these")]
pub enum Source {
    /// A pair of IDX files, plain or gzipped.
    Idx {
        /// The samples: any element type, as `[n]`, `[n, length]`, `[n, height, width]` or
        /// `[n, height, width, channels]` with 1 to 4 channels.
        images: PathBuf,
        /// The labels: integers as `[n]`. If absent, the file beside the images whose name has
        /// `labels` for `images` and `idx1` for `idx3`.
        labels: Option<PathBuf>,
        /// The names of the classes. If absent, there are as many as the largest label says, named
        /// by their numbers.
        class_names: Option<Vec<String>>,
    },
    /// The folder that the archive of CIFAR-10's or CIFAR-100's binary files unpacks to. The classes
    /// are named by its `batches.meta.txt` or `fine_label_names.txt` if that is there.
    CifarFolder {
        /// The folder.
        folder: PathBuf,
        /// Which part of it.
        split: CifarSplit,
    },
    /// Files in the binary format of CIFAR-10, plain or gzipped, which make one set in their order.
    CifarFiles {
        /// The files.
        files: Vec<PathBuf>,
    },
    /// A table.
    Table(TableSource),
    /// A folder of pictures, whose classes are the folders in it.
    Pictures(Pictures),
    /// Samples to predict: what is known of them is read where it is there, but it need not be. Pictures that
    /// do not all lie in folders, and tables without their label columns, make a set of which it is not
    /// ([`Dataset::is_labelled`](crate::Dataset::is_labelled)).
    Samples {
        /// Where they come from.
        source: Box<Source>,
        /// The names of the pictures that are meant, where not all of their folder are. What they are is not known.
        pictures: Option<Vec<String>>,
    },
    /// A part of another set.
    Part(PartSource),
    /// A data set that is brought from its public place when it is missing.
    Known {
        /// Its name, such as `fashion-mnist`.
        name: String,
        /// Its part, such as `train`.
        split: String,
    },
}

/// Where a table comes from: a file, or all of its format below a folder, sorted by their paths. The first line of a CSV
/// file names its columns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TableSource {
    /// The file or folder.
    #[serde(with = "lockstep_place::portable")]
    pub place: Place,
    /// What the files are.
    pub format: TableFormat,
    /// Which columns mean what; the labels are in `label` unless another column is named.
    pub columns: ColumnNames,
    /// What the labels are. If absent, that is found out: decimals and many whole numbers are numbers to predict, several
    /// columns of 0 and 1 are labels, and everything else is classes.
    pub target: Option<TargetKind>,
    /// Bytes that reading may take.
    pub memory: u64,
}

/// The files that a source stands for, all in place.
pub(crate) struct Files {
    /// What a person calls the set.
    pub(crate) name: String,
    pub(crate) recipe: Box<dyn Recipe>,
    pub(crate) class_names: Option<Vec<String>>,
}

impl Source {
    /// The table that it is, or whose samples it takes.
    fn table_mut(&mut self) -> Option<&mut TableSource> {
        match self {
            Source::Table(table) => Some(table),
            Source::Samples { source, .. } => source.table_mut(),
            _ => None,
        }
    }

    /// The part that it is, or whose samples it takes.
    fn part_mut(&mut self) -> Option<&mut PartSource> {
        match self {
            Source::Part(part) => Some(part),
            Source::Samples { source, .. } => source.part_mut(),
            _ => None,
        }
    }

    /// Some columns of the table that it is, or whose samples it takes, as they are, row by row.
    ///
    /// # Errors
    /// When it is no table, lacks a column, or cannot be read.
    pub fn keep_columns(
        &self,
        names: &[String],
        cache: &CacheDir,
    ) -> Result<Vec<KeptColumn>, DataError> {
        match self {
            Source::Table(table) => {
                let files = find_files(&table.place, table.format)?;
                let kept = keep_columns(&files, table.format, names, table.memory)?;
                Ok(kept)
            }
            Source::Samples { source, .. } => source.keep_columns(names, cache),
            Source::Part(part) => {
                let rows = part.rows(cache)?;
                let kept = part.whole.keep_columns(names, cache)?.into_iter();
                Ok(kept.map(|column| column.of_rows(&rows)).collect())
            }
            _ => Err(DataError::NoTable {
                columns: names.to_vec(),
            }),
        }
    }

    /// The same source, whose labels are this if it is a table that does not say what they are by itself.
    #[must_use]
    pub fn labelled_as(mut self, kind: TargetKind) -> Self {
        if let Some(table) = self.table_mut() {
            table.target = Some(kind);
        }
        self
    }

    /// The same source, whose samples are read as those of a table with these columns: what they hold, and in which
    /// order, unless the source names others. With `gaps`, values may be missing. Of a part of a set, they must be the same.
    #[must_use]
    pub fn with_columns(mut self, inputs: &[InputColumn], gaps: bool) -> Self {
        if let Some(part) = self.part_mut() {
            part.expected = inputs.to_vec();
        }
        if let Some(TableSource { columns, .. }) = self.table_mut().filter(|_| !inputs.is_empty()) {
            if columns.features.is_empty() {
                columns.features = inputs.iter().map(|input| input.name.clone()).collect();
                columns.of_training = true;
            }
            if columns.features.len() == inputs.len() {
                columns.kinds = inputs.iter().map(|input| input.kind.clone()).collect();
            }
            if gaps {
                columns.gaps = Gaps::Keep;
            }
        }
        self
    }

    /// The same source, in which numbers of a table may be missing: they are NaN.
    #[must_use]
    pub fn with_gaps(mut self) -> Self {
        if let Some(table) = self.table_mut() {
            table.columns.gaps = Gaps::Keep;
        }
        self
    }

    /// The same source, whose samples belong to groups by this column if it names no other.
    #[must_use]
    pub fn grouped_by(mut self, group: Option<&str>) -> Self {
        if let Some(TableSource { columns, .. }) = self.table_mut() {
            columns.group = columns.group.take().or(group.map(str::to_owned));
        }
        self
    }

    /// Whether opening it may be a matter of minutes.
    pub(crate) fn takes_long(&self) -> bool {
        match self {
            Source::Table(_) | Source::Pictures(_) => true,
            Source::Samples { source, .. } => source.takes_long(),
            _ => false,
        }
    }

    pub(crate) fn files(
        &self,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Files, DataError> {
        match self {
            Source::Idx {
                images,
                labels,
                class_names,
            } => {
                // The images come first: labels are only looked for beside images that are there.
                images_file(images, labels.is_none())?;
                let labels = labels.clone().map_or_else(|| labels_beside(images), Ok)?;
                let images = images.clone();
                Ok(Files {
                    name: shown(&images).to_string(),
                    recipe: Box::new(IdxPair { images, labels }),
                    class_names: class_names.clone(),
                })
            }
            Source::CifarFolder { folder, split } => {
                let (cifar, names) = cifar_folder::find(folder, *split)?;
                let part = match split {
                    CifarSplit::Train => "train",
                    CifarSplit::Test => "test",
                };
                Ok(Files {
                    name: format!("{} ({part})", shown(folder)),
                    class_names: Some(names.unwrap_or_else(|| numbered(cifar.kind))),
                    recipe: Box::new(cifar),
                })
            }
            Source::CifarFiles { files } => {
                each_once(files)?;
                let (kind, files) = (CifarKind::Cifar10, files.clone());
                let names: Vec<_> = files.iter().map(|file| shown(file).to_string()).collect();
                Ok(Files {
                    name: names.join(", "),
                    recipe: Box::new(Cifar { kind, files }),
                    class_names: Some(numbered(kind)),
                })
            }
            Source::Table(table) => Ok(of_table(TableSet::find(table)?)),
            Source::Pictures(pictures) => Ok(of_pictures(PictureSet::find(pictures)?)),
            Source::Part(part) => PartSet::find(part, cache, progress),
            Source::Samples { source, pictures } => match &**source {
                Source::Pictures(folder) => {
                    let set = PictureSet::find_samples(folder, pictures.as_deref())?;
                    Ok(of_pictures(set))
                }
                Source::Table(table) => Ok(of_table(TableSet::find(table)?.of_samples()?)),
                other => other.files(cache, progress),
            },
            Source::Known { name, split } => {
                let (set, part) = known::find_split(name, split)?;
                let folder = known::get(name, cache, progress)?;
                Ok(Files {
                    name: format!("{name}:{split}"),
                    recipe: match part.content {
                        Content::Idx { images, labels } => Box::new(IdxPair {
                            images: folder.join(images),
                            labels: folder.join(labels),
                        }),
                        Content::Cifar10 { files } => Box::new(Cifar {
                            kind: CifarKind::Cifar10,
                            files: files.iter().map(|file| folder.join(file)).collect(),
                        }),
                    },
                    class_names: Some(set.class_names.iter().map(|&name| name.into()).collect()),
                })
            }
        }
    }
}

fn of_table(table: TableSet) -> Files {
    Files {
        name: table.name(),
        recipe: Box::new(table),
        class_names: None,
    }
}

fn of_pictures(pictures: PictureSet) -> Files {
    Files {
        name: pictures.name(),
        recipe: Box::new(pictures),
        class_names: None,
    }
}

/// The classes of a set that does not name them.
fn numbered(kind: CifarKind) -> Vec<String> {
    (0..kind.classes()).map(|class| class.to_string()).collect()
}

/// Checks that `images` is a file. A folder of CIFAR's is a mistake that is easily made; one that was named `alone` may
/// have been meant to hold pictures.
fn images_file(images: &Path, alone: bool) -> Result<(), DataError> {
    match regular(images) {
        Err(DataError::NotAFile { path, .. }) if cifar_folder::is_cifar(images) => {
            Err(DataError::SplitNeeded { folder: path })
        }
        Err(DataError::NotAFile { path, .. }) if alone && path.is_dir() => {
            let reason = match table_kind(&path) {
                Some("csv") => {
                    "it is a folder of CSV files; as a table it is named { csv = \"FOLDER\", label = \"COLUMN\" }"
                }
                Some(_) => {
                    "it is a folder of Parquet files; as a table it is named { parquet = \"FOLDER\", label = \"COLUMN\" }"
                }
                None => {
                    "it is a folder without pictures (.jpg, .png, .webp, .bmp) or folders of them; a table is named by \
                     its file"
                }
            };
            Err(DataError::NoSamples {
                place: shown(&path).to_string(),
                reason,
            })
        }
        result => result.map(drop),
    }
}

/// Which files of tables a folder holds: `csv` or `parquet`, if any.
fn table_kind(folder: &Path) -> Option<&'static str> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let kind = |name: String| match name.strip_suffix(".gz").unwrap_or(&name) {
        name if name.ends_with(".csv") => Some("csv"),
        name if name.ends_with(".parquet") => Some("parquet"),
        _ => None,
    };
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().to_lowercase());
    names.find_map(kind)
}

/// Checks that there are files and that none is named twice: its samples would be seen twice.
fn each_once(files: &[PathBuf]) -> Result<(), DataError> {
    let unfit = |path: &Path, reason: &str| DataError::Unfit {
        path: path.to_owned(),
        role: "images of CIFAR-10",
        reason: reason.to_owned(),
    };
    let mut seen = Vec::new();
    for path in files {
        regular(path)?;
        let whole = path.canonicalize().map_err(DataError::io("open", path))?;
        if seen.contains(&whole) {
            return Err(unfit(path, "it is named twice"));
        }
        seen.push(whole);
    }
    if seen.is_empty() {
        return Err(unfit(Path::new("[]"), "no file is named"));
    }
    Ok(())
}

/// The file of labels that belongs to a file of images by its name.
///
/// # Errors
/// When the name says nothing of labels, or no such file is there.
pub fn labels_beside(images: &Path) -> Result<PathBuf, DataError> {
    let missing = |reason| DataError::NoLabels {
        images: images.to_owned(),
        reason,
    };
    let name = images
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let Some(labels) = lockstep_base::known::labels_name(name) else {
        return Err(missing(
            "its name does not contain `images-idx3` for `labels-idx1` (a table's name ends in .csv or .parquet, a \
             folder's of pictures in /)"
                .to_owned(),
        ));
    };
    let labels = images.with_file_name(labels);
    if !labels.exists() {
        return Err(missing(format!("{} does not exist", shown(&labels))));
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dataset;
    use crate::testing::{Folder, idx_bytes};
    use std::fs;

    fn open(folder: &Folder, name: &str) -> Result<Dataset, DataError> {
        let images = folder.path().join(name);
        Dataset::open(
            &Source::Idx {
                images,
                labels: None,
                class_names: None,
            },
            &folder.cache(),
        )
    }

    #[test]
    fn labels_are_found_beside_the_images() {
        let folder = Folder::new();
        for (images, labels) in [
            ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
            ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"),
        ] {
            fs::write(folder.path().join(images), idx_bytes(8, &[2], &[5, 6])).unwrap();
            let error = open(&folder, images).unwrap_err().to_string();
            assert!(
                error.contains(labels) && error.contains("does not exist"),
                "{error}"
            );
            fs::write(folder.path().join(labels), idx_bytes(8, &[2], &[1, 0])).unwrap();
            assert_eq!(open(&folder, images).unwrap().labels(), [1, 0]);
        }
    }

    #[test]
    fn images_without_a_telling_name_need_their_labels_named() {
        let folder = Folder::new();
        fs::write(folder.path().join("pictures"), idx_bytes(8, &[1], &[0])).unwrap();
        let error = open(&folder, "pictures").unwrap_err().to_string();
        assert!(
            error.contains("pictures") && error.contains("labels = …"),
            "{error}"
        );
    }

    #[test]
    fn of_two_missing_files_the_one_that_was_given_is_named() {
        for name in ["x-images-idx3", "nope"] {
            let error = open(&Folder::new(), name).unwrap_err();
            assert!(matches!(error, DataError::Missing { path } if path.ends_with(name)));
        }
    }

    #[test]
    fn a_folder_for_images_is_called_a_folder() {
        let folder = Folder::new();
        fs::create_dir(folder.path().join("pictures")).unwrap();
        let error = open(&folder, "pictures").unwrap_err().to_string();
        assert!(
            error.contains("pictures holds no samples: it is a folder without"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_of_cifars_for_images_is_told_how_to_say_which_part() {
        let folder = Folder::new();
        fs::write(folder.path().join("test_batch.bin"), "").unwrap();
        let error = open(&folder, "").unwrap_err().to_string();
        assert!(error.contains("{ cifar = "), "{error}");
        assert!(error.contains("split = \"train\""), "{error}");
    }

    #[test]
    fn a_file_that_is_named_twice_is_refused() {
        let folder = Folder::new();
        let file = folder.file(&[0; 3073]);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let open = |files| Dataset::open(&Source::CifarFiles { files }, &folder.cache());
        let error = open(vec![file, link]).unwrap_err().to_string();
        assert!(
            error.ends_with("link cannot be used as images of CIFAR-10: it is named twice"),
            "{error}"
        );
        assert!(open(vec![]).is_err());
    }

    #[test]
    fn an_unknown_set_or_split_is_refused_with_those_there_are() {
        let folder = Folder::new();
        for (name, split) in [("mnist", "train"), ("fashion-mnist", "val")] {
            let source = Source::Known {
                name: name.into(),
                split: split.into(),
            };
            let error = Dataset::open(&source, &folder.cache());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            assert!(
                error.contains("fashion-mnist:train, fashion-mnist:test"),
                "{error}"
            );
        }
    }
}
