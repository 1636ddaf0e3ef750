//! XGBoost's library from its published Python package, without Python.
//!
//! Its library finds what it needs by the folders beside it, so the package is kept as it is.

use crate::xgboost::{CACHED, Xgboost, XgboostError};
use lockstep_base::fs::CacheDir;
use lockstep_base::offline;
use lockstep_place::Package;
use std::path::PathBuf;

/// The folder of the cache that it lies in, and what it is asked for by.
pub const FOLDER: &str = "xgboost";
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
    // Loaded before it gets its name: what is there works.
    package.bring((cache, &folder), CACHED, |unpacked| {
        Xgboost::load(&unpacked.join(CACHED)).map(drop)
    })?;
    Ok(library)
}
