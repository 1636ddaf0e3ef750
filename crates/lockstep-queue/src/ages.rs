//! How long jobs have been over, by a clock that nobody sets.
//!
//! A machine's clock may jump by days. So how old something is follows from the time that the queue was served since: a
//! count of seconds that only grows, written down once a minute beside the jobs, with its value when each job was first
//! seen to have ended. While nobody serves the queue, nothing in it grows old.

use lockstep_base::fs::AtomicFile;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What is written down.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Written {
    /// Seconds that the queue was served.
    served_s: u64,
    /// What that was when each job was seen to have ended.
    ended: BTreeMap<String, u64>,
}

/// The ages of jobs that have ended.
#[derive(Debug)]
pub(crate) struct Ages {
    path: PathBuf,
    began: Instant,
    before_s: u64,
    written: Written,
}

impl Ages {
    /// Those in a queue's folder. A file that cannot be read makes all jobs young, which is harmless.
    pub(crate) fn read(path: PathBuf) -> Ages {
        let text = fs::read(&path).unwrap_or_default();
        let written: Written = serde_json::from_slice(&text).unwrap_or_default();
        Ages {
            path,
            began: Instant::now(),
            before_s: written.served_s,
            written,
        }
    }

    /// The age of each of these jobs, which have ended, as of `now`; and writes down what is new.
    pub(crate) fn of(&mut self, ended: &BTreeSet<String>, now: Instant) -> Vec<(Duration, String)> {
        let served_s = self.before_s + now.saturating_duration_since(self.began).as_secs();
        self.written.served_s = served_s;
        let known = &mut self.written.ended;
        known.retain(|id, _| ended.contains(id));
        let ages = ended.iter().map(|id| {
            let at = *known.entry(id.clone()).or_insert(served_s);
            (Duration::from_secs(served_s.saturating_sub(at)), id.clone())
        });
        let ages = ages.collect();
        self.write();
        ages
    }

    /// Without waiting for the disk: if it is lost, jobs are kept for longer.
    fn write(&self) {
        let text = serde_json::to_vec(&self.written).unwrap_or_default();
        let written = AtomicFile::create(&self.path).and_then(|mut file| {
            file.write_all(&text)
                .map_err(lockstep_base::fs::FsError::io("write", &self.path))?;
            file.commit_unsynced()
        });
        if let Err(error) = written {
            eprintln!("warning: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_the_time_that_the_queue_was_served_whatever_the_clock_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ages.json");
        let ended = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let of = |ages: &mut Ages, after: u64| {
            let now = ages.began + Duration::from_secs(after);
            let ages = ages.of(&ended, now).into_iter();
            ages.map(|(age, _)| age.as_secs()).collect::<Vec<_>>()
        };
        // However long ago they say that they ended: they were seen now.
        let mut ages = Ages::read(path.clone());
        assert_eq!(of(&mut ages, 0), [0, 0]);
        assert_eq!(of(&mut ages, 100), [100, 100]);
        let mut later = Ages::read(path.clone());
        assert_eq!(of(&mut later, 50), [150, 150]);
        fs::write(&path, "{").unwrap();
        assert_eq!(of(&mut Ages::read(path), 0), [0, 0]);
    }
}
