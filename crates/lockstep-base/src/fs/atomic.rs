//! Files that are there in full or not at all.
//!
//! Bytes go to a hidden temporary file beside the target, which then takes the target's name in one
//! step. A reader sees the old content or the new, never a part; a writer that dies leaves the
//! target as it was.

use crate::fs::FsError;
use crate::fs::kind::file_kind;
use crate::fs::letters::random_letters;
use crate::fs::log::{Operation, note};
use crate::fs::operations::{remove_file, sync_folder};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Replaces the content of `path` by `bytes`, durably and in one step.
///
/// # Errors
/// When the folder of `path` cannot be written; `path` is then as it was.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(FsError::io("write", path))?;
    file.commit()
}

/// A file that is being written and gets its name when it is complete.
///
/// Dropped without [`commit`](AtomicFile::commit), it leaves no trace. It is not buffered: write in
/// large pieces or wrap it in a [`std::io::BufWriter`].
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl AtomicFile {
    /// Opens a temporary file beside `target`, whose folder must exist. Of a symbolic link, what it
    /// points at is the target, unless the link is another user's.
    ///
    /// # Errors
    /// When the folder of `target` is missing or cannot be written, or `target` is something else
    /// than a file, such as a device or another user's link.
    pub fn create(target: &Path) -> Result<AtomicFile, FsError> {
        AtomicFile::create_in_place(&replaceable(target)?)
    }

    /// The same of `target` itself: if it is a link, the link is what is replaced. For folders that others may write into.
    ///
    /// # Errors
    /// When the folder of `target` is missing or cannot be written.
    pub fn create_in_place(target: &Path) -> Result<AtomicFile, FsError> {
        let stem = target.file_name().unwrap_or_default().to_string_lossy();
        let (file, temporary) = loop {
            let unique = format!(
                ".{stem}.{}-{}.tmp",
                std::process::id(),
                random_letters::<8>()?
            );
            let temporary = target.with_file_name(unique);
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&temporary)
                .map_err(FsError::io("write", target))?;
            // Tells others that it has a writer (`remove_leftover`). Where there are no locks, its age does.
            let _ = file.lock();
            // Before it was locked, one who cleans up may have taken it for a leftover.
            let is_named = file.metadata().map_or(true, |found| found.nlink() > 0);
            if is_named {
                break (file, temporary);
            }
        };
        note(|| Operation::CreateFile(temporary.clone()));
        Ok(AtomicFile {
            file,
            temporary,
            target: target.to_owned(),
            committed: false,
        })
    }

    /// Lets nobody but its user read the file.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn make_private(&self) -> Result<(), FsError> {
        let owner_only = Permissions::from_mode(0o600);
        let changed = self.file.set_permissions(owner_only);
        changed.map_err(FsError::io("write", &self.target))
    }

    /// The name that it has until then: for whoever wants to look at what was written before it counts.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its name, once its bytes are safe on the disk; then makes the name safe too.
    ///
    /// # Errors
    /// When the disk refuses; the target is then as it was.
    pub fn commit(self) -> Result<(), FsError> {
        self.sync()?;
        let folder = folder_of(&self.target).to_owned();
        self.commit_unsynced()?;
        sync_folder(&folder)
    }

    /// Waits until the bytes are safe on the disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> Result<(), FsError> {
        crate::failpoint::reach("fs.sync");
        let synced = self.file.sync_all();
        crate::progress::advance();
        synced.map_err(FsError::io("write", &self.target))?;
        note(|| Operation::Sync(self.temporary.clone()));
        Ok(())
    }

    /// Gives the file its name without waiting for the disk.
    ///
    /// For what can be rebuilt. Readers on this machine still see all or nothing, but after a power
    /// failure the file may be short: its reader must be able to tell.
    ///
    /// # Errors
    /// When the file cannot be renamed; the target is then as it was.
    pub fn commit_unsynced(mut self) -> Result<(), FsError> {
        fs::rename(&self.temporary, &self.target).map_err(FsError::io("write", &self.target))?;
        note(|| Operation::Rename(self.temporary.clone(), self.target.clone()));
        self.committed = true;
        Ok(())
    }

    /// Gives the file its name if nothing has that name yet, durably and in one step; whether it did.
    ///
    /// # Errors
    /// When the disk refuses; there is then no such file.
    pub fn commit_new(self) -> Result<bool, FsError> {
        self.sync()?;
        match fs::hard_link(&self.temporary, &self.target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            linked => linked.map_err(FsError::io("write", &self.target))?,
        }
        note(|| Operation::Link(self.temporary.clone(), self.target.clone()));
        let folder = folder_of(&self.target).to_owned();
        // Its first name goes with it.
        drop(self);
        sync_folder(&folder)?;
        Ok(true)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        crate::progress::advance();
        let written = self.file.write(bytes)?;
        note(|| Operation::Write(self.temporary.clone(), bytes[..written].to_vec()));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing can be done about a failure here, and the name says that it is a leftover.
            let _ = remove_file(&self.temporary);
        }
    }
}

/// The path that a new file may take in place of `path`: the end of its links, and nothing or a file.
///
/// Whoever may write into a folder on the way, as everybody may in that for temporary files, could make a link there
/// that leads to any file of this user's. The system refuses to follow such a link in many a call, but not in those
/// that only ask where it leads. So it is looked at here whose it is.
fn replaceable(path: &Path) -> Result<PathBuf, FsError> {
    let refused = |found| FsError::NotAFile {
        path: path.to_owned(),
        found,
    };
    let mut end = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folders = end.ancestors().skip(1);
        if folders.into_iter().any(is_planted) {
            return Err(refused("below a symbolic link of another user's"));
        }
        match fs::symlink_metadata(&end) {
            Ok(found) if found.is_file() => return Ok(end),
            Ok(found) if !found.is_symlink() => return Err(refused(file_kind(found.file_type()))),
            Ok(found) if !is_own(&found) => {
                return Err(refused("a symbolic link of another user's"));
            }
            Ok(_) => {
                let next = fs::read_link(&end).map_err(FsError::io("write", path))?;
                end = folder_of(&end).join(next);
            }
            Err(_) if end == path => return Ok(end),
            Err(_) => return Err(refused("a symbolic link to nothing")),
        }
    }
    Err(refused("a symbolic link to itself"))
}

/// As many links are followed one after the other.
const MOST_LINKS: usize = 40;

/// Whether it belongs to this user, or to the system's.
fn is_own(found: &Metadata) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&found.uid())
}

/// Whether a folder is reached by a link that another user made where everybody may.
fn is_planted(folder: &Path) -> bool {
    const EVERYBODY_WRITES: u32 = 0o002;
    let planted = |found: Metadata| found.is_symlink() && !is_own(&found);
    let around = || fs::metadata(folder_of(folder));
    fs::symlink_metadata(folder).is_ok_and(planted)
        && around().is_ok_and(|around| around.mode() & EVERYBODY_WRITES != 0)
}

/// The folder that holds `path`; a bare name lies in the current one.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_write_replaces_the_whole_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomic(&path, b"a long first content").unwrap();
        write_atomic(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn the_target_is_untouched_until_the_commit_and_the_temporary_name_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomic(&path, b"old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let pid = std::process::id().to_string();
        let hidden = |name: &String| name.starts_with('.') && name.contains(&pid);
        assert_eq!(
            names(folder.path())
                .iter()
                .filter(|name| hidden(name))
                .count(),
            1
        );
        file.commit_unsynced().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_file_dropped_before_its_commit_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(&folder.path().join("file")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn what_is_not_a_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let error = |path: &Path| write_atomic(path, b"x").unwrap_err().to_string();
        let device = error(Path::new("/dev/null"));
        assert!(device.contains("/dev/null is not a file but a device"));
        assert!(error(folder.path()).contains("a folder"));
        let dangling = folder.path().join("link");
        std::os::unix::fs::symlink("nothing", &dangling).unwrap();
        assert!(error(&dangling).contains("a symbolic link to nothing"));
        assert_eq!(names(folder.path()), ["link"]);
    }

    #[test]
    fn a_symbolic_link_stays_and_what_it_points_at_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write_atomic(&file, b"old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_atomic(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn a_link_of_another_user_is_refused_and_what_it_points_at_is_left_alone() {
        const ANOTHER: Option<u32> = Some(65_534);
        let own = tempfile::tempdir().unwrap();
        let everybodys = own.path().join("tmp");
        fs::create_dir(&everybodys).unwrap();
        fs::set_permissions(&everybodys, Permissions::from_mode(0o1777)).unwrap();
        let file = own.path().join("file");
        write_atomic(&file, b"old").unwrap();
        let (link, below) = (everybodys.join("link"), everybodys.join("below"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink(own.path(), &below).unwrap();
        for path in [&link, &below] {
            if std::os::unix::fs::lchown(path, ANOTHER, ANOTHER).is_err() {
                eprintln!("skipped: only root can give a link to another user");
                return;
            }
        }
        let through = own.path().join("through");
        std::os::unix::fs::symlink(&link, &through).unwrap();
        for path in [link, below.join("file"), below.join("new"), through] {
            let error = write_atomic(&path, b"new").unwrap_err().to_string();
            assert!(error.contains("another user"), "{error}");
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert!(!own.path().join("new").exists());
    }

    #[test]
    fn a_missing_folder_is_refused_with_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/file");
        let error = write_atomic(&path, b"x").unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}
