//! What a killed process left in the cache.
//!
//! Temporary files go away by themselves unless their process is killed outright. A file whose writer is gone
//! is told by its lock ([`remove_leftover`]); of a folder, nothing that is still being made is a day old.

use lockstep_base::fs::{ABANDONED, is_older, remove_leftover};
use std::fs;
use std::path::Path;

/// How the names of folders begin that known sets are brought to.
pub(crate) const FETCH_PREFIX: &str = ".fetch-";

/// Removes abandoned temporary files from a folder of the cache. That they stay does no harm but
/// the space they take, so what cannot be removed is left.
pub(crate) fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let fetched = name.to_string_lossy().starts_with(FETCH_PREFIX);
        let old = || {
            entry
                .metadata()
                .is_ok_and(|found| is_older(&found, ABANDONED))
        };
        if fetched && old() {
            let _ = fs::remove_dir_all(&path);
        } else {
            remove_leftover(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use lockstep_base::fs::AtomicFile;
    use std::fs::File;
    use std::io::Write;
    use std::time::{Duration, SystemTime};

    #[test]
    fn only_our_own_temporary_files_go_and_only_when_nobody_writes_them() {
        let folder = Folder::new();
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        for other in ["a", ".hidden", ".note.tmp", ".a.b-c.tmp"] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        let others = names();
        let mut file = AtomicFile::create(&folder.path().join("set.gz")).unwrap();
        file.write_all(b"half").unwrap();
        let written = file.temporary().to_owned();
        // As if another process were killed while it wrote.
        let left = folder.path().join(".set.gz.1-abcdefgh.tmp");
        fs::write(&left, b"half").unwrap();
        let fetch = folder.path().join(format!("{FETCH_PREFIX}x"));
        fs::create_dir(&fetch).unwrap();
        fs::write(fetch.join("part"), "").unwrap();

        sweep(folder.path());
        assert!(!left.exists() && written.exists() && fetch.exists());
        let old = SystemTime::now() - ABANDONED - Duration::from_secs(1);
        File::open(&fetch).unwrap().set_modified(old).unwrap();
        sweep(folder.path());
        assert!(written.exists() && !fetch.exists());
        drop(file);
        assert_eq!(names(), others);
    }
}
