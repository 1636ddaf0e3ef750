//! The binary format of CIFAR-10 and CIFAR-100: records of one size, each a label and an image.
//!
//! There is no header. A record of CIFAR-10 is a label and 3,072 bytes: 32 x 32 pixels of red, then of
//! green, then of blue. One of CIFAR-100 has a coarse label before the fine one, which is the class
//! here. Several files make one set, in their order. In the decoded cache the three bytes of a pixel
//! lie beside each other, as batches need them.
//!
//! The reader trusts nothing: every label is checked, files are streamed in blocks, and what is wrong
//! is named with the file and the record.

use crate::DataError;
use crate::builder::Builder;
use crate::dataset::StoredElement;
use crate::decoded::Recipe;
use crate::stamp::{Stamp, whole};
use crate::unpacked::Unpacked;
use std::path::{Path, PathBuf};

/// Height and width of the images.
const SIDE: usize = 32;
/// Pixels of an image, and bytes of each of its colours.
const PIXELS: usize = SIDE * SIDE;
const CHANNELS: usize = 3;
/// Records that are read at a time.
const BLOCK: usize = 64;

/// Which of the two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CifarKind {
    Cifar10,
    Cifar100,
}

impl CifarKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            CifarKind::Cifar10 => "CIFAR-10",
            CifarKind::Cifar100 => "CIFAR-100",
        }
    }

    pub(crate) fn classes(self) -> usize {
        match self {
            CifarKind::Cifar10 => 10,
            CifarKind::Cifar100 => 100,
        }
    }

    /// Bytes before the image, the last of which is the class.
    fn label_bytes(self) -> usize {
        match self {
            CifarKind::Cifar10 => 1,
            CifarKind::Cifar100 => 2,
        }
    }

    /// Bytes of a record.
    pub(crate) fn record(self) -> usize {
        self.label_bytes() + CHANNELS * PIXELS
    }
}

/// The files of a set.
#[derive(Debug)]
pub(crate) struct Cifar {
    pub(crate) kind: CifarKind,
    pub(crate) files: Vec<PathBuf>,
}

impl Recipe for Cifar {
    fn reader(&self) -> &'static str {
        self.kind.name()
    }

    fn roots(&self) -> Result<Vec<Vec<u8>>, DataError> {
        self.files.iter().map(|path| whole(path)).collect()
    }

    fn stamp(&self, stamp: &mut Stamp) -> Result<(), DataError> {
        self.files.iter().try_for_each(|path| stamp.file(path))
    }

    fn labels_file(&self) -> &Path {
        self.files.first().map_or(Path::new(""), PathBuf::as_path)
    }

    fn decode(&self, out: &mut Builder) -> Result<(), DataError> {
        out.begin(StoredElement::U8, [CHANNELS, SIDE, SIDE]);
        let mut labels = Vec::new();
        let mut pixels = vec![[0; CHANNELS]; BLOCK * PIXELS];
        for path in &self.files {
            let mut empty = true;
            self.read(path, |block| {
                empty = false;
                let records = block.chunks_exact(self.kind.record());
                let used = records.len() * PIXELS;
                labels.clear();
                for (record, pixels) in records.zip(pixels.chunks_exact_mut(PIXELS)) {
                    let (label, image) = record.split_at(self.kind.label_bytes());
                    let label = u32::from(label[label.len() - 1]);
                    labels.extend_from_slice(&label.to_ne_bytes());
                    interleave(image, pixels);
                }
                out.labels(&labels)?;
                out.samples(pixels[..used].as_flattened())
            })?;
            if empty {
                return Err(self.unfit(path, "it is empty"));
            }
        }
        Ok(())
    }
}

impl Cifar {
    /// Hands the records of the file `path`, plain or gzipped, to `sink`, in blocks of whole ones.
    fn read(
        &self,
        path: &Path,
        mut sink: impl FnMut(&[u8]) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let size = self.kind.record();
        let mut input = Unpacked::open(path)?;
        let mut block = vec![0; BLOCK * size];
        let mut first = 0;
        loop {
            let filled = input.fill(&mut block)?;
            let (whole, rest) = block[..filled].split_at(filled - filled % size);
            self.check_labels(path, whole, first)?;
            first += (whole.len() / size) as u64;
            if !rest.is_empty() {
                return Err(DataError::CutRecord {
                    path: path.to_owned(),
                    record: first,
                    found: rest.len(),
                    size,
                });
            }
            if !whole.is_empty() {
                sink(whole)?;
            }
            if filled < block.len() {
                return input.finish();
            }
        }
    }

    /// Checks the labels of whole records, the first of which is number `first` of the file.
    fn check_labels(&self, path: &Path, records: &[u8], first: u64) -> Result<(), DataError> {
        let classes = self.kind.classes();
        for (record, sample) in records.chunks_exact(self.kind.record()).zip(first..) {
            let label = record[self.kind.label_bytes() - 1];
            if usize::from(label) >= classes {
                return Err(DataError::Label {
                    path: path.to_owned(),
                    sample,
                    label: i64::from(label),
                    classes: classes as u64,
                });
            }
        }
        Ok(())
    }

    fn unfit(&self, path: &Path, reason: &str) -> DataError {
        DataError::Unfit {
            path: path.to_owned(),
            role: match self.kind {
                CifarKind::Cifar10 => "images of CIFAR-10",
                CifarKind::Cifar100 => "images of CIFAR-100",
            },
            reason: reason.to_owned(),
        }
    }
}

/// Puts the colours of each pixel beside each other.
fn interleave(planes: &[u8], pixels: &mut [[u8; CHANNELS]]) {
    let (red, rest) = planes.split_at(PIXELS);
    let (green, blue) = rest.split_at(PIXELS);
    for (pixel, ((&r, &g), &b)) in pixels.iter_mut().zip(red.iter().zip(green).zip(blue)) {
        *pixel = [r, g, b];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, gzipped};
    use crate::{Dataset, Normaliser, Source};
    use proptest::prelude::*;
    use std::fs;

    /// The bytes of `records` records whose labels and pixels are functions of their number.
    fn records(kind: CifarKind, records: std::ops::Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in records {
            bytes.extend(&[7, (record % kind.classes()) as u8][2 - kind.label_bytes()..]);
            bytes.extend((0..CHANNELS * PIXELS).map(|i| (record * 31 + i * i / 7) as u8));
        }
        bytes
    }

    fn open(folder: &Folder, files: Vec<PathBuf>) -> Result<Dataset, DataError> {
        Dataset::open(&Source::CifarFiles { files }, &folder.cache())
    }

    #[test]
    fn several_files_make_one_set_in_their_order_each_record_exactly_once() {
        let folder = Folder::new();
        // More than a block in the first, a gzipped one in the middle.
        let files = vec![
            folder.file(&records(CifarKind::Cifar10, 0..70)),
            folder.file(&gzipped(&records(CifarKind::Cifar10, 70..71))),
            folder.file(&records(CifarKind::Cifar10, 71..90)),
        ];
        let set = open(&folder, files).unwrap();
        let whole = open(
            &folder,
            vec![folder.file(&records(CifarKind::Cifar10, 0..90))],
        )
        .unwrap();
        assert_eq!(
            (set.len(), set.shape(), set.classes()),
            (90, [3, 32, 32], 10)
        );
        assert_eq!(set.labels(), (0..90).map(|i| i % 10).collect::<Vec<_>>());
        assert_eq!(set.sha256(), whole.sha256());
    }

    #[test]
    fn of_the_two_labels_of_cifar_100_the_fine_one_is_the_class() {
        let folder = Folder::new();
        let kind = CifarKind::Cifar100;
        let files = vec![folder.file(&records(kind, 0..120))];
        let recipe = Cifar { kind, files };
        let decoded = crate::decoded::open(&recipe, &folder.cache(), None).unwrap();
        let labels = decoded.map.words(decoded.layout.labels.clone());
        assert_eq!(labels, (0..120).map(|i| i % 100).collect::<Vec<_>>());
        assert_eq!(decoded.layout.samples.len(), 120 * 3072);
    }

    #[test]
    fn a_row_of_a_batch_has_the_colours_of_a_pixel_beside_each_other() {
        let folder = Folder::new();
        let mut record = vec![3];
        for colour in [10, 20, 30] {
            record.extend((0..PIXELS).map(|i| colour + (i == 33) as u8));
        }
        let set = open(&folder, vec![folder.file(&record)]).unwrap();
        let (mut row, mut label) = (vec![0.0; 3072], [0]);
        let mean = [10.0, 20.0, 30.0].map(|mean| mean / 255.0);
        let normaliser = Normaliser::new(&mean, &[1.0 / 255.0], 3).unwrap();
        set.gather(&[0], &normaliser, &mut row);
        set.gather_labels(&[0], &mut label);
        assert_eq!(label, [3]);
        for (i, pixel) in row.chunks_exact(3).enumerate() {
            let expected = if i == 33 { 1.0 } else { 0.0 };
            assert!(
                pixel.iter().all(|x| (x - expected).abs() < 1e-4),
                "{i}: {pixel:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn putting_colours_together_loses_none(planes in prop::collection::vec(any::<u8>(), 3072)) {
            let mut pixels = [[0; 3]; PIXELS];
            interleave(&planes, &mut pixels);
            let again: Vec<u8> = (0..3).flat_map(|c| pixels.iter().map(move |pixel| pixel[c])).collect();
            prop_assert_eq!(again, planes);
        }
    }

    #[test]
    fn a_truncated_file_is_refused_with_its_path_and_the_record() {
        let folder = Folder::new();
        let whole = records(CifarKind::Cifar10, 0..67);
        for (keep, record, found) in [(1, 0, 1), (3072, 0, 3072), (66 * 3073 + 5, 66, 5)] {
            for bytes in [whole[..keep].to_vec(), gzipped(&whole[..keep])] {
                let bad = folder.file(&bytes);
                let error = open(&folder, vec![folder.file(&whole), bad.clone()]).unwrap_err();
                let expected = format!(
                    "{} is truncated: its record {record} has {found} of 3073 bytes",
                    bad.display()
                );
                assert_eq!(error.to_string(), expected);
            }
        }
    }

    #[test]
    fn a_label_that_is_no_class_is_refused_with_the_file_and_the_record() {
        let folder = Folder::new();
        let mut bytes = records(CifarKind::Cifar10, 0..67);
        bytes[65 * 3073] = 10;
        let path = folder.file(&bytes);
        let error = open(&folder, vec![path.clone()]).unwrap_err();
        let expected = format!(
            "{}: the label of sample 65 is 10; labels must be in 0..10",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(
            fs::read_dir(folder.path().join("cache/decoded"))
                .unwrap()
                .count(),
            0
        );
    }

    #[test]
    fn an_empty_file_is_refused_with_its_path() {
        let folder = Folder::new();
        for bytes in [vec![], gzipped(b"")] {
            let path = folder.file(&bytes);
            let good = folder.file(&records(CifarKind::Cifar10, 0..1));
            let error = open(&folder, vec![good, path.clone()]).unwrap_err();
            let expected = format!(
                "{} cannot be used as images of CIFAR-10: it is empty",
                path.display()
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_gzipped_file_that_ends_before_its_checksum_is_refused() {
        let folder = Folder::new();
        let packed = gzipped(&records(CifarKind::Cifar10, 0..2));
        for cut in [1, 8, 100] {
            let path = folder.file(&packed[..packed.len() - cut]);
            assert!(open(&folder, vec![path]).is_err(), "{cut}");
        }
    }
}
