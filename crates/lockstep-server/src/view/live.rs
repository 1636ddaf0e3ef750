//! News for open pages, pushed as server-sent events.
//!
//! There is one reader for all pages: what it finds is written as an event once, and every connection that wants it sends
//! the same bytes. It reads only while somebody listens, when the system says that files have changed, and at most once a
//! second. So a hundred open pages cost a run hardly more than one, and none cost it nothing.
//!
//! | event | to whom | what |
//! |---|---|---|
//! | `jobs` | all | a job has changed; how many wait and run |
//! | `runs` | all | runs appeared, ended, went or were tagged |
//! | `run` | all | a run that goes on, as lists have it |
//! | `points` | pages of that run | what was measured since the last time |
//! | `machine` | pages that ask for it | what this machine does |
//! | `log` | pages of that job | what its log has gained |
//! | `behind` | a page that is too slow | it missed something and must ask again |

mod follow;
mod produce;

use super::blocking;
use super::jobs::no_job;
use crate::listen::{Connection, Lasting};
use crate::{Refusal, Server};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
pub(super) use follow::whole_letters;
use futures_util::stream;
use http::header;
pub(super) use produce::start;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// How many events a slow page may be behind.
const ROOM: usize = 256;
/// How many runs one page may follow.
const MOST_RUNS: usize = 20;
/// A connection on which nothing happens says so often that it is alive.
const ALIVE: Duration = Duration::from_secs(20);

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// What every page wants to know.
    All,
    Machine,
    Points(String),
    Log(String),
}

/// An event, as it is sent.
#[derive(Debug, Clone)]
struct News {
    topic: Topic,
    frame: Bytes,
}

/// Who listens, and what they are told.
#[derive(Debug)]
pub(super) struct Live {
    sender: broadcast::Sender<News>,
    wanted: Mutex<BTreeMap<Topic, usize>>,
    /// Changes when what is wanted does.
    wishes: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

impl Live {
    pub(super) fn new() -> Live {
        Live {
            sender: broadcast::Sender::new(ROOM),
            wanted: Mutex::default(),
            wishes: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        }
    }

    /// Ends all connections.
    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// How many want to hear of something.
    pub(super) fn listeners(&self, topic: &Topic) -> usize {
        self.wanted().get(topic).copied().unwrap_or(0)
    }

    /// Tells those who want to hear of it.
    fn tell<T: Serialize>(&self, topic: Topic, event: &str, what: &T) {
        let Ok(json) = serde_json::to_string(what) else {
            return;
        };
        let frame = format!("event: {event}\ndata: {json}\n\n").into();
        // Where nobody listens any more, nobody is told.
        let _ = self.sender.send(News { topic, frame });
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<Topic, usize>> {
        // Counts are changed in one step each, so they are right whatever happened.
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a page wants to hear of.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wishes {
    /// Runs whose points it draws, with commas between them.
    runs: String,
    /// A job whose log it shows.
    job: String,
    machine: bool,
}

/// A page that listens.
struct Listener {
    live: Arc<Live>,
    topics: Vec<Topic>,
    news: broadcast::Receiver<News>,
    ended: watch::Receiver<bool>,
    greeted: bool,
    /// Its connection counts as one that lasts.
    _lasting: Option<Lasting>,
}

impl Listener {
    fn new(live: &Arc<Live>, lasting: Option<Lasting>, topics: Vec<Topic>) -> Listener {
        let listener = Listener {
            live: live.clone(),
            news: live.sender.subscribe(),
            ended: live.ended.subscribe(),
            greeted: false,
            _lasting: lasting,
            topics,
        };
        for topic in &listener.topics {
            *live.wanted().entry(topic.clone()).or_default() += 1;
        }
        live.wishes.send_modify(|count| *count += 1);
        listener
    }

    /// What is sent next; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.greeted {
            self.greeted = true;
            return Some(Bytes::from_static(
                b"retry: 2000\nevent: hello\ndata: {}\n\n",
            ));
        }
        loop {
            tokio::select! {
                _ = self.ended.wait_for(|ended| *ended) => return None,
                () = tokio::time::sleep(ALIVE) => return Some(Bytes::from_static(b":\n\n")),
                news = self.news.recv() => match news {
                    Ok(news) if self.topics.contains(&news.topic) => return Some(news.frame),
                    Ok(_) => (),
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        return Some(Bytes::from_static(b"event: behind\ndata: {}\n\n"));
                    }
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut wanted = self.live.wanted();
        for topic in &self.topics {
            if let Some(count) = wanted.get_mut(topic) {
                *count -= 1;
                if *count == 0 {
                    wanted.remove(topic);
                }
            }
        }
        drop(wanted);
        self.live.wishes.send_modify(|count| *count += 1);
    }
}

pub(super) async fn listen(
    State(server): State<Server>,
    connection: Option<Extension<Connection>>,
    Query(wishes): Query<Wishes>,
) -> Result<Response, Refusal> {
    let live = &server.view().live;
    let lasting = connection.map(|Extension(held)| held.last()).transpose()?;
    let mut topics = vec![Topic::All];
    let runs = wishes.runs.split(',').filter(|name| !name.is_empty());
    topics.extend(runs.take(MOST_RUNS).map(|run| Topic::Points(run.into())));
    if wishes.machine {
        topics.push(Topic::Machine);
    }
    let mut log = None;
    if !wishes.job.is_empty() {
        let (of, job) = (server.clone(), wishes.job.clone());
        log = Some(blocking(move || of.queue().log(&job).map_err(|_| no_job(&job))).await?);
        topics.push(Topic::Log(wishes.job.clone()));
    }
    let first = live.listeners(&Topic::Log(wishes.job.clone())) == 0;
    let listener = Listener::new(live, lasting, topics);
    if let Some(log) = log.filter(|_| first) {
        follow::start(&server, wishes.job, log);
    }
    let events = stream::unfold(listener, async |mut listener| {
        let frame = listener.next().await?;
        Some((Ok::<Bytes, Infallible>(frame), listener))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}
