//! What the coordinator hears, through one channel from many threads.

use lockstep_events::control::FromWorker;
use lockstep_gang::{Arrival, Hello, Link, LinkReader, Refusal, Rendezvous};
use lockstep_launch::{LaunchNotice, Notify, WorkerId};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

/// How many notices may wait. A worker that writes faster than it is heard is held back by its pipe.
pub(crate) const WAITING: usize = 1024;

/// How often the threads that wait for the network look whether they are still needed.
const LOOK: Duration = Duration::from_millis(200);

/// One thing that happened to one worker.
#[derive(Debug)]
pub(crate) enum Notice {
    /// It proved that it belongs to this run.
    Joined {
        /// Which worker its token says that it is.
        id: WorkerId,
        /// How it introduced itself.
        hello: Hello,
        /// The link to it.
        link: Link,
    },
    /// Somebody came who does not belong to this run.
    Refused(Refusal),
    /// Its launcher tells something of it.
    Launcher(LaunchNotice),
    /// It said something over the control link.
    Said {
        /// Which worker.
        id: WorkerId,
        /// What it said.
        message: FromWorker,
    },
    /// Its control link ended; nothing more will be said over it.
    LinkEnded {
        /// Which worker.
        id: WorkerId,
        /// Why, in words.
        error: String,
    },
}

/// Where a launcher's notices go.
pub(crate) fn from_launcher(notices: SyncSender<Notice>) -> Notify {
    Arc::new(move |notice| notices.send(Notice::Launcher(notice)).is_ok())
}

/// A thread that waits at the rendezvous; it ends when this is dropped.
pub(crate) struct JoinListener {
    closed: Arc<AtomicBool>,
}

impl JoinListener {
    /// Reports everybody who joins.
    pub(crate) fn spawn(mut door: Rendezvous, notices: SyncSender<Notice>) -> io::Result<Self> {
        let closed = Arc::new(AtomicBool::new(false));
        let closing = closed.clone();
        let watch = move || {
            while !closing.load(Ordering::Relaxed) {
                match door.accept(LOOK) {
                    Ok(None) => (),
                    Ok(Some(arrival)) => {
                        if notices.send(arrived(arrival)).is_err() {
                            return;
                        }
                    }
                    // The next connection may do better. If none does, the deadline for joining
                    // passes.
                    Err(_) => thread::sleep(LOOK),
                }
            }
        };
        thread::Builder::new().name("joins".into()).spawn(watch)?;
        Ok(Self { closed })
    }
}

fn arrived(arrival: Arrival) -> Notice {
    match arrival {
        Arrival::Refused(refusal) => Notice::Refused(refusal),
        Arrival::Worker {
            seat,
            incarnation,
            hello,
            link,
        } => Notice::Joined {
            id: WorkerId { seat, incarnation },
            hello,
            link,
        },
    }
}

impl Drop for JoinListener {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// Reports what a worker says until its link ends.
pub(crate) fn listen(
    id: WorkerId,
    mut link: LinkReader,
    notices: SyncSender<Notice>,
) -> io::Result<()> {
    let hear = move || {
        loop {
            let notice = match link.recv(LOOK) {
                Ok(None) => continue,
                Ok(Some(message)) => Notice::Said { id, message },
                Err(error) => Notice::LinkEnded {
                    id,
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
        .name(format!("link-{}", id.seat))
        .spawn(hear)?;
    Ok(())
}
