//! One name for a file or a folder, and what can be done with it.

use crate::local::LocalPath;
use crate::remote::Remote;
use crate::{Access, PlaceError, Variables, local, name};
use lockstep_base::fs::beneath::Purpose;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

/// A file or a folder, wherever it lies. Cheap to clone.
#[derive(Clone)]
pub struct Place(pub(crate) PlaceKind);

#[derive(Clone)]
pub(crate) enum PlaceKind {
    Local(LocalPath),
    Remote(Remote),
}

/// What is known of a file without reading it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileEntry {
    /// Its name within the place that was listed, its parts between slashes. Of [`Place::entry`], its last part.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Another one when the content is: the store's ETag, or the time of the last change in nanoseconds.
    pub version: String,
    /// Of a file of this machine, its inode and the time of its last change of any kind, which no program
    /// can set back. Empty in an object store, whose version says all.
    pub inode: String,
}

/// Runs one of two expressions: on the local path, or on the remote place.
macro_rules! on {
    ($place:expr, $local:ident => $here:expr, $remote:ident => $there:expr) => {
        match &$place.0 {
            $crate::place::PlaceKind::Local($local) => $here,
            $crate::place::PlaceKind::Remote($remote) => $there,
        }
    };
}
pub(crate) use on;

impl Place {
    /// Understands a path or a URL. Nothing is opened or asked yet.
    ///
    /// # Errors
    /// When the scheme is unknown, the name is malformed or carries a password, or `access` or the
    /// environment's variables make no sense for it.
    pub fn parse(text: &str, access: &Access) -> Result<Place, PlaceError> {
        Place::parse_with(text, access, &Variables::of_process())
    }

    /// Like [`parse`](Place::parse), with secrets from `variables` instead of the process's environment.
    ///
    /// # Errors
    /// As [`parse`](Place::parse).
    pub fn parse_with(
        text: &str,
        access: &Access,
        variables: &Variables,
    ) -> Result<Place, PlaceError> {
        let Some((scheme, rest)) = name::split_scheme(text) else {
            return Place::parse_local(text, text);
        };
        let place = name::redacted(text);
        match scheme {
            "file" => Place::parse_local(rest, text),
            "s3" | "az" | "abfs" | "abfss" | "gs" | "http" | "https" => {
                access.check().map_err(|why| PlaceError::Setting {
                    place: place.clone(),
                    why,
                })?;
                let remote = Remote::open(scheme, rest, place, access, variables)?;
                Ok(Place(PlaceKind::Remote(remote)))
            }
            _ => Err(PlaceError::Scheme {
                place,
                scheme: scheme.into(),
            }),
        }
    }

    fn parse_local(path: &str, text: &str) -> Result<Place, PlaceError> {
        let why = if path.is_empty() {
            "a path has at least one letter"
        } else if path.contains('\0') {
            "a path has no zero byte in it"
        } else if path != text && !path.starts_with('/') {
            "a file:// URL goes on with a path from the root, like file:///data"
        } else {
            return Ok(Place(PlaceKind::Local(LocalPath::new(path.into()))));
        };
        Err(PlaceError::Url {
            place: format!("{text:?}"),
            why: why.into(),
        })
    }

    /// What lies within this place under `name`, such as `a/b.jpg`.
    ///
    /// # Errors
    /// When `name` does not lead down: it is empty, begins with a slash, or goes through `.` or `..`.
    pub fn join(&self, name: &str) -> Result<Place, PlaceError> {
        name::check(name).map_err(|why| PlaceError::Name {
            place: self.to_string(),
            name: name.escape_debug().to_string(),
            why,
        })?;
        Ok(Place(on!(self,
            path => PlaceKind::Local(path.join(name)),
            remote => PlaceKind::Remote(remote.join(name)?))))
    }

    /// The same place, below which no link is followed: for a folder that others may write into. What is there may be
    /// changed by them at any moment, and still nothing outside is read, written or removed. In an object store there are
    /// no links.
    #[must_use]
    pub fn beneath(&self) -> Place {
        Place(on!(self,
            path => PlaceKind::Local(path.beneath()),
            remote => PlaceKind::Remote(remote.clone())))
    }

    /// Opens the file, if the place is on this machine.
    ///
    /// # Errors
    /// When it cannot be opened, or is no plain file.
    pub fn open_local(&self, purpose: Purpose) -> Option<io::Result<File>> {
        on!(self, path => Some(path.open(purpose)), _remote => None)
    }

    /// The path, if the place is on this machine.
    pub fn local(&self) -> Option<&Path> {
        on!(self, path => Some(path), _remote => None)
    }

    /// All files below this place, sorted by the bytes of their paths.
    ///
    /// Hidden files and markers such as `_SUCCESS` are among them. A folder that is missing has none.
    ///
    /// # Errors
    /// When the place is a file, a web server, a bucket that is missing, or cannot be reached.
    pub fn list(&self) -> Result<Vec<FileEntry>, PlaceError> {
        let mut entries = on!(self, path => local::list(path), remote => remote.list())?;
        entries.sort_unstable();
        Ok(entries)
    }

    /// What is known of this file; nothing if it is missing, or a folder.
    ///
    /// # Errors
    /// When the bucket is missing, or the place cannot be reached.
    pub fn entry(&self) -> Result<Option<FileEntry>, PlaceError> {
        on!(self, path => local::entry(path), remote => remote.entry())
    }

    /// What is known of the files of these names in this folder, in this order.
    ///
    /// # Errors
    /// When one of them is missing, or the place cannot be reached.
    pub fn pick(&self, names: &[String]) -> Result<Vec<FileEntry>, PlaceError> {
        let pick = |name: &String| {
            let place = self.join(name)?;
            let entry = place.entry()?.ok_or_else(|| PlaceError::NotFound {
                place: place.to_string(),
            })?;
            Ok(FileEntry {
                path: name.clone(),
                ..entry
            })
        };
        names.iter().map(pick).collect()
    }

    /// The whole content, of one version.
    ///
    /// # Errors
    /// When the file is missing, changed while it was read, or cannot be reached.
    pub fn read(&self) -> Result<Vec<u8>, PlaceError> {
        on!(self, path => local::read(path), remote => remote.read(None, None))
    }

    /// The whole content, which must have at most `most` bytes.
    ///
    /// # Errors
    /// As [`read`](Place::read), and when it is larger.
    pub fn read_at_most(&self, most: u64) -> Result<Vec<u8>, PlaceError> {
        let size = self.entry()?.map_or(0, |entry| entry.size);
        if size > most {
            let place = self.to_string();
            return Err(PlaceError::TooLarge { place, size, most });
        }
        on!(self,
            path => local::read_at_most(path, most),
            remote => remote.read(None, None))
    }

    /// The bytes of `range`, all of them.
    ///
    /// # Errors
    /// As [`read`](Place::read), and when the range goes past the end.
    pub fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, PlaceError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        on!(self,
            path => local::read_range(path, range, None),
            remote => remote.read(Some(range), None))
    }

    /// The bytes of `range`, all of them, of the version that `entry` describes.
    ///
    /// For a file that is read in several pieces, which must be pieces of one content.
    ///
    /// # Errors
    /// As [`read_range`](Place::read_range), and when the file has another version by now.
    pub fn read_range_of(
        &self,
        entry: &FileEntry,
        range: Range<u64>,
    ) -> Result<Vec<u8>, PlaceError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let version = Some(entry.version.as_str());
        on!(self,
            path => local::read_range(path, range, version),
            remote => remote.read(Some(range), version))
    }
}

impl fmt::Display for Place {
    /// The name as it can be written in a job file, without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        on!(self, path => path.display().fmt(f), remote => remote.fmt(f))
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let place = Place::parse_with(text, &Access::default(), &Variables::default());
        place.unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_scheme_is_refused_with_those_there_are() {
        let error = error("ftp://me:hunter2@host/file?hunter2");
        assert!(
            error.contains("`ftp://`") && error.contains("s3://"),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn local_places_are_paths_and_file_urls() {
        let place = |text| Place::parse(text, &Access::default()).unwrap();
        assert_eq!(place("data/x").local(), Some(Path::new("data/x")));
        assert_eq!(place("file:///data/x").local(), Some(Path::new("/data/x")));
        assert_eq!(place("data").join("a/b").unwrap().to_string(), "data/a/b");
        assert!(error("file://data").contains("from the root"));
        assert!(error("").contains("at least one letter"));
    }

    #[test]
    fn a_name_that_leads_out_is_refused_with_the_place() {
        let place = Place::parse("data", &Access::default()).unwrap();
        for name in ["../x", "/etc/passwd", "a/../../x", ""] {
            let error = place.join(name).unwrap_err().to_string();
            assert!(error.contains("within data"), "{error}");
        }
    }

    mod cloud {
        use super::*;

        fn place(text: &str) -> Place {
            let access = Access {
                anonymous: true,
                account: Some("acc".into()),
                ..Access::default()
            };
            Place::parse_with(text, &access, &Variables::default()).unwrap()
        }

        #[test]
        fn a_place_is_shown_as_it_can_be_written() {
            for text in [
                "s3://bucket/a/b",
                "s3://bucket",
                "s3://bucket/odd %20?#[]{}.jpg",
                "gs://bucket/a",
                "az://container/a",
                "abfss://container@acc.dfs.core.windows.net/a",
                "https://host/a/b.csv",
            ] {
                assert_eq!(place(text).to_string(), text);
                assert_eq!(place(text).local(), None);
            }
            assert_eq!(place("s3://bucket/a/").to_string(), "s3://bucket/a");
            assert_eq!(place("http://h/a%20b").to_string(), "http://h/a b");
        }

        #[test]
        fn a_name_that_leads_out_is_refused_in_a_store_too() {
            let place = place("s3://bucket/a");
            assert_eq!(place.join("b/c").unwrap().to_string(), "s3://bucket/a/b/c");
            for name in ["../x", "/x", "b/../../x", "", "b//c", "b/"] {
                assert!(place.join(name).is_err(), "{name}");
            }
            assert!(error("s3://bucket/a/../../x").contains("`..`"));
        }

        #[test]
        fn nothing_that_may_be_secret_is_shown() {
            let signed = place("https://host/a?sig=hunter2");
            let shown = format!("{signed}{signed:?}{:?}", signed.join("b").unwrap());
            assert!(
                shown.contains("https://host/a?…") && !shown.contains("hunter2"),
                "{shown}"
            );
            for text in [
                "https://me:hunter2@host/a",
                "s3://AKIA:hunter2@bucket/a",
                "gs://a:hunter2@b/c",
            ] {
                let error = error(text);
                assert!(
                    error.contains("password") && !error.contains("hunter2"),
                    "{error}"
                );
            }
            let keys = [
                ("AWS_ACCESS_KEY_ID", "AKIA"),
                ("AWS_SECRET_ACCESS_KEY", "hun ter2\n"),
            ];
            let variables = Variables::from_iter(keys);
            let error = Place::parse_with("s3://b/a", &Access::default(), &variables).unwrap_err();
            let error = format!("{error}{error:?}");
            assert!(
                error.contains("AWS_SECRET_ACCESS_KEY") && !error.contains("hun ter2"),
                "{error}"
            );
        }

        #[test]
        fn a_web_server_is_neither_listed_nor_written() {
            let place = place("http://127.0.0.1:1/a");
            assert!(
                place
                    .list()
                    .unwrap_err()
                    .to_string()
                    .contains("no list of its files")
            );
            assert!(
                place
                    .write(b"x")
                    .unwrap_err()
                    .to_string()
                    .contains("only be read")
            );
            assert!(place.delete().is_err());
        }

        #[test]
        fn places_can_be_shared_among_threads() {
            fn shared<T: Send + Sync + Clone + 'static>() {}
            shared::<Place>();
        }
    }
}
