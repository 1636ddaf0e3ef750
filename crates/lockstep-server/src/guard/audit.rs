//! Who did what, from where, and with which result.
//!
//! A line of JSON for every request that changes something, appended to `audit.jsonl` in the server's folder, and one for
//! every request that was refused, in `refused.jsonl`: so what strangers try does not wash away what was done. Of refusals
//! only [some](super::refusals) are written down, and how many were not. Nothing is ever changed in either file. At
//! [`LIMIT`] bytes a file gets the ending `.1`, what had that gets `.2`, and so on; what had the last one goes.

use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// From how many bytes on a new file is begun.
const LIMIT: u64 = 16 << 20;
/// How many older files are kept.
const KEPT: u32 = 5;

/// What a route did, in words, where the method and the path do not say it: `submitted raysubmit_1`. A route puts it
/// into the extensions of its response.
#[derive(Debug, Clone)]
pub(crate) struct AuditAction(pub(crate) String);

/// One line.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    /// When, in seconds since 1970 in UTC.
    pub(crate) time: f64,
    /// The name that goes with the token; nothing where nobody was let in.
    pub(crate) who: Option<String>,
    /// What that one may do.
    pub(crate) role: Option<crate::Role>,
    /// The address that the connection came from.
    pub(crate) from: String,
    /// The method.
    pub(crate) method: String,
    /// The path, without what follows a question mark.
    pub(crate) path: String,
    /// The status of the answer.
    pub(crate) status: u16,
    /// What was done, or why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) what: Option<String>,
    /// How many refusals before this one were not written down.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) left_out: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A file of them.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    limit: u64,
    open: Mutex<Option<(File, u64)>>,
}

impl Audit {
    /// What was done, in a server's folder.
    pub(crate) fn of_deeds(folder: &Path) -> Audit {
        Audit::named(folder.join("audit.jsonl"))
    }

    /// What was refused.
    pub(crate) fn of_refusals(folder: &Path) -> Audit {
        Audit::named(folder.join("refused.jsonl"))
    }

    fn named(path: PathBuf) -> Audit {
        Audit {
            path,
            limit: LIMIT,
            open: Mutex::default(),
        }
    }

    /// Appends a line, in one write, so that lines of two servers never mix.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn note(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut open = self
            .open
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        if open.as_ref().is_some_and(|(_, size)| *size >= self.limit) {
            *open = None;
            self.rotate();
        }
        if open.is_none() {
            let mut options = OpenOptions::new();
            let file = options
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.path)?;
            let size = file.metadata()?.len();
            *open = Some((file, size));
        }
        if let Some((file, size)) = open.as_mut() {
            file.write_all(&line)?;
            *size += line.len() as u64;
        }
        Ok(())
    }

    fn rotate(&self) {
        let name = |number: u32| match number {
            0 => self.path.clone(),
            _ => self.path.with_extension(format!("jsonl.{number}")),
        };
        for number in (0..KEPT).rev() {
            // One that is not there yet has nothing to move.
            let _ = fs::rename(name(number), name(number + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_old_files_go() {
        let folder = tempfile::tempdir().unwrap();
        let mut audit = Audit::of_deeds(folder.path());
        audit.limit = 1000;
        for number in 0..100 {
            let path = format!("/a\n\"{number}");
            let entry = Entry {
                time: 1.0,
                who: Some("anna".to_owned()),
                role: None,
                from: "127.0.0.1".to_owned(),
                method: "POST".to_owned(),
                path,
                status: 200,
                what: None,
                left_out: 0,
            };
            audit.note(&entry).unwrap();
        }
        let mut lines = Vec::new();
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 6);
        names.sort_by_key(|entry| std::cmp::Reverse(entry.as_ref().unwrap().file_name()));
        for file in names {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for line in text.lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                lines.push(line["path"].as_str().unwrap().to_owned());
            }
        }
        // The newest file sorts first by name; within the rest the highest number is the oldest.
        assert_eq!(lines.last().unwrap(), "/a\n\"99");
        assert!(lines.len() > 40 && lines.len() < 100, "{}", lines.len());
    }
}
