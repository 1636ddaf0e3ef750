//! Data sets that Lockstep knows by name and brings by itself.
//!
//! A known file is recognised by what it decodes to, not by its bytes: distributions compress the
//! same content anew. Files enter the cache only once they are verified, each in one step.

mod fetch;
mod subprocess;
mod unpack;

pub use lockstep_base::known::{KNOWN, KnownSet, KnownSplit};
pub use unpack::tar;

use crate::DataError;
use crate::file::shown;
use crate::sweep::{FETCH_PREFIX, sweep};
use crate::unpacked::Unpacked;
use fetch::{WAYS, Way};
use lockstep_base::fs::hex;
use lockstep_base::fs::{AtomicFile, CacheDir, write_atomic};
use lockstep_base::known::KnownFile;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The set called `name`.
///
/// # Errors
/// When there is none; the error lists all there are.
pub fn find(name: &str) -> Result<&'static KnownSet, DataError> {
    lockstep_base::known::find(name).ok_or_else(|| unknown(name.to_owned()))
}

/// The set called `name`, and its part called `split`.
///
/// # Errors
/// When there is none; the error lists all there are.
pub fn find_split(
    name: &str,
    split: &str,
) -> Result<(&'static KnownSet, &'static KnownSplit), DataError> {
    let set = find(name)?;
    let part = set.splits.iter().find(|part| part.name == split);
    Ok((set, part.ok_or_else(|| unknown(format!("{name}:{split}")))?))
}

fn unknown(name: String) -> DataError {
    let mut known = Vec::new();
    for set in KNOWN {
        known.extend(
            set.splits
                .iter()
                .map(|part| format!("{}:{}", set.name, part.name)),
        );
    }
    let known = known.join(", ");
    DataError::Unknown { name, known }
}

/// Brings the data set `name` into the cache, if it is not there, and returns its folder.
///
/// The ways, in this order: the Debian package if there is one, installed; the same package, downloaded
/// and unpacked without root; the public address. `progress` hears what is being done, one sentence at a
/// time.
///
/// # Errors
/// When there is no such set, or when every way fails; the error then lists each with its failure.
pub fn get(
    name: &str,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, DataError> {
    get_by(WAYS, find(name)?, cache, progress)
}

/// Tries the files that are there, then each of the ways.
fn get_by(
    ways: &[Way],
    set: &KnownSet,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, DataError> {
    let folder = cache.folder(&format!("datasets/{}", set.name))?;
    if is_verified_in(set, &folder) {
        return Ok(folder);
    }
    let mut attempts = Vec::new();
    if sizes_in(set, &folder).is_some() {
        progress(&format!("checking the files in {}", shown(&folder)));
        match verify_in(set, &folder).and_then(|()| mark_verified(set, &folder)) {
            Ok(()) => return Ok(folder),
            Err(error) => attempts.push(format!("the files that are there: {error}")),
        }
    }
    for way in ways.iter().filter(|way| (way.leads_to)(set)) {
        match bring_by(set, way, &folder, progress) {
            Ok(()) => return Ok(folder),
            Err(reason) => attempts.push(format!("{}: {reason}", way.name)),
        }
    }
    Err(DataError::Fetch {
        name: set.name.to_owned(),
        files: set
            .files
            .iter()
            .map(|file| file.name)
            .collect::<Vec<_>>()
            .join(", "),
        folder,
        attempts,
    })
}

/// Whether all files in `folder` were once verified and still have the same sizes.
fn is_verified_in(set: &KnownSet, folder: &Path) -> bool {
    let marker = fs::read_to_string(marker(folder)).ok();
    marker.is_some() && marker == sizes_in(set, folder)
}

/// The name and size of each file in `folder`, one a line; `None` if one is missing.
fn sizes_in(set: &KnownSet, folder: &Path) -> Option<String> {
    let line = |file: &KnownFile| {
        let metadata = fs::metadata(folder.join(file.name)).ok()?;
        Some(format!("{} {}\n", metadata.len(), file.name))
    };
    set.files.iter().map(line).collect()
}

fn mark_verified(set: &KnownSet, folder: &Path) -> Result<(), DataError> {
    let sizes = sizes_in(set, folder).unwrap_or_default();
    Ok(write_atomic(&marker(folder), sizes.as_bytes())?)
}

/// Checks that every file in `folder` decodes to what was published.
fn verify_in(set: &KnownSet, folder: &Path) -> Result<(), DataError> {
    set.files
        .iter()
        .try_for_each(|file| verify(file, &folder.join(file.name)))
}

/// Brings the files by `way`, and takes them into `folder` if they are the right ones.
fn bring_by(
    set: &KnownSet,
    way: &Way,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), String> {
    sweep(folder);
    let scratch = tempfile::Builder::new()
        .prefix(FETCH_PREFIX)
        .tempdir_in(folder);
    let scratch = scratch.map_err(|error| error.to_string())?;
    let from = (way.bring)(set, scratch.path(), progress)?;
    let adopted = verify_in(set, &from).and_then(|()| adopt(set, &from, folder));
    adopted.map_err(|error| error.to_string())
}

/// Copies the files of the folder `from`, which are verified, into `folder`.
fn adopt(set: &KnownSet, from: &Path, folder: &Path) -> Result<(), DataError> {
    for file in set.files {
        let (source, target) = (from.join(file.name), folder.join(file.name));
        let mut reader = File::open(&source).map_err(DataError::io("open", &source))?;
        let mut copy = AtomicFile::create(&target)?;
        io::copy(&mut reader, &mut copy).map_err(DataError::io("write", &target))?;
        copy.commit()?;
    }
    mark_verified(set, folder)
}

/// The file that says which files were verified.
fn marker(folder: &Path) -> PathBuf {
    folder.join("verified")
}

/// Checks that `path` decodes to what was published.
fn verify(file: &KnownFile, path: &Path) -> Result<(), DataError> {
    let mut content = Unpacked::open(path)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 64 << 10];
    let mut left = file.decoded_bytes;
    while left > 0 {
        let part = &mut block[..left.min(64 << 10) as usize];
        content.fill_whole(part, file.decoded_bytes)?;
        hash.update(&*part);
        left -= part.len() as u64;
    }
    content.finish()?;
    let found = hex::encode(hash.finalize());
    if found == file.decoded_sha256 {
        return Ok(());
    }
    let (path, expected) = (path.to_owned(), file.decoded_sha256.to_owned());
    Err(DataError::Hash {
        path,
        expected,
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, gzipped};
    use lockstep_base::known::Address;

    const TINY: KnownSet = KnownSet {
        name: "tiny",
        splits: &[],
        class_names: &[],
        files: &[KnownFile {
            name: "hello.gz",
            decoded_bytes: 5,
            decoded_sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        }],
        debian: None,
        address: Address::Folder(""),
    };

    const NOWHERE: Way = Way {
        name: "nowhere",
        leads_to: |_| true,
        bring: |_, _, _| Err("nothing there".into()),
    };
    const WRONG: Way = Way {
        name: "a wrong file",
        leads_to: |_| true,
        bring: |set, to, _| bring(set, to, b"hullo"),
    };
    const SHORT: Way = Way {
        name: "a short file",
        leads_to: |_| true,
        bring: |set, to, _| bring(set, to, b"hell"),
    };
    const RIGHT: Way = Way {
        name: "the right file",
        leads_to: |_| true,
        bring: |set, to, _| bring(set, to, b"hello"),
    };

    fn bring(set: &KnownSet, to: &Path, content: &[u8]) -> Result<PathBuf, String> {
        fs::write(to.join(set.files[0].name), gzipped(content)).unwrap();
        Ok(to.to_owned())
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn the_first_way_that_brings_the_published_content_wins_and_is_remembered() {
        let home = Folder::new();
        let cache = home.cache();
        let ways = [NOWHERE, WRONG, RIGHT];
        let folder = get_by(&ways, &TINY, &cache, &mut |_| {}).unwrap();
        assert_eq!(names(&folder), ["hello.gz", "verified"]);
        assert_eq!(
            get_by(&[], &TINY, &cache, &mut |_| panic!("nothing to do")).unwrap(),
            folder
        );
    }

    #[test]
    fn when_every_way_fails_each_is_listed_and_nothing_is_left() {
        let home = Folder::new();
        let cache = home.cache();
        let error = get_by(&[NOWHERE, WRONG, SHORT], &TINY, &cache, &mut |_| {}).unwrap_err();
        let DataError::Fetch {
            folder, attempts, ..
        } = &error
        else {
            panic!("{error}")
        };
        let [nowhere, wrong, short] = attempts.as_slice() else {
            panic!("{attempts:?}")
        };
        assert_eq!(nowhere, "nowhere: nothing there");
        assert!(wrong.contains("SHA-256"), "{wrong}");
        assert!(short.contains("expected 5 bytes, found 4"), "{short}");
        assert!(names(folder).is_empty());
    }

    #[test]
    fn files_that_were_put_there_by_hand_are_verified_once() {
        let home = Folder::new();
        let cache = home.cache();
        let folder = cache.folder("datasets/tiny").unwrap();
        fs::write(folder.join("hello.gz"), gzipped(b"hello")).unwrap();
        get_by(&[], &TINY, &cache, &mut |_| {}).unwrap();
        assert_eq!(names(&folder), ["hello.gz", "verified"]);
    }

    #[test]
    fn a_file_that_changed_its_size_is_brought_again() {
        let home = Folder::new();
        let cache = home.cache();
        let folder = get_by(&[RIGHT], &TINY, &cache, &mut |_| {}).unwrap();
        fs::write(folder.join("hello.gz"), b"short").unwrap();
        assert!(get_by(&[NOWHERE], &TINY, &cache, &mut |_| {}).is_err());
        get_by(&[RIGHT], &TINY, &cache, &mut |_| {}).unwrap();
        assert_eq!(
            fs::read(folder.join("hello.gz")).unwrap(),
            gzipped(b"hello")
        );
    }

    #[test]
    fn a_way_that_does_not_lead_to_a_set_is_not_tried() {
        let elsewhere = Way {
            leads_to: |_| false,
            ..RIGHT
        };
        let cache = Folder::new().cache();
        let error = get_by(&[elsewhere, NOWHERE], &TINY, &cache, &mut |_| {}).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("put its files (hello.gz) into"),
            "{message}"
        );
        assert!(
            message.ends_with(":\n  - nowhere: nothing there"),
            "{message}"
        );
    }
}
