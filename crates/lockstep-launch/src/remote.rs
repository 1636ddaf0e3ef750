//! What launchers have in common whose workers somebody else starts, on another machine.
//!
//! A launch has a number over the life of its launcher: a seat and an incarnation come again when the same launcher
//! serves tasks first and a gang then. What is reported of launches, in pieces and by number, becomes notices of
//! workers. Reports are taken in under the lock of a [`SharedState`]; what they come to is told after that is let go, since
//! those who listen may be slow and may at that moment ask the launcher for something.

use super::{LaunchNotice, LineSplitter, Notify, WorkerEnd, WorkerEvent, WorkerId};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many of a list are named.
const NAMED: usize = 16;

/// A list in words, however long it is.
pub fn named(mut all: Vec<String>) -> String {
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    match more {
        0 => all.join(", "),
        more => format!("{} and {more} more", all.join(", ")),
    }
}

/// A state, and a way to wait for it to change.
#[derive(Debug, Default)]
pub struct SharedState<S> {
    state: Mutex<S>,
    changed: Condvar,
}

impl<S> SharedState<S> {
    /// Around a state.
    pub fn new(state: S) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// The state, to look at; who changes it uses [`change`](Self::change).
    pub fn lock(&self) -> MutexGuard<'_, S> {
        // Nobody panics while holding it in the middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `is` returns something, for so long at most.
    pub fn wait<T>(&self, limit: Duration, mut is: impl FnMut(&mut S) -> Option<T>) -> Option<T> {
        let until = Instant::now() + limit;
        let mut state = self.lock();
        loop {
            if let Some(found) = is(&mut state) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Changes the state, and wakes those who wait.
    pub fn change<T>(&self, how: impl FnOnce(&mut S) -> T) -> T {
        let changed = how(&mut self.lock());
        self.changed.notify_all();
        changed
    }
}

/// What is reported of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchReport {
    /// It is a process now, with this id.
    Started(u32),
    /// It said something: any part of its output, cut anywhere.
    Said(Vec<u8>),
    /// It wrote something for people, in the same form.
    Wrote(Vec<u8>),
    /// It is about to be taken away, in words. May be said again and again.
    Leaving(String),
    /// All that it said and wrote was told. Only the first time counts.
    Silent,
    /// It ended. Only the first time counts.
    Ended(WorkerEnd),
}

/// The launches of a launcher.
#[derive(Default)]
pub struct Launches {
    count: u64,
    /// Those of whom something may still be heard.
    table: HashMap<u64, Launch>,
    /// The process of every launch, for people.
    pids: HashMap<u64, u32>,
    /// The newest of each seat, and its number.
    newest: HashMap<usize, (WorkerId, u64)>,
}

/// A worker that was started.
struct Launch {
    id: WorkerId,
    notify: Notify,
    /// What it is in the middle of saying, and of writing.
    said: Vec<u8>,
    written: LineSplitter,
    /// Its output is at its end.
    silent: bool,
    ended: bool,
}

/// What is to be told of one worker, without any lock.
#[must_use = "nobody hears it otherwise"]
pub struct PendingNotices(Option<(WorkerId, Notify)>, Vec<WorkerEvent>);

impl PendingNotices {
    const NONE: Self = Self(None, Vec::new());

    /// Tells it.
    pub fn tell(self) {
        if let Some((id, notify)) = self.0 {
            for what in self.1 {
                notify(LaunchNotice { id, what });
            }
        }
    }
}

impl Launches {
    /// Notes a worker that is about to be started, and returns the number of its launch.
    pub fn add(&mut self, id: WorkerId, notify: Notify) -> u64 {
        self.count += 1;
        let launch = Launch {
            id,
            notify,
            said: Vec::new(),
            written: LineSplitter::default(),
            silent: false,
            ended: false,
        };
        self.table.insert(self.count, launch);
        self.newest.insert(id.seat, (id, self.count));
        self.count
    }

    /// The number of this worker's launch, if it is the newest of its seat.
    pub fn number(&self, id: WorkerId) -> Option<u64> {
        let (of, number) = self.newest.get(&id.seat)?;
        (*of == id).then_some(*number)
    }

    /// The process of this worker, if it is known.
    pub fn pid(&self, id: WorkerId) -> Option<u32> {
        self.pids.get(&self.number(id)?).copied()
    }

    /// Whether a launch ended.
    pub fn has_ended(&self, number: u64) -> bool {
        self.table.get(&number).is_none_or(|launch| launch.ended)
    }

    /// Those that have not ended.
    pub fn running(&self) -> Vec<u64> {
        let running = self.table.iter().filter(|(_, launch)| !launch.ended);
        running.map(|(number, _)| *number).collect()
    }

    /// Those of whom something may still be heard.
    pub fn audible(&self) -> Vec<u64> {
        self.table.keys().copied().collect()
    }

    /// Whether something may still be heard of a launch.
    pub fn is_audible(&self, number: u64) -> bool {
        self.table.contains_key(&number)
    }

    /// Takes in a report.
    pub fn hear(&mut self, number: u64, reported: LaunchReport) -> PendingNotices {
        let Some(launch) = self.table.get_mut(&number) else {
            return PendingNotices::NONE;
        };
        let told = match reported {
            LaunchReport::Started(pid) => {
                self.pids.insert(number, pid);
                vec![WorkerEvent::Started(pid)]
            }
            LaunchReport::Said(bytes) => launch.says(&bytes),
            LaunchReport::Wrote(bytes) => {
                let lines = bytes
                    .into_iter()
                    .filter_map(|byte| launch.written.push(byte));
                lines.map(WorkerEvent::Wrote).collect()
            }
            LaunchReport::Leaving(why) => vec![WorkerEvent::Leaving(why)],
            LaunchReport::Silent => launch.falls_silent(),
            LaunchReport::Ended(_) if launch.ended => Vec::new(),
            LaunchReport::Ended(end) => {
                launch.ended = true;
                vec![WorkerEvent::Ended(end)]
            }
        };
        let to = (launch.id, launch.notify.clone());
        if launch.ended && launch.silent {
            self.table.remove(&number);
        }
        PendingNotices(Some(to), told)
    }
}

impl Launch {
    fn says(&mut self, bytes: &[u8]) -> Vec<WorkerEvent> {
        let mut told = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' => {
                    let line = std::mem::take(&mut self.said);
                    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                    told.push(WorkerEvent::Said(line));
                }
                byte => self.said.push(byte),
            }
        }
        told
    }

    fn falls_silent(&mut self) -> Vec<WorkerEvent> {
        if std::mem::replace(&mut self.silent, true) {
            return Vec::new();
        }
        let mut told = Vec::new();
        let said = std::mem::take(&mut self.said);
        if !said.is_empty() {
            told.push(WorkerEvent::Said(
                String::from_utf8_lossy(&said).into_owned(),
            ));
        }
        let written = std::mem::take(&mut self.written);
        told.extend(written.finish().map(WorkerEvent::Wrote));
        told.push(WorkerEvent::OutputEnded);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{NoticeChannel, spec};

    #[test]
    fn output_that_comes_in_pieces_becomes_lines_and_ends_are_told_once() {
        let heard = NoticeChannel::default();
        let mut launches = Launches::default();
        let id = spec(2, 1).id;
        let number = launches.add(id, heard.notify());
        assert_eq!(
            (launches.number(id), launches.running()),
            (Some(number), vec![number])
        );
        let reports = [
            LaunchReport::Said(b"a lo".to_vec()),
            LaunchReport::Said(b"ng line\nlast".to_vec()),
            LaunchReport::Wrote(b"people".to_vec()),
            LaunchReport::Silent,
            LaunchReport::Ended(WorkerEnd::Code(1)),
            LaunchReport::Ended(WorkerEnd::Code(2)),
            LaunchReport::Silent,
        ];
        for report in reports {
            launches.hear(number, report).tell();
        }
        let told = std::iter::from_fn(|| heard.next(Duration::ZERO));
        let told: Vec<WorkerEvent> = told.map(|notice| notice.what).collect();
        let said = |line: &str| WorkerEvent::Said(line.to_owned());
        let wanted = [
            said("a long line"),
            said("last"),
            WorkerEvent::Wrote("people".to_owned()),
            WorkerEvent::OutputEnded,
            WorkerEvent::Ended(WorkerEnd::Code(1)),
        ];
        assert_eq!(told, wanted);
        assert!(launches.has_ended(number) && launches.audible().is_empty());
    }
}
