//! Files and folders of this machine, without a runtime or a thread in between.

mod change;
mod path;

pub(crate) use change::{
    create_new, delete, delete_all, folders, make_folder, make_new_folder, replace_if, writer,
};

pub(crate) use path::LocalPath;

use crate::{FileEntry, Passing, PlaceError};
use lockstep_base::fs::beneath::{Held, Purpose, hold_folder};
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// All files below `folder`, in no particular order. Links are followed; one that leads back up is refused. Below a root
/// they are left out.
///
/// A folder that is missing has no files, as in an object store, which knows no folders.
pub(crate) fn list(folder: &LocalPath) -> Result<Vec<FileEntry>, PlaceError> {
    let mut listing = Listing {
        shown: folder,
        above: Vec::new(),
        entries: Vec::new(),
    };
    match folder.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => (),
        Err(error) => return Err(failed("list", folder)(error)),
        Ok(_) => {
            let held = folder.held_folder().map_err(failed("list", folder))?;
            listing.descend(held.path(), "")?;
        }
    }
    Ok(listing.entries)
}

/// A list that is being made.
struct Listing<'a> {
    /// The folder as people know it.
    shown: &'a LocalPath,
    /// The folders on the way down.
    above: Vec<(u64, u64)>,
    entries: Vec<FileEntry>,
}

impl Listing<'_> {
    /// Adds what lies in `folder`, whose name from the top is `prefix`.
    fn descend(&mut self, folder: &Path, prefix: &str) -> Result<(), PlaceError> {
        let shown = self.shown.join(prefix);
        let found = fs::metadata(folder).map_err(failed("list", &shown))?;
        let identity = (found.dev(), found.ino());
        let other = |cause: String| PlaceError::Other {
            doing: "list",
            place: shown.display().to_string(),
            cause,
        };
        if self.above.contains(&identity) {
            let cause = "it is a link to a folder above it, so the list would have no end";
            return Err(other(cause.into()));
        }
        self.above.push(identity);
        for item in fs::read_dir(folder).map_err(failed("list", &shown))? {
            let item = item.map_err(failed("list", &shown))?;
            let name = item.file_name().into_string().map_err(|name| {
                other(format!("the name {name:?} is not UTF-8; rename the file"))
            })?;
            let path = item.path();
            let found = match self.shown.is_beneath() {
                true => fs::symlink_metadata(&path),
                false => fs::metadata(&path),
            };
            let found = match found {
                // Gone since the folder was read, as temporary files are, or a link to nothing.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                found => found.map_err(failed("look at", &shown.join(&name)))?,
            };
            let name = format!("{prefix}{name}");
            if found.is_dir() {
                let inner = match self.shown.is_beneath() {
                    true => hold_folder(folder, Path::new(&item.file_name())),
                    false => Ok(Held::plain(&path)),
                };
                let inner = match inner {
                    // It was a folder a moment ago.
                    Err(error) if is_missing(error.kind()) => continue,
                    inner => inner.map_err(failed("list", &self.shown.join(&name)))?,
                };
                self.descend(inner.path(), &format!("{name}/"))?;
            } else if found.is_file() {
                self.entries.push(describe(name, &found));
            }
        }
        self.above.pop();
        Ok(())
    }
}

/// What is known of a file; nothing if there is none, or a folder.
pub(crate) fn entry(path: &LocalPath) -> Result<Option<FileEntry>, PlaceError> {
    match path.metadata() {
        Ok(found) if found.is_file() => {
            let name = path.file_name().unwrap_or_default();
            Ok(Some(describe(name.to_string_lossy().into(), &found)))
        }
        Ok(_) => Ok(None),
        Err(error) if is_missing(error.kind()) => Ok(None),
        Err(error) => Err(failed("look at", path)(error)),
    }
}

/// What changes with the content of a file even when its size and time are made the same.
fn inode(found: &Metadata) -> String {
    let (number, seconds, nanoseconds) = (found.ino(), found.ctime(), found.ctime_nsec());
    format!("{number}-{seconds}.{nanoseconds:09}")
}

fn describe(path: String, found: &Metadata) -> FileEntry {
    let modified = found.modified().unwrap_or(UNIX_EPOCH);
    let version = match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_nanos().to_string(),
        Err(before) => format!("-{}", before.duration().as_nanos()),
    };
    FileEntry {
        path,
        size: found.len(),
        version,
        inode: inode(found),
    }
}

/// The whole file, and which version of it that is.
pub(crate) fn read_versioned(path: &LocalPath) -> Result<(Vec<u8>, String), PlaceError> {
    let mut file = path.open(Purpose::Read).map_err(failed("read", path))?;
    let found = file.metadata().map_err(failed("read", path))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed("read", path))?;
    Ok((bytes, version(&found)))
}

/// What is another one for every file that takes the name: it is never written in place.
fn version(found: &Metadata) -> String {
    let FileEntry { size, version, .. } = describe(String::new(), found);
    format!("{}-{version}-{size}", found.ino())
}

/// The whole file.
pub(crate) fn read(path: &LocalPath) -> Result<Vec<u8>, PlaceError> {
    let mut file = path.open(Purpose::Read).map_err(failed("read", path))?;
    let size = file.metadata().map_err(failed("read", path))?.len();
    let mut bytes = Vec::with_capacity(size as usize);
    file.read_to_end(&mut bytes).map_err(failed("read", path))?;
    Ok(bytes)
}

/// The whole file, which has at most `most` bytes.
pub(crate) fn read_at_most(path: &LocalPath, most: u64) -> Result<Vec<u8>, PlaceError> {
    let file = path.open(Purpose::Read).map_err(failed("read", path))?;
    let mut bytes = Vec::new();
    let read = file.take(most + 1).read_to_end(&mut bytes);
    let size = read.map_err(failed("read", path))? as u64;
    match size > most {
        true => Err(PlaceError::TooLarge {
            place: path.display().to_string(),
            size,
            most,
        }),
        false => Ok(bytes),
    }
}

/// The bytes of `range`, all of which must be there, and of `version` if one is given.
pub(crate) fn read_range(
    path: &LocalPath,
    range: Range<u64>,
    version: Option<&str>,
) -> Result<Vec<u8>, PlaceError> {
    let mut file = path.open(Purpose::Read).map_err(failed("read", path))?;
    let found = describe(
        String::new(),
        &file.metadata().map_err(failed("read", path))?,
    );
    let place = path.display().to_string();
    if version.is_some_and(|version| found.version != version) {
        let cause = Passing::changed();
        return Err(PlaceError::Changed { place, cause });
    }
    if range.end > found.size {
        let size = found.size;
        return Err(PlaceError::PastTheEnd { place, size, range });
    }
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.seek(SeekFrom::Start(range.start))
        .and_then(|_| file.read_exact(&mut bytes))
        .map_err(failed("read", path))?;
    Ok(bytes)
}

/// Whether there is nothing at a path: no such name, or a file where a folder would lead on.
fn is_missing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> PlaceError {
    move |source| PlaceError::io(doing, path, source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Place};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    fn place(folder: &tempfile::TempDir) -> Place {
        Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap()
    }

    fn paths(place: &Place) -> Vec<String> {
        let entries = place.list().unwrap();
        entries.into_iter().map(|entry| entry.path).collect()
    }

    #[test]
    fn what_was_written_is_read_listed_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let file = place(&folder).join("a/b/c.bin").unwrap();
        assert_eq!(file.entry().unwrap(), None);
        file.write(b"0123456789").unwrap();
        assert_eq!(file.read().unwrap(), b"0123456789");
        assert_eq!(file.read_range(3..6).unwrap(), b"345");
        assert_eq!(file.read_range(7..7).unwrap(), b"");
        let entry = file.entry().unwrap().unwrap();
        assert_eq!((entry.path.as_str(), entry.size), ("c.bin", 10));
        let listed = &place(&folder).list().unwrap()[0];
        assert_eq!(listed.path, "a/b/c.bin");
        assert_eq!(listed.version, entry.version);
        file.delete().unwrap();
        file.delete().unwrap();
        assert!(paths(&place(&folder)).is_empty());
    }

    #[test]
    fn a_list_is_sorted_by_bytes_and_keeps_hidden_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a/z", "a.b", "ä", "Z", ".hidden", "_SUCCESS", "a/y/x"] {
            place(&folder).join(name).unwrap().write(b"").unwrap();
        }
        let sorted = [".hidden", "Z", "_SUCCESS", "a.b", "a/y/x", "a/z", "b", "ä"];
        assert_eq!(paths(&place(&folder)), sorted);
    }

    #[test]
    fn a_missing_folder_has_no_files_and_a_file_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        assert!(paths(&place.join("missing").unwrap()).is_empty());
        place.join("file").unwrap().write(b"x").unwrap();
        let error = place.join("file").unwrap().list().unwrap_err().to_string();
        assert!(
            error.contains("cannot list") && error.contains("file"),
            "{error}"
        );
        assert_eq!(place.entry().unwrap(), None);
        assert_eq!(place.join("file/below").unwrap().entry().unwrap(), None);
    }

    #[test]
    fn links_are_followed_unless_they_lead_back() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        place.join("real/file").unwrap().write(b"x").unwrap();
        symlink("real", folder.path().join("alias")).unwrap();
        symlink("nothing", folder.path().join("dangling")).unwrap();
        assert_eq!(paths(&place), ["alias/file", "real/file"]);
        symlink("..", folder.path().join("real/up")).unwrap();
        let error = place.list().unwrap_err().to_string();
        assert!(error.contains("no end"), "{error}");
    }

    #[test]
    fn beneath_a_root_no_link_is_read_written_listed_or_removed_through() {
        let folder = tempfile::tempdir().unwrap();
        let outside = place(&folder).join("outside").unwrap();
        outside.join("secret").unwrap().write(b"secret").unwrap();
        let root = place(&folder).join("store").unwrap();
        root.join("run/file").unwrap().write(b"mine").unwrap();
        let at = |name: &str| folder.path().join("store").join(name);
        symlink(folder.path().join("outside/secret"), at("run/link")).unwrap();
        symlink(folder.path().join("outside"), at("way")).unwrap();
        let root = root.beneath();
        let file = |name: &str| root.join(name).unwrap();
        assert_eq!(file("run/file").read().unwrap(), b"mine");
        assert_eq!(paths(&root), ["run/file"]);
        assert_eq!(root.folders().unwrap(), ["run"]);
        for name in ["run/link", "way/secret"] {
            let place = file(name);
            assert_eq!(place.entry().unwrap(), None, "{name}");
            assert!(
                place.read().is_err() && place.read_range(0..1).is_err(),
                "{name}"
            );
            assert!(
                place.read_at_most(9).is_err() && place.local_copy().is_err(),
                "{name}"
            );
            assert_eq!(place.read_versioned().unwrap(), None, "{name}");
        }
        for name in ["way/new", "way/new/er"] {
            assert!(file(name).write(b"x").is_err(), "{name}");
            assert!(file(name).create_new(b"x").is_err(), "{name}");
            assert!(file(name).make_folder().is_err(), "{name}");
        }
        file("way/secret").delete().unwrap();
        let _ = file("way").delete_all();
        // A link that is written over is what goes.
        file("run/link").write(b"now mine").unwrap();
        assert_eq!(file("run/link").read().unwrap(), b"now mine");
        assert_eq!(outside.join("secret").unwrap().read().unwrap(), b"secret");
        assert_eq!(paths(&outside), ["secret"]);
        file("run").delete_all().unwrap();
        assert!(paths(&root).is_empty());
    }

    #[test]
    fn another_content_has_another_version() {
        let folder = tempfile::tempdir().unwrap();
        let file = place(&folder).join("file").unwrap();
        file.write(b"one").unwrap();
        let before = file.entry().unwrap().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        file.write(b"two").unwrap();
        let after = file.entry().unwrap().unwrap();
        assert_ne!(after.version, before.version);
        assert_eq!(file.read_range_of(&after, 1..3).unwrap(), b"wo");
        let error = file.read_range_of(&before, 1..3).unwrap_err();
        assert!(matches!(error, PlaceError::Changed { .. }), "{error}");
    }

    #[test]
    fn errors_name_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        let missing = place.join("x/missing").unwrap();
        assert_eq!(
            missing.read().unwrap_err().to_string(),
            format!(
                "{} does not exist",
                folder.path().join("x/missing").display()
            )
        );
        place.join("short").unwrap().write(b"abc").unwrap();
        let error = place.join("short").unwrap().read_range(1..9).unwrap_err();
        assert!(
            matches!(error, PlaceError::PastTheEnd { size: 3, .. }),
            "{error}"
        );
        let name = std::ffi::OsStr::from_bytes(b"bad\xff");
        fs::write(folder.path().join(name), b"").unwrap();
        let error = place.list().unwrap_err().to_string();
        assert!(error.contains("bad") && error.contains("UTF-8"), "{error}");
    }
}
