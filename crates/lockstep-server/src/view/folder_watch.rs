//! Waiting for changes in folders without looking at them.
//!
//! The system says when something has changed, and one thread waits for its word. Tasks wait for that thread.

use lockstep_queue::Notice;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_blocking};

/// Waits for changes in folders. A clone waits for the same.
#[derive(Debug, Clone)]
pub(super) struct FolderWatch {
    notice: Arc<Notice>,
    end: Arc<OwnedFd>,
}

impl FolderWatch {
    /// Waits for changes of no folder yet.
    pub(super) fn new() -> io::Result<FolderWatch> {
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(FolderWatch {
            notice: Arc::new(Notice::new()?),
            end: Arc::new(end),
        })
    }

    /// What says which folders are meant, and what has changed.
    pub(super) fn notice(&self) -> &Notice {
        &self.notice
    }

    /// Ends all waiting, now and later.
    pub(super) fn end(&self) {
        // It can only be full, and then waiting has ended already.
        let _ = rustix::io::write(&*self.end, &1u64.to_ne_bytes());
    }

    /// Waits until something has changed that nobody took note of, or for so long.
    fn wait(&self, longest: Duration) {
        let (notice, end) = (&*self.notice, &*self.end);
        let mut both = [
            PollFd::new(notice, PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        let longest = Timespec::try_from(longest).ok();
        // Interrupted or not: whoever waited looks.
        let _ = poll(&mut both, longest.as_ref());
    }
}

/// The thread that waits, if one does: there is never more than one.
#[derive(Debug, Default)]
pub(super) struct Waiting(Option<JoinHandle<()>>);

impl Waiting {
    /// Waits until something has changed, or for about so long. Dropped and called again, it goes on with the same wait.
    pub(super) async fn on(&mut self, heard: &FolderWatch, longest: Duration) {
        let waiting = self.0.get_or_insert_with(|| {
            let heard = heard.clone();
            spawn_blocking(move || heard.wait(longest))
        });
        // A thread that could not be started has waited, too.
        let _ = waiting.await;
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn a_change_and_an_end_are_heard_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let heard = FolderWatch::new().unwrap();
        heard.notice().of_all(folder.path()).unwrap();
        let mut waiting = Waiting::default();
        let began = Instant::now();
        waiting.on(&heard, Duration::from_millis(50)).await;
        assert!(began.elapsed() >= Duration::from_millis(50));
        std::fs::write(folder.path().join("a"), "x").unwrap();
        let long = Duration::from_secs(60);
        waiting.on(&heard, long).await;
        assert!(heard.notice().clear());
        heard.end();
        waiting.on(&heard, long).await;
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
