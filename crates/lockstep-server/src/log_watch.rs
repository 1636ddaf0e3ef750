//! Hearing that logs grow: one descriptor of the system's, and one task, for all who follow one.
//!
//! A user has room for some hundred such descriptors, so that one for each follower would leave none to others. Where the
//! system has none at all, or no room for one more folder, a log is looked at now and then.

use lockstep_queue::{LOST, Log, Notice};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often a log is looked at whose growth cannot be heard.
const UNHEARD: Duration = Duration::from_millis(250);
/// How often one is looked at although nothing was heard.
const SILENCE: Duration = Duration::from_secs(30);

/// Hears that logs grow. A clone hears the same.
#[derive(Debug, Clone)]
pub(crate) struct LogWatch(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    notice: AsyncFd<Notice>,
    followed: Mutex<HashMap<i32, Followed>>,
}

/// A folder that somebody follows.
#[derive(Debug)]
struct Followed {
    grown: watch::Sender<u64>,
    followers: usize,
}

/// Tells that one log has grown; where that cannot be heard, that it may have.
#[derive(Debug)]
pub(crate) struct Growth(Option<(Arc<Shared>, i32, watch::Receiver<u64>)>);

impl LogWatch {
    /// Hears of nothing yet. It needs a runtime around it.
    pub(crate) fn new() -> LogWatch {
        let notice = Notice::new().ok().and_then(|notice| {
            // SAFETY: a notice has one descriptor of its own, which stays the same until it is dropped.
            unsafe { AsyncFd::register(notice) }.ok()
        });
        let shared = notice.map(|notice| {
            Arc::new(Shared {
                notice,
                followed: Mutex::default(),
            })
        });
        if let Some(shared) = shared.clone() {
            tokio::spawn(async move { shared.hear().await });
        }
        LogWatch(shared)
    }

    /// Follows a log from now on.
    pub(crate) fn follow(&self, log: &Log) -> Growth {
        Growth(self.0.as_ref().and_then(|shared| {
            let mut followed = shared.followed();
            let watch = shared.notice.get_ref().of_growth(log.folder()).ok()?;
            let one = followed.entry(watch).or_insert_with(|| Followed {
                grown: watch::Sender::new(0),
                followers: 0,
            });
            one.followers += 1;
            Some((shared.clone(), watch, one.grown.subscribe()))
        }))
    }
}

impl Shared {
    async fn hear(&self) {
        while let Ok(mut ready) = self.notice.readable().await {
            let changes = self.notice.get_ref().changes();
            ready.clear_ready();
            let followed = self.followed();
            for change in changes {
                let meant = |watch: &i32| *watch == change.watch || change.watch == LOST;
                for (_, one) in followed.iter().filter(|(watch, _)| meant(watch)) {
                    one.grown.send_modify(|count| *count += 1);
                }
            }
        }
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<i32, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Growth {
    /// Waits until the log has grown, or may have.
    pub(crate) async fn heard(&mut self) {
        match &mut self.0 {
            None => sleep(UNHEARD).await,
            Some((_, _, grown)) => {
                // Both mean that it is time to look.
                let _ = tokio::time::timeout(SILENCE, grown.changed()).await;
            }
        }
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        let Some((shared, watch, _)) = &self.0 else {
            return;
        };
        let mut followed = shared.followed();
        if let Some(one) = followed.get_mut(watch) {
            one.followers -= 1;
            if one.followers == 0 {
                followed.remove(watch);
                shared.notice.get_ref().forget(*watch);
            }
        }
    }
}
