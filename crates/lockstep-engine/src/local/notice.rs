//! What the coordinator hears, through one channel from many threads.

use lockstep_events::control::FromWorker;
use lockstep_gang::{Hello, Link, LinkReader, Rendezvous};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

/// How many notices may wait. A worker that writes faster than it is heard is held back by its pipe.
pub(super) const WAITING: usize = 1024;

/// How often the threads that wait for the network look whether they are still needed.
const LOOK: Duration = Duration::from_millis(200);

/// One thing that happened to one worker, identified by its rank.
#[derive(Debug)]
pub(super) enum Notice {
    /// It proved that it belongs to this run.
    Joined {
        /// How it introduced itself.
        hello: Hello,
        /// The link to it.
        link: Link,
    },
    /// It wrote a line.
    Line {
        /// Which worker.
        rank: usize,
        /// The line without its end.
        line: String,
    },
    /// All that it wrote was read.
    OutputEnded {
        /// Which worker.
        rank: usize,
    },
    /// Its process ended and waits to be reaped.
    Exited {
        /// Which worker.
        rank: usize,
    },
    /// It said something over the control link.
    Said {
        /// Which worker.
        rank: usize,
        /// What it said.
        message: FromWorker,
    },
    /// Its control link ended; nothing more will be said over it.
    LinkEnded {
        /// Which worker.
        rank: usize,
        /// Why, in words.
        error: String,
    },
}

/// A thread that waits at the rendezvous; it ends when this is dropped.
pub(super) struct Doorkeeper {
    closed: Arc<AtomicBool>,
}

impl Doorkeeper {
    /// Reports everybody who joins.
    pub(super) fn spawn(mut door: Rendezvous, notices: SyncSender<Notice>) -> io::Result<Self> {
        let closed = Arc::new(AtomicBool::new(false));
        let closing = closed.clone();
        let watch = move || {
            while !closing.load(Ordering::Relaxed) {
                match door.accept(LOOK) {
                    Ok(None) => (),
                    Ok(Some((hello, link))) => {
                        if notices.send(Notice::Joined { hello, link }).is_err() {
                            return;
                        }
                    }
                    // The next connection may do better. If none does, the deadline for joining
                    // passes.
                    Err(_) => thread::sleep(LOOK),
                }
            }
        };
        thread::Builder::new()
            .name("doorkeeper".into())
            .spawn(watch)?;
        Ok(Self { closed })
    }
}

impl Drop for Doorkeeper {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// Reports what a worker says until its link ends.
pub(super) fn listen(
    rank: usize,
    mut link: LinkReader,
    notices: SyncSender<Notice>,
) -> io::Result<()> {
    let hear = move || {
        loop {
            let notice = match link.recv(LOOK) {
                Ok(None) => continue,
                Ok(Some(message)) => Notice::Said { rank, message },
                Err(error) => Notice::LinkEnded {
                    rank,
                    error: error.to_string(),
                },
            };
            let ended = matches!(notice, Notice::LinkEnded { .. });
            if notices.send(notice).is_err() || ended {
                return;
            }
        }
    };
    thread::Builder::new()
        .name(format!("link-{rank}"))
        .spawn(hear)?;
    Ok(())
}
