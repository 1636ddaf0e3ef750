//! A path of this machine, and the folder that nothing below it may lead out of.

use lockstep_base::fs::FsError;
use lockstep_base::fs::beneath::{self, Held, Purpose};
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A path. Below a root, links are not followed, whoever makes them and whenever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalPath {
    path: PathBuf,
    root: Option<PathBuf>,
}

impl LocalPath {
    pub(crate) fn new(path: PathBuf) -> LocalPath {
        LocalPath { path, root: None }
    }

    /// The same path as a root, unless it lies below one already.
    pub(crate) fn beneath(&self) -> LocalPath {
        LocalPath {
            path: self.path.clone(),
            root: self.root.clone().or_else(|| Some(self.path.clone())),
        }
    }

    pub(crate) fn join(&self, name: &str) -> LocalPath {
        LocalPath {
            path: self.path.join(name),
            root: self.root.clone(),
        }
    }

    /// Whether links below it are left alone.
    pub(super) fn is_beneath(&self) -> bool {
        self.root.is_some()
    }

    /// The root and the way down from it; nothing of a path that is trusted, such as the root itself.
    fn below(&self) -> Option<(&Path, &Path)> {
        let root = self.root.as_deref()?;
        let inner = self.path.strip_prefix(root).ok()?;
        (!inner.as_os_str().is_empty()).then_some((root, inner))
    }

    /// Opens the file.
    pub(crate) fn open(&self, purpose: Purpose) -> io::Result<File> {
        match self.below() {
            Some((root, inner)) => beneath::open_file(root, inner, purpose),
            None => {
                let (folder, name) = (self.path.parent(), self.path.file_name());
                match (purpose, folder, name) {
                    (Purpose::Read, ..) => File::open(&self.path),
                    (_, Some(folder), Some(name)) => {
                        beneath::open_file(folder, Path::new(name), purpose)
                    }
                    _ => Err(io::ErrorKind::IsADirectory.into()),
                }
            }
        }
    }

    /// What is known of it: of a link below a root, that it is one.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        match self.below() {
            Some((root, inner)) => beneath::metadata(root, inner),
            None => fs::metadata(&self.path),
        }
    }

    /// A path to its name that stays the same whatever happens on the way to it.
    pub(super) fn held(&self) -> io::Result<Held> {
        match self.below() {
            Some((root, inner)) => beneath::hold(root, inner),
            None => Ok(Held::plain(&self.path)),
        }
    }

    /// The same of the folder itself.
    pub(super) fn held_folder(&self) -> io::Result<Held> {
        match self.below() {
            Some((root, inner)) => beneath::hold_folder(root, inner),
            None => Ok(Held::plain(&self.path)),
        }
    }

    /// Makes the folder below its root, and says of each that was made where it is; whether it has a root.
    pub(super) fn make_beneath(&self, made: impl FnMut(&Path)) -> io::Result<bool> {
        match self.below() {
            Some((root, inner)) => beneath::make_folders(root, inner, made).map(|()| true),
            None => Ok(false),
        }
    }

    /// The folder that it lies in.
    pub(super) fn above(&self) -> LocalPath {
        let above = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let root = self.root.clone().filter(|root| above.starts_with(root));
        LocalPath {
            path: above.to_owned(),
            root,
        }
    }

    /// Puts the path that people know into an error about one that was held.
    pub(crate) fn named(&self, error: FsError) -> FsError {
        match error {
            FsError::Io { action, source, .. } => FsError::Io {
                action,
                path: self.path.clone(),
                source,
            },
            FsError::NotAFile { found, .. } => FsError::NotAFile {
                path: self.path.clone(),
                found,
            },
            other => other,
        }
    }
}

impl Deref for LocalPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}
