//! Which file is XGBoost's library.
//!
//! In this order: what `LOCKSTEP_XGBOOST` names; beside the program; in the cache, where `lockstep data get xgboost`
//! puts it; in the Python environment that is active, and in the one that `python3` on the path belongs to.

use crate::xgboost::XgboostError;
use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The file's name.
const FILE: &str = match cfg!(target_os = "macos") {
    true => "libxgboost.dylib",
    false => "libxgboost.so",
};

/// Where it lies within the folder of the cache that it was brought into.
pub const CACHED: &str = match cfg!(target_os = "macos") {
    true => "xgboost/lib/libxgboost.dylib",
    false => "xgboost/lib/libxgboost.so",
};

/// A library that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryFile {
    /// The file.
    pub path: PathBuf,
    /// How it was found.
    pub way: Way,
}

/// How a library was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `LOCKSTEP_XGBOOST` names it.
    Named,
    /// It lies beside the program.
    Beside,
    /// It was brought into the cache.
    Cache,
    /// It is part of a Python environment.
    Python,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Named => "named by LOCKSTEP_XGBOOST",
            Way::Beside => "beside the program",
            Way::Cache => "in the cache",
            Way::Python => "in a Python environment",
        })
    }
}

/// Finds the library. `caches` are the folders that its builds would have been brought into.
///
/// # Errors
/// When there is none, with all places that were looked at.
pub fn find(caches: &[PathBuf]) -> Result<LibraryFile, XgboostError> {
    let (found, looked) = find_all(caches)?;
    let looked = looked.join(", ");
    let first = found.into_iter().next();
    first.ok_or(XgboostError::NotFound { looked })
}

/// All libraries that there are, the best first, and where it was looked for them. If one is named, there is no other.
///
/// # Errors
/// When there is not the one that is named.
pub fn find_all(caches: &[PathBuf]) -> Result<(Vec<LibraryFile>, Vec<String>), XgboostError> {
    if let Some(path) = env::var_os("LOCKSTEP_XGBOOST").map(PathBuf::from) {
        let way = Way::Named;
        return match path.is_file() {
            true => Ok((Vec::from([LibraryFile { path, way }]), Vec::new())),
            false => Err(XgboostError::Named { path }),
        };
    }
    let folders = folders(caches);
    let file = |(folder, way): &(PathBuf, Way)| LibraryFile {
        path: folder.join(FILE),
        way: *way,
    };
    let found = folders.iter().map(file).filter(|file| file.path.is_file());
    let looked = folders
        .iter()
        .map(|(folder, _)| folder.display().to_string());
    Ok((found.collect(), looked.collect()))
}

/// The folders that the library may lie in, the best first.
fn folders(caches: &[PathBuf]) -> Vec<(PathBuf, Way)> {
    let mut folders = Vec::new();
    let program = env::current_exe().ok();
    if let Some(beside) = program.as_deref().and_then(Path::parent) {
        folders.push((beside.to_owned(), Way::Beside));
        folders.push((beside.join("../lib"), Way::Beside));
    }
    for cache in caches {
        folders.push((cache.clone(), Way::Cache));
        let brought = cache.join(CACHED);
        let folder = brought.parent().map(Path::to_owned);
        folders.extend(folder.map(|folder| (folder, Way::Cache)));
    }
    for environment in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let root = env::var_os(environment).map(PathBuf::from);
        let inside = root.iter().flat_map(|root| packages(root));
        folders.extend(inside.map(|folder| (folder, Way::Python)));
    }
    let inside = python_on_the_path()
        .into_iter()
        .flat_map(|root| packages(&root));
    folders.extend(inside.map(|folder| (folder, Way::Python)));
    folders
}

/// The root of the environment that `python3` belongs to: `/usr` for `/usr/bin/python3`.
fn python_on_the_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let python = env::split_paths(&path)
        .map(|folder| folder.join("python3"))
        .find(|file| file.is_file())?;
    // An environment's own `python3` is a link to the one that it was made with: what counts is where the link lies.
    let root = python.parent()?.parent()?;
    Some(root.to_owned())
}

/// Where the packages of a Python environment would have the library.
fn packages(root: &Path) -> Vec<PathBuf> {
    let inside = |lib: &str| {
        let entries = fs::read_dir(root.join(lib)).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
            .flat_map(|entry| {
                ["site-packages", "dist-packages"]
                    .map(|packages| entry.path().join(packages).join("xgboost/lib"))
            })
            .filter(|folder| folder.is_dir())
            .collect();
        found.sort();
        found
    };
    [inside("lib"), inside("local/lib")].concat()
}
