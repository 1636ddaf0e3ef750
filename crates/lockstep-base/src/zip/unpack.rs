//! Unpacking what somebody sent, so that nothing leaves its folder and nothing grows without bound.

use super::content::Content;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Bounds on what an archive may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all contents.
    pub bytes: u64,
    /// Files and folders.
    pub entries: usize,
    /// Contents of more than [`free`](Self::free) bytes may be at most so many times as large as the archive.
    pub ratio: u64,
    /// The bytes up to which the ratio does not count: a small archive may hold a file of zeros.
    pub free: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bytes: 4 << 30,
            entries: 50_000,
            ratio: 100,
            free: 256 << 20,
        }
    }
}

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It is not as it should be.
    #[error("the package is refused: {0}")]
    Refused(String),
    /// A file cannot be written.
    #[error("{path}: {source}", path = path.display())]
    Write {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Unpacks a ZIP archive into the folder `to`, which must not be there, and below it alone.
///
/// Names and sizes are looked at before anything is written. What is written are plain files and folders; links and
/// devices, names that lead elsewhere or are there twice, and contents that are not as long as they say are refused.
///
/// # Errors
/// When the archive is refused, when `to` is there, or when a file cannot be written. What was written until then stays.
pub fn unpack(archive: &[u8], to: &Path, limits: &Limits) -> Result<(), UnpackError> {
    let entries = Content::all(archive).map_err(UnpackError::Refused)?;
    check(&entries, archive.len() as u64, limits).map_err(UnpackError::Refused)?;
    // It must be new: what lies in an older folder may lead elsewhere.
    let made = DirBuilder::new().mode(0o700).create(to);
    made.map_err(cannot_write(to))?;
    for entry in &entries {
        let path = to.join(&entry.name);
        match entry.folder {
            true => make_folder(&path)?,
            false => {
                make_folder(path.parent().unwrap_or(to))?;
                write(entry, &path)?;
            }
        }
    }
    Ok(())
}

fn check(entries: &[Content<'_>], packed: u64, limits: &Limits) -> Result<(), String> {
    if entries.len() > limits.entries {
        return Err(format!(
            "it holds {} files, and {} is the most",
            entries.len(),
            limits.entries
        ));
    }
    let sizes = entries.iter().map(|entry| entry.size);
    let total = sizes.fold(0, u64::saturating_add);
    if total > limits.bytes {
        return Err(format!(
            "it unpacks to {total} bytes, and {} is the most",
            limits.bytes
        ));
    }
    if total > limits.free && total / limits.ratio > packed {
        return Err(format!(
            "it unpacks to more than {} times its size, {total} bytes",
            limits.ratio
        ));
    }
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), UnpackError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(cannot_write(path))
}

/// Writes a content that must be as long as it says, and sum up.
fn write(entry: &Content<'_>, path: &Path) -> Result<(), UnpackError> {
    let refused = |what: &str| UnpackError::Refused(format!("{:?} {what}", entry.name));
    let mode = if entry.executable { 0o700 } else { 0o600 };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    let mut file: File = file.map_err(cannot_write(path))?;
    let mut crc = flate2::Crc::new();
    let mut content = entry.open().take(entry.size.saturating_add(1));
    let mut block = vec![0; 64 << 10];
    let mut length = 0u64;
    loop {
        let count = content
            .read(&mut block)
            .map_err(|_| refused("is damaged"))?;
        if count == 0 {
            break;
        }
        length += count as u64;
        if length > entry.size {
            return Err(refused("is longer than the archive says"));
        }
        crc.update(&block[..count]);
        file.write_all(&block[..count])
            .map_err(cannot_write(path))?;
    }
    if length != entry.size || crc.sum() != entry.crc {
        return Err(refused("is not what the archive says"));
    }
    Ok(())
}

fn cannot_write(path: &Path) -> impl FnOnce(io::Error) -> UnpackError {
    let path = path.to_owned();
    move |source| UnpackError::Write { path, source }
}

/// Reads an archive's file and unpacks it as [`unpack`] does.
///
/// # Errors
/// As those of [`unpack`], and when the file cannot be read.
pub fn unpack_file(archive: &Path, to: &Path, limits: &Limits) -> Result<(), UnpackError> {
    let bytes = fs::read(archive).map_err(cannot_write(archive))?;
    unpack(&bytes, to, limits)
}
