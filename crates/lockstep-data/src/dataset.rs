//! A data set as the trainer sees it: samples of one shape, and what is to be said of each.

use crate::classes::{UnseenClass, UnseenClasses, renumber};
use crate::columns::TableSchema;
use crate::content::About;
use crate::decoded::{self, Decoded};
use crate::labels::MOST_WHOLE_CLASSES;
use crate::target::TargetKind;
use crate::{DataError, Source};
use lockstep_base::fs::CacheDir;
use lockstep_base::fs::hex;
use serde::{Deserialize, Serialize};
use sha2::Digest;
use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

/// How samples are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum StoredElement {
    /// Bytes, which stand for 0 to 1.
    U8 = 1,
    /// Numbers as they are.
    F32 = 2,
}

impl StoredElement {
    pub(crate) const ALL: [StoredElement; 2] = [StoredElement::U8, StoredElement::F32];

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            StoredElement::U8 => 1,
            StoredElement::F32 => 4,
        }
    }
}

/// A file that was left out of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedFile {
    /// Its path within the folder of the set.
    pub path: String,
    /// Why it could not be read, as a sentence.
    pub reason: String,
}

/// A decoded set that was opened and checked: where it lies and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecodedSet {
    /// The decoded file.
    pub path: PathBuf,
    /// What tells it from every other file that may come to lie there.
    pub version: u64,
    /// What a person calls the set.
    pub name: String,
    /// The names of the classes that it was opened with.
    pub class_names: Vec<String>,
    /// The hash of its content, as [`Dataset::sha256`] gives it.
    pub sha256: String,
}

/// An open data set: mapped, shared with every process that opens the same one.
#[derive(Debug)]
pub struct Dataset {
    name: String,
    decoded: Decoded,
    class_names: Vec<String>,
    /// The labels, if they are not those of the decoded file.
    renumbered: Option<Vec<u32>>,
    unseen: Vec<UnseenClass>,
    /// The hash of the content, once it was asked for.
    sha256: OnceLock<String>,
}

impl Dataset {
    /// Opens a data set: from the decoded cache if it is there, else from its files; a known set that
    /// is missing is brought first. The source is listed once.
    ///
    /// Its classes are those of the source, or if the labels are text, the distinct ones among them:
    /// sorted, by value if all are whole numbers.
    ///
    /// # Errors
    /// When the files are missing, damaged, or do not fit each other; each error names the file, and
    /// the sample where there is one.
    pub fn open(source: &Source, cache: &CacheDir) -> Result<Dataset, DataError> {
        Dataset::open_telling(source, cache, &mut |_| {})
    }

    /// Like [`open`](Dataset::open); `progress` hears what may take a while, one sentence at a time: that a
    /// known set is brought, that tables or pictures are decoded.
    ///
    /// # Errors
    /// As [`open`](Dataset::open).
    pub fn open_telling(
        source: &Source,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Dataset, DataError> {
        let files = source.files(cache, progress)?;
        if source.takes_long() && !decoded::is_there(&*files.recipe, cache)? {
            progress(&format!("decoding {}", files.name));
        }
        let classes = files.class_names.as_ref().map(Vec::len);
        let decoded = decoded::open(&*files.recipe, cache, classes)?;
        let form = &decoded.layout.form;
        if form.target != TargetKind::Classes || form.outputs == 0 {
            return Ok(Dataset::of(files.name, decoded, Vec::new()));
        }
        let labels = decoded.map.words(decoded.layout.labels.clone());
        let largest = labels.iter().copied().max().unwrap_or(0);
        let class_names = match decoded.classes.as_slice() {
            [] => files
                .class_names
                .unwrap_or_else(|| (0..=largest).map(|n| n.to_string()).collect()),
            classes => classes.to_vec(),
        };
        if largest as usize >= class_names.len() {
            let sample = labels
                .iter()
                .position(|&label| label as usize >= class_names.len());
            let sample = sample.unwrap_or_default();
            return Err(DataError::Label {
                path: files.recipe.labels_file().to_owned(),
                sample: sample as u64,
                label: i64::from(labels[sample]),
                classes: class_names.len() as u64,
            });
        }
        Ok(Dataset::of(files.name, decoded, class_names))
    }

    pub(crate) fn of(name: String, decoded: Decoded, class_names: Vec<String>) -> Dataset {
        Dataset {
            name,
            decoded,
            class_names,
            renumbered: None,
            unseen: Vec::new(),
            sha256: OnceLock::new(),
        }
    }

    /// Opens a set that is used beside `train`: what is to be predicted is of the same kind, classes have the same numbers,
    /// and samples are the same columns of a table in the same order, unless the source names others. `progress` as of
    /// [`open_telling`](Dataset::open_telling).
    ///
    /// # Errors
    /// As [`open`](Dataset::open), and when the set does not fit `train`.
    pub fn open_beside(
        source: &Source,
        train: &Dataset,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Dataset, DataError> {
        let source = source.clone().labelled_as(train.target_kind());
        let source = source.with_columns(&train.table().inputs(), !train.table().is_plain());
        let set = Dataset::open_telling(&source, cache, progress)?;
        let set = set.with_classes(train.class_names(), UnseenClasses::Refuse)?;
        set.check_against(train)?;
        Ok(set)
    }

    /// The set for a model that knows the classes `classes`: labels are their places in that list. Sets whose
    /// classes are numbers without names are taken as they are.
    ///
    /// # Errors
    /// When the set has other classes and `unseen` says to refuse them; the error names them.
    pub fn with_classes(
        self,
        classes: &[String],
        unseen: UnseenClasses,
    ) -> Result<Dataset, DataError> {
        let mut set = self;
        if !set.has_named_classes() {
            return Ok(set);
        }
        set.number_by(classes);
        if unseen == UnseenClasses::List || set.unseen.is_empty() {
            return Ok(set);
        }
        let first = set.unseen[0].first;
        Err(DataError::UnseenClasses {
            set: set.name.clone(),
            classes: set.unseen.iter().map(|class| class.name.clone()).collect(),
            first: set
                .sample_name(first)
                .map_or_else(|| format!("sample {first}"), str::to_owned),
        })
    }

    /// Makes labels the places of their classes in `classes`.
    fn number_by(&mut self, classes: &[String]) {
        let renumbered = renumber(&self.decoded.classes, self.labels(), classes);
        self.renumbered = renumbered.labels;
        self.unseen = renumbered.unseen;
        self.class_names = classes.to_vec();
    }

    /// What another process of this host needs to open this set again without its source.
    pub fn decoded(&self) -> DecodedSet {
        DecodedSet {
            path: self.decoded.path.clone(),
            version: self.decoded.version(),
            name: self.name.clone(),
            class_names: self.class_names.clone(),
            sha256: self.sha256(),
        }
    }

    /// Opens a set that another process has opened and checked. Its source is neither listed nor looked at,
    /// and its samples are not read.
    ///
    /// # Errors
    /// When the decoded file is gone, or another one has taken its place; the set can still be opened by its
    /// source.
    pub fn reopen(set: &DecodedSet) -> Result<Dataset, DataError> {
        let Some(decoded) = decoded::reopen(&set.path, set.version) else {
            return Err(DataError::DecodedGone {
                set: set.name.clone(),
                path: set.path.clone(),
            });
        };
        let mut opened = Dataset {
            sha256: OnceLock::from(set.sha256.clone()),
            ..Dataset::of(set.name.clone(), decoded, set.class_names.clone())
        };
        if opened.has_named_classes() && opened.decoded.classes != set.class_names {
            opened.number_by(&set.class_names);
        }
        Ok(opened)
    }

    /// The number of samples, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "a data set is never empty")]
    pub fn len(&self) -> usize {
        self.decoded.layout.form.count
    }

    /// The shape of a sample: channels, height, width. In a row of a batch the channels of a pixel lie
    /// beside each other, pixel by pixel, line by line.
    pub fn shape(&self) -> [usize; 3] {
        self.decoded.layout.form.shape
    }

    /// The number of values in a sample.
    pub fn sample_len(&self) -> usize {
        self.shape().iter().product()
    }

    /// How samples are stored.
    pub fn element(&self) -> StoredElement {
        self.decoded.layout.form.element
    }

    /// Whether it is known what is right to say of the samples. It always is, unless the set was opened as
    /// [`Source::Samples`]: without, there are neither [`labels`](Dataset::labels) nor
    /// [`numbers`](Dataset::numbers).
    pub fn is_labelled(&self) -> bool {
        self.decoded.layout.form.outputs > 0
    }

    /// What a model is to say of a sample.
    pub fn target_kind(&self) -> TargetKind {
        self.decoded.layout.form.target
    }

    /// How many scores a model has to give: one a class, a number or a label.
    pub fn outputs(&self) -> usize {
        self.output_names().len()
    }

    /// What each of those is called: a class, or the column of a table.
    pub fn output_names(&self) -> &[String] {
        match self.target_kind() {
            TargetKind::Classes => &self.class_names,
            TargetKind::Numbers | TargetKind::Labels => &self.decoded.classes,
        }
    }

    /// The names of the classes that the decoded file has, if they have names, or of what is to be predicted.
    pub(crate) fn stored_names(&self) -> &[String] {
        &self.decoded.classes
    }

    /// The columns of a table that a sample's numbers come from, in their order, one for each number; none of what is no
    /// table, or has columns of lists.
    pub fn columns(&self) -> &[String] {
        &self.decoded.columns
    }

    /// The columns of the table that the set comes from, and what was seen of them; none of what is no table, or has
    /// columns of lists.
    pub fn table(&self) -> &TableSchema {
        &self.decoded.schema
    }

    /// What is to be predicted, [`outputs`](Dataset::outputs) numbers a sample; none if samples have classes.
    /// Labels are 1 where a sample has them, and else 0.
    pub fn numbers(&self) -> &[f32] {
        match self.target_kind() {
            TargetKind::Classes => &[],
            TargetKind::Numbers | TargetKind::Labels => {
                self.decoded.map.floats(self.decoded.layout.labels.clone())
            }
        }
    }

    /// The classes, one a sample, each below [`classes`](Dataset::classes) unless it is listed by
    /// [`unseen`](Dataset::unseen); none if samples have none.
    pub fn labels(&self) -> &[u32] {
        match &self.renumbered {
            Some(labels) => labels,
            None if self.target_kind() != TargetKind::Classes => &[],
            None => self.decoded.map.words(self.decoded.layout.labels.clone()),
        }
    }

    /// How much each sample counts, if that is known; none is below 0.
    pub fn weights(&self) -> Option<&[f32]> {
        let weights = || self.decoded.map.floats(self.decoded.layout.weights.clone());
        self.decoded.layout.form.weighted.then(weights)
    }

    /// The group of each sample, if they belong to groups: numbers from 0 on, in the order in which groups come.
    pub fn groups(&self) -> Option<&[u32]> {
        let groups = || self.decoded.map.words(self.decoded.layout.groups.clone());
        self.decoded.layout.form.grouped.then(groups)
    }

    /// The number of classes; 0 if samples have none.
    pub fn classes(&self) -> usize {
        self.class_names.len()
    }

    /// The name of each class.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// How many classes there are, if they are whole numbers of a table, and so many that they may be meant as numbers to
    /// predict.
    pub fn numbers_as_classes(&self) -> Option<usize> {
        const MANY: usize = 30;
        let is_whole = |name: &String| name.parse::<i64>().is_ok();
        let is_table = !self.table().columns.is_empty();
        let are_many = self.classes() > MANY && self.class_names.iter().all(is_whole);
        let are_classes = is_table && self.target_kind() == TargetKind::Classes;
        (are_classes && are_many).then(|| self.classes())
    }

    /// How many different numbers are to be predicted, if all are whole, and so many that they are not taken for classes.
    pub fn classes_as_numbers(&self) -> Option<usize> {
        if self.target_kind() != TargetKind::Numbers || self.outputs() != 1 {
            return None;
        }
        let numbers = self.numbers();
        if numbers.iter().any(|number| number.fract() != 0.0) {
            return None;
        }
        let different: HashSet<u32> = numbers.iter().map(|number| number.to_bits()).collect();
        (different.len() > MOST_WHOLE_CLASSES).then_some(different.len())
    }

    /// The classes of samples that none of [`class_names`](Dataset::class_names) is: class `i` of these has
    /// the label `classes() + i`. Empty unless the set was opened with [`UnseenClasses::List`].
    pub fn unseen(&self) -> &[UnseenClass] {
        &self.unseen
    }

    /// Where a sample comes from: the path of its picture within its folder, or what the path column of
    /// its table says. `None` for sets without such names and beyond the last sample.
    pub fn sample_name(&self, index: usize) -> Option<&str> {
        self.decoded
            .layout
            .names
            .get(self.decoded.map.bytes(), index)
    }

    /// What was left out of the set because it could not be read.
    pub fn skipped(&self) -> Vec<SkippedFile> {
        let (bytes, texts) = (self.decoded.map.bytes(), &self.decoded.layout.skipped);
        let text = |index| texts.get(bytes, index).map(str::to_owned);
        let pairs = (0..self.decoded.layout.form.skipped.texts).step_by(2);
        let skipped = pairs.filter_map(|index| {
            Some(SkippedFile {
                path: text(index)?,
                reason: text(index + 1)?,
            })
        });
        skipped.collect()
    }

    /// What a person calls the set: `fashion-mnist:train`, or the path of its files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of all that training sees of the set, in hexadecimal: by it a run that is resumed knows
    /// that it goes on with the same data. It was computed when the set was decoded; only a set that was
    /// opened with other classes than its own is read for it, once.
    pub fn sha256(&self) -> String {
        self.sha256.get_or_init(|| self.hash_content()).clone()
    }

    fn hash_content(&self) -> String {
        let (layout, bytes) = (&self.decoded.layout, self.decoded.map.bytes());
        let meaning = self.table().meaning();
        let about = About {
            form: &layout.form,
            classes: self.classes(),
            names: match self.has_named_classes() {
                true => &self.class_names,
                false => &[],
            },
            meaning: meaning.as_deref(),
        };
        let mut hash = about.begin();
        match &self.renumbered {
            Some(labels) => labels
                .iter()
                .for_each(|label| hash.update(label.to_ne_bytes())),
            None => hash.update(&bytes[layout.labels.clone()]),
        }
        hash.update(&bytes[layout.weights.clone()]);
        hash.update(&bytes[layout.groups.clone()]);
        let kept = &self.decoded.facts.content;
        if *hash.clone().finalize() == kept.head {
            return hex::encode(kept.whole);
        }
        for piece in bytes[layout.samples.clone()].chunks(1 << 20) {
            hash.update(piece);
            lockstep_base::progress::advance();
        }
        hex::encode(hash.finalize())
    }

    /// A sample as a picture, row by row, the channels of a pixel beside each other; nothing if samples are no pictures of
    /// one or three channels.
    pub fn picture(&self, index: usize) -> Option<&[u8]> {
        let [channels, height, width] = self.shape();
        let is_picture = matches!(channels, 1 | 3) && height > 1 && width > 1;
        if self.element() != StoredElement::U8 || !is_picture {
            return None;
        }
        let size = self.sample_len();
        self.bytes().get(index * size..(index + 1) * size)
    }

    /// All samples, one after the other, if they are stored as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.decoded.map.bytes()[self.decoded.layout.samples.clone()]
    }

    /// All samples, one after the other, if they are stored as numbers.
    ///
    /// # Panics
    /// When they are stored as bytes.
    pub fn floats(&self) -> &[f32] {
        self.decoded.map.floats(self.decoded.layout.samples.clone())
    }

    /// Gives the memory of these samples back to the system. They come back when they are looked at again. Of a range
    /// that ends before it begins, nothing is.
    pub fn release(&self, samples: Range<usize>) {
        if samples.is_empty() {
            return;
        }
        let stored = &self.decoded.layout.samples;
        let bytes = stored.len() / self.len().max(1);
        self.decoded
            .map
            .release(stored.start + samples.start * bytes..stored.start + samples.end * bytes);
    }

    /// Checks that a model trained on `train` can be measured on this set: the samples have the same
    /// shape and stand for the same range, and no label is beyond the classes of `train`.
    ///
    /// # Errors
    /// When they do not; the error says what differs.
    pub fn check_against(&self, train: &Dataset) -> Result<(), DataError> {
        let (shape, shapes) = (self.shape(), train.shape());
        let (element, elements) = (self.element(), train.element());
        let (kind, kinds) = (self.target_kind(), train.target_kind());
        let (outputs, wanted) = (self.outputs(), train.outputs());
        let reason = if shape != shapes {
            format!("its samples are {shape:?} instead of {shapes:?}")
        } else if element != elements {
            format!("its samples are {element:?} instead of {elements:?}")
        } else if kind != kinds {
            format!("what it is labelled with are {kind} instead of {kinds}")
        } else if kind != TargetKind::Classes && outputs != wanted {
            format!("it has {outputs} columns to predict instead of {wanted}")
        } else if self.has_named_classes()
            && train.has_named_classes()
            && self.class_names != train.class_names
        {
            "its classes are not numbered as those of the training set; open it with these"
                .to_owned()
        } else if let Some(sample) = self.first_label_beyond(train.classes() + self.unseen.len()) {
            let (label, classes) = (self.labels()[sample], train.classes());
            format!("the label of sample {sample} is {label}, but there are only {classes} classes")
        } else {
            return Ok(());
        };
        let (set, train) = (self.name.clone(), train.name.clone());
        Err(DataError::Misfit { set, train, reason })
    }

    /// Whether classes are known by their names rather than by their numbers.
    fn has_named_classes(&self) -> bool {
        self.target_kind() == TargetKind::Classes && !self.decoded.classes.is_empty()
    }

    fn first_label_beyond(&self, classes: usize) -> Option<usize> {
        self.labels()
            .iter()
            .position(|&label| label as usize >= classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, gzipped, idx_bytes};
    use crate::{CsvFormat, TableFormat, TableSource};

    #[test]
    fn classes_are_counted_from_the_labels_unless_they_are_named() {
        let folder = Folder::new();
        let (images, labels) = (folder.idx(8, &[3], &[0; 3]), folder.labels(&[0, 4, 2]));
        let set = folder.dataset(&images, &labels);
        assert_eq!((set.classes(), set.class_names()[4].as_str()), (5, "4"));
        let named = |names: &[&str]| {
            let class_names = Some(names.iter().map(|&name| name.to_owned()).collect());
            let (images, labels) = (images.clone(), Some(labels.clone()));
            Dataset::open(
                &Source::Idx {
                    images,
                    labels,
                    class_names,
                },
                &folder.cache(),
            )
        };
        assert_eq!(named(&["a", "b", "c", "d", "e", "f"]).unwrap().classes(), 6);
        let error = named(&["a", "b", "c"]).unwrap_err();
        let expected = "the label of sample 1 is 4; labels must be in 0..3";
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(
            error.to_string().starts_with(labels.to_str().unwrap()),
            "{error}"
        );
    }

    #[test]
    fn the_hash_is_that_of_the_content_not_of_the_files() {
        let folder = Folder::new();
        let content = idx_bytes(8, &[2, 2], &[1, 2, 3, 4]);
        let hash = |images: &[u8], labels| {
            folder
                .dataset(&folder.file(images), &folder.labels(labels))
                .sha256()
        };
        let plain = hash(&content, &[0, 1]);
        assert_eq!(hash(&gzipped(&content), &[0, 1]), plain);
        assert_ne!(hash(&content, &[1, 0]), plain);
        assert_ne!(hash(&idx_bytes(8, &[2, 2], &[1, 2, 3, 5]), &[0, 1]), plain);
        assert_ne!(
            hash(&idx_bytes(8, &[2, 2, 1], &[1, 2, 3, 4]), &[0, 1]),
            plain
        );
    }

    #[test]
    fn the_hash_that_is_kept_is_the_one_that_reading_all_gives() {
        use sha2::Sha256;
        let folder = Folder::new();
        let csv = |text: &str| {
            Source::Table(TableSource {
                place: crate::testing::place(&folder.file(text.as_bytes())),
                format: TableFormat::Csv(CsvFormat::default()),
                columns: crate::ColumnNames::default(),
                target: None,
                memory: 1 << 20,
            })
        };
        let train = Dataset::open(&csv("x,label\n1,b\n2,a\n3,c\n"), &folder.cache()).unwrap();
        let val = csv("x,label\n4,c\n5,b\n");
        let classes = train.class_names();
        let val = Dataset::open(&val, &folder.cache())
            .unwrap()
            .with_classes(classes, UnseenClasses::Refuse)
            .unwrap();
        let idx = folder.dataset(
            &folder.idx(8, &[2, 2], &[1, 2, 3, 4]),
            &folder.labels(&[0, 3]),
        );
        for set in [train, val, idx] {
            // As it was computed before there was a hash in the decoded file.
            let mut hash = Sha256::new();
            let [channels, height, width] = set.shape();
            let element = set.element() as usize;
            for number in [set.len(), channels, height, width, element, set.classes()] {
                hash.update((number as u64).to_le_bytes());
            }
            if set.has_named_classes() {
                for name in set.class_names() {
                    hash.update((name.len() as u64).to_le_bytes());
                    hash.update(name);
                }
            }
            for label in set.labels() {
                hash.update(label.to_ne_bytes());
            }
            hash.update(&set.decoded.map.bytes()[set.decoded.layout.samples.clone()]);
            assert_eq!(set.sha256(), hex::encode(hash.finalize()), "{}", set.name());

            let again = Dataset::reopen(&set.decoded()).unwrap();
            assert_eq!(again.labels(), set.labels());
            assert_eq!(again.decoded(), set.decoded());
            assert_eq!(again.hash_content(), set.sha256());
        }
    }

    #[test]
    fn a_set_is_reopened_without_its_source_and_only_while_it_is_the_same() {
        let folder = Folder::new();
        let images = folder.idx(8, &[2, 2], &[1, 2, 3, 4]);
        let labels = folder.labels(&[0, 1]);
        let told = folder.dataset(&images, &labels).decoded();
        let source = std::fs::read(&images).unwrap();
        std::fs::remove_file(&images).unwrap();
        assert_eq!(Dataset::reopen(&told).unwrap().bytes(), [1, 2, 3, 4]);

        std::fs::write(&images, [&source[..source.len() - 1], &[9]].concat()).unwrap();
        folder.dataset(&images, &labels);
        let error = Dataset::reopen(&told).unwrap_err();
        assert!(matches!(error, DataError::DecodedGone { .. }), "{error}");
        std::fs::remove_file(&told.path).unwrap();
        assert!(Dataset::reopen(&told).is_err());
    }

    #[test]
    fn a_test_set_must_fit_the_training_set() {
        let folder = Folder::new();
        let set = |code, dims: &[u32], labels: &[u8]| {
            let size = if code == 8 { 1 } else { 4 };
            let payload = vec![0; size * dims.iter().product::<u32>() as usize];
            folder.dataset(&folder.idx(code, dims, &payload), &folder.labels(labels))
        };
        let train = set(8, &[3, 2, 2], &[0, 1, 2]);
        let misfit = |test: Dataset| test.check_against(&train).unwrap_err().to_string();
        set(8, &[2, 2, 2], &[2, 0]).check_against(&train).unwrap();
        let shape = misfit(set(8, &[2, 2, 3], &[0, 1]));
        assert!(shape.contains("[1, 2, 3] instead of [1, 2, 2]"), "{shape}");
        let element = misfit(set(0x0d, &[2, 2, 2], &[0, 1]));
        assert!(element.contains("F32 instead of U8"), "{element}");
        let label = misfit(set(8, &[2, 2, 2], &[0, 3]));
        assert!(
            label.contains("sample 1 is 3") && label.contains("only 3 classes"),
            "{label}"
        );
        assert!(label.contains(train.name()), "{label}");
    }
}
