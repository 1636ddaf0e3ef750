//! Temporary files whose writer is gone.
//!
//! An [`AtomicFile`](crate::AtomicFile) goes away by itself unless its process is killed outright. Its writer
//! holds a lock on it, which ends with the process: so what nobody has locked has no writer left, on this machine or
//! on another one that shares the folder.

use std::fs::{File, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Nothing that is still written is as old. It decides where the file system knows no locks.
pub const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A writer locks its file as soon as it is there, and before it writes: an empty one may be on its way.
const LOCKED_BY: Duration = Duration::from_secs(60);

/// Whether `path` is a temporary file that nobody is writing any more. To remove it disturbs nobody.
pub fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    if !name.is_some_and(is_temporary) {
        return false;
    }
    let Ok(file) = File::open(path) else {
        return false;
    };
    let Ok(found) = file.metadata() else {
        return false;
    };
    match file.try_lock() {
        Ok(()) => found.len() > 0 || is_older(&found, LOCKED_BY),
        Err(std::fs::TryLockError::WouldBlock) => false,
        Err(std::fs::TryLockError::Error(_)) => is_older(&found, ABANDONED),
    }
}

/// Whether something was last changed longer ago than `age`.
pub fn is_older(found: &Metadata, age: Duration) -> bool {
    let changed = found.modified().ok();
    let since = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
    since.is_some_and(|since| since >= age)
}

/// Whether a name is one that [`AtomicFile`](crate::AtomicFile) makes: `.name.pid-letters.tmp`.
fn is_temporary(name: &str) -> bool {
    let unique = || {
        let name = name.strip_prefix('.')?.strip_suffix(".tmp")?;
        let (pid, letters) = name.rsplit_once('.')?.1.split_once('-')?;
        pid.parse::<u32>().ok()?;
        Some(letters.len() == 8)
    };
    unique() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicFile;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_file_that_is_written_is_no_leftover_and_one_of_a_killed_writer_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(&folder.path().join("set.gz")).unwrap();
        let temporary = file.temporary().to_owned();
        assert!(!is_leftover(&temporary), "empty, and locked");
        file.write_all(b"half").unwrap();
        assert!(!is_leftover(&temporary), "locked");
        // As if the process were killed: its files are closed, and nothing is removed.
        let kept = folder.path().join("kept");
        fs::copy(&temporary, &kept).unwrap();
        drop(file);
        fs::rename(&kept, &temporary).unwrap();
        assert!(is_leftover(&temporary));
        // One that was made this moment, and is not locked yet.
        fs::write(&temporary, b"").unwrap();
        assert!(!is_leftover(&temporary));
        let long_ago = SystemTime::now() - LOCKED_BY;
        let empty = File::options().write(true).open(&temporary).unwrap();
        empty.set_modified(long_ago).unwrap();
        assert!(is_leftover(&temporary));
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", ".hidden", ".note.tmp", ".a.b-c.tmp", ".a.1-c.tmp"] {
            let path = folder.path().join(name);
            fs::write(&path, b"x").unwrap();
            assert!(!is_leftover(&path), "{name}");
        }
    }
}
