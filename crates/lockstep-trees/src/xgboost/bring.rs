//! XGBoost's library from its published Python package, without Python.
//!
//! Its library finds what it needs by the folders beside it, so the package is kept as it is.

use crate::xgboost::{CACHED, Xgboost, XgboostError};
use lockstep_base::fs::CacheDir;
use lockstep_base::offline;
use lockstep_place::Package;
use std::path::PathBuf;

/// A build of the library: the folder of the cache that it lies in, by which it is asked for too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// For processors alone.
    Processor,
    /// For GPUs too; ten times as large.
    Cuda,
}

impl Build {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Processor, Self::Cuda];

    /// What it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Processor => "xgboost",
            Self::Cuda => "xgboost-cuda",
        }
    }

    fn size(self) -> &'static str {
        match self {
            Self::Processor => "6 MB",
            Self::Cuda => "58 MB",
        }
    }

    /// The package for this kind of machine: XGBoost 3.4.1.
    fn package(self) -> Option<Package> {
        let package = |address, sha256| Some(Package { address, sha256 });
        match (self, std::env::consts::OS, std::env::consts::ARCH) {
            (Self::Processor, "linux", "x86_64") => package(
                "https://files.pythonhosted.org/packages/c4/aa/80fab64b1a7b0a89e3bf657edcd4a802fad6026a7586d4e0eaec3b6a40d3/xgboost_cpu-3.4.1-py3-none-manylinux_2_28_x86_64.whl",
                "1f16331f5c6beb2b40fbd4bf2834333062d93c9eb38b76186a5c206841dc1809",
            ),
            (Self::Processor, "linux", "aarch64") => package(
                "https://files.pythonhosted.org/packages/5d/bc/3662cad8486e26547600aed7a333c95b1c930af927f45eff0f41e68d034f/xgboost_cpu-3.4.1-py3-none-manylinux_2_28_aarch64.whl",
                "47b81860b18056f9425b34fe2905343bc7ee0118122ae09cf2e31c305ed49877",
            ),
            (Self::Cuda, "linux", "x86_64") => package(
                "https://files.pythonhosted.org/packages/99/c7/bd05c5c430feb347aa040fcc8870135d70b256718deee9bc7d2ca74a77ff/xgboost-3.4.1-py3-none-manylinux_2_28_x86_64.whl",
                "6adf2afa396da2ae8ed30295b50b99d4712eed9a6e0ce6cfe069290e4335e51f",
            ),
            (Self::Cuda, "linux", "aarch64") => package(
                "https://files.pythonhosted.org/packages/a7/11/4ff1f36ca5c32c642c71c88bec1508ee98b2c3b1e9eb169e8c82de303522/xgboost-3.4.1-py3-none-manylinux_2_28_aarch64.whl",
                "7faaf99de26719c22bfae883a02bd56b5a3c2203122616e563cc72b7191b5c96",
            ),
            _ => None,
        }
    }
}

/// Brings a build of the library into the cache, unless it is there, and says so through `progress`. Returns the file.
///
/// # Errors
/// When there is no package for this machine, downloads are forbidden, or something fails on the way.
pub fn bring(
    cache: &CacheDir,
    build: Build,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, XgboostError> {
    let folder = cache.folder(build.name())?;
    let library = folder.join(CACHED);
    if library.is_file() {
        return Ok(library);
    }
    let package = build.package().ok_or(XgboostError::NoPackage)?;
    if offline::is_forbidden() {
        return Err(XgboostError::Offline {
            address: package.address,
        });
    }
    progress(&format!(
        "XGBoost's library is not here: downloading {} ({})",
        package.address,
        build.size()
    ));
    // Loaded before it gets its name: what is there works.
    package.bring((cache, &folder), CACHED, |unpacked| {
        Xgboost::load(&unpacked.join(CACHED)).map(drop)
    })?;
    Ok(library)
}
