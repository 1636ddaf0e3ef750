//! The entries of an archive that somebody sent: plain files and folders that stay where they are put, each once.

use super::list;
use flate2::bufread::DeflateDecoder;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};

/// The longest path in an archive, in bytes.
const LONGEST_NAME: usize = 1024;
/// The longest part of a path.
const LONGEST_PART: usize = 255;
/// Folders within folders.
const DEEPEST: usize = 64;

const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

/// What an archive holds under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content<'a> {
    /// A path without `..`, `.` and empty parts, relative, with `/` between its parts.
    pub(super) name: String,
    pub(super) folder: bool,
    pub(super) executable: bool,
    /// How long it says that its content is.
    pub(super) size: u64,
    pub(super) crc: u32,
    deflated: bool,
    packed: &'a [u8],
}

impl<'a> Content<'a> {
    /// Reads what is in an archive. Says what is wrong with it.
    pub(super) fn all(bytes: &'a [u8]) -> Result<Vec<Content<'a>>, String> {
        let entries = list::entries(bytes)?;
        let entries = entries.into_iter().map(|entry| Content::new(bytes, entry));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        no_name_twice(&entries)?;
        Ok(entries)
    }

    fn new(bytes: &'a [u8], entry: list::Entry<'_>) -> Result<Content<'a>, String> {
        let name = text(&entry)?;
        let wrong = |what: &str| Err(format!("{name:?} {what}"));
        let folder = name.ends_with('/');
        match (entry.mode & KIND, folder) {
            (0, _) | (REGULAR, false) | (FOLDER, true) => (),
            _ => {
                return wrong(
                    "is a link, a device or something else that is neither a file nor a folder",
                );
            }
        }
        if folder && entry.size != 0 {
            return wrong("is a folder with a content");
        }
        Ok(Content {
            name: plain(name)?,
            folder,
            executable: entry.mode & 0o111 != 0,
            size: entry.size,
            crc: entry.crc,
            deflated: entry.deflated,
            packed: &bytes[entry.content],
        })
    }

    /// The content, as long as it turns out to be.
    pub(super) fn open(&self) -> Box<dyn Read + 'a> {
        match self.deflated {
            true => Box::new(DeflateDecoder::new(BufReader::new(self.packed))),
            false => Box::new(self.packed),
        }
    }
}

/// A name as text. Names that are not said to be UTF-8 must be ASCII: what they mean beyond that, nobody knows.
fn text<'a>(entry: &list::Entry<'a>) -> Result<&'a str, String> {
    let text = std::str::from_utf8(entry.name).ok();
    let text = text.filter(|text| entry.utf8 || text.is_ascii());
    text.ok_or_else(|| format!("{:?} is no name", String::from_utf8_lossy(entry.name)))
}

/// A path that stays where it is put.
fn plain(name: &str) -> Result<String, String> {
    let trimmed = name.strip_suffix('/').unwrap_or(name);
    let leaves = |part: &str| matches!(part, "" | "." | "..") || part.len() > LONGEST_PART;
    let odd = |c: char| c.is_control() || c == '\\';
    let parts = || trimmed.split('/');
    if name.len() > LONGEST_NAME || parts().count() > DEEPEST {
        return Err(format!("{name:?} is too long a name"));
    }
    if parts().any(leaves) || trimmed.contains(odd) {
        return Err(format!("{name:?} is no name within the archive"));
    }
    Ok(trimmed.to_owned())
}

fn no_name_twice(entries: &[Content<'_>]) -> Result<(), String> {
    let mut kinds: BTreeMap<&str, bool> = BTreeMap::new();
    for entry in entries {
        if kinds.insert(&entry.name, entry.folder).is_some() {
            return Err(format!("{:?} is there twice", entry.name));
        }
    }
    for entry in entries {
        let mut above = entry.name.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            if kinds.get(parent) == Some(&false) {
                return Err(format!("{parent:?} is both a file and a folder"));
            }
            above = parent;
        }
    }
    Ok(())
}
