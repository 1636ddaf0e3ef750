//! Temporary files whose writer is gone.
//!
//! An [`AtomicFile`](crate::fs::AtomicFile) goes away by itself unless its process is killed outright. Its writer
//! holds a lock on it, which ends with the process: so what nobody has locked has no writer left, on this machine or
//! on another one that shares the folder. Who removes such a file holds the lock meanwhile, and a writer looks,
//! once it has the lock, whether its file still has its name: so neither can surprise the other.

use std::fs::{self, File, Metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Nothing that is still written is as old. It decides where the file system knows no locks.
pub const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes `path` if it is a temporary file that nobody is writing any more, and says whether it did. That one
/// stays does no harm but the space it takes, so what cannot be removed is left.
pub fn remove_leftover(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    if !name.is_some_and(is_temporary) {
        return false;
    }
    let Ok(file) = File::open(path) else {
        return false;
    };
    let abandoned = match file.try_lock() {
        Ok(()) => true,
        Err(std::fs::TryLockError::WouldBlock) => false,
        Err(std::fs::TryLockError::Error(_)) => file
            .metadata()
            .is_ok_and(|found| is_older(&found, ABANDONED)),
    };
    abandoned && fs::remove_file(path).is_ok()
}

/// Whether something was last changed longer ago than `age`.
pub fn is_older(found: &Metadata, age: Duration) -> bool {
    let changed = found.modified().ok();
    let since = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
    since.is_some_and(|since| since >= age)
}

/// Whether a name is one that [`AtomicFile`](crate::fs::AtomicFile) makes: `.name.pid-letters.tmp`.
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
    use crate::fs::{AtomicFile, write_atomic};
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    /// What a killed process leaves: its files are closed, and nothing is removed.
    fn kill(file: AtomicFile) {
        let temporary = file.temporary().to_owned();
        let kept = temporary.with_extension("kept");
        fs::copy(&temporary, &kept).unwrap();
        drop(file);
        fs::rename(&kept, &temporary).unwrap();
    }

    #[test]
    fn a_file_that_is_written_stays_and_one_of_a_killed_writer_goes() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b""[..], b"half"] {
            let mut file = AtomicFile::create(&folder.path().join("set.gz")).unwrap();
            file.write_all(bytes).unwrap();
            let temporary = file.temporary().to_owned();
            assert!(!remove_leftover(&temporary), "locked");
            kill(file);
            assert!(temporary.exists());
            assert!(remove_leftover(&temporary));
            assert!(!temporary.exists());
        }
    }

    #[test]
    fn writers_and_removers_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, done) = (folder.path(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for entry in fs::read_dir(path).unwrap().flatten() {
                        remove_leftover(&entry.path());
                    }
                }
            });
            for number in 0..300 {
                write_atomic(&path.join(number.to_string()), b"whole").unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(path).unwrap().count(), 300);
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", ".hidden", ".note.tmp", ".a.b-c.tmp", ".a.1-c.tmp"] {
            let path = folder.path().join(name);
            fs::write(&path, b"x").unwrap();
            assert!(!remove_leftover(&path), "{name}");
        }
    }
}
