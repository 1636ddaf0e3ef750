//! A run that is trained again, and held against the record of the first.
//!
//! The same job comes to the same bits, on any number of workers. So a run can be asked for again, and every step
//! of it compared: by the marks that it left ([`Trace`](lockstep_events::Trace)), and in the end by the hash of its
//! weights. If they part, the first step and the tensors that differ are named; if the data are others, that is said
//! before anything is trained.

mod record;
mod verdict;

pub use record::RunRecord;
pub use verdict::{ChangedLibrary, ChangedSet, Verdict};

use crate::{Stop, StopFlag};
use lockstep_events::event::{Event, RunResult, Status};
use lockstep_place::PlaceError;
use lockstep_runs::{RunDir, RunsError};
use thiserror::Error;
use verdict::changed_libraries;

/// Why two runs cannot be compared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A run cannot be read.
    #[error(transparent)]
    Runs(#[from] RunsError),
    /// The events of a run cannot be read.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The marks of a run cannot be read.
    #[error("cannot read the run's trace")]
    Trace(#[source] RunsError),
    /// The first run left nothing to compare with.
    #[error(
        "{name} has left nothing to compare with: it ended before its first step, or an older version of lockstep \
         trained it"
    )]
    NothingLeft {
        /// The run.
        name: String,
    },
    /// The second run failed.
    #[error("{0}")]
    Failed(String),
}

/// A run that is trained again, beside the record of the first.
pub struct Replay<'a> {
    earlier: &'a RunRecord,
    stop: StopFlag,
    run: Option<RunDir>,
    libraries: Vec<ChangedLibrary>,
    verdict: Option<Verdict>,
}

impl<'a> Replay<'a> {
    /// Of a run that left `earlier`. What trains it again is stopped by `stop` where the two have parted.
    pub fn new(earlier: &'a RunRecord, stop: StopFlag) -> Self {
        Self {
            earlier,
            stop,
            run: None,
            libraries: Vec::new(),
            verdict: None,
        }
    }

    /// Compares what can be compared by now. Where the two have parted there is no need to go on.
    pub fn hear(&mut self, event: &Event) {
        let found = match event {
            Event::Started(started) => {
                self.run = record::opened(started);
                self.libraries = changed_libraries(&self.earlier.libraries, &started.libraries);
                Verdict::of_data(&self.earlier.data, &started.data)
            }
            Event::Epoch(_) => self.compare(),
            _ => None,
        };
        if let Some(verdict) = found {
            self.stop.raise(Stop::Now);
            self.verdict.get_or_insert(verdict);
        }
    }

    /// Where the two part, if that can be seen by now. What cannot be read now is read in the end.
    fn compare(&self) -> Option<Verdict> {
        let replayed = RunRecord::trace_of(self.run.as_ref()?).ok()?;
        let difference = self.earlier.trace.compare(&replayed).difference;
        difference.map(Verdict::Parted)
    }

    /// The libraries of others that are not those of the first run: why the two may part.
    pub fn libraries(&self) -> Vec<ChangedLibrary> {
        self.libraries.clone()
    }

    /// What was found while the run went on, which is why it was stopped.
    pub fn parted(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }

    /// What the comparison came to with the run's result. Nothing if it was interrupted.
    ///
    /// # Errors
    /// When the run failed, or cannot be read.
    pub fn conclude(self, result: RunResult) -> Result<Option<Verdict>, ReplayError> {
        let run = match (&self.run, result.status) {
            (_, Status::Failed) => {
                let why = result.error.unwrap_or_else(|| "the run failed".to_owned());
                return Err(ReplayError::Failed(why));
            }
            (Some(run), _) => run,
            (None, _) => return Ok(None),
        };
        if self.stop.get() != Stop::No {
            return Ok(None);
        }
        let replayed = RunRecord::read(run)?;
        Ok(Some(Verdict::of(self.earlier, &replayed)))
    }
}
