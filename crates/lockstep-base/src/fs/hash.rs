//! SHA-256 of what goes into a file and of what comes out of it.

use crate::fs::hex;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The hash of `bytes`, as people write it.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A hash of bytes that come piece by piece.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Of no bytes yet.
    pub fn new() -> Hasher {
        Hasher::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash, as people write it.
    pub fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}

/// Length and hash of a file, read in pieces.
///
/// # Errors
/// When the file cannot be read.
pub fn sha256_of_file(path: &Path) -> io::Result<(u64, String)> {
    sha256_of(File::open(path)?)
}

/// The same of a file that is open.
///
/// # Errors
/// When the file cannot be read.
pub fn sha256_of(mut file: File) -> io::Result<(u64, String)> {
    let mut hash = Hasher::new();
    let mut piece = vec![0; 1 << 18];
    let mut length = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((length, hash.finish())),
            Ok(read) => {
                hash.update(&piece[..read]);
                crate::progress::advance();
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_hash_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..700_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(sha256_of_file(&path).unwrap(), (700_000, sha256(&bytes)));
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
