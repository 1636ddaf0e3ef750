//! What lies in the cache folder, and how it is made smaller.
//!
//! Every item can be brought or built again, and a process that has opened one keeps it until it ends. So the only
//! question is which ones are worth their space: those that were used last.

use crate::amount;
use crate::fs::{CacheDir, FsError};
use serde::Serialize;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The folders of the cache, and what is in them. Whatever else lies there is not Lockstep's to remove.
const KINDS: [(&str, &str); 8] = [
    ("datasets", "data set"),
    ("decoded", "decoded data"),
    ("encoders", "encoder"),
    ("index", "index of runs"),
    ("peers", "programs to compare with"),
    ("programs", "program for other machines"),
    ("python-package", "Python package"),
    ("xgboost", "library"),
];

/// The variable that says how much the cache may take.
const LIMIT: &str = "LOCKSTEP_CACHE_LIMIT";

/// For how long a thing counts as in use: a run opens its sets one after the other, and each of its workers later again.
const IN_USE: Duration = Duration::from_secs(3600);

/// One thing that lies in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CacheItem {
    /// What it is, in a word or two.
    pub kind: &'static str,
    /// Its name, within its folder.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// The space that it takes.
    pub bytes: u64,
    /// When it was last read or written, as far as the file system knows.
    #[serde(skip)]
    pub used: SystemTime,
}

impl CacheItem {
    /// Removes it.
    ///
    /// # Errors
    /// When something of it cannot be removed. That it is gone already is none.
    pub fn remove(&self) -> Result<(), FsError> {
        let removed = match self.path.is_dir() {
            true => fs::remove_dir_all(&self.path),
            false => fs::remove_file(&self.path),
        };
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(FsError::io("remove", &self.path)),
        }
    }
}

impl CacheDir {
    /// All that lies in the cache, the largest first of each kind. What is just being made is not there yet.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn items(&self) -> Result<Vec<CacheItem>, FsError> {
        let mut items = Vec::new();
        for (folder, kind) in KINDS {
            let mut found = items_in(&self.path().join(folder), kind)?;
            found.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
            items.extend(found);
        }
        Ok(items)
    }

    /// Removes what was used longest ago until the cache takes at most `limit` bytes, but never what may be in use. What
    /// cannot be removed, such as another user's, stays.
    ///
    /// # Errors
    /// When the cache cannot be read.
    pub fn make_room(&self, limit: u64) -> Result<(), FsError> {
        let now = SystemTime::now();
        let in_use = |item: &CacheItem| item.used + IN_USE > now;
        let (stay, others): (Vec<_>, Vec<_>) = self.items()?.into_iter().partition(in_use);
        let room = limit.saturating_sub(stay.iter().map(|item| item.bytes).sum());
        for item in surplus(others, None, Some(room), now) {
            let _ = item.remove();
        }
        Ok(())
    }
}

/// How much the cache may take, if `LOCKSTEP_CACHE_LIMIT` says so.
///
/// # Errors
/// When the variable is no amount.
pub fn cache_limit() -> Result<Option<u64>, FsError> {
    let limit = std::env::var(LIMIT).ok().filter(|limit| !limit.is_empty());
    let bytes = |limit: String| {
        let bytes = amount::bytes(&limit);
        bytes.ok_or(FsError::CacheLimit { found: limit })
    };
    limit.map(bytes).transpose()
}

/// Which items are to go: those that were not used for so long, and then those that were used longest ago, until the
/// rest takes at most `keep` bytes. All, if neither is said.
pub fn surplus(
    items: Vec<CacheItem>,
    older: Option<Duration>,
    keep: Option<u64>,
    now: SystemTime,
) -> Vec<CacheItem> {
    let keep = match (older, keep) {
        (None, None) => 0,
        (_, keep) => keep.unwrap_or(u64::MAX),
    };
    let is_old = |item: &CacheItem| {
        let age = now.duration_since(item.used).unwrap_or_default();
        older.is_some_and(|older| age >= older)
    };
    let (mut surplus, mut rest): (Vec<_>, Vec<_>) = items.into_iter().partition(is_old);
    rest.sort_by_key(|item| item.used);
    let mut left: u64 = rest.iter().map(|item| item.bytes).sum();
    for item in rest {
        if left <= keep {
            break;
        }
        left -= item.bytes;
        surplus.push(item);
    }
    surplus
}

fn items_in(folder: &Path, kind: &'static str) -> Result<Vec<CacheItem>, FsError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(FsError::io("read the folder", folder))?,
    };
    let mut items = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FsError::io("read the folder", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // What is being made has a name that begins so.
        if name.starts_with('.') {
            continue;
        }
        let mut item = CacheItem {
            kind,
            name,
            path: entry.path(),
            bytes: 0,
            used: SystemTime::UNIX_EPOCH,
        };
        measure(&entry.path(), &mut item);
        items.push(item);
    }
    Ok(items)
}

/// Adds up a file, or all that is below a folder. What cannot be looked at, or is gone by now, takes no space.
fn measure(path: &Path, item: &mut CacheItem) {
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    if found.is_dir() {
        // The times of a folder say when names in it changed, or that somebody listed it.
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            measure(&entry.path(), item);
        }
        return;
    }
    item.bytes += taken(&found);
    let times = [found.modified(), found.accessed()];
    item.used = times.into_iter().flatten().fold(item.used, SystemTime::max);
}

/// The space that a file takes: one with holes takes less than it is long.
fn taken(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(found) * 512
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};

    const DAY: Duration = Duration::from_secs(86_400);

    /// A cache with items that were used so many days ago.
    fn cache(folder: &Path, items: &[(&str, u32)], now: SystemTime) -> CacheDir {
        let cache = CacheDir::at(folder).unwrap();
        for (name, days) in items {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, [1; 5000]).unwrap();
            let used = now - DAY * *days;
            let times = FileTimes::new().set_accessed(used).set_modified(used);
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_times(times)
                .unwrap();
        }
        cache
    }

    fn names(items: &[CacheItem]) -> Vec<&str> {
        items.iter().map(|item| item.name.as_str()).collect()
    }

    #[test]
    fn only_what_is_known_and_whole_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        let there = [
            ("decoded/a", 1),
            ("decoded/.tmp-b", 1),
            ("datasets/set/images", 1),
            ("datasets/set/labels", 2),
            ("my own/file", 1),
        ];
        let now = SystemTime::now();
        let items = cache(folder.path(), &there, now).items().unwrap();
        assert_eq!(names(&items), ["set", "a"]);
        assert_eq!(items[0].bytes, 2 * items[1].bytes);
        assert!(items[1].bytes >= 5000, "{items:?}");
        let age = now.duration_since(items[0].used).unwrap();
        assert!(
            age < DAY + DAY / 2,
            "the last use of a part counts: {age:?}"
        );
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let there = [("decoded/a", 5), ("index/b", 40), ("xgboost/c", 1)];
        let now = SystemTime::now();
        let items = cache(folder.path(), &there, now).items().unwrap();
        let each = items[0].bytes;
        let gone = |older: Option<Duration>, keep| {
            let gone = surplus(items.clone(), older, keep, now);
            names(&gone).join(" ")
        };
        assert_eq!(gone(None, None), "b a c");
        assert_eq!(gone(Some(DAY * 30), None), "b");
        assert_eq!(gone(None, Some(each)), "b a");
        assert_eq!(gone(None, Some(3 * each)), "");
        assert_eq!(gone(Some(DAY * 30), Some(each)), "b a");
        for item in surplus(items, None, Some(each), now) {
            item.remove().unwrap();
            item.remove().unwrap();
        }
        let left = CacheDir::at(folder.path()).unwrap().items().unwrap();
        assert_eq!(names(&left), ["c"]);
    }

    #[test]
    fn a_limit_removes_nothing_that_may_be_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let there = [("decoded/old", 9), ("decoded/new", 0), ("decoded/day", 1)];
        let cache = cache(folder.path(), &there, SystemTime::now());
        let each = cache.items().unwrap()[0].bytes;
        cache.make_room(2 * each).unwrap();
        assert_eq!(names(&cache.items().unwrap()), ["day", "new"]);
        cache.make_room(1).unwrap();
        assert_eq!(names(&cache.items().unwrap()), ["new"]);
    }
}
