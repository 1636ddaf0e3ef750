//! Files that people name: what they are, and how they are called in messages.

use crate::DataError;
use lockstep_base::fs::file_kind;
use std::fmt::{self, Write};
use std::fs::{self, Metadata};
use std::path::Path;

/// The metadata of `path`, which must be a regular file or a link to one.
///
/// To be asked before the file is opened: merely opening a FIFO would wait for its writer.
pub(crate) fn regular(path: &Path) -> Result<Metadata, DataError> {
    let metadata = fs::metadata(path).map_err(DataError::io("open", path))?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(DataError::NotAFile {
        path: path.to_owned(),
        kind: file_kind(metadata.file_type()),
    })
}

/// The path for a message: a name may hold what would command a terminal, so that is escaped.
pub(crate) fn shown(path: &Path) -> Shown<'_> {
    Shown(path)
}

/// Displays a path without control characters.
pub(crate) struct Shown<'a>(&'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.to_string_lossy().chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

/// Text of a file for a message, as [`shown`] shows a path.
pub(crate) fn printable(text: &str) -> Shown<'_> {
    Shown(Path::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn what_is_not_a_regular_file_is_refused_without_waiting_for_it() {
        let folder = Folder::new();
        let (good, labels) = (folder.idx(8, &[1], &[0]), folder.labels(&[0]));
        let fifo = folder.path().join("fifo");
        assert!(
            Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        let link = folder.path().join("link");
        symlink(&fifo, &link).unwrap();
        for (path, kind) in [
            (fifo.as_path(), "a FIFO"),
            (&link, "a FIFO"),
            (folder.path(), "a folder"),
            (Path::new("/dev/null"), "a device"),
        ] {
            let expected = format!("{} is {kind}, not a regular file", path.display());
            for (images, labels) in [(path, labels.as_path()), (&good, path)] {
                let error = folder.open(images, labels).unwrap_err();
                assert_eq!(error.to_string(), expected);
            }
        }
    }

    #[test]
    fn a_link_to_a_file_is_as_good_as_the_file() {
        let folder = Folder::new();
        let link = folder.path().join("link");
        symlink(folder.idx(8, &[1], &[7]), &link).unwrap();
        assert_eq!(folder.dataset(&link, &folder.labels(&[0])).len(), 1);
    }

    #[test]
    fn a_path_never_commands_the_terminal() {
        let error = regular(Path::new("/no/\u{1b}[2J\n/ñ")).unwrap_err();
        assert_eq!(error.to_string(), r"/no/\u{1b}[2J\n/ñ does not exist");
    }
}
