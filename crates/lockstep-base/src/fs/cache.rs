//! The cache folder: what lies there can be brought or built again, so deleting it is always safe.

use crate::fs::FsError;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder for what is kept between runs: known data sets and decoded data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheDir {
    path: PathBuf,
}

impl CacheDir {
    /// Finds this user's cache folder, and makes it if need be: `$LOCKSTEP_CACHE`, else
    /// `$XDG_CACHE_HOME/lockstep`, else `$HOME/.cache/lockstep`.
    ///
    /// # Errors
    /// When no variable leads to a place, or the folder cannot be made.
    pub fn locate() -> Result<CacheDir, FsError> {
        CacheDir::at(&place(|variable| env::var_os(variable)).ok_or(FsError::NoCachePlace)?)
    }

    /// Uses the folder `path`, and makes it if need be.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn at(path: &Path) -> Result<CacheDir, FsError> {
        let cache = CacheDir {
            path: path.to_owned(),
        };
        make_folder(path)?;
        Ok(cache)
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A folder within the cache, made if need be.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf, FsError> {
        let path = self.path.join(name);
        make_folder(&path)?;
        Ok(path)
    }
}

fn make_folder(path: &Path) -> Result<(), FsError> {
    fs::create_dir_all(path).map_err(|source| FsError::Cache {
        path: path.to_owned(),
        source,
    })
}

/// Where the variables lead. An empty variable counts as unset.
fn place(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("LOCKSTEP_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("lockstep")))
        .or_else(|| Some(set("HOME")?.join(".cache/lockstep")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_with(variables: &[(&str, &str)]) -> Option<PathBuf> {
        place(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_most_specific_variable_wins() {
        let all = [
            ("LOCKSTEP_CACHE", "/l"),
            ("XDG_CACHE_HOME", "/x"),
            ("HOME", "/h"),
        ];
        assert_eq!(place_with(&all), Some("/l".into()));
        assert_eq!(place_with(&all[1..]), Some("/x/lockstep".into()));
        assert_eq!(place_with(&all[2..]), Some("/h/.cache/lockstep".into()));
        assert_eq!(place_with(&[]), None);
        assert_eq!(
            place_with(&[("LOCKSTEP_CACHE", ""), ("HOME", "/h")]),
            place_with(&all[2..])
        );
    }

    #[test]
    fn a_folder_is_made_on_demand() {
        let parent = tempfile::tempdir().unwrap();
        let cache = CacheDir::at(&parent.path().join("a/b")).unwrap();
        assert!(cache.path().is_dir());
        assert!(cache.folder("decoded").unwrap().is_dir());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named_with_the_variable_that_moves_it() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let error = CacheDir::at(&file.join("cache")).unwrap_err().to_string();
        assert!(
            error.contains(file.join("cache").to_str().unwrap()),
            "{error}"
        );
        assert!(error.contains("LOCKSTEP_CACHE"), "{error}");
    }
}
