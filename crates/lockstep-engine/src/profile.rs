//! A profile of some steps, in a file that Perfetto and Chrome show.

use crate::EngineError;
use lockstep_events::control::ProfiledSteps;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Of which steps a profile is made, and where it goes.
#[derive(Debug, Clone)]
pub struct ProfileRequest {
    /// The file.
    pub path: PathBuf,
    /// The first step, counted from 1.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

impl ProfileRequest {
    /// What workers are told, from now on.
    pub(crate) fn steps(&self) -> ProfiledSteps {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        ProfiledSteps {
            first: self.first,
            last: self.last,
            since_us: now.map_or(0, |now| now.as_micros() as u64),
        }
    }
}

/// The file of a profile: one list of events, whose end is written when this is dropped. Viewers do without it.
pub(crate) struct ProfileFile {
    path: PathBuf,
    file: File,
    is_empty: bool,
}

impl ProfileFile {
    /// One without events.
    pub(crate) fn create(path: PathBuf) -> Result<Self, EngineError> {
        let begun = File::create(&path).and_then(|mut file| {
            file.write_all(b"[\n")?;
            Ok(file)
        });
        match begun {
            Ok(file) => Ok(Self {
                path,
                file,
                is_empty: true,
            }),
            Err(source) => Err(EngineError::Profile { path, source }),
        }
    }

    /// Adds what a worker did.
    pub(crate) fn add(&mut self, events: &str) -> Result<(), EngineError> {
        let before = if self.is_empty { "" } else { ",\n" };
        self.is_empty = false;
        let written = self.file.write_all(format!("{before}{events}").as_bytes());
        written.map_err(|source| EngineError::Profile {
            path: self.path.clone(),
            source,
        })
    }
}

impl Drop for ProfileFile {
    fn drop(&mut self) {
        let _ = self.file.write_all(b"\n]\n");
    }
}
