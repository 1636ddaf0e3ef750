//! What lies in a folder of pictures: its classes, their sizes, and what cannot be read.

use super::PictureSet;
use super::threads::{DecodeThreads, NoPixels};
use crate::{DataError, Pictures, SkippedFile};
use lockstep_image::{Filter, Transform};
use serde::Serialize;
use std::collections::BTreeMap;

/// What lies in a folder of pictures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PictureSurvey {
    /// The classes by their names. The name of those that are in no folder of a class is empty.
    pub classes: Vec<PictureClass>,
    /// How many pictures of each format there are, by its name.
    pub formats: BTreeMap<String, usize>,
    /// Bytes of all files.
    pub bytes: u64,
    /// Width and height of the picture with the fewest pixels, and of the one with the most; nothing if none can be read.
    pub sizes: Option<[(u32, u32); 2]>,
    /// The shorter side that half of the pictures have at least.
    pub shorter_side: Option<u32>,
    /// What cannot be read.
    pub bad: Vec<SkippedFile>,
}

/// A class of pictures: the folder that they are in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PictureClass {
    /// The name of the folder.
    pub name: String,
    /// Pictures that can be read.
    pub pictures: usize,
    /// Files that cannot be read.
    pub bad: usize,
}

impl PictureSurvey {
    /// Reads every picture of the folder, within the limits that training reads it in.
    ///
    /// # Errors
    /// When the folder cannot be listed or read, or holds no pictures.
    pub fn take(pictures: &Pictures) -> Result<Self, DataError> {
        // One pixel of each is all that is kept.
        let transform = Transform {
            crop: Some([1, 1]),
            filter: Filter::Nearest,
            ..Transform::default()
        };
        let pictures = Pictures {
            transform,
            ..pictures.clone()
        };
        let entries = pictures.folder.list()?;
        let is_classed = |path: &str| path.contains('/');
        let classes = entries.iter().any(|entry| is_classed(&entry.path));
        let set = PictureSet::of(&pictures, entries, (classes, false))?;
        let mut found: BTreeMap<&str, PictureClass> = BTreeMap::new();
        let mut sizes = Vec::new();
        let mut formats = BTreeMap::new();
        let mut bad = Vec::new();
        let threads = DecodeThreads::new(&pictures, &set.entries, 3);
        threads.work(&mut |index, picture| {
            let path = &set.entries[index].path;
            let is_bad = match picture? {
                Ok((header, _)) => {
                    *formats.entry(header.format.to_string()).or_default() += 1;
                    sizes.push(header.upright());
                    false
                }
                Err(NoPixels::NoPicture) => return Ok(()),
                Err(NoPixels::Unreadable(reason)) => {
                    let path = path.clone();
                    bad.push(SkippedFile { path, reason });
                    true
                }
            };
            let name = path.split_once('/').map_or("", |(class, _)| class);
            let class = found.entry(name).or_insert_with(|| PictureClass {
                name: name.to_owned(),
                pictures: 0,
                bad: 0,
            });
            class.pictures += usize::from(!is_bad);
            class.bad += usize::from(is_bad);
            Ok(())
        })?;
        let pixels = |size: &&(u32, u32)| u64::from(size.0) * u64::from(size.1);
        let ends = sizes.iter().min_by_key(pixels).copied();
        let ends = ends.zip(sizes.iter().max_by_key(pixels).copied());
        let mut shorter: Vec<u32> = sizes.iter().map(|size| size.0.min(size.1)).collect();
        shorter.sort_unstable();
        Ok(Self {
            classes: found.into_values().collect(),
            formats,
            bytes: set.entries.iter().map(|entry| entry.size).sum(),
            sizes: ends.map(|(least, most)| [least, most]),
            shorter_side: shorter.get(shorter.len() / 2).copied(),
            bad,
        })
    }

    /// Pictures that can be read.
    pub fn pictures(&self) -> usize {
        self.classes.iter().map(|class| class.pictures).sum()
    }
}
