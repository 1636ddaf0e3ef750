//! The decoded cache: a set's files as the numbers that batches are gathered from.
//!
//! One file a set, named after what it was made from and how: the samples as bytes or `f32` with the
//! channels of a pixel beside each other, the classes as `u32` or the numbers to predict as `f32`, the names of
//! samples and classes if there are any, and what was left out, each part aligned to a cache line, in the machine's own byte order. All
//! workers of a machine map it and share its pages. Its last bytes carry the identity (sizes and versions)
//! of the files, its own length, checksums of all its blocks and the hash of its content. Whoever opens a set
//! by its source reads all blocks once and compares them with their sums; a cache that does not match, is
//! damaged or was torn by a power failure is silently made again, since nothing in it is worth more than that.
//! Processes that are told of a set which was checked so ([`reopen`]) only map it.

use crate::DataError;
use crate::builder::Builder;
use crate::checksums;
use crate::columns::TableSchema;
use crate::convert::MOST_CLASSES;
use crate::layout::{DecodedLayout, Facts, Identity};
use crate::mapped::Mapped;
use crate::stamp::Stamp;
use crate::sweep::sweep;
use crate::target::TargetKind;
use lockstep_base::fs::{CacheDir, cache_limit, hex};
use std::fmt::Debug;
use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How a set is made from files: what every reader of a format gives.
pub(crate) trait Recipe: Debug {
    /// The reader's name: what it makes of a file, another may read differently.
    fn reader(&self) -> &'static str;

    /// What else decides over what is made of the files: columns, a transform.
    fn variant(&self) -> String {
        String::new()
    }

    /// The whole names of the files or folders that the set was asked for by.
    fn roots(&self) -> Result<Vec<Vec<u8>>, DataError>;

    /// Puts every file, in its order, on the stamp.
    fn stamp(&self, stamp: &mut Stamp) -> Result<(), DataError>;

    /// The file to name when a label is beyond the classes.
    fn labels_file(&self) -> &Path;

    /// Whether what was decoded before is still good enough.
    fn accept(&self, decoded: &Decoded) -> Result<(), DataError> {
        let _ = decoded;
        Ok(())
    }

    /// Hands the set over, sample by sample.
    fn decode(&self, out: &mut Builder) -> Result<(), DataError>;
}

/// A decoded set: its file and where things lie in it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) path: PathBuf,
    pub(crate) map: Mapped,
    pub(crate) layout: DecodedLayout,
    pub(crate) facts: Facts,
    /// The names of the classes, if the set has them, or of the columns that are to be predicted.
    pub(crate) classes: Vec<String>,
    /// The columns of a table that a sample's numbers come from.
    pub(crate) schema: TableSchema,
    /// What each of these numbers is called.
    pub(crate) columns: Vec<String>,
}

/// Opens the decoded form of a set, and makes it first if need be. Of a set whose classes are numbers, there
/// are `classes` of them, or as many as the largest label says.
pub(crate) fn open(
    recipe: &dyn Recipe,
    cache: &CacheDir,
    classes: Option<usize>,
) -> Result<Decoded, DataError> {
    let identity = identity(recipe)?;
    let path = place(recipe, cache)?;
    let fresh = |opened: &OpenedFile| opened.decoded.facts.identity == identity;
    if let Some(opened) = try_open(&path).filter(fresh).filter(OpenedFile::is_intact) {
        recipe.accept(&opened.decoded)?;
        // Most systems note a read once a day; whoever looks for what is in use must see it now.
        let used = FileTimes::new().set_accessed(SystemTime::now());
        let _ = opened.file.set_times(used);
        return Ok(opened.decoded);
    }
    let limit = cache_limit()?;
    path.parent().into_iter().for_each(sweep);
    let mut out = Builder::new(&path)?;
    recipe.decode(&mut out)?;
    out.finish(identity, classes)?;
    if let Some(limit) = limit {
        cache.make_room(limit)?;
    }
    let opened = try_open(&path).filter(fresh);
    opened
        .map(|opened| opened.decoded)
        .ok_or_else(|| DataError::Io {
            action: "read back the decoded data",
            path,
            source: std::io::Error::other(
                "the file was damaged or replaced as soon as it was written",
            ),
        })
}

/// Opens a decoded file that was checked before, if it is still the one of this version.
pub(crate) fn reopen(path: &Path, version: u64) -> Option<Decoded> {
    let decoded = try_open(path)?.decoded;
    (decoded.version() == version).then_some(decoded)
}

/// Whether the decoded form of a set is there, so that opening it is quick.
pub(crate) fn is_there(recipe: &dyn Recipe, cache: &CacheDir) -> Result<bool, DataError> {
    let (opened, identity) = (try_open(&place(recipe, cache)?), identity(recipe)?);
    Ok(opened.is_some_and(|opened| opened.decoded.facts.identity == identity))
}

/// A decoded file that looks whole, and the file itself.
struct OpenedFile {
    decoded: Decoded,
    file: File,
}

impl OpenedFile {
    /// Whether every block has its checksum. Reads the whole file.
    fn is_intact(&self) -> bool {
        let Decoded { layout, map, .. } = &self.decoded;
        let sums = map.bytes()[layout.sums.clone()].as_chunks().0;
        let sums: Vec<u64> = sums.iter().map(|sum| u64::from_ne_bytes(*sum)).collect();
        checksums::agree(&self.file, layout.summed(), &sums)
    }
}

fn try_open(path: &Path) -> Option<OpenedFile> {
    let file = File::open(path).ok()?;
    let map = Mapped::of(&file).ok()?;
    let (layout, facts) = DecodedLayout::read(map.bytes())?;
    let classes = layout.classes.all(map.bytes())?;
    let schema = match &layout.columns.all(map.bytes())?[..] {
        [] => TableSchema::default(),
        [text, ..] => serde_json::from_str(text).ok()?,
    };
    if !sound(&map, &layout, classes.len()) {
        return None;
    }
    let path = path.to_owned();
    let decoded = Decoded {
        path,
        map,
        layout,
        facts,
        classes,
        columns: schema.number_names(),
        schema,
    };
    Some(OpenedFile { decoded, file })
}

impl Decoded {
    /// What tells this file from every other.
    pub(crate) fn version(&self) -> u64 {
        self.layout.version(&self.facts)
    }
}

/// Whether the labels can be what they should. A class decides how large a model is and where numbers are
/// written: one look costs little.
fn sound(map: &Mapped, layout: &DecodedLayout, names: usize) -> bool {
    let place = layout.labels.clone();
    if layout.form.target == TargetKind::Classes {
        let classes = match names {
            0 => MOST_CLASSES,
            names => names as u32,
        };
        let labels = map.words(place);
        return layout.form.outputs <= 1 && labels.iter().all(|&label| label < classes);
    }
    // A number that nobody knows is NaN.
    names == layout.form.outputs && map.floats(place).iter().all(|number| !number.is_infinite())
}

/// Where the decoded form of a set belongs: a name made from the whole names of its files and from what
/// is made of them. A changed file is decoded anew in the same place.
fn place(recipe: &dyn Recipe, cache: &CacheDir) -> Result<PathBuf, DataError> {
    let mut stamp = Stamp::default();
    for root in recipe.roots()? {
        stamp.piece(&root);
    }
    let variant = recipe.variant();
    if !variant.is_empty() {
        stamp.piece(recipe.reader().as_bytes());
        stamp.piece(variant.as_bytes());
    }
    Ok(cache
        .folder("decoded")?
        .join(hex::encode(&stamp.bytes()[..16])))
}

/// What changes when the reader or one of the files does: a hash of the files' names, sizes and versions.
fn identity(recipe: &dyn Recipe) -> Result<Identity, DataError> {
    let mut stamp = Stamp::default();
    stamp.piece(recipe.reader().as_bytes());
    stamp.piece(recipe.variant().as_bytes());
    recipe.stamp(&mut stamp)?;
    Ok(stamp.identity())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idx_pair::IdxPair;
    use crate::layout::{ALIGN, FIELDS};
    use crate::testing::{Folder, gzipped, idx_bytes};
    use std::fs;
    use std::time::Duration;

    fn open(images: &Path, labels: &Path, cache: &CacheDir) -> Result<Decoded, DataError> {
        let (images, labels) = (images.to_owned(), labels.to_owned());
        super::open(&IdxPair { images, labels }, cache, None)
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
        let labels_at = open(&images, &labels, &folder.cache())
            .unwrap()
            .layout
            .labels
            .start;
        let path = cached(&folder);
        let whole = fs::read(&path).unwrap();
        let mut other_version = whole.clone();
        let trailer = whole.len() - FIELDS * 8;
        other_version[trailer + 8] ^= 1;
        let mut other_count = whole.clone();
        other_count[trailer + 7 * 8] = 2;
        let mut huge_label = whole.clone();
        huge_label[labels_at + 2] = 1;
        let mut other_sample = whole.clone();
        other_sample[1] ^= 1;
        let mut other_label = whole.clone();
        other_label[labels_at] ^= 1;
        let longer = [whole.as_slice(), &[0]].concat();
        let torn = [&whole[..0], &whole[..100], &whole[..whole.len() - 1]];
        let wrong = [
            &*longer,
            &*other_version,
            &*other_count,
            &*huge_label,
            &*other_sample,
            &*other_label,
        ];
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
    fn a_file_of_equal_size_and_time_but_other_content_is_noticed() {
        let folder = Folder::new();
        let images = folder.idx(8, &[2], &[1, 2]);
        let labels = folder.labels(&[0, 1]);
        open(&images, &labels, &folder.cache()).unwrap();
        let before = modified(&images);
        let samples =
            |decoded: &Decoded| decoded.map.bytes()[decoded.layout.samples.clone()].to_vec();
        // Written over in place, and replaced by another file.
        for (content, replaced) in [([3, 4], false), ([5, 6], true)] {
            let bytes = idx_bytes(8, &[2], &content);
            let target = match replaced {
                true => folder.file(&bytes),
                false => images.clone(),
            };
            fs::write(&target, &bytes).unwrap();
            let file = fs::File::options().write(true).open(&target).unwrap();
            file.set_modified(before).unwrap();
            fs::rename(&target, &images).unwrap();
            assert_eq!(modified(&images), before);
            let decoded = open(&images, &labels, &folder.cache()).unwrap();
            assert_eq!(samples(&decoded), content);
        }
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
