//! The lock of a run in a bucket: an object that its holder renews.
//!
//! A store has no locks that end with a process. So the holder writes itself into an object and writes it
//! again every few seconds, each time on the condition that it is as the holder left it. Whoever wants the
//! run watches: an object that changes is held, and one that stays the same for a whole lease is
//! not, and is taken over by the same conditional write, so that one of several succeeds. Clocks
//! of different machines are never compared. A holder that was a process of this machine and has ended is
//! not waited for.

use crate::RunsError;
use crate::owner::Ownership;
use crate::process::Process;
use lockstep_place::{Place, Version};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long an object that does not change is respected.
const LEASE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// How often the holder renews it.
const RENEWAL: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 8000 });
/// How often one who wants it looks.
const LOOK: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 500 });

/// A run that is held in a bucket.
#[derive(Debug)]
pub(crate) struct Lease {
    held: Arc<Held>,
    /// Renewing ends with this.
    end: Option<Sender<()>>,
    renewing: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Held {
    object: Place,
    name: String,
    content: Mutex<(Ownership, Version)>,
}

impl Lease {
    /// Takes the object, at the latest when its holder has not renewed it for a lease.
    pub(crate) fn take(
        object: Place,
        name: &str,
        waiting: &mut dyn FnMut(String),
    ) -> Result<Lease, RunsError> {
        let content = claim(&object, name, waiting)?;
        let held = Arc::new(Held {
            object,
            name: name.to_owned(),
            content: Mutex::new(content),
        });
        let (end, ended) = channel::<()>();
        let renewed = held.clone();
        let renew = move || {
            while ended.recv_timeout(RENEWAL) == Err(RecvTimeoutError::Timeout) {
                // What fails is tried again in its turn. If the run is another's by then, this one's
                // workers learn it when they write.
                let _ = renewed.change(&|_| {});
            }
        };
        let renewing = thread::Builder::new()
            .name("lease".into())
            .spawn(renew)
            .map_err(lockstep_base::fs::FsError::io("renew", name.as_ref()))?;
        Ok(Lease {
            held,
            end: Some(end),
            renewing: Some(renewing),
        })
    }

    /// Changes what the object says.
    pub(crate) fn change(&self, change: &dyn Fn(&mut Ownership)) -> Result<(), RunsError> {
        self.held.change(change)
    }
}

impl Held {
    fn change(&self, change: &dyn Fn(&mut Ownership)) -> Result<(), RunsError> {
        let mut content = self.content();
        let (mut next, version) = content.clone();
        change(&mut next);
        next.renewal += 1;
        match self.object.replace_if(&version, &next.to_bytes())? {
            Some(version) => {
                *content = (next, version);
                Ok(())
            }
            None => match self.object.read_versioned()? {
                Some((bytes, _)) => in_use(&self.name, &Ownership::read(&bytes)),
                None => in_use(&self.name, &Ownership::default()),
            },
        }
    }

    fn content(&self) -> MutexGuard<'_, (Ownership, Version)> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end = None;
        if let Some(renewing) = self.renewing.take() {
            // It never panics; and if it did, there is nothing to do about it here.
            let _ = renewing.join();
        }
    }
}

fn in_use<T>(name: &str, found: &Ownership) -> Result<T, RunsError> {
    Err(RunsError::InUse {
        name: name.to_owned(),
        holder: found.holder(),
    })
}

/// Writes this process into the object when nobody holds it.
fn claim(
    object: &Place,
    name: &str,
    waiting: &mut dyn FnMut(String),
) -> Result<(Ownership, Version), RunsError> {
    // What was found first, and when: it is held if it becomes another.
    let mut watched: Option<(Version, Instant)> = None;
    loop {
        let Some((bytes, version)) = object.read_versioned()? else {
            let own = Ownership {
                owner: Some(Process::own()),
                ..Ownership::default()
            };
            match object.create_new(&own.to_bytes())? {
                Some(version) => return Ok((own, version)),
                // Another was faster.
                None => continue,
            }
        };
        let found = Ownership::read(&bytes);
        let ended = found.owner.as_ref().is_none_or(Process::is_gone);
        let since = watched.as_ref().map(|(_, since)| since.elapsed());
        if ended || since.is_some_and(|since| since >= LEASE) {
            let own = Ownership {
                owner: Some(Process::own()),
                renewal: found.renewal + 1,
                ..found
            };
            match object.replace_if(&version, &own.to_bytes())? {
                Some(version) => return Ok((own, version)),
                // It is another's now, and that one is to be watched.
                None => {
                    watched = None;
                    continue;
                }
            }
        }
        let here = found.owner.as_ref().is_some_and(Process::is_here);
        match &watched {
            _ if here => return in_use(name, &found),
            Some((before, _)) if *before != version => return in_use(name, &found),
            Some(_) => {}
            None => {
                let (holder, seconds) = (found.holder(), LEASE.as_secs());
                waiting(format!(
                    "the run {name} was held by {holder}; waiting up to {seconds} s to see whether it still is"
                ));
                watched = Some((version, Instant::now()));
            }
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;

    fn object(folder: &tempfile::TempDir) -> Place {
        let path = folder.path().join(".lock");
        Place::parse(path.to_str().unwrap(), &Access::default()).unwrap()
    }

    fn take(object: &Place) -> Result<Lease, RunsError> {
        Lease::take(object.clone(), "run", &mut |_| {})
    }

    /// Makes the object that of a process on another machine.
    fn move_elsewhere(object: &Place) {
        let (bytes, _) = object.read_versioned().unwrap().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let mut found: serde_json::Value = serde_json::from_str(&text).unwrap();
        found["owner"]["world"] = "another machine".into();
        object.write(found.to_string().as_bytes()).unwrap();
    }

    #[test]
    fn one_of_many_takes_it_and_the_others_name_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let object = object(&folder);
        let taken: Vec<_> = thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| take(&object))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let (held, refused): (Vec<_>, Vec<_>) = taken.into_iter().partition(Result::is_ok);
        assert_eq!((held.len(), refused.len()), (1, 7));
        let pid = std::process::id().to_string();
        for error in refused {
            let said = error.unwrap_err().to_string();
            assert!(said.contains(&pid) && said.contains("in use"), "{said}");
        }
    }

    #[test]
    fn a_holder_that_renews_is_respected_and_one_that_does_not_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let object = object(&folder);
        let first = take(&object).unwrap();
        // Seen from elsewhere, so that only what the object says counts.
        move_elsewhere(&object);
        let (bytes, version) = object.read_versioned().unwrap().unwrap();
        *first.held.content() = (Ownership::read(&bytes), version);
        let error = take(&object).unwrap_err();
        assert!(matches!(error, RunsError::InUse { .. }), "{error}");

        // It falls silent.
        let held = first.held.clone();
        drop(first);
        let started = Instant::now();
        let mut told = Vec::new();
        let second = Lease::take(object.clone(), "run", &mut |words| told.push(words)).unwrap();
        assert!(started.elapsed() >= LEASE);
        assert_eq!(told.len(), 1, "{told:?}");
        // When it wakes up, the run is no longer its own.
        let error = held.change(&|_| {}).unwrap_err();
        assert!(matches!(error, RunsError::InUse { .. }), "{error}");
        second.change(&|_| {}).unwrap();
    }
}
