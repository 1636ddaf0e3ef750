//! MLflow as a sink of a run that goes on, and for runs that ended.

use super::model::Exporter;
use super::settings::MlflowSettings;
use super::sync::Sync;
use crate::{Begun, Sink, SinkError};
use lockstep_events::Recorded;
use lockstep_events::event::Event;
use lockstep_place::Access;
use lockstep_runs::RunDir;
use std::time::{Duration, Instant};

/// How often what was recorded is sent.
const EVERY: Duration = Duration::from_secs(5);
/// How long a server that was away is left alone: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Keeps a run in MLflow while it goes on.
pub struct Mlflow {
    settings: MlflowSettings,
    access: Access,
    exporter: Exporter,
    run: Option<RunDir>,
    sync: Option<Box<Sync>>,
    due: Instant,
    pause: Duration,
    /// How many epochs there will be.
    epochs: u32,
}

impl Mlflow {
    /// A sink for one run. `access` is how places are reached that MLflow keeps files in; `exporter` makes ONNX files.
    pub fn new(settings: MlflowSettings, access: Access, exporter: Exporter) -> Self {
        Self {
            settings,
            access,
            exporter,
            run: None,
            sync: None,
            due: Instant::now(),
            pause: FIRST_PAUSE,
            epochs: 0,
        }
    }

    /// Whether the last epoch begins. What came before it is sent while it is trained, so that the end has less to send.
    fn last_begins(&self, event: &Event) -> bool {
        matches!(event, Event::Epoch(done) if done.epoch.saturating_add(1) == self.epochs)
    }

    /// Does something with the run in MLflow. After a failure the server is left alone for a while.
    fn attempt(
        &mut self,
        what: impl FnOnce(&mut Sync) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        let done = self.sync().and_then(what);
        let pause = match &done {
            Ok(()) => {
                self.pause = FIRST_PAUSE;
                EVERY
            }
            Err(_) => {
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST_PAUSE);
                pause
            }
        };
        self.due = Instant::now() + pause;
        done.map_err(|error| self.explained(&error))
    }

    fn sync(&mut self) -> Result<&mut Sync, SinkError> {
        let sync = match self.sync.take() {
            Some(sync) => sync,
            None => {
                let run = self.run.clone();
                let run = run.ok_or_else(|| SinkError::Failed("there is no run".to_owned()))?;
                let (settings, access) = (self.settings.clone(), self.access.clone());
                Box::new(Sync::open(settings, access, self.exporter, run, true)?)
            }
        };
        Ok(self.sync.insert(sync))
    }

    fn explained(&self, error: &SinkError) -> SinkError {
        let run = self.run.as_ref();
        let place = run.map_or_else(String::new, |run| run.place().to_string());
        let (store, run) = place.rsplit_once('/').unwrap_or((".", &place));
        SinkError::Failed(format!(
            "{error}; what is missing is sent as soon as it can be, and after the run by \
             `lockstep runs push {run} --store {store} --mlflow {}`",
            self.settings.server
        ))
    }
}

impl Sink for Mlflow {
    fn name(&self) -> &str {
        "MLflow"
    }

    fn begin(&mut self, begun: &Begun) -> Result<(), SinkError> {
        self.run = Some(begun.run.clone());
        self.epochs = begun.started.epochs;
        self.attempt(Sync::advance)
    }

    fn event(&mut self, event: &Recorded) -> Result<(), SinkError> {
        match Instant::now() < self.due && !self.last_begins(&event.event) {
            true => Ok(()),
            false => self.attempt(Sync::advance),
        }
    }

    fn finish(&mut self, _deadline: Instant) -> Result<(), SinkError> {
        self.attempt(Sync::conclude)
    }
}

/// Brings MLflow up to date with a run that is not tracked now. Returns the id of MLflow's run.
///
/// # Errors
/// When the run's folder cannot be read, or the server is away or refuses something.
pub fn push(
    run: &RunDir,
    settings: MlflowSettings,
    access: Access,
    exporter: Exporter,
) -> Result<String, SinkError> {
    let mut sync = Sync::open(settings, access, exporter, run.clone(), false)?;
    sync.conclude()?;
    Ok(sync.run_id().to_owned())
}
