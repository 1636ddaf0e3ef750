//! The decoded cache: a set's files as the numbers that batches are gathered from.
//!
//! One file a set, named after the paths of the files that it was made from: a header, the labels as
//! `u32`, then the samples as bytes or `f32` with the channels of a pixel beside each other, each part
//! aligned to a cache line, in the machine's own byte order. All workers of a machine map it and share
//! its pages. The header carries the identity (sizes and times) of the files and its own length; a
//! cache that does not match, is damaged or was torn by a power failure is silently made again, since
//! nothing in it is worth more than that.

use crate::DataError;
use crate::convert::MOST_CLASSES;
use crate::file::regular;
use crate::hex::hex;
use crate::layout::{ALIGN, Identity, Layout};
use crate::mapped::Mapped;
use crate::sweep::sweep;
use lockstep_store::{AtomicFile, CacheDir};
use sha2::{Digest, Sha256};
use std::fmt::Debug;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// How a set is made from files: what every reader of a format gives.
pub(crate) trait Recipe: Debug {
    /// The reader's name: what it makes of a file, another may read differently.
    fn reader(&self) -> &'static str;

    /// The files, in their order.
    fn files(&self) -> Vec<&Path>;

    /// The file to name when a label is beyond the classes.
    fn labels_file(&self) -> &Path;

    /// The decoded form; checks what can be checked before any of it is written.
    fn layout(&self) -> Result<Layout, DataError>;

    /// Hands all labels over in pieces, as native `u32`.
    fn labels(&self, sink: Sink<'_>) -> Result<(), DataError>;

    /// Hands all samples over in pieces, as they are stored.
    fn samples(&self, sink: Sink<'_>) -> Result<(), DataError>;
}

/// Takes the next piece of a decoded set.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), DataError>;

/// A decoded set: its file and where things lie in it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) map: Mapped,
    pub(crate) layout: Layout,
}

/// Opens the decoded form of a set, and makes it first if need be.
pub(crate) fn open(recipe: &dyn Recipe, cache: &CacheDir) -> Result<Decoded, DataError> {
    let identity = identity(recipe)?;
    let path = place(recipe, cache)?;
    if let Some(decoded) = try_open(&path, identity) {
        return Ok(decoded);
    }
    path.parent().into_iter().for_each(sweep);
    decode(recipe, &path, identity)?;
    try_open(&path, identity).ok_or_else(|| DataError::Io {
        action: "read back the decoded data",
        path,
        source: std::io::Error::other("the file was damaged or replaced as soon as it was written"),
    })
}

fn try_open(path: &Path, identity: Identity) -> Option<Decoded> {
    let map = Mapped::open(path).ok()?;
    let layout = Layout::read(map.bytes(), identity)?;
    let labels = map.words(layout.labels.clone());
    // A label decides how large a model is and where numbers are written: one look costs little.
    let sound = labels.iter().all(|&label| label < MOST_CLASSES);
    sound.then_some(Decoded { map, layout })
}

/// Where the decoded form of a set belongs: a name made from the whole paths of its files.
fn place(recipe: &dyn Recipe, cache: &CacheDir) -> Result<PathBuf, DataError> {
    let mut hash = Sha256::new();
    for path in recipe.files() {
        let whole = path.canonicalize().map_err(DataError::io("open", path))?;
        hash.update((whole.as_os_str().len() as u64).to_le_bytes());
        hash.update(whole.as_os_str().as_bytes());
    }
    Ok(cache.folder("decoded")?.join(hex(&hash.finalize()[..16])))
}

/// What changes when the reader or one of the files does: a hash of the files' sizes and times of
/// modification.
fn identity(recipe: &dyn Recipe) -> Result<Identity, DataError> {
    let mut hash = Sha256::new();
    hash.update(recipe.reader());
    for path in recipe.files() {
        let metadata = regular(path)?;
        let modified = metadata.modified().map_err(DataError::io("open", path))?;
        let nanoseconds = match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as u64,
            Err(before) => (before.duration().as_nanos() as u64).wrapping_neg(),
        };
        hash.update(
            [metadata.len(), nanoseconds]
                .map(u64::to_le_bytes)
                .as_flattened(),
        );
    }
    let words = hash.finalize();
    let words = words.as_chunks().0;
    Ok(std::array::from_fn(|i| u64::from_le_bytes(words[i])))
}

/// Reads the files of a set and writes its decoded form to `target`.
fn decode(recipe: &dyn Recipe, target: &Path, identity: Identity) -> Result<(), DataError> {
    let layout = recipe.layout()?;
    // Not synced: the length in the header tells if it is whole.
    let mut file = AtomicFile::create(target)?;
    let mut write = |bytes: &[u8]| {
        file.write_all(bytes)
            .map_err(DataError::io("write", target))
    };
    write(layout.header(identity).map(u64::to_ne_bytes).as_flattened())?;
    recipe.labels(&mut write)?;
    write(&[0; ALIGN][..layout.samples.start - layout.labels.end])?;
    recipe.samples(&mut write)?;
    Ok(file.commit_unsynced()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idx_pair::IdxPair;
    use crate::layout::FIELDS;
    use crate::testing::{Folder, gzipped, idx_bytes};
    use std::fs;
    use std::time::{Duration, SystemTime};

    fn open(images: &Path, labels: &Path, cache: &CacheDir) -> Result<Decoded, DataError> {
        let (images, labels) = (images.to_owned(), labels.to_owned());
        super::open(&IdxPair { images, labels }, cache)
    }

    /// The one file in the decoded cache.
    fn cached(folder: &Folder) -> PathBuf {
        let entries = fs::read_dir(folder.path().join("cache/decoded")).unwrap();
        let paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        let [path] = paths.as_slice() else {
            panic!("not one file: {paths:?}")
        };
        path.clone()
    }

    fn modified(path: &Path) -> SystemTime {
        fs::metadata(path).unwrap().modified().unwrap()
    }

    #[test]
    fn a_set_is_decoded_once_and_aligned() {
        let folder = Folder::new();
        let images = folder.file(&gzipped(&idx_bytes(8, &[3, 1, 2], &[1, 2, 3, 4, 5, 6])));
        let labels = folder.labels(&[2, 0, 1]);
        let first = open(&images, &labels, &folder.cache()).unwrap();
        assert_eq!(first.map.words(first.layout.labels.clone()), [2, 0, 1]);
        assert_eq!(
            first.map.bytes()[first.layout.samples.clone()],
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(
            (
                first.layout.labels.start % ALIGN,
                first.layout.samples.start % ALIGN
            ),
            (0, 0)
        );
        let written = modified(&cached(&folder));
        let second = open(&images, &labels, &folder.cache()).unwrap();
        assert_eq!(second.layout, first.layout);
        assert_eq!(modified(&cached(&folder)), written);
    }

    #[test]
    fn a_damaged_or_torn_cache_is_made_again() {
        let folder = Folder::new();
        let images = folder.idx(8, &[3], &[1, 2, 3]);
        let labels = folder.labels(&[2, 0, 1]);
        open(&images, &labels, &folder.cache()).unwrap();
        let path = cached(&folder);
        let whole = fs::read(&path).unwrap();
        let mut other_version = whole.clone();
        other_version[8] ^= 1;
        let mut other_count = whole.clone();
        other_count[7 * 8] = 2;
        let mut huge_label = whole.clone();
        huge_label[FIELDS * 8 + 2] = 1;
        let longer = [whole.as_slice(), &[0]].concat();
        let torn = [&whole[..0], &whole[..100], &whole[..whole.len() - 1]];
        let wrong = [&*longer, &*other_version, &*other_count, &*huge_label];
        for damaged in torn.into_iter().chain(wrong) {
            fs::write(&path, damaged).unwrap();
            open(&images, &labels, &folder.cache()).unwrap();
            assert!(fs::read(&path).unwrap() == whole);
        }
    }

    #[test]
    fn a_changed_file_is_decoded_anew_in_the_same_place() {
        let folder = Folder::new();
        let images = folder.idx(8, &[2], &[1, 2]);
        let labels = folder.labels(&[0, 1]);
        open(&images, &labels, &folder.cache()).unwrap();
        let later = modified(&images) + Duration::from_nanos(1000);
        fs::write(&images, idx_bytes(8, &[2], &[3, 4])).unwrap();
        fs::File::options()
            .write(true)
            .open(&images)
            .unwrap()
            .set_modified(later)
            .unwrap();
        let decoded = open(&images, &labels, &folder.cache()).unwrap();
        assert_eq!(decoded.map.bytes()[decoded.layout.samples.clone()], [3, 4]);
        cached(&folder);
    }

    #[test]
    fn a_set_that_is_refused_leaves_nothing_in_the_cache() {
        let folder = Folder::new();
        let images = folder.idx(0x0d, &[2], &[f32::NAN; 2].map(f32::to_be_bytes).concat());
        assert!(open(&images, &folder.labels(&[0, 1]), &folder.cache()).is_err());
        assert_eq!(
            fs::read_dir(folder.path().join("cache/decoded"))
                .unwrap()
                .count(),
            0
        );
    }
}
