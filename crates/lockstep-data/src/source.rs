//! Where a data set comes from.

use crate::file::{regular, shown};
use crate::{DataError, known};
use lockstep_store::CacheDir;
use std::path::{Path, PathBuf};

/// Where a data set comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A pair of IDX files, plain or gzipped.
    Idx {
        /// The samples: any element type, as `[n]`, `[n, length]`, `[n, h, w]` or `[n, c, h, w]`.
        images: PathBuf,
        /// The labels: integers as `[n]`. If absent, the file beside the images whose name has
        /// `labels` for `images` and `idx1` for `idx3`.
        labels: Option<PathBuf>,
        /// The names of the classes. If absent, there are as many as the largest label says, named
        /// by their numbers.
        class_names: Option<Vec<String>>,
    },
    /// A data set that is brought from its public place when it is missing.
    Known {
        /// Its name, such as `fashion-mnist`.
        name: String,
        /// Its part, such as `train`.
        split: String,
    },
}

/// The files that a source stands for, all in place.
pub(crate) struct Files {
    /// What a person calls the set.
    pub(crate) name: String,
    pub(crate) images: PathBuf,
    pub(crate) labels: PathBuf,
    pub(crate) class_names: Option<Vec<String>>,
}

impl Source {
    /// Brings a known set into the cache if it is not there; does nothing for files of the user's
    /// own. `progress` hears what is being done, one sentence at a time.
    ///
    /// [`Dataset::open`](crate::Dataset::open) does the same, silently.
    ///
    /// # Errors
    /// When there is no such set, or no way leads to it.
    pub fn ensure(
        &self,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), DataError> {
        self.files(cache, progress).map(drop)
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
                regular(images)?;
                Ok(Files {
                    name: shown(images).to_string(),
                    images: images.clone(),
                    labels: labels.clone().map_or_else(|| labels_beside(images), Ok)?,
                    class_names: class_names.clone(),
                })
            }
            Source::Known { name, split } => {
                let (set, part) = known::find_split(name, split)?;
                let folder = known::get(name, cache, progress)?;
                Ok(Files {
                    name: format!("{name}:{split}"),
                    images: folder.join(part.images),
                    labels: folder.join(part.labels),
                    class_names: Some(set.class_names.iter().map(|&name| name.into()).collect()),
                })
            }
        }
    }
}

/// The file of labels that belongs to a file of images by its name.
fn labels_beside(images: &Path) -> Result<PathBuf, DataError> {
    let missing = |reason| DataError::NoLabels {
        images: images.to_owned(),
        reason,
    };
    let name = images
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let labels = name.replace("images", "labels").replace("idx3", "idx1");
    if labels == name {
        return Err(missing(
            "its name does not contain `images-idx3` for `labels-idx1`".to_owned(),
        ));
    }
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
            error.ends_with("pictures is a folder, not a regular file"),
            "{error}"
        );
    }

    #[test]
    fn an_unknown_set_or_split_is_refused_with_those_there_are() {
        let folder = Folder::new();
        for (name, split) in [("mnist", "train"), ("fashion-mnist", "val")] {
            let source = Source::Known {
                name: name.into(),
                split: split.into(),
            };
            let error = source
                .ensure(&folder.cache(), &mut |_| {})
                .unwrap_err()
                .to_string();
            assert!(error.contains(name), "{error}");
            assert!(
                error.contains("fashion-mnist:train, fashion-mnist:test"),
                "{error}"
            );
        }
    }
}
