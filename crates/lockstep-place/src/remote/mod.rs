//! Places in object stores and on web servers.
//!
//! One operation is a loop of attempts under one deadline ([`Patience`]). A read goes on where it was cut
//! as long as the object is the same; a list goes on after the last name where the store gives names in
//! order. When all is over, the last [`AttemptFailure`] is told in the words of a [`PlaceError`].

mod azure;
mod explain;
mod failure;
mod gcs;
mod list;
mod open;
mod patience;
mod read;
mod s3;
mod sts;
mod transport;
mod upload;
mod web;
mod write;

pub(crate) use upload::Upload;

use crate::{Access, FileEntry, PlaceError, Variables, name};
use failure::AttemptFailure;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use open::OpenedStore;
use patience::Patience;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The threads that wait for the network, for all places of the process.
const THREADS: usize = 2;

/// How often an operation that goes on counts as progress.
const COUNTED: Duration = Duration::from_millis(250);

/// A name within a store.
#[derive(Clone)]
pub(crate) struct Remote {
    store: Arc<Store>,
    path: Path,
}

/// A store, shared by all places that were joined from one.
struct Store {
    kind: StoreKind,
    opened: OpenedStore,
    access: Access,
    /// Whether the bucket has been seen: then a missing object is only that.
    bucket_seen: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreKind {
    S3,
    Azure,
    Gcs,
    Web,
}

impl Remote {
    /// Opens `scheme://rest`, which is shown as `place` in errors.
    pub(crate) fn open(
        scheme: &str,
        rest: &str,
        place: String,
        access: &Access,
        variables: &Variables,
    ) -> Result<Remote, PlaceError> {
        let (kind, opened) = match scheme {
            "s3" => (StoreKind::S3, s3::open(rest, access, variables)),
            "gs" => (StoreKind::Gcs, gcs::open(rest, access, variables)),
            "http" | "https" => (StoreKind::Web, web::open(scheme, rest, access)),
            _ => (
                StoreKind::Azure,
                azure::open(scheme, rest, access, variables),
            ),
        };
        let mut opened = opened.map_err(|why| PlaceError::Setting {
            place: place.clone(),
            why,
        })?;
        let key = std::mem::take(&mut opened.key);
        let wrong = |why: &str| PlaceError::Url {
            place: place.clone(),
            why: format!("the name in it is wrong: {why}"),
        };
        if !key.is_empty() {
            name::check(&key).map_err(wrong)?;
        }
        let path = Path::parse(&key).map_err(|_| wrong("the store does not take it"))?;
        let store = Store {
            kind,
            opened,
            access: access.clone(),
            bucket_seen: AtomicBool::new(false),
        };
        Ok(Remote {
            store: Arc::new(store),
            path,
        })
    }

    /// What lies below under `name`, which was checked.
    pub(crate) fn join(&self, name: &str) -> Result<Remote, PlaceError> {
        let joined = match self.path.as_ref() {
            "" => name.to_owned(),
            above => format!("{above}/{name}"),
        };
        let path = Path::parse(joined).map_err(|_| PlaceError::Name {
            place: self.to_string(),
            name: name.into(),
            why: "the store does not take it",
        })?;
        let store = self.store.clone();
        Ok(Remote { store, path })
    }

    /// The whole name, with the query that is not shown.
    pub(crate) fn address(&self) -> String {
        let OpenedStore { root, query, .. } = &self.store.opened;
        let path = match self.store.kind {
            StoreKind::Web => web::encoded(self.path.as_ref()),
            _ => self.path.as_ref().to_owned(),
        };
        let slash = if path.is_empty() { "" } else { "/" };
        let query = query.as_ref().map_or_else(String::new, |q| format!("?{q}"));
        format!("{root}{slash}{path}{query}")
    }

    /// How it is reached.
    pub(crate) fn access(&self) -> &Access {
        &self.store.access
    }

    /// What is known of the object.
    pub(crate) fn entry(&self) -> Result<Option<FileEntry>, PlaceError> {
        let head = self.repeat("look at", async || {
            Ok(self.objects().head(&self.path).await?)
        });
        match head {
            Ok(object) => {
                let name = object.location.filename().unwrap_or_default();
                Ok(Some(describe(name, &object)))
            }
            Err(PlaceError::NotFound { .. }) => {
                self.expect_bucket()?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The answer to a HEAD does not tell a missing bucket from a missing object: one list does.
    fn expect_bucket(&self) -> Result<(), PlaceError> {
        if self.store.kind == StoreKind::Web || self.store.bucket_seen.load(Ordering::Relaxed) {
            return Ok(());
        }
        let looked = self.repeat("look at", async || {
            match self.objects().list(Some(&self.path)).next().await {
                Some(Err(error)) => Err(error.into()),
                _ => Ok(()),
            }
        });
        match looked {
            Err(error @ PlaceError::NoBucket { .. }) => Err(error),
            // Who may not list still learns that the object is not there.
            _ => Ok(()),
        }
    }

    /// Removes the object.
    pub(crate) fn delete(&self) -> Result<(), PlaceError> {
        self.not_on_the_web("delete")?;
        let deleted = self.repeat("delete", async || {
            Ok(self.objects().delete(&self.path).await?)
        });
        match deleted {
            Err(PlaceError::NotFound { .. }) => Ok(()),
            // Azure's answer is one about many blobs, in which the library finds words only.
            Err(PlaceError::Other { .. }) if self.entry()?.is_none() => Ok(()),
            done => done,
        }
    }

    fn not_on_the_web(&self, doing: &'static str) -> Result<(), PlaceError> {
        let place = self.to_string();
        match self.store.kind {
            StoreKind::Web => Err(PlaceError::ReadOnly { doing, place }),
            _ => Ok(()),
        }
    }

    fn objects(&self) -> &dyn ObjectStore {
        &*self.store.opened.objects
    }

    /// Tries `once` until it succeeds or there is no hope.
    fn repeat<T>(
        &self,
        doing: &'static str,
        once: impl AsyncFn() -> Result<T, AttemptFailure>,
    ) -> Result<T, PlaceError> {
        self.block(doing, async {
            let mut patience = Patience::new(&self.store.access);
            loop {
                let failure = match patience.attempt(once()).await {
                    Ok(done) => return Ok(done),
                    Err(failure) => failure,
                };
                let paused = patience.pause(failure).await;
                paused.map_err(|failure| self.explain(doing, failure, &patience, String::new()))?;
            }
        })
    }

    /// Waits for `work` on the process's runtime.
    fn block<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, PlaceError>>,
    ) -> Result<T, PlaceError> {
        static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
        let runtime = RUNTIME.get_or_init(|| {
            Builder::new_multi_thread()
                .worker_threads(THREADS)
                .thread_name("lockstep-place")
                .enable_all()
                .build()
        });
        let done = match runtime {
            Ok(runtime) => runtime.block_on(counted(work)),
            Err(error) => Err(PlaceError::Other {
                doing,
                place: self.to_string(),
                cause: format!("no thread can be started to wait for the network: {error}"),
            }),
        };
        if done.is_ok() {
            self.store.bucket_seen.store(true, Ordering::Relaxed);
        }
        done
    }
}

/// Counts as progress while `work` goes on: it has a deadline of its own.
async fn counted<T>(work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        match tokio::time::timeout(COUNTED, &mut work).await {
            Ok(done) => return done,
            Err(_) => lockstep_base::progress::advance(),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpenedStore { root, query, .. } = &self.store.opened;
        let suffix = if query.is_some() { "?…" } else { "" };
        match self.path.as_ref() {
            "" => write!(f, "{root}{suffix}"),
            path => write!(f, "{root}/{path}{suffix}"),
        }
    }
}

fn describe(path: &str, object: &ObjectMeta) -> FileEntry {
    let changed = || {
        object
            .last_modified
            .timestamp_nanos_opt()
            .unwrap_or_default()
    };
    FileEntry {
        path: path.into(),
        size: object.size,
        version: match &object.e_tag {
            // Azure writes it with quotes in a header and without in a list.
            Some(tag) => tag.trim_matches('"').into(),
            None => changed().to_string(),
        },
        inode: String::new(),
    }
}
