//! MLflow as a sink of a run that goes on, and for runs that ended.

use super::model::Exporter;
use super::settings::MlflowSettings;
use super::sync::Sync;
use crate::{Begun, Sink, SinkError};
use lockstep_events::Recorded;
use lockstep_events::event::Event;
use lockstep_place::Access;
use lockstep_runs::RunDir;
use std::thread;
use std::time::{Duration, Instant};

/// How often what was recorded is sent.
const EVERY: Duration = Duration::from_secs(5);
/// How long a server that was away is left alone: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The same at the end of the run, while it is waited for.
const LAST_PAUSE: Duration = Duration::from_millis(500);

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
    /// Whether the server shows the store that the run is written into; unknown until it has said so.
    is_at_home: Option<bool>,
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
            is_at_home: None,
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
        let done = match self.is_at_home() {
            Ok(true) => return Ok(()),
            Ok(false) => self.sync().and_then(what),
            Err(error) => Err(error),
        };
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
        done
    }

    /// Whether the server has the run without our help. Asked until it answers, and told once.
    fn is_at_home(&mut self) -> Result<bool, SinkError> {
        if let Some(known) = self.is_at_home {
            return Ok(known);
        }
        let found = self.sync()?.is_at_home()?;
        self.is_at_home = Some(found);
        match found {
            true => Err(at_home(&self.settings.server)),
            false => Ok(false),
        }
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

    /// The command that sends what is missing.
    fn command(&self) -> String {
        let run = self.run.as_ref();
        let place = run.map_or_else(String::new, |run| run.place().to_string());
        push_command(&place, &self.settings.server)
    }

    fn explained(&self, error: SinkError) -> SinkError {
        if self.is_at_home == Some(true) {
            return error;
        }
        SinkError::Failed(format!(
            "{error}; what is missing is sent as soon as it can be, and after the run by `{}`",
            self.command()
        ))
    }

    /// What was not sent when nobody waits any longer.
    fn unsent(&self, error: &SinkError) -> SinkError {
        let missing = self.sync.as_ref().and_then(|sync| sync.unsent().ok());
        let missing = match missing {
            None => "not all was sent".to_owned(),
            Some((0, 0)) => {
                "all events and files were sent, but not all that belongs to them".to_owned()
            }
            Some((events, files)) => format!("{events} events and {files} files were not sent"),
        };
        let command = self.command();
        SinkError::Failed(format!("{missing}: {error}; `{command}` sends them"))
    }
}

/// The run is where it would be sent.
fn at_home(server: &str) -> SinkError {
    SinkError::Failed(format!(
        "{server} shows the store that this run is written into, so it has the run already: it is not sent there"
    ))
}

fn push_command(place: &str, server: &str) -> String {
    let (store, run) = place.rsplit_once('/').unwrap_or((".", place));
    format!("lockstep runs push {run} --store {store} --mlflow {server}")
}

impl Sink for Mlflow {
    fn name(&self) -> &str {
        "MLflow"
    }

    fn begin(&mut self, begun: &Begun) -> Result<(), SinkError> {
        self.run = Some(begun.run.clone());
        self.epochs = begun.started.epochs;
        let done = self.attempt(Sync::advance);
        done.map_err(|error| self.explained(error))
    }

    fn event(&mut self, event: &Recorded) -> Result<(), SinkError> {
        if Instant::now() < self.due && !self.last_begins(&event.event) {
            return Ok(());
        }
        let done = self.attempt(Sync::advance);
        done.map_err(|error| self.explained(error))
    }

    fn finish(&mut self, deadline: Instant) -> Result<(), SinkError> {
        loop {
            match self.attempt(Sync::conclude) {
                Ok(()) => return Ok(()),
                // One that is away may come back in time.
                Err(SinkError::Away { .. }) if Instant::now() + LAST_PAUSE < deadline => {
                    thread::sleep(LAST_PAUSE);
                }
                Err(error) if self.is_at_home == Some(true) => return Err(error),
                Err(error) => return Err(self.unsent(&error)),
            }
        }
    }

    fn later(&self, begun: &Begun) -> Option<String> {
        let command = push_command(&begun.run.place().to_string(), &self.settings.server);
        Some(format!("`{command}` sends what is missing"))
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
    let server = settings.server.clone();
    let mut sync = Sync::open(settings, access, exporter, run.clone(), false)?;
    if sync.is_at_home()? {
        return Err(at_home(&server));
    }
    sync.conclude()?;
    Ok(sync.run_id().to_owned())
}
