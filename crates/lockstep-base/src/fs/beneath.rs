//! Files below a folder, and nothing but those.
//!
//! Whoever may write into a folder can put a link there, and change it at any moment. So a path is not looked at and then
//! used: every folder on the way is opened without following a link, and what is opened is then held by its descriptor.
//! Where the kernel has `openat2` (Linux 5.6), it does so in one step; elsewhere one part after the other is opened. A
//! file must be a plain one: FIFOs, which would keep a reader waiting, and devices are refused before they are opened.
//!
//! Links on the way to the folder itself are followed: that one is named by whoever runs the program.

use crate::fs::kind::file_kind;
use crate::fs::log::{Operation, note};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, open, openat, openat2};
use rustix::io::Errno;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

/// How often a name is looked up again that others make and remove meanwhile.
const TRIES: usize = 16;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read it.
    Read,
    /// To add to its end, and to read it. It is made if need be.
    Append,
    /// To write it in place. It is made if need be.
    Write,
    /// To hold its lock: as [`Write`](Self::Write), but one that is made can be opened only by those who may write it.
    Lock,
}

/// A name in a folder that is held open, so that the folder stays the same whatever happens to its path.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    _folder: Option<OwnedFd>,
}

impl Held {
    /// A path that is not held: for whatever is trusted.
    pub fn plain(path: &Path) -> Held {
        Held {
            path: path.to_owned(),
            _folder: None,
        }
    }

    /// A path that leads to the name while this is there. A link of that name is not what the path leads through: use it
    /// only with functions that do not follow the last part of a path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Holds the folder that `inner`, which must lead down from `root`, lies in.
///
/// # Errors
/// When there is no such folder, or it lies behind a link.
pub fn hold(root: &Path, inner: &Path) -> io::Result<Held> {
    let (above, name) = split(inner)?;
    let folder = folder(root, above)?;
    Ok(Held {
        path: path_of(&folder)?.join(name),
        _folder: Some(folder),
    })
}

/// Holds the folder `inner` itself.
///
/// # Errors
/// When it is no folder, or a link, or lies behind one.
pub fn hold_folder(root: &Path, inner: &Path) -> io::Result<Held> {
    let folder = folder(root, inner)?;
    Ok(Held {
        path: path_of(&folder)?,
        _folder: Some(folder),
    })
}

/// Opens the plain file `inner` below `root`.
///
/// # Errors
/// When it is not there, is no plain file, or lies behind a link.
pub fn open_file(root: &Path, inner: &Path, purpose: Purpose) -> io::Result<File> {
    let (above, name) = split(inner)?;
    let folder = folder(root, above)?;
    let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        match openat(&folder, name, look, Mode::empty()) {
            Ok(found) => return reopen(found, purpose),
            Err(Errno::NOENT) if purpose != Purpose::Read => {
                let made = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(mode(purpose));
                match openat(&folder, name, made | flags(purpose), mode) {
                    Err(Errno::EXIST) => (),
                    made => return Ok(File::from(made.map_err(explained)?)),
                }
            }
            Err(error) => return Err(explained(error)),
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

/// What is known of `inner` below `root`: of a link, that it is one.
///
/// # Errors
/// When it is not there, or lies behind a link.
pub fn metadata(root: &Path, inner: &Path) -> io::Result<Metadata> {
    let (above, name) = split(inner)?;
    let folder = folder(root, above)?;
    let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(&folder, name, look, Mode::empty()).map_err(explained)?;
    File::from(found).metadata()
}

/// Makes the folder `inner` below `root`, and those on the way to it; says of each that was made where it is.
///
/// # Errors
/// When one cannot be made, or something else has its name.
pub fn make_folders(root: &Path, inner: &Path, mut made: impl FnMut(&Path)) -> io::Result<()> {
    let mut at = trusted(root)?;
    let mut path = root.to_owned();
    for part in inner.components() {
        let name = plain(part)?;
        path.push(name);
        match mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                note(|| Operation::CreateFolder(path.clone()));
                made(&path);
            }
            Err(Errno::EXIST) => (),
            Err(error) => return Err(error.into()),
        }
        at = step(&at, name)?;
    }
    Ok(())
}

/// Opens a folder below `root` without following a link.
fn folder(root: &Path, inner: &Path) -> io::Result<OwnedFd> {
    let top = trusted(root)?;
    if inner.as_os_str().is_empty() {
        return Ok(top);
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(&top, inner, way(), Mode::empty(), resolve) {
        Ok(found) => Ok(found),
        // The kernel has no such call, a container does not allow it, or something was renamed meanwhile.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => walk(top, inner),
        Err(error) => Err(explained(error)),
    }
}

/// The same, one part after the other.
fn walk(top: OwnedFd, inner: &Path) -> io::Result<OwnedFd> {
    let parts = inner.components();
    parts
        .into_iter()
        .try_fold(top, |at, part| step(&at, plain(part)?))
}

fn step(at: &OwnedFd, name: &Path) -> io::Result<OwnedFd> {
    openat(at, name, way() | OFlags::NOFOLLOW, Mode::empty()).map_err(explained)
}

fn trusted(root: &Path) -> io::Result<OwnedFd> {
    let root = if root.as_os_str().is_empty() {
        Path::new(".")
    } else {
        root
    };
    Ok(open(root, way(), Mode::empty())?)
}

fn way() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn plain(part: Component<'_>) -> io::Result<&Path> {
    match part {
        Component::Normal(name) => Ok(Path::new(name)),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "the name does not lead down",
        )),
    }
}

fn split(inner: &Path) -> io::Result<(&Path, &Path)> {
    let last = inner.components().next_back();
    let name = last.ok_or(io::Error::new(ErrorKind::InvalidInput, "there is no name"))?;
    Ok((inner.parent().unwrap_or(Path::new("")), plain(name)?))
}

/// Opens what is held already for its purpose, if it is a plain file.
fn reopen(found: OwnedFd, purpose: Purpose) -> io::Result<File> {
    let path = path_of(&found)?;
    let file = File::from(found);
    let kind = file.metadata()?.file_type();
    if kind.is_symlink() {
        return Err(explained(Errno::LOOP));
    }
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        let words = format!("it is not a file but {}", file_kind(kind));
        return Err(io::Error::new(ErrorKind::InvalidInput, words));
    }
    let mut options = OpenOptions::new();
    match purpose {
        Purpose::Read => options.read(true),
        Purpose::Append => options.read(true).append(true),
        Purpose::Write | Purpose::Lock => options.write(true),
    };
    options.open(path)
}

fn flags(purpose: Purpose) -> OFlags {
    match purpose {
        Purpose::Read => OFlags::RDONLY,
        Purpose::Append => OFlags::RDWR | OFlags::APPEND,
        Purpose::Write | Purpose::Lock => OFlags::WRONLY,
    }
}

fn mode(purpose: Purpose) -> u32 {
    match purpose {
        Purpose::Lock => crate::fs::lock::MODE,
        _ => 0o666,
    }
}

/// A path to what a descriptor holds.
fn path_of(held: &OwnedFd) -> io::Result<PathBuf> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    match rustix::fs::statat(CWD, &path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(path),
        Err(_) => Err(io::Error::new(
            ErrorKind::Unsupported,
            "/proc is not mounted, and files below a folder cannot be opened safely without it",
        )),
    }
}

/// The system's word for a link is of no use to anybody.
fn explained(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::XDEV => io::Error::new(
            ErrorKind::NotADirectory,
            "it is a link or lies behind one, and links are not followed here",
        ),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    fn read(root: &Path, name: &str) -> io::Result<String> {
        let mut text = String::new();
        open_file(root, Path::new(name), Purpose::Read)?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn no_link_is_followed_and_fifos_and_devices_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (root, secret) = (folder.path().join("root"), folder.path().join("secret"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("file"), "secret").unwrap();
        fs::write(root.join("a/b/file"), "mine").unwrap();
        symlink(secret.join("file"), root.join("a/link")).unwrap();
        symlink(&secret, root.join("way")).unwrap();
        symlink("b", root.join("a/c")).unwrap();
        assert_eq!(read(&root, "a/b/file").unwrap(), "mine");
        for name in ["a/link", "way/file", "a/c/file"] {
            let error = read(&root, name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotADirectory, "{name} {error}");
            assert!(error.to_string().contains("link"), "{name} {error}");
            for purpose in [Purpose::Append, Purpose::Write, Purpose::Lock] {
                assert!(
                    open_file(&root, Path::new(name), purpose).is_err(),
                    "{name}"
                );
            }
        }
        assert!(hold(&root, Path::new("way/file")).is_err());
        assert!(make_folders(&root, Path::new("way/new"), |_| ()).is_err());
        assert!(!secret.join("new").exists());
        for name in ["../secret/file", "/etc/passwd", "a/../../secret/file", ""] {
            assert!(read(&root, name).is_err(), "{name}");
        }
        let fifo = root.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let error = read(&root, "fifo").unwrap_err().to_string();
        assert!(error.contains("FIFO"), "{error}");
        let error = read(Path::new("/dev"), "null").unwrap_err().to_string();
        assert!(error.contains("device"), "{error}");
        // What leads to the root is whoever's who names it.
        symlink(&root, folder.path().join("short")).unwrap();
        assert_eq!(
            read(&folder.path().join("short"), "a/b/file").unwrap(),
            "mine"
        );
    }

    #[test]
    fn without_the_call_the_same_holds() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("b", root.join("a/c")).unwrap();
        let walked = |inner: &str| walk(trusted(root).unwrap(), Path::new(inner));
        assert!(walked("a/b").is_ok());
        assert!(walked("a/c").is_err() && walked("..").is_err() && walked("a/b/../..").is_err());
    }

    #[test]
    fn files_and_folders_are_made_where_they_belong() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut made = Vec::new();
        make_folders(root, Path::new("x/y"), |path| made.push(path.to_owned())).unwrap();
        assert_eq!(made, [root.join("x"), root.join("x/y")]);
        for _ in 0..2 {
            let mut file = open_file(root, Path::new("x/y/log"), Purpose::Append).unwrap();
            file.write_all(b"line\n").unwrap();
        }
        assert_eq!(fs::read(root.join("x/y/log")).unwrap(), b"line\nline\n");
        let held = hold(root, Path::new("x/y/log")).unwrap();
        // The folder stays the same when another takes its name.
        fs::rename(root.join("x"), root.join("z")).unwrap();
        fs::remove_file(held.path()).unwrap();
        assert!(!root.join("z/y/log").exists());
    }
}
