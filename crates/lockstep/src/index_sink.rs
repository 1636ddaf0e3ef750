//! Keeps the index of the store up to date while a run goes on, and at its end does what the job says of its runs:
//! registers a version of a model, and removes runs that are not to stay.

use crate::command::keep_rules;
use crate::tracking::export;
use lockstep_base::fs::CacheDir;
use lockstep_events::Recorded;
use lockstep_events::event::{Event, Status};
use lockstep_index::{Index, keep};
use lockstep_job::Run as RunKeys;
use lockstep_place::Place;
use lockstep_runs::RunDir;
use lockstep_runs::registry::Registry;
use lockstep_track::mlflow::registered_files;
use lockstep_track::{Begun, Sink, SinkError};
use std::time::{Duration, Instant};

/// How often the index is brought up to date at most, before the end.
const EVERY: Duration = Duration::from_secs(5);

/// The store that a run lies in, as one who hears of it.
pub(crate) struct IndexSink {
    store: Place,
    cache: CacheDir,
    keys: RunKeys,
    run: Option<RunDir>,
    index: Option<Index>,
    refreshed: Option<Instant>,
    succeeded: bool,
}

impl IndexSink {
    /// Of runs in this store, and of a job that says this of them.
    pub(crate) fn new(store: Place, cache: CacheDir, keys: RunKeys) -> Self {
        Self {
            store,
            cache,
            keys,
            run: None,
            index: None,
            refreshed: None,
            succeeded: false,
        }
    }

    fn refresh(&mut self) -> anyhow::Result<()> {
        let Some(run) = self.run.clone() else {
            return Ok(());
        };
        self.refreshed = Some(Instant::now());
        let refreshed = self.index()?.refresh(&run);
        if refreshed.is_err() {
            // The next time from the start: it may have been damaged, and is then made again.
            self.index = None;
        }
        Ok(refreshed?)
    }

    fn index(&mut self) -> anyhow::Result<&mut Index> {
        if self.index.is_none() {
            let index = Index::open_shared(&self.store, Some(&self.cache))?;
            self.index = Some(index);
        }
        self.index
            .as_mut()
            .ok_or_else(|| anyhow::anyhow!("the index is not open"))
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let refreshed = self.refresh();
        let Some(run) = self.run.clone() else {
            return refreshed;
        };
        if let (true, Some(name)) = (self.succeeded, self.keys.register.clone()) {
            let details = self.index()?.details(&run.name)?;
            if let Some(details) = details {
                let lineage = details.lineage(&run)?;
                let for_mlflow = registered_files(&run, export)?;
                Registry::of(&self.store)?.register(&name, &run, lineage, "", for_mlflow)?;
            }
        }
        if let Some(rules) = self.keys.keep.as_ref().map(keep_rules) {
            let job = self.index()?.details(&run.name)?;
            let job = job.map(|details| details.run.job).unwrap_or_default();
            let (runs, now) = ((job.as_str(), run.name.as_str()), Recorded::clock());
            let waiting = &mut |message| eprintln!("{message}");
            keep::retain(self.index()?, &rules, runs, now, waiting)?;
        }
        refreshed
    }
}

impl Sink for IndexSink {
    fn name(&self) -> &str {
        "the index of runs"
    }

    fn begin(&mut self, begun: &Begun) -> Result<(), SinkError> {
        self.run = Some(begun.run.clone());
        self.refresh().map_err(failed)
    }

    fn event(&mut self, event: &Recorded) -> Result<(), SinkError> {
        let due = match &event.event {
            Event::Result(result) => {
                self.succeeded = result.status == Status::Succeeded;
                false
            }
            Event::Epoch(_) | Event::Reported(_) | Event::Progress(_) | Event::Restart(_) => true,
            _ => false,
        };
        if due && self.refreshed.is_none_or(|last| last.elapsed() > EVERY) {
            return self.refresh().map_err(failed);
        }
        Ok(())
    }

    fn finish(&mut self, _deadline: Instant) -> Result<(), SinkError> {
        self.end().map_err(failed)
    }
}

fn failed(error: anyhow::Error) -> SinkError {
    SinkError::Failed(lockstep_engine::describe(error.as_ref()))
}
