//! The decoded cache: a pair of files as the numbers that batches are gathered from.
//!
//! One file a pair, named after the two paths: a header, the labels as `u32`, then the samples as
//! bytes or `f32`, each part aligned to a cache line, in the machine's own byte order. All workers of
//! a machine map it and share its pages. The header carries the identity (sizes and times) of the
//! files that it was made from and its own length; a cache that does not match, is damaged or was
//! torn by a power failure is silently made again, since nothing in it is worth more than that.

use crate::DataError;
use crate::convert::{Converter, MOST_CLASSES};
use crate::dataset::Element;
use crate::file::regular;
use crate::hex::hex;
use crate::idx::{IdxReader, IdxType};
use crate::mapped::Mapped;
use crate::sweep::sweep;
use lockstep_store::{AtomicFile, CacheDir};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// "lockstep" as a number; read in another byte order it is another number.
const MAGIC: u64 = 0x6c6f_636b_7374_6570;
/// Changes whenever the format or the meaning of a decoded file does.
const VERSION: u64 = 1;
/// Parts begin at multiples of this.
const ALIGN: usize = 64;
/// Numbers of a header.
const FIELDS: usize = 16;

/// A decoded set: its file and where things lie in it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) map: Mapped,
    pub(crate) layout: Layout,
}

/// The form of a decoded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) element: Element,
    pub(crate) count: usize,
    pub(crate) shape: [usize; 3],
    pub(crate) labels: Range<usize>,
    pub(crate) samples: Range<usize>,
}

impl Layout {
    /// The form for `count` samples of `shape`; `None` if it exceeds the address space.
    fn new(element: Element, count: usize, shape: [usize; 3]) -> Option<Layout> {
        let elements = shape
            .iter()
            .try_fold(count, |all, &dim| all.checked_mul(dim))?;
        let labels_at = FIELDS * 8;
        let labels_end = labels_at.checked_add(count.checked_mul(4)?)?;
        let samples_at = labels_end.checked_next_multiple_of(ALIGN)?;
        let samples_end = samples_at.checked_add(elements.checked_mul(element.size())?)?;
        let (labels, samples) = (labels_at..labels_end, samples_at..samples_end);
        Some(Layout {
            element,
            count,
            shape,
            labels,
            samples,
        })
    }

    fn header(&self, identity: [u64; 4]) -> [u64; FIELDS] {
        let [a, b, c, d] = identity;
        let [channels, height, width] = self.shape.map(|dim| dim as u64);
        let (count, end) = (self.count as u64, self.samples.end as u64);
        let element = self.element as u64;
        [
            MAGIC, VERSION, a, b, c, d, element, count, channels, height, width, end, 0, 0, 0, 0,
        ]
    }

    /// The form of the file `bytes`, if it is whole and was made from the files of `identity`.
    fn read(bytes: &[u8], identity: [u64; 4]) -> Option<Layout> {
        let fields = bytes.get(..FIELDS * 8)?.as_chunks().0;
        let fields: [u64; FIELDS] = std::array::from_fn(|i| u64::from_ne_bytes(fields[i]));
        let [
            _,
            _,
            _,
            _,
            _,
            _,
            element,
            count,
            channels,
            height,
            width,
            ..,
        ] = fields;
        let element = Element::ALL
            .into_iter()
            .find(|known| *known as u64 == element)?;
        let shape = [channels, height, width].map(|dim| dim as usize);
        let layout = Layout::new(element, count as usize, shape)?;
        let fits = layout.header(identity) == fields && layout.samples.end == bytes.len();
        fits.then_some(layout)
    }
}

/// Opens the decoded form of a pair of files, and makes it first if need be.
pub(crate) fn open(images: &Path, labels: &Path, cache: &CacheDir) -> Result<Decoded, DataError> {
    let identity = identity(images, labels)?;
    let path = place(images, labels, cache)?;
    if let Some(decoded) = try_open(&path, identity) {
        return Ok(decoded);
    }
    path.parent().into_iter().for_each(sweep);
    decode(images, labels, &path, identity)?;
    try_open(&path, identity).ok_or_else(|| DataError::Io {
        action: "read back the decoded data",
        path,
        source: std::io::Error::other("the file was damaged or replaced as soon as it was written"),
    })
}

fn try_open(path: &Path, identity: [u64; 4]) -> Option<Decoded> {
    let map = Mapped::open(path).ok()?;
    let layout = Layout::read(map.bytes(), identity)?;
    let labels = map.words(layout.labels.clone());
    // A label decides how large a model is and where numbers are written: one look costs little.
    let sound = labels.iter().all(|&label| label < MOST_CLASSES);
    sound.then_some(Decoded { map, layout })
}

/// Where the decoded form of a pair belongs: a name made from both whole paths.
fn place(images: &Path, labels: &Path, cache: &CacheDir) -> Result<PathBuf, DataError> {
    let mut hash = Sha256::new();
    for path in [images, labels] {
        let whole = path.canonicalize().map_err(DataError::io("open", path))?;
        hash.update((whole.as_os_str().len() as u64).to_le_bytes());
        hash.update(whole.as_os_str().as_bytes());
    }
    Ok(cache.folder("decoded")?.join(hex(&hash.finalize()[..16])))
}

/// What changes when one of the files does: their sizes and times of modification.
fn identity(images: &Path, labels: &Path) -> Result<[u64; 4], DataError> {
    let of = |path: &Path| {
        let metadata = regular(path)?;
        let modified = metadata.modified().map_err(DataError::io("open", path))?;
        let nanoseconds = match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as u64,
            Err(before) => (before.duration().as_nanos() as u64).wrapping_neg(),
        };
        Ok::<_, DataError>([metadata.len(), nanoseconds])
    };
    let ([a, b], [c, d]) = (of(images)?, of(labels)?);
    Ok([a, b, c, d])
}

/// Reads a pair of files and writes its decoded form to `target`.
fn decode(
    images: &Path,
    labels: &Path,
    target: &Path,
    identity: [u64; 4],
) -> Result<(), DataError> {
    let images_reader = IdxReader::open(images)?;
    let labels_reader = IdxReader::open(labels)?;
    let layout = layout_of(&images_reader, &labels_reader)?;
    let writing = DataError::io("write", target);
    // Not synced: the length in the header tells if it is whole.
    let mut file = AtomicFile::create(target)?;
    file.write_all(layout.header(identity).map(u64::to_ne_bytes).as_flattened())
        .map_err(&writing)?;

    let mut converter = Converter::new(labels, labels_reader.header().element, 1);
    labels_reader
        .for_each_block(|block| file.write_all(converter.labels(block)?).map_err(&writing))?;
    file.write_all(&[0; ALIGN][..layout.samples.start - layout.labels.end])
        .map_err(&writing)?;

    let sample_len = layout.shape.iter().product();
    let mut converter = Converter::new(images, images_reader.header().element, sample_len);
    images_reader
        .for_each_block(|block| file.write_all(converter.samples(block)?).map_err(&writing))?;
    Ok(file.commit_unsynced()?)
}

/// The decoded form that a pair of headers asks for, if they fit each other.
fn layout_of(images: &IdxReader, labels: &IdxReader) -> Result<Layout, DataError> {
    let unfit = |reader: &IdxReader, role, reason: &str| DataError::Unfit {
        path: reader.path().to_owned(),
        role,
        reason: match reader.header().dims.len() {
            1 => format!("it has 1 dimension; {reason}"),
            dims => format!("it has {dims} dimensions; {reason}"),
        },
    };
    let (count, labels_count) = (images.header().count(), labels.header().count());
    if labels.header().dims.len() != 1 {
        return Err(unfit(labels, "labels", "labels have 1, one label a sample"));
    }
    if let float @ (IdxType::F32 | IdxType::F64) = labels.header().element {
        return Err(DataError::Unfit {
            path: labels.path().to_owned(),
            role: "labels",
            reason: format!("labels must be integers, found {float:?}"),
        });
    }
    let shape = match images.header().dims[1..] {
        [] => [1, 1, 1],
        [length] => [1, 1, length],
        [height, width] => [1, height, width],
        [channels, height, width] => [channels, height, width],
        _ => {
            return Err(unfit(
                images,
                "images",
                "images have at most 4: samples, channels, height, width",
            ));
        }
    };
    if count != labels_count {
        let (images, labels) = (images.path().to_owned(), labels.path().to_owned());
        return Err(DataError::CountMismatch {
            images,
            images_count: count,
            labels,
            labels_count,
        });
    }
    if count == 0 || shape.contains(&0) {
        return Err(unfit(images, "images", "none of them may be 0"));
    }
    let element = if images.header().element == IdxType::U8 {
        Element::U8
    } else {
        Element::F32
    };
    Layout::new(element, count, shape).ok_or_else(|| DataError::TooLarge {
        path: images.path().to_owned(),
        dims: images.header().dims.clone(),
        stored: images.stored(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, gzipped, idx_bytes};
    use std::fs;
    use std::time::{Duration, SystemTime};

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

    #[test]
    fn samples_may_have_up_to_three_dimensions() {
        let folder = Folder::new();
        for (dims, shape) in [
            (&[12][..], [1, 1, 1]),
            (&[2, 6], [1, 1, 6]),
            (&[2, 3, 2], [1, 3, 2]),
            (&[2, 3, 1, 2], [3, 1, 2]),
        ] {
            let labels = folder.labels(&vec![0; dims[0] as usize]);
            let decoded = open(&folder.idx(8, dims, &[0; 12]), &labels, &folder.cache()).unwrap();
            assert_eq!(decoded.layout.shape, shape);
        }
    }

    #[test]
    fn files_that_do_not_fit_their_role_or_each_other_are_refused() {
        let folder = Folder::new();
        let refusal = |images: &Path, labels: &Path| {
            open(images, labels, &folder.cache())
                .unwrap_err()
                .to_string()
        };
        let (images, labels) = (folder.idx(8, &[2, 1], &[0; 2]), folder.labels(&[0, 1]));
        let swapped = refusal(&labels, &images);
        assert!(
            swapped.contains("as labels") && swapped.contains("2 dimensions"),
            "{swapped}"
        );
        let floats = refusal(&images, &folder.idx(0x0d, &[2], &[0; 8]));
        assert!(
            floats.ends_with("labels must be integers, found F32"),
            "{floats}"
        );
        let deep = refusal(&folder.idx(8, &[2, 1, 1, 1, 1], &[0; 2]), &labels);
        assert!(deep.contains("5 dimensions"), "{deep}");
        let none = refusal(&folder.idx(8, &[0, 28, 28], &[]), &folder.labels(&[]));
        assert!(none.contains("none of them may be 0"), "{none}");
        let fewer = refusal(&images, &folder.labels(&[0, 1, 0]));
        assert!(
            fewer.contains("2 images") && fewer.contains("3 labels"),
            "{fewer}"
        );
    }
}
