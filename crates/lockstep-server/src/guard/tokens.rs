//! Tokens: who may ask, and what.
//!
//! A token is 256 random bits. Its holder sees it once, when it is made; the server keeps only its SHA-256, in
//! `tokens.json` in its folder. So who reads that file cannot ask in anybody's name. A hash without salt and without
//! work is enough here, because nobody can guess 256 random bits. The file is read again when it has changed: a token
//! that was removed is refused from the next request on.

use crate::caller::LOCAL;
use crate::{Role, ServerError};
use lockstep_base::fs::{AtomicFile, FileLock, hex, restricted_folder, sha256};
use serde::{Deserialize, Serialize};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// What every token begins with, so that scanners for secrets that were published by mistake can find them.
const PREFIX: &str = "lockstep_";

/// What is kept of a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Who holds it.
    pub name: String,
    /// What the holder may do.
    pub role: Role,
    /// The SHA-256 of the token, in hexadecimal digits.
    pub sha256: String,
    /// When it was made, in seconds since 1970 in UTC.
    pub made: f64,
}

/// The tokens of a server's folder.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    read: Mutex<Read>,
}

/// What the file had when it was read last, and by what a change of it is seen.
#[derive(Debug, Default)]
struct Read {
    stamp: Option<(u64, i64, i64, u64)>,
    tokens: Vec<Token>,
}

impl Tokens {
    /// Those of a server's folder, which need not exist yet.
    pub fn of(folder: &Path) -> Tokens {
        Tokens {
            path: folder.join("tokens.json"),
            read: Mutex::default(),
        }
    }

    /// All of them, in the order in which they were made.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what was written.
    pub fn list(&self) -> Result<Vec<Token>, ServerError> {
        let mut read = self.read.lock().unwrap_or_else(|broken| {
            // A holder that panicked may have left half of it: it is read anew.
            let mut read = broken.into_inner();
            *read = Read::default();
            read
        });
        let stamp = match fs::metadata(&self.path) {
            Ok(found) => (found.ino(), found.mtime(), found.mtime_nsec(), found.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(error)),
        };
        if read.stamp != Some(stamp) {
            let bytes = fs::read(&self.path).map_err(|error| self.failed(error))?;
            let tokens = serde_json::from_slice(&bytes);
            read.tokens = tokens.map_err(|error| self.failed(error.into()))?;
            read.stamp = Some(stamp);
        }
        Ok(read.tokens.clone())
    }

    /// Whose token this is. All hashes are compared, and each to its end, whatever was found before.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn find(&self, given: &str) -> Result<Option<Token>, ServerError> {
        let given = sha256(given.as_bytes());
        let mut found = None;
        for token in self.list()? {
            if equal(token.sha256.as_bytes(), given.as_bytes()) {
                found = Some(token);
            }
        }
        Ok(found)
    }

    /// Makes a token, and returns it: this is the only time that anybody can see it.
    ///
    /// # Errors
    /// When the name is taken or has other characters than it may, or the file cannot be written.
    pub fn add(&self, name: &str, role: Role) -> Result<String, ServerError> {
        let right = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        // `local` is everybody where no token is needed, who may say otherwise who they are.
        if name.is_empty() || name.len() > 64 || !name.chars().all(right) || name == LOCAL {
            return Err(ServerError::TokenName(name.to_owned()));
        }
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        if tokens.iter().any(|token| token.name == name) {
            return Err(ServerError::TokenExists(name.to_owned()));
        }
        let mut bits = [0_u8; 32];
        getrandom::fill(&mut bits)
            .map_err(|error| self.failed(io::Error::other(error.to_string())))?;
        let token = format!("{PREFIX}{}", hex::encode(bits));
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        tokens.push(Token {
            name: name.to_owned(),
            role,
            sha256: sha256(token.as_bytes()),
            made: now.unwrap_or_default().as_secs_f64(),
        });
        self.write(&tokens)?;
        Ok(token)
    }

    /// Removes the token of this name.
    ///
    /// # Errors
    /// When there is none, or the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), ServerError> {
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let before = tokens.len();
        tokens.retain(|token| token.name != name);
        if tokens.len() == before {
            let known = tokens.into_iter().map(|token| token.name).collect();
            return Err(ServerError::NoToken {
                name: name.to_owned(),
                known,
            });
        }
        self.write(&tokens)
    }

    /// Two commands that change the file at once would lose one change.
    fn lock(&self) -> Result<FileLock, ServerError> {
        if let Some(folder) = self.path.parent() {
            // It may be there and let users of jobs pass; one that is made here lets nobody.
            if !folder.is_dir() {
                restricted_folder(folder, 0o700)
                    .map_err(|error| self.failed(io::Error::other(error.to_string())))?;
            }
        }
        let lock = FileLock::try_take(&self.path.with_extension("lock"));
        let lock = lock.map_err(|error| self.failed(io::Error::other(error.to_string())))?;
        lock.ok_or_else(|| {
            let busy = "another command changes it at this moment; try again";
            self.failed(io::Error::new(io::ErrorKind::WouldBlock, busy))
        })
    }

    fn write(&self, tokens: &[Token]) -> Result<(), ServerError> {
        let text = serde_json::to_string_pretty(tokens).unwrap_or_default() + "\n";
        let write = || {
            let mut file = AtomicFile::create(&self.path).map_err(io::Error::other)?;
            fs::set_permissions(file.temporary(), Permissions::from_mode(0o600))?;
            file.write_all(text.as_bytes())?;
            file.commit().map_err(io::Error::other)
        };
        write().map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> ServerError {
        ServerError::File {
            path: self.path.clone(),
            source,
        }
    }
}

/// Compares in a time that says nothing about where the two differ.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    let differ = pairs.fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_itself_alone_and_the_file_does_not_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::of(folder.path());
        let anna = tokens.add("anna", Role::Submit).unwrap();
        let ben = tokens.add("ben", Role::Read).unwrap();
        assert_ne!(anna, ben);
        assert_eq!(tokens.find(&anna).unwrap().unwrap().name, "anna");
        assert_eq!(tokens.find(&anna[1..]).unwrap(), None);
        assert_eq!(tokens.find("").unwrap(), None);
        let path = folder.path().join("tokens.json");
        let kept = fs::read_to_string(&path).unwrap();
        assert!(!kept.contains(&anna) && !kept.contains(&anna[PREFIX.len()..]));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        // The hash is no token.
        let hash = sha256(anna.as_bytes());
        assert!(kept.contains(&hash));
        assert_eq!(tokens.find(&hash).unwrap(), None);
    }

    #[test]
    fn one_that_is_removed_by_another_process_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::of(folder.path());
        let anna = tokens.add("anna", Role::Admin).unwrap();
        assert!(tokens.find(&anna).unwrap().is_some());
        Tokens::of(folder.path()).remove("anna").unwrap();
        assert_eq!(tokens.find(&anna).unwrap(), None);
    }

    #[test]
    fn names_are_plain_and_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::of(folder.path());
        tokens.add("anna", Role::Read).unwrap();
        let again = tokens.add("anna", Role::Admin).unwrap_err();
        assert!(again.to_string().contains("anna"), "{again}");
        for name in ["", "a b", "a\nb", "../x", &"a".repeat(65)] {
            assert!(tokens.add(name, Role::Read).is_err(), "{name:?}");
        }
        let missing = tokens.remove("ana").unwrap_err();
        assert!(missing.to_string().contains("anna"), "{missing}");
    }

    #[test]
    fn a_damaged_file_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens::of(folder.path());
        let anna = tokens.add("anna", Role::Read).unwrap();
        fs::write(folder.path().join("tokens.json"), "[{").unwrap();
        assert!(tokens.find(&anna).is_err());
    }
}
