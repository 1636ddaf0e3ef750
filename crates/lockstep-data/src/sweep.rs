//! What a killed process left in the cache.
//!
//! Temporary files go away by themselves unless their process is killed outright. Nothing that is
//! still being made is a day old, so what is older has no owner left.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How the names of folders begin that known sets are brought to.
pub(crate) const FETCH_PREFIX: &str = ".fetch-";

/// No download and no decoding lasts as long.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes abandoned temporary files from a folder of the cache. That they stay does no harm but
/// the space they take, so what cannot be removed is left.
pub(crate) fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let age = metadata
            .modified()
            .ok()
            .and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if !is_temporary(&entry.file_name()) || age.is_none_or(|age| age < ABANDONED) {
            continue;
        }
        let _ = if metadata.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        };
    }
}

/// Whether a name is one of ours: that of a folder for fetching, or `.name.pid-letters.tmp`, as
/// [`AtomicFile`](lockstep_fs::AtomicFile) makes them.
fn is_temporary(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let written = || {
        let (_, unique) = name
            .strip_prefix('.')?
            .strip_suffix(".tmp")?
            .rsplit_once('.')?;
        let (pid, letters) = unique.split_once('-')?;
        pid.parse::<u32>().ok()?;
        Some(letters.len() == 8)
    };
    name.starts_with(FETCH_PREFIX) || written() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use lockstep_fs::AtomicFile;
    use std::fs::File;

    #[test]
    fn only_our_own_temporary_files_go_and_only_when_they_are_old() {
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
        // As if the process were killed: nothing is dropped.
        std::mem::forget(AtomicFile::create(&folder.path().join("set.gz")).unwrap());
        let fetch = folder.path().join(format!("{FETCH_PREFIX}x"));
        fs::create_dir(&fetch).unwrap();
        fs::write(fetch.join("part"), "").unwrap();
        let all = names();
        assert_eq!(all.len(), others.len() + 2);

        sweep(folder.path());
        assert_eq!(names(), all);
        let old = SystemTime::now() - ABANDONED - Duration::from_secs(1);
        for name in &all {
            let file = File::open(folder.path().join(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        sweep(folder.path());
        assert_eq!(names(), others);
    }
}
