//! The folder of a job, and the small files in it that say how far it has come.
//!
//! Each is written once and in one step. `begun.N.json` is made by whoever is to run the job's N-th attempt, and can be
//! made once; it is there before the command starts. `process.N.json` says that the command runs. `ended.N.json` says how
//! the attempt ended. An empty file `stop` says that it was asked to stop.

use crate::{JobRecord, JobStatus, Log, QueueError};
use lockstep_base::fs::{AtomicFile, FileLock, write_atomic};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The file that a job's keeper has locked.
pub(crate) const LOCK: &str = "lock";
/// The folder of what commands find and leave, beside that of the jobs.
pub(crate) const WORK: &str = "work";
/// The file that says that a job is to stop.
pub(crate) const STOP: &str = "stop";

/// An attempt has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// When, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The GPUs that it has.
    #[serde(default)]
    pub(crate) gpus: Vec<u32>,
}

/// An attempt's command runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Started {
    /// Since when, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Its process, and its process group. For people: nothing trusts it after a restart.
    pub(crate) pid: u32,
}

/// An attempt has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AttemptEnd {
    /// When, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// How.
    pub(crate) status: JobStatus,
    /// The same in words.
    pub(crate) message: String,
    /// What kind of failure, in Ray's words.
    #[serde(default)]
    pub(crate) error_type: Option<String>,
    /// What the command ended with; 128 and the number of the signal that ended it.
    #[serde(default)]
    pub(crate) exit_code: Option<i32>,
}

impl AttemptEnd {
    /// A failure that is not the command's.
    pub(crate) fn failed(error_type: &str, message: impl Into<String>) -> AttemptEnd {
        AttemptEnd {
            at_ms: now_ms(),
            status: JobStatus::Failed,
            message: message.into(),
            error_type: Some(error_type.to_owned()),
            exit_code: None,
        }
    }

    /// The end of a job that was asked to stop.
    pub(crate) fn stopped(exit_code: Option<i32>) -> AttemptEnd {
        AttemptEnd {
            at_ms: now_ms(),
            status: JobStatus::Stopped,
            message: "Job was intentionally stopped.".to_owned(),
            error_type: None,
            exit_code,
        }
    }
}

/// The folder of a job.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The folder of all that the command finds and leaves. It lies apart from the job's records, which a job that runs as
    /// another user cannot reach.
    pub(crate) fn work(&self) -> PathBuf {
        let name = self.0.file_name().unwrap_or_default();
        let home = self.0.parent().and_then(Path::parent);
        home.unwrap_or(Path::new("")).join(WORK).join(name)
    }

    /// The folder that the command runs in.
    pub(crate) fn working(&self) -> PathBuf {
        self.work().join("working")
    }

    pub(crate) fn log(&self) -> Log {
        Log::new(self.at("log"))
    }

    pub(crate) fn asked(&self) -> Result<JobRecord, QueueError> {
        let path = self.at("job.json");
        let text = fs::read(&path).map_err(QueueError::file(&path))?;
        serde_json::from_slice(&text).map_err(|error| {
            QueueError::file(&path)(io::Error::new(io::ErrorKind::InvalidData, error))
        })
    }

    pub(crate) fn write_asked(&self, asked: &JobRecord) -> Result<(), QueueError> {
        Ok(write_atomic(&self.at("job.json"), &json(asked))?)
    }

    /// Writes down that an attempt begins; whether it had not begun before.
    pub(crate) fn begin(&self, attempt: u32, begun: &Begun) -> Result<bool, QueueError> {
        let mut file = AtomicFile::create(&self.at(&format!("begun.{attempt}.json")))?;
        let written = file.write_all(&json(begun));
        written.map_err(QueueError::file(&self.0))?;
        Ok(file.commit_new()?)
    }

    /// Writes down that an attempt's command runs.
    pub(crate) fn start(&self, attempt: u32, started: &Started) -> Result<(), QueueError> {
        let mut file = AtomicFile::create(&self.at(&format!("process.{attempt}.json")))?;
        let written = file.write_all(&json(started));
        written.map_err(QueueError::file(&self.0))?;
        Ok(file.commit_unsynced()?)
    }

    /// Writes down how an attempt ended. Only who holds the lock may.
    pub(crate) fn end(&self, attempt: u32, ended: &AttemptEnd) -> Result<(), QueueError> {
        Ok(write_atomic(
            &self.at(&format!("ended.{attempt}.json")),
            &json(ended),
        )?)
    }

    pub(crate) fn begun(&self, attempt: u32) -> Option<Begun> {
        self.read(&format!("begun.{attempt}.json"))
    }

    pub(crate) fn started(&self, attempt: u32) -> Option<Started> {
        self.read(&format!("process.{attempt}.json"))
    }

    pub(crate) fn ended(&self, attempt: u32) -> Option<AttemptEnd> {
        self.read(&format!("ended.{attempt}.json"))
    }

    /// Asks the job to stop.
    pub(crate) fn ask_to_stop(&self) -> Result<(), QueueError> {
        Ok(write_atomic(&self.at(STOP), b"")?)
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.at(STOP).exists()
    }

    /// Takes the lock of the job's keeper; none if there is a keeper.
    pub(crate) fn lock(&self) -> Result<Option<FileLock>, QueueError> {
        Ok(FileLock::try_take(&self.at(LOCK))?)
    }

    /// Whether the job has a keeper. It is only looked at: nobody hears of that.
    pub(crate) fn is_kept(&self) -> bool {
        let Ok(file) = File::open(self.at(LOCK)) else {
            return false;
        };
        let looked = file.try_lock_shared();
        // What is being started beside this has the file open too, for a moment.
        let _ = file.unlock();
        matches!(looked, Err(TryLockError::WouldBlock))
    }

    /// Ends an attempt that has no keeper; whether it is at its end now.
    pub(crate) fn conclude(&self, attempt: u32, ended: &AttemptEnd) -> Result<bool, QueueError> {
        let Some(_lock) = self.lock()? else {
            return Ok(false);
        };
        if self.ended(attempt).is_none() {
            self.end(attempt, ended)?;
        }
        Ok(true)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let text = fs::read(self.at(name)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_begins_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::new(folder.path());
        let begun = |at_ms| Begun {
            at_ms,
            gpus: vec![],
        };
        assert!(folder.begin(1, &begun(1)).unwrap());
        assert!(!folder.begin(1, &begun(2)).unwrap());
        assert_eq!(folder.begun(1), Some(begun(1)));
        assert!(folder.begin(2, &begun(3)).unwrap());
    }

    #[test]
    fn a_job_that_is_kept_is_ended_by_its_keeper_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::new(folder.path());
        assert!(!folder.is_kept());
        let keeper = folder.lock().unwrap().unwrap();
        assert!(folder.is_kept());
        assert!(!folder.conclude(1, &AttemptEnd::stopped(None)).unwrap());
        folder
            .end(1, &AttemptEnd::failed("X", "it failed"))
            .unwrap();
        drop(keeper);
        assert!(folder.conclude(1, &AttemptEnd::stopped(None)).unwrap());
        assert_eq!(folder.ended(1).unwrap().message, "it failed");
    }
}
