//! XGBoost's library from its published Python package, without Python.
//!
//! The package is an archive whose library finds what it needs by the folders beside it, so it is unpacked as it is, into a
//! folder of the cache that takes its name in one step.

use crate::xgboost::{CACHED, Xgboost, XgboostError};
use lockstep_base::fs::{CacheDir, sha256};
use lockstep_base::offline;
use lockstep_base::zip::{Limits, unpack};
use lockstep_place::{Access, Place};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the cache that it lies in, and what it is asked for by.
pub const FOLDER: &str = "xgboost";
/// How often a request is sent again.
const RETRIES: u32 = 2;

/// A published package.
struct Package {
    address: &'static str,
    sha256: &'static str,
}

/// The package for this kind of machine: XGBoost 3.4.1 for processors alone.
fn package() -> Option<Package> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some(Package {
            address: "https://files.pythonhosted.org/packages/c4/aa/80fab64b1a7b0a89e3bf657edcd4a802fad6026a7586d4e0eaec3b6a40d3/xgboost_cpu-3.4.1-py3-none-manylinux_2_28_x86_64.whl",
            sha256: "1f16331f5c6beb2b40fbd4bf2834333062d93c9eb38b76186a5c206841dc1809",
        }),
        ("linux", "aarch64") => Some(Package {
            address: "https://files.pythonhosted.org/packages/5d/bc/3662cad8486e26547600aed7a333c95b1c930af927f45eff0f41e68d034f/xgboost_cpu-3.4.1-py3-none-manylinux_2_28_aarch64.whl",
            sha256: "47b81860b18056f9425b34fe2905343bc7ee0118122ae09cf2e31c305ed49877",
        }),
        _ => None,
    }
}

/// Brings the library into the cache, unless it is there, and says so through `progress`. Returns the file.
///
/// # Errors
/// When there is no package for this machine, downloads are forbidden, or something fails on the way.
pub fn bring(cache: &CacheDir, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, XgboostError> {
    let folder = cache.folder(FOLDER)?;
    let library = folder.join(CACHED);
    if library.is_file() {
        return Ok(library);
    }
    let package = package().ok_or(XgboostError::NoPackage)?;
    if offline::is_forbidden() {
        return Err(XgboostError::Offline {
            address: package.address,
        });
    }
    progress(&format!(
        "XGBoost's library is not here: downloading {} (6 MB)",
        package.address
    ));
    let access = Access {
        retries: RETRIES,
        ..Access::default()
    };
    let bytes = Place::parse(package.address, &access)?.read()?;
    let found = sha256(&bytes);
    if found != package.sha256 {
        return Err(XgboostError::Package {
            address: package.address,
            why: format!(
                "its SHA-256 is {found} instead of {}: it is not what was published",
                package.sha256
            ),
        });
    }
    let new = tempfile::tempdir_in(cache.path()).map_err(cannot_write(cache.path()))?;
    let unpacked = new.path().join(FOLDER);
    unpack(&bytes, &unpacked, &Limits::default()).map_err(|error| XgboostError::Package {
        address: package.address,
        why: error.to_string(),
    })?;
    // Loaded before it gets its name: what is there works.
    Xgboost::load(&unpacked.join(CACHED))?;
    // Of several processes that bring it at once the first wins: a folder takes the place of an empty one only, so
    // nobody loses a library that was there.
    match fs::rename(&unpacked, &folder) {
        Ok(()) => Ok(library),
        Err(_) if library.is_file() => Ok(library),
        Err(error) => Err(cannot_write(&folder)(error)),
    }
}

fn cannot_write(path: &Path) -> impl FnOnce(std::io::Error) -> XgboostError {
    let path = path.to_owned();
    move |source| XgboostError::Write { path, source }
}
