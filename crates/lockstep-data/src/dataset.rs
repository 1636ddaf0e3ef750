//! A data set as the trainer sees it: samples of one shape, and what is to be said of each.

use crate::classes::{Unseen, UnseenClass, renumber};
use crate::decoded::{self, Decoded};
use crate::hex::hex;
use crate::target::TargetKind;
use crate::{DataError, Source};
use lockstep_fs::CacheDir;
use sha2::{Digest, Sha256};

/// How samples are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Element {
    /// Bytes, which stand for 0 to 1.
    U8 = 1,
    /// Numbers as they are.
    F32 = 2,
}

impl Element {
    pub(crate) const ALL: [Element; 2] = [Element::U8, Element::F32];

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Element::U8 => 1,
            Element::F32 => 4,
        }
    }
}

/// A file that was left out of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path within the folder of the set.
    pub path: String,
    /// Why it could not be read, as a sentence.
    pub reason: String,
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
}

impl Dataset {
    /// Opens a data set: from the decoded cache if it is there, else from its files; a known set that
    /// is missing is brought first (see [`Source::ensure`] to hear about it).
    ///
    /// Its classes are those of the source, or if the labels are text, the distinct ones among them:
    /// sorted, by value if all are whole numbers.
    ///
    /// # Errors
    /// When the files are missing, damaged, or do not fit each other; each error names the file, and
    /// the sample where there is one.
    pub fn open(source: &Source, cache: &CacheDir) -> Result<Dataset, DataError> {
        let files = source.files(cache, &mut |_| {})?;
        let decoded = decoded::open(&*files.recipe, cache)?;
        if decoded.layout.form.target != TargetKind::Classes {
            return Ok(Dataset {
                name: files.name,
                decoded,
                class_names: Vec::new(),
                renumbered: None,
                unseen: Vec::new(),
            });
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
        Ok(Dataset {
            name: files.name,
            decoded,
            class_names,
            renumbered: None,
            unseen: Vec::new(),
        })
    }

    /// Opens a data set for a model that knows the classes `classes`: labels are their places in that
    /// list. Sets whose classes are numbers without names are taken as they are.
    ///
    /// # Errors
    /// As [`open`](Dataset::open), and when the set has other classes and `unseen` says to refuse them;
    /// the error names them.
    pub fn open_with_classes(
        source: &Source,
        cache: &CacheDir,
        classes: &[String],
        unseen: Unseen,
    ) -> Result<Dataset, DataError> {
        let mut set = Dataset::open(source, cache)?;
        if !set.has_named_classes() {
            return Ok(set);
        }
        let renumbered = renumber(&set.decoded.classes, set.labels(), classes);
        set.renumbered = renumbered.labels;
        set.unseen = renumbered.unseen;
        set.class_names = classes.to_vec();
        if unseen == Unseen::List || set.unseen.is_empty() {
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
    pub fn element(&self) -> Element {
        self.decoded.layout.form.element
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

    /// The number of classes; 0 if samples have none.
    pub fn classes(&self) -> usize {
        self.class_names.len()
    }

    /// The name of each class.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// The classes of samples that none of [`class_names`](Dataset::class_names) is: class `i` of these has
    /// the label `classes() + i`. Empty unless the set was opened with [`Unseen::List`].
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
    pub fn skipped(&self) -> Vec<Skipped> {
        let (bytes, texts) = (self.decoded.map.bytes(), &self.decoded.layout.skipped);
        let text = |index| texts.get(bytes, index).map(str::to_owned);
        let pairs = (0..self.decoded.layout.form.skipped.texts).step_by(2);
        let skipped = pairs.filter_map(|index| {
            Some(Skipped {
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
    /// that it goes on with the same data. Reads the whole set.
    pub fn sha256(&self) -> String {
        let layout = &self.decoded.layout;
        let [channels, height, width] = self.shape();
        let mut hash = Sha256::new();
        for number in [
            self.len(),
            channels,
            height,
            width,
            self.element() as usize,
            self.classes(),
        ] {
            hash.update((number as u64).to_le_bytes());
        }
        if self.has_named_classes() {
            for name in &self.class_names {
                hash.update((name.len() as u64).to_le_bytes());
                hash.update(name);
            }
        }
        for label in self.labels() {
            hash.update(label.to_ne_bytes());
        }
        if self.target_kind() != TargetKind::Classes {
            hash.update((self.target_kind() as u64).to_le_bytes());
            hash.update((self.outputs() as u64).to_le_bytes());
            hash.update(&self.decoded.map.bytes()[layout.labels.clone()]);
        }
        for piece in self.decoded.map.bytes()[layout.samples.clone()].chunks(1 << 20) {
            hash.update(piece);
            lockstep_progress::advance();
        }
        hex(&hash.finalize())
    }

    /// All samples, one after the other, if they are stored as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.decoded.map.bytes()[self.decoded.layout.samples.clone()]
    }

    /// All samples, one after the other, if they are stored as numbers.
    pub(crate) fn floats(&self) -> &[f32] {
        self.decoded.map.floats(self.decoded.layout.samples.clone())
    }

    /// Checks that a model trained on `train` can be measured on this set: the samples have the same
    /// shape and stand for the same range, and no label is beyond the classes of `train`.
    ///
    /// # Errors
    /// When they do not; the error says what differs.
    pub fn check_against(&self, train: &Dataset) -> Result<(), DataError> {
        let reason = if self.shape() != train.shape() {
            format!(
                "its samples are {:?} instead of {:?}",
                self.shape(),
                train.shape()
            )
        } else if self.element() != train.element() {
            format!(
                "its samples are {:?} instead of {:?}",
                self.element(),
                train.element()
            )
        } else if self.target_kind() != train.target_kind() {
            format!(
                "what it is labelled with are {} instead of {}",
                self.target_kind(),
                train.target_kind()
            )
        } else if self.target_kind() != TargetKind::Classes && self.outputs() != train.outputs() {
            format!(
                "it has {} columns to predict instead of {}",
                self.outputs(),
                train.outputs()
            )
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
