//! A set as a folder of pictures, whose classes are the folders in it.
//!
//! `train/husky/0001.jpg` is a husky. Every picture is decoded once and transformed to the one size that
//! samples have; what cannot be read is left out, noted with the reason, and refuses the whole set when
//! it is more than a share of it. The samples come in the order of their paths and have the same bytes,
//! however many threads decode them.

mod survey;
mod threads;

pub use survey::{PictureClass, PictureSurvey};

use crate::DataError;
use crate::builder::Builder;
use crate::dataset::StoredElement;
use crate::decoded::{Decoded, Recipe};
use crate::file::printable;
use crate::stamp::{Stamp, whole_place};
use crate::target::TargetKind;
use lockstep_image::{Limits, Transform, empty_class, is_looked_at, tolerated};
use lockstep_place::{FileEntry, Place};
use serde::{Deserialize, Serialize};
use std::path::Path;
use threads::{DecodeThreads, NoPixels};

/// A folder of pictures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pictures {
    /// The folder; each folder in it is a class.
    #[serde(with = "lockstep_place::portable")]
    pub folder: Place,
    /// What is done to every picture. It must lead to one size; its random parts are left to augmentation.
    pub transform: Transform,
    /// How large a picture may be.
    pub limits: Limits,
    /// The share of the pictures that may be unreadable, from 0 to 1.
    pub max_bad: f64,
    /// Bytes that decoding may take, all threads together. A picture that needs more is unreadable.
    pub memory: u64,
    /// Threads that decode; 0 for as many as the machine has cores.
    pub threads: usize,
}

/// The pictures of a folder.
#[derive(Debug)]
pub(crate) struct PictureSet {
    pictures: Pictures,
    entries: Vec<FileEntry>,
    /// Whether these are only some of the pictures that are there.
    chosen: bool,
    /// Whether every picture lies in the folder of its class.
    labelled: bool,
    /// Height and width of a sample.
    size: [u32; 2],
}

impl PictureSet {
    /// Lists the folder and checks that its pictures lie in folders of classes.
    pub(crate) fn find(pictures: &Pictures) -> Result<PictureSet, DataError> {
        let set = PictureSet::of(pictures, pictures.folder.list()?, (true, false))?;
        if let Some(class) = set.empty_class()? {
            return Err(DataError::EmptyClass {
                folder: pictures.folder.to_string(),
                class: printable(&class).to_string(),
            });
        }
        if let Some(entry) = set.entries.iter().find(|entry| !entry.path.contains('/')) {
            return Err(DataError::NoClass {
                folder: pictures.folder.to_string(),
                path: printable(&entry.path).to_string(),
            });
        }
        Ok(set)
    }

    /// Lists the folder, or those pictures in it that are named. They need not lie in folders of classes; their
    /// classes are known if all do.
    pub(crate) fn find_samples(
        pictures: &Pictures,
        chosen: Option<&[String]>,
    ) -> Result<PictureSet, DataError> {
        let entries = match chosen {
            Some(names) => pictures.folder.pick(names)?,
            None => pictures.folder.list()?,
        };
        PictureSet::of(pictures, entries, (false, chosen.is_some()))
    }

    /// Takes the pictures out of all files of a folder, which may be those of `classes`, or were `chosen`.
    fn of(
        pictures: &Pictures,
        mut entries: Vec<FileEntry>,
        (classes, chosen): (bool, bool),
    ) -> Result<PictureSet, DataError> {
        let size = pictures.transform.output().map_err(transform)?;
        entries.retain(|entry| is_looked_at(&entry.path, classes));
        if entries.is_empty() {
            return Err(DataError::NoSamples {
                place: pictures.folder.to_string(),
                reason: "there is no .jpg, .jpeg, .png, .webp or .bmp in folders within it",
            });
        }
        Ok(PictureSet {
            pictures: pictures.clone(),
            labelled: entries.iter().all(|entry| entry.path.contains('/')),
            chosen,
            entries,
            size,
        })
    }

    /// A folder of a class that has no picture in it. In a bucket there are no empty folders.
    fn empty_class(&self) -> Result<Option<String>, DataError> {
        let Some(folder) = self.pictures.folder.local() else {
            return Ok(None);
        };
        let paths = self.entries.iter().map(|entry| entry.path.as_str());
        empty_class(folder, paths).map_err(DataError::io("list", folder))
    }

    /// What a person calls the set.
    pub(crate) fn name(&self) -> String {
        let folder = &self.pictures.folder;
        match &self.entries[..] {
            [entry] if self.chosen => format!("{folder}/{}", entry.path),
            entries if self.chosen => format!("{} pictures in {folder}", entries.len()),
            _ => folder.to_string(),
        }
    }

    /// Checks that of the first `seen` pictures not too many are `bad`, the `first` of which it names.
    fn check_bad(&self, bad: usize, seen: usize, first: (&str, &str)) -> Result<(), DataError> {
        let (total, max_bad) = (self.entries.len(), self.pictures.max_bad);
        let allowed = tolerated(max_bad, total);
        if bad <= allowed {
            return Ok(());
        }
        Err(DataError::TooManyBad {
            folder: self.pictures.folder.to_string(),
            bad,
            seen,
            total,
            max_bad,
            allowed,
            path: printable(first.0).to_string(),
            reason: first.1.to_owned(),
        })
    }
}

impl Recipe for PictureSet {
    fn reader(&self) -> &'static str {
        "pictures"
    }

    fn variant(&self) -> String {
        let Transform {
            resize,
            crop,
            filter,
            ..
        } = &self.pictures.transform;
        let max_side = self.pictures.limits.max_side;
        let mut variant = format!("{resize:?} {crop:?} {filter:?} {max_side}");
        if !self.labelled {
            variant += " without classes";
        }
        if self.chosen {
            for entry in &self.entries {
                variant += &format!("/{}", entry.path);
            }
        }
        variant
    }

    fn roots(&self) -> Result<Vec<Vec<u8>>, DataError> {
        Ok(vec![whole_place(&self.pictures.folder)?])
    }

    fn stamp(&self, stamp: &mut Stamp) -> Result<(), DataError> {
        // The memory decides over which pictures are too large for it.
        stamp.piece(&self.pictures.memory.to_le_bytes());
        for entry in &self.entries {
            stamp.entry(&entry.path, entry.size, &entry.version);
            stamp.piece(entry.inode.as_bytes());
        }
        Ok(())
    }

    fn labels_file(&self) -> &Path {
        self.pictures.folder.local().unwrap_or(Path::new(""))
    }

    fn accept(&self, decoded: &Decoded) -> Result<(), DataError> {
        let (bytes, skipped) = (decoded.map.bytes(), &decoded.layout.skipped);
        let text = |index| skipped.get(bytes, index).unwrap_or_default();
        let bad = decoded.layout.form.skipped.texts / 2;
        self.check_bad(bad, self.entries.len(), (text(0), text(1)))
    }

    fn decode(&self, out: &mut Builder) -> Result<(), DataError> {
        let [height, width] = self.size.map(|side| side as usize);
        out.begin(StoredElement::U8, [3, height, width]);
        if !self.labelled {
            out.expect_nothing(TargetKind::Classes);
        }
        let (mut good, mut bad) = (0, 0);
        let mut first = None;
        let threads = DecodeThreads::new(&self.pictures, &self.entries, 3 * height * width);
        threads.work(&mut |index, picture| {
            let path = &self.entries[index].path;
            match picture? {
                Ok((_, pixels)) => {
                    good += 1;
                    out.samples(pixels)?;
                    out.name(path)?;
                    match path.split_once('/').filter(|_| self.labelled) {
                        Some((class, _)) => out.class(class, &|| path.clone()),
                        None => Ok(()),
                    }
                }
                Err(NoPixels::NoPicture) => Ok(()),
                Err(NoPixels::Unreadable(reason)) => {
                    bad += 1;
                    out.skip(path, &reason)?;
                    let first = first.get_or_insert_with(|| (path.clone(), reason));
                    self.check_bad(bad, index + 1, (&first.0, &first.1))
                }
            }
        })?;
        if good == 0 {
            return Err(DataError::NoSamples {
                place: self.pictures.folder.to_string(),
                reason: "none of its pictures can be read",
            });
        }
        Ok(())
    }
}

fn transform(error: lockstep_image::ImageError) -> DataError {
    DataError::Setting {
        setting: "transform",
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, bmp, place};
    use crate::{Dataset, SkippedFile, Source, UnseenClass, UnseenClasses};
    use std::fs;

    fn write(folder: &Folder, path: &str, bytes: &[u8]) {
        let path = folder.path().join("set").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn pictures(folder: &Folder) -> Pictures {
        Pictures {
            folder: place(&folder.path().join("set")),
            transform: Transform {
                resize: Some(4),
                crop: Some([2, 3]),
                ..Transform::default()
            },
            limits: Limits::default(),
            max_bad: 0.0,
            memory: 32 << 20,
            threads: 2,
        }
    }

    fn open(folder: &Folder, pictures: Pictures) -> Result<Dataset, DataError> {
        Dataset::open(&Source::Pictures(pictures), &folder.cache())
    }

    /// Three pugs, two huskies, and a file that is not a picture.
    fn dogs() -> Folder {
        let folder = Folder::new();
        for (path, colour) in [
            ("pug/b.bmp", [1, 2, 3]),
            ("pug/a.BMP", [4, 5, 6]),
            ("pug/more/c.jpg", [7, 8, 9]),
            ("husky/1.png", [10, 11, 12]),
            ("husky/2.webp", [13, 14, 15]),
        ] {
            write(&folder, path, &bmp(8, 6, colour));
        }
        for other in [
            "notes.txt",
            ".hidden.jpg",
            "pug/.x/d.jpg",
            "pug/readme",
            "pug/e.csv",
        ] {
            write(&folder, other, b"no picture");
        }
        folder
    }

    #[test]
    fn the_class_is_the_first_folder_and_samples_come_in_the_order_of_their_paths() {
        let folder = dogs();
        let set = open(&folder, pictures(&folder)).unwrap();
        assert_eq!((set.len(), set.shape()), (5, [3, 2, 3]));
        assert_eq!(set.class_names(), ["husky", "pug"]);
        assert_eq!(set.labels(), [0, 0, 1, 1, 1]);
        let names: Vec<_> = (0..6).map(|sample| set.sample_name(sample)).collect();
        let paths = [
            "husky/1.png",
            "husky/2.webp",
            "pug/a.BMP",
            "pug/b.bmp",
            "pug/more/c.jpg",
        ];
        assert_eq!(names[..5], paths.map(Some));
        assert_eq!(names[5], None);
        assert_eq!(set.bytes()[..6], [10, 11, 12, 10, 11, 12]);
        assert_eq!(set.bytes()[4 * 18..], [7, 8, 9].repeat(6));
        assert_eq!(set.skipped(), []);
    }

    #[test]
    fn any_number_of_threads_and_any_memory_makes_the_same_set() {
        let folder = Folder::new();
        for i in 0..60u8 {
            let side = 4 + u32::from(i % 5) * 30;
            write(
                &folder,
                &format!("{}/{i}.png", i % 7),
                &bmp(side, side, [i, 2 * i, 3 * i]),
            );
        }
        let hash = |threads, memory| {
            let pictures = Pictures {
                threads,
                memory,
                ..pictures(&folder)
            };
            open(&folder, pictures).unwrap().sha256()
        };
        let expected = hash(1, 1 << 30);
        for (threads, memory) in [(2, 1 << 30), (7, 1 << 30), (3, 8 << 20), (100, 4 << 20)] {
            assert_eq!(
                hash(threads, memory),
                expected,
                "{threads} threads, {memory} bytes"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_out_noted_and_refuses_the_set_past_a_share() {
        let folder = dogs();
        write(&folder, "pug/d.jpg", b"");
        write(&folder, "husky/0.bmp", b"not a picture at all");
        let share = |max_bad| Pictures {
            max_bad,
            ..pictures(&folder)
        };
        for _ in 0..2 {
            // Once made, once from the cache.
            let set = open(&folder, share(0.3)).unwrap();
            assert_eq!(set.labels(), [0, 0, 1, 1, 1]);
            let [text, empty] = &set.skipped()[..] else {
                panic!("{:?}", set.skipped())
            };
            let expected = SkippedFile {
                path: "pug/d.jpg".into(),
                reason: "the file is empty".into(),
            };
            assert_eq!(empty, &expected);
            assert_eq!(text.path, "husky/0.bmp");
            assert!(text.reason.contains("not a pic"), "{}", text.reason);
        }
        let error = open(&folder, share(0.2)).unwrap_err().to_string();
        assert!(error.contains("2 of the first 8 pictures"), "{error}");
        let all = 2.0 / 8.0;
        open(&folder, share(all)).unwrap();
        assert!(
            error.contains("max_bad = 0.2 allows 1; the first is husky/0.bmp: "),
            "{error}"
        );
        let error = open(&folder, share(0.0)).unwrap_err().to_string();
        assert!(error.contains("max_bad = 0 allows 0"), "{error}");
        // A set that has not been decoded before is given up at the first picture too many.
        write(&folder, "husky/00.bmp", b"");
        let error = open(&folder, share(0.0)).unwrap_err().to_string();
        assert!(error.contains("1 of the first 1 pictures"), "{error}");
    }

    #[test]
    fn a_picture_that_needs_more_than_the_memory_is_unreadable() {
        let folder = dogs();
        write(&folder, "pug/large.bmp", &bmp(1200, 1000, [1, 1, 1]));
        let with = |memory| {
            open(
                &folder,
                Pictures {
                    memory,
                    max_bad: 0.5,
                    ..pictures(&folder)
                },
            )
            .unwrap()
        };
        assert_eq!(with(64 << 20).len(), 6);
        let small = with(4 << 20);
        assert_eq!(small.len(), 5);
        let [SkippedFile { path, reason }] = &small.skipped()[..] else {
            panic!("{:?}", small.skipped())
        };
        assert_eq!(path, "pug/large.bmp");
        assert!(
            reason.contains("of the memory of 4194304 bytes"),
            "{reason}"
        );
    }

    #[test]
    fn a_set_is_made_again_when_a_picture_comes_goes_or_changes_or_the_transform_does() {
        let folder = dogs();
        let len = || open(&folder, pictures(&folder)).unwrap().len();
        let said = || {
            let mut said = Vec::new();
            let source = Source::Pictures(pictures(&folder));
            let mut tell = |words: &str| said.push(words.to_owned());
            Dataset::open_telling(&source, &folder.cache(), &mut tell).unwrap();
            said
        };
        assert!(matches!(&said()[..], [words] if words.starts_with("decoding ")));
        assert_eq!(len(), 5);
        assert!(said().is_empty());
        write(&folder, "mops/1.bmp", &bmp(5, 5, [0, 0, 0]));
        assert_eq!(len(), 6);
        fs::remove_file(folder.path().join("set/pug/b.bmp")).unwrap();
        assert_eq!(len(), 5);
        let before = open(&folder, pictures(&folder)).unwrap().sha256();
        write(&folder, "mops/1.bmp", &bmp(6, 5, [0, 0, 1]));
        assert_ne!(open(&folder, pictures(&folder)).unwrap().sha256(), before);
        let mut other = pictures(&folder);
        other.transform.crop = None;
        assert_eq!(open(&folder, other).unwrap().shape(), [3, 4, 4]);
    }

    #[test]
    fn folders_that_are_no_set_are_told_what_they_lack() {
        let folder = Folder::new();
        let refusal = |pictures| open(&folder, pictures).unwrap_err().to_string();
        let none = refusal(pictures(&folder));
        assert!(none.contains("set holds no samples"), "{none}");
        write(&folder, "a.jpg", &bmp(4, 4, [0; 3]));
        write(&folder, "pug/b.jpg", &bmp(4, 4, [0; 3]));
        let loose = refusal(pictures(&folder));
        assert!(
            loose.contains("set holds a.jpg itself: pictures must lie in folders"),
            "{loose}"
        );
        fs::remove_file(folder.path().join("set/a.jpg")).unwrap();
        write(&folder, "pug/b.jpg", b"x");
        let unreadable = refusal(Pictures {
            max_bad: 1.0,
            ..pictures(&folder)
        });
        assert!(
            unreadable.ends_with("none of its pictures can be read"),
            "{unreadable}"
        );
        let sizeless = refusal(Pictures {
            transform: Transform::default(),
            ..pictures(&folder)
        });
        assert!(
            sizeless.starts_with("the transform cannot be used: "),
            "{sizeless}"
        );
    }

    #[test]
    fn a_set_takes_the_numbering_of_the_training_set() {
        let folder = dogs();
        let source = Source::Pictures(pictures(&folder));
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.into())
                .collect::<Vec<String>>()
        };
        let open = |classes: &[&str], unseen| {
            Dataset::open(&source, &folder.cache())?.with_classes(&names(classes), unseen)
        };
        let all = open(&["ape", "husky", "mops", "pug"], UnseenClasses::Refuse).unwrap();
        assert_eq!((all.labels(), all.classes()), (&[1, 1, 3, 3, 3][..], 4));
        assert!(all.unseen().is_empty());

        let error = open(&["ape", "pug"], UnseenClasses::Refuse)
            .unwrap_err()
            .to_string();
        let expected =
            "has the class `husky`, which the training set does not have, such as husky/1.png";
        assert!(error.ends_with(expected), "{error}");
        let listed = open(&["ape", "pug"], UnseenClasses::List).unwrap();
        assert_eq!(listed.labels(), [2, 2, 1, 1, 1]);
        let husky = UnseenClass {
            name: "husky".into(),
            samples: 2,
            first: 0,
        };
        assert_eq!((listed.unseen(), listed.classes()), (&[husky][..], 2));

        let train = Dataset::open(&source, &folder.cache()).unwrap();
        let misfit = all.check_against(&train).unwrap_err().to_string();
        assert!(misfit.contains("not numbered as"), "{misfit}");
        open(&["husky", "pug"], UnseenClasses::List)
            .unwrap()
            .check_against(&train)
            .unwrap();
    }
}
