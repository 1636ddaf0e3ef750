//! The pictures of a folder, in the order in which they are cut into parts.

use crate::{EmbedError, EmbedRecipe, PartTask};
use lockstep_base::random::Stream;
use lockstep_image::{empty_class, is_hidden, is_looked_at};
use lockstep_place::{FileEntry, Place};
use serde::{Deserialize, Serialize};

/// The stream of random numbers that the order is drawn from: the letters of `pictures`.
const ORDER: u64 = u64::from_be_bytes(*b"pictures");
/// Its seed. Training has an order of its own, from the seed of the job.
const SEED: u64 = 0;

/// One picture, as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedPicture {
    /// Its path in the folder, with `/` between names.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// What changes when the file does.
    pub version: String,
}

impl ListedPicture {
    /// Its class: the folder that it is in, below the set's, if it is in one.
    pub fn class(&self) -> Option<&str> {
        self.path.split_once('/').map(|(class, _)| class)
    }
}

/// The pictures of a folder, in the order of their parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// The pictures.
    pub pictures: Vec<ListedPicture>,
    /// Files that are not looked at, since their names are none of pictures; hidden ones are not among them.
    pub others: Vec<String>,
    folder: String,
}

impl Inventory {
    /// Lists `folder`. The order is a function of the names alone, so that a job with another seed finds the vectors of the
    /// first.
    ///
    /// # Errors
    /// When the folder cannot be listed, or holds no pictures in folders named after their classes.
    pub fn take(folder: &Place) -> Result<Inventory, EmbedError> {
        let inventory = Inventory::list(folder, folder.list()?, true)?;
        if let Some(path) = folder.local() {
            let paths = inventory
                .pictures
                .iter()
                .map(|picture| picture.path.as_str());
            let found = empty_class(path, paths).map_err(|source| EmbedError::List {
                folder: folder.to_string(),
                source,
            })?;
            if let Some(class) = found {
                return Err(EmbedError::EmptyClass {
                    folder: folder.to_string(),
                    class,
                });
            }
        }
        let mut pictures = inventory.pictures.iter();
        match pictures.find(|picture| picture.class().is_none()) {
            None => Ok(inventory),
            Some(flat) => Err(EmbedError::NoClass {
                folder: folder.to_string(),
                path: flat.path.clone(),
            }),
        }
    }

    /// Lists `folder`, or of it the pictures of these names. They need not be in folders named after their classes.
    ///
    /// # Errors
    /// When the folder cannot be listed, or holds no pictures.
    pub fn take_samples(folder: &Place, names: Option<&[String]>) -> Result<Inventory, EmbedError> {
        let entries = match names {
            Some(names) => folder.pick(names)?,
            None => folder.list()?,
        };
        Inventory::list(folder, entries, false)
    }

    /// Takes the pictures out of all files of a folder, which may be those of `classes`.
    fn list(
        folder: &Place,
        entries: Vec<FileEntry>,
        classes: bool,
    ) -> Result<Inventory, EmbedError> {
        let (found, others): (Vec<&FileEntry>, Vec<&FileEntry>) = (entries.iter())
            .filter(|entry| !is_hidden(&entry.path))
            .partition(|entry| is_looked_at(&entry.path, classes));
        let mut pictures: Vec<ListedPicture> = found.into_iter().map(of).collect();
        if pictures.is_empty() {
            return Err(EmbedError::NoPictures {
                folder: folder.to_string(),
                hint: match entries.len() {
                    0 => "; it is empty, or does not exist".to_owned(),
                    other => format!("; it holds {other} other files"),
                },
            });
        }
        Stream::new(SEED, ORDER).shuffle(&mut pictures);
        Ok(Inventory {
            pictures,
            others: others.into_iter().map(|entry| entry.path.clone()).collect(),
            folder: folder.to_string(),
        })
    }

    /// The folder's name.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// The parts, of `size` pictures each but for the last.
    pub fn parts(&self, size: usize, recipe: &EmbedRecipe) -> Vec<PartTask> {
        let cut = self.pictures.chunks(size.max(1)).enumerate();
        cut.map(|(number, pictures)| PartTask::new(number, pictures.to_vec(), recipe))
            .collect()
    }
}

fn of(entry: &FileEntry) -> ListedPicture {
    ListedPicture {
        path: entry.path.clone(),
        size: entry.size,
        version: entry.version.clone(),
    }
}
