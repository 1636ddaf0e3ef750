//! What finds the news: a task each for jobs, runs and the machine. All of them rest while nobody listens.

use super::{Live, Topic};
use crate::Server;
use crate::view::folder_watch::Waiting;
use crate::view::jobs::Counts;
use crate::view::machine::Sample;
use crate::view::runs::Row;
use crate::view::{blocking, now};
use lockstep_index::Kind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Runs are read at most so often.
const RUNS: Duration = Duration::from_secs(1);
/// Jobs are told of at most so often.
const JOBS: Duration = Duration::from_millis(250);
/// The machine is looked at so often.
const MACHINE: Duration = Duration::from_secs(2);
/// A store that says nothing is looked at so often: while a run goes on, and else.
const SILENCES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(60));
/// A page that begins to follow a run is told again what was measured in the last seconds.
const OVERLAP: f64 = 10.0;

/// What was measured: step, time and value of each point.
#[derive(Debug, Serialize)]
struct Points {
    run: String,
    started: Option<f64>,
    series: BTreeMap<String, Vec<(u64, f64, f32)>>,
    system: BTreeMap<String, Vec<(u64, f64, f32)>>,
}

/// Nothing but that it happened.
#[derive(Debug, Serialize)]
struct Nothing {}

/// Begins to look for news.
pub(in crate::view) fn start(server: &Server) {
    tokio::spawn(jobs(server.clone()));
    tokio::spawn(runs(server.clone()));
    tokio::spawn(machine(server.clone()));
}

/// Waits until somebody wants to hear of something; whether the server goes on.
async fn until_wanted(live: &Live, wishes: &mut watch::Receiver<u64>, topic: &Topic) -> bool {
    while live.listeners(topic) == 0 {
        if wishes.changed().await.is_err() {
            return false;
        }
    }
    true
}

async fn jobs(server: Server) {
    let live = server.view().live.clone();
    let (mut wishes, mut changed) = (live.wishes.subscribe(), server.queue().changed());
    while until_wanted(&live, &mut wishes, &Topic::All).await {
        if changed.changed().await.is_err() {
            return;
        }
        let of = server.clone();
        let counts = blocking(move || Ok(Counts::of(&of.queue().list(), now())));
        if let Ok(counts) = counts.await {
            live.tell(Topic::All, "jobs", &counts);
        }
        sleep(JOBS).await;
    }
}

async fn machine(server: Server) {
    let live = server.view().live.clone();
    let mut wishes = live.wishes.subscribe();
    while until_wanted(&live, &mut wishes, &Topic::Machine).await {
        let of = server.clone();
        if let Ok(sample) = blocking(move || Ok(Sample::take(&of))).await {
            live.tell(Topic::Machine, "machine", &sample);
        }
        sleep(MACHINE).await;
    }
}

async fn runs(server: Server) {
    let live = server.view().live.clone();
    let mut wishes = live.wishes.subscribe();
    let mut waiting = Waiting::default();
    // Until when each run that is followed was told of.
    let mut told: BTreeMap<String, f64> = BTreeMap::new();
    while until_wanted(&live, &mut wishes, &Topic::All).await {
        let (of, mut until) = (server.clone(), std::mem::take(&mut told));
        let looked = blocking(move || {
            let going = look(&of, &mut until)?;
            Ok((going, until))
        });
        let silence = match looked.await {
            Ok((going, until)) => {
                told = until;
                if going { SILENCES.0 } else { SILENCES.1 }
            }
            Err(_) => SILENCES.1,
        };
        sleep(RUNS).await;
        let store = &server.view().store;
        let changed = async {
            match store.heard() {
                Some(heard) => waiting.on(heard, silence).await,
                None => sleep(silence).await,
            }
        };
        tokio::select! {
            () = changed => (),
            () = store.told.notified() => (),
            _ = wishes.changed() => (),
        }
    }
}

/// Tells what is new of runs; whether any goes on.
fn look(server: &Server, told: &mut BTreeMap<String, f64>) -> Result<bool, crate::Refusal> {
    let (store, live) = (&server.view().store, &server.view().live);
    let (news, going) = store.news()?;
    if news.list {
        live.tell(Topic::All, "runs", &Nothing {});
    }
    let now = now();
    told.retain(|run, _| live.listeners(&Topic::Points(run.clone())) > 0);
    for name in news.runs {
        let Some(details) = store.read(|index| index.details(&name))? else {
            continue;
        };
        let started = details.run.started;
        live.tell(Topic::All, "run", &Row::new(details.run, now));
        let topic = Topic::Points(name.clone());
        if live.listeners(&topic) == 0 {
            continue;
        }
        let since = told.get(&name).copied().unwrap_or(now - OVERLAP);
        let found = store.read(|index| index.newest(&name, since))?;
        let mut points = Points {
            run: name.clone(),
            started,
            series: BTreeMap::new(),
            system: BTreeMap::new(),
        };
        let mut newest = since;
        for one in found {
            let times = one.points.iter().map(|point| point.time);
            newest = times.fold(newest, f64::max);
            let new = one.points.iter();
            let new = new.map(|point| (point.step, point.time, point.value as f32));
            let of_kind = match one.kind {
                Kind::Metric => &mut points.series,
                Kind::System => &mut points.system,
            };
            of_kind.insert(one.name, new.collect());
        }
        told.insert(name, newest);
        if !(points.series.is_empty() && points.system.is_empty()) {
            live.tell(topic, "points", &points);
        }
    }
    Ok(going)
}
