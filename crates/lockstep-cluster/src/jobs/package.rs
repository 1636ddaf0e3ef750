//! What travels to a head: a few files, packed, under a name that says what is in them.

use crate::jobs::zip::{Zip, ZipError};
use crate::jobs::{Binary, JobsError};
use lockstep_base::fs::{Hasher, sha256_of_file};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The largest package that a head accepts, in bytes; nothing changes that on a head.
pub const LIMIT: usize = 100 << 20;

/// Contents that are so large are not even tried to be packed: deflating does not make a tenth of data that is
/// worth training on.
const MOST: u64 = 10 * LIMIT as u64;

/// How many of the largest files an error names.
const NAMED: usize = 3;

/// Digits of a package's name, as Ray's own client has them.
const DIGITS: usize = 16;

/// Files under their names in the package.
#[derive(Default)]
pub struct Package {
    files: BTreeMap<String, Content>,
}

/// A file that travels.
struct Content {
    path: PathBuf,
    /// Whether it is to be executed, whatever its mode here.
    program: bool,
}

impl Package {
    /// An empty package.
    pub fn new() -> Self {
        Self::default()
    }

    /// One with these files, each under its name.
    pub fn of(files: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        let mut package = Self::new();
        for (name, path) in files {
            package.add_file(name, path);
        }
        package
    }

    /// Puts the file at `path` under `name`, whose parts are separated by `/`.
    pub fn add_file(&mut self, name: impl Into<String>, path: impl Into<PathBuf>) {
        let content = Content {
            path: path.into(),
            program: false,
        };
        self.files.insert(name.into(), content);
    }

    /// Puts a program under `name`, to be executed.
    pub fn add_program(&mut self, name: impl Into<String>, binary: &Binary) {
        let content = Content {
            path: binary.path().to_owned(),
            program: true,
        };
        self.files.insert(name.into(), content);
    }

    /// Whether something lies under `name`, or in a folder of that name.
    pub fn has(&self, name: &str) -> bool {
        let folder = format!("{name}/");
        let mut names = self.files.keys();
        names.any(|known| known == name || known.starts_with(&folder))
    }

    /// The names in it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// What the head knows it by: a hash of all names, modes and contents. Packages of the same content have the
    /// same name, so a head that has it needs nothing sent.
    ///
    /// # Errors
    /// When a file cannot be read, or when all together are so large that no packing helps.
    pub fn name(&self) -> Result<String, JobsError> {
        if self.files.len() > usize::from(u16::MAX) {
            return Err(self.too_large("what the job names are too many files to be sent"));
        }
        if self.size()? > MOST {
            return Err(self.too_large("what the job names is too large to be sent"));
        }
        let mut hash = Hasher::new();
        for (name, content) in &self.files {
            hash.update(format!("{} {name}\n{:o}\n", name.len(), content.mode()?).as_bytes());
            hash.update(content.hash()?.as_bytes());
        }
        let digits = hash.finish();
        Ok(format!("_ray_pkg_{}.zip", &digits[..DIGITS]))
    }

    /// The package's bytes.
    ///
    /// # Errors
    /// When a file cannot be read or is being written, or when the package is over [`LIMIT`].
    pub fn zip(&self) -> Result<Vec<u8>, JobsError> {
        let full = || self.too_large("the package would be larger than that");
        let mut zip = Zip::new(LIMIT);
        for (name, content) in &self.files {
            let size = content.size()?;
            let mut reader = Exact {
                inner: content.open()?,
                left: size,
            };
            match zip.add(name, content.mode()?, &mut reader) {
                Ok(()) => (),
                Err(ZipError::Full) => return Err(full()),
                Err(ZipError::Read(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(JobsError::Changed {
                        path: content.path.clone(),
                    });
                }
                Err(ZipError::Read(source)) => {
                    let path = content.path.clone();
                    return Err(JobsError::Pack { path, source });
                }
            }
        }
        zip.finish().map_err(|_| full())
    }

    /// Bytes of all contents.
    fn size(&self) -> Result<u64, JobsError> {
        let sizes = self.files.values().map(Content::size);
        sizes.sum()
    }

    /// Says what is so large.
    fn too_large(&self, what: &str) -> JobsError {
        let mut sizes: Vec<(u64, PathBuf)> = Vec::new();
        for content in self.files.values() {
            sizes.push((content.size().unwrap_or_default(), content.path.clone()));
        }
        let total: u64 = sizes.iter().map(|(size, _)| size).sum();
        sizes.sort_by(|a, b| b.cmp(a));
        let named: Vec<String> = sizes
            .iter()
            .take(NAMED)
            .map(|(size, path)| format!("{} {}", path.display(), megabytes(*size)))
            .collect();
        JobsError::TooLarge {
            what: format!(
                "{what}: {} in {} files before packing, the largest of them {}",
                megabytes(total),
                sizes.len(),
                named.join(", ")
            ),
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

impl Content {
    fn metadata(&self) -> Result<Metadata, JobsError> {
        std::fs::metadata(&self.path).map_err(cannot_pack(&self.path))
    }

    fn size(&self) -> Result<u64, JobsError> {
        Ok(self.metadata()?.len())
    }

    fn open(&self) -> Result<File, JobsError> {
        File::open(&self.path).map_err(cannot_pack(&self.path))
    }

    fn mode(&self) -> Result<u32, JobsError> {
        let executable = self.program || self.metadata()?.permissions().mode() & 0o111 != 0;
        Ok(if executable { 0o755 } else { 0o644 })
    }

    fn hash(&self) -> Result<String, JobsError> {
        let (_, hash) = sha256_of_file(&self.path).map_err(cannot_pack(&self.path))?;
        Ok(hash)
    }
}

fn cannot_pack(path: &Path) -> impl Fn(io::Error) -> JobsError {
    let path = path.to_owned();
    move |source| JobsError::Pack {
        path: path.clone(),
        source,
    }
}

/// A content that must be as long as it was.
struct Exact {
    inner: File,
    left: u64,
}

impl Read for Exact {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(block)?;
        let ended_early = count == 0 && self.left > 0;
        if count as u64 > self.left || ended_early {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_packages_name_is_a_function_of_names_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (a, same, other) = (write("a", "1"), write("b", "1"), write("c", "2"));
        let name = |name: &str, path: &Path| {
            let mut package = Package::new();
            package.add_file(name, path);
            package.name().unwrap()
        };
        let first = name("x", &a);
        assert_eq!(first, name("x", &same));
        assert_ne!(first, name("x", &other));
        assert_ne!(first, name("y", &a));
        assert!(first.starts_with("_ray_pkg_") && first.len() == "_ray_pkg_.zip".len() + DIGITS);
    }

    #[test]
    fn what_is_too_large_is_named_before_anything_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pictures.bin");
        File::create(&path).unwrap().set_len(MOST + 1).unwrap();
        let mut package = Package::new();
        package.add_file("pictures.bin", &path);
        let error = package.name().unwrap_err().to_string();
        for part in [
            "pictures.bin 1000.0 MiB",
            "100 MiB",
            "s3://",
            "relative paths",
        ] {
            assert!(error.contains(part), "{part} is missing in {error}");
        }
    }

    #[test]
    fn what_deflates_below_the_limit_may_travel() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeros");
        File::create(&path)
            .unwrap()
            .set_len(LIMIT as u64 + 1)
            .unwrap();
        let mut package = Package::new();
        package.add_file("zeros", &path);
        assert!(package.zip().unwrap().len() < 1 << 20);
    }

    #[test]
    fn a_missing_file_is_named() {
        let mut package = Package::new();
        package.add_file("x", "/nowhere/x");
        let error = package.name().unwrap_err().to_string();
        assert!(error.contains("/nowhere/x cannot be packed"), "{error}");
    }
}
