//! What is brought once and kept between runs of the tests, in the cache folder.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Where things are kept between runs of the tests.
///
/// # Panics
/// When there can be no such folder.
pub fn cache() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache");
    let folder = std::env::var_os("LOCKSTEP_CACHE").map_or_else(beside, PathBuf::from);
    fs::create_dir_all(&folder).expect("a cache folder");
    folder.canonicalize().expect("a cache folder")
}

/// A folder of the cache that is made once, from all that `content` names: versions of packages, say.
///
/// Its name ends with a hash of the content. So two tests that want the same thing in different versions have a folder
/// each, and neither takes away what the other uses.
pub(crate) struct Kept {
    folder: PathBuf,
}

impl Kept {
    /// The folder `name` of the cache, which may have folders in it (`python/numpy`), with this content.
    pub(crate) fn new(name: &str, content: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let name = format!("{name}-{:016x}", hasher.finish());
        Self {
            folder: cache().join(name),
        }
    }

    /// Whether it was made, whole.
    pub(crate) fn is_here(&self) -> bool {
        self.beside(".done").exists()
    }

    /// The folder, which `make` makes unless it was made before. It is empty then, and nobody else is at it.
    pub(crate) fn folder(&self, make: impl FnOnce(&Path)) -> PathBuf {
        let folder = &self.folder;
        fs::create_dir_all(folder.parent().expect("a folder in the cache")).expect("a folder");
        let lock = File::create(self.beside(".lock")).expect("a lock");
        lock.lock().expect("a lock");
        if !self.is_here() {
            if folder.exists() {
                fs::remove_dir_all(folder).expect("what is left of an earlier try goes away");
            }
            fs::create_dir_all(folder).expect("a cache folder");
            make(folder);
            fs::write(self.beside(".done"), "").expect("a note that it is done");
        }
        folder.clone()
    }

    fn beside(&self, extension: &str) -> PathBuf {
        let mut name = self.folder.as_os_str().to_owned();
        name.push(extension);
        PathBuf::from(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_requirements_are_kept_in_another_folder() {
        let pinned = Kept::new("python/scikit-learn", "scikit-learn==1.9.1");
        let newest = Kept::new("python/scikit-learn", "scikit-learn");
        assert_ne!(pinned.folder, newest.folder);
        assert_eq!(
            pinned.folder,
            Kept::new("python/scikit-learn", "scikit-learn==1.9.1").folder
        );
    }
}
