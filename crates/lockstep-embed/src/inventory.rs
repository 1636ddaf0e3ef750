//! The pictures of a folder, in the order in which they are cut into parts.

use crate::{EmbedError, PartTask, Recipe};
use lockstep_place::{Entry, Place};
use lockstep_random::Stream;
use serde::{Deserialize, Serialize};

/// Files with other extensions are not pictures.
const EXTENSIONS: [&str; 5] = ["jpg", "jpeg", "png", "webp", "bmp"];

/// The stream of random numbers that the order is drawn from: the letters of `pictures`.
const ORDER: u64 = u64::from_be_bytes(*b"pictures");

/// One picture, as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// Its path in the folder, with `/` between names.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// What changes when the file does.
    pub version: String,
}

impl Picture {
    /// Its class: the folder that it is in, below the set's.
    pub fn class(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }
}

/// The pictures of a folder, in the order of their parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// The pictures.
    pub pictures: Vec<Picture>,
    folder: String,
}

impl Inventory {
    /// Lists `folder`. The order is a function of the names and of `seed`.
    ///
    /// # Errors
    /// When the folder cannot be listed, or holds no pictures in folders named after their classes.
    pub fn take(folder: &Place, seed: u64) -> Result<Inventory, EmbedError> {
        let entries = folder.list()?;
        let mut pictures: Vec<Picture> = entries
            .iter()
            .filter(|entry| is_picture(entry))
            .map(of)
            .collect();
        if pictures.is_empty() {
            let flat = entries
                .iter()
                .find(|entry| !entry.path.contains('/') && has_extension(&entry.path));
            return Err(EmbedError::NoPictures {
                folder: folder.to_string(),
                hint: match (flat, entries.len()) {
                    (Some(flat), _) => format!("; {} is in no such folder", flat.path),
                    (None, 0) => "; it is empty, or does not exist".to_owned(),
                    (None, other) => format!("; it holds {other} other files"),
                },
            });
        }
        Stream::new(seed, ORDER).shuffle(&mut pictures);
        Ok(Inventory {
            pictures,
            folder: folder.to_string(),
        })
    }

    /// The folder's name.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// The parts, of `size` pictures each but for the last.
    pub fn parts(&self, size: usize, recipe: &Recipe) -> Vec<PartTask> {
        let cut = self.pictures.chunks(size.max(1)).enumerate();
        cut.map(|(number, pictures)| PartTask::new(number, pictures.to_vec(), recipe))
            .collect()
    }
}

fn of(entry: &Entry) -> Picture {
    Picture {
        path: entry.path.clone(),
        size: entry.size,
        version: entry.version.clone(),
    }
}

/// Whether this is a picture in a folder of its class. Hidden files and folders are not looked at.
fn is_picture(entry: &Entry) -> bool {
    let hidden = entry.path.split('/').any(|name| name.starts_with('.'));
    !hidden && entry.path.contains('/') && has_extension(&entry.path)
}

fn has_extension(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|found| {
        EXTENSIONS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(found))
    })
}
