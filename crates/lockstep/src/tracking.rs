//! Who hears of a run beside its view, by what the job says.

use crate::command::StoppableView;
use crate::index_sink::IndexSink;
use lockstep_engine::{RunRequest, Stop, StopFlag, describe};
use lockstep_events::event::Event;
use lockstep_job::{Job, Occasion as JobOccasion, TensorBoard as JobTensorBoard};
use lockstep_learner::ForkFrom;
use lockstep_onnx::InputForm;
use lockstep_place::{Access, Place};
use lockstep_runs::RunDir;
use lockstep_track::mlflow::{Mlflow, MlflowSettings};
use lockstep_track::notify::{Notices, NotifySettings, Occasion};
use lockstep_track::tensorboard::{TensorBoard, TensorBoardSettings, WeightsOf};
use lockstep_track::{Sink, Tracker};
use std::path::Path;
use std::time::Duration;

/// A run that is shown and tracked.
pub(crate) struct Tracked {
    tracker: Tracker,
    stop: StopFlag,
    wait: Duration,
    /// What is wrong with what shall track it.
    warnings: Vec<String>,
}

impl Tracked {
    /// Tracks what a request asks for.
    pub(crate) fn of(request: &RunRequest) -> Self {
        // What is wrong with it the engine says, before there is anything to track.
        let access = lockstep_resolve::access(&request.job.storage).unwrap_or_default();
        let mut warnings = Vec::new();
        let mut sinks = sinks(&request.job, &request.folder, &access, &mut warnings);
        if let Ok(store) = Place::parse(request.job.run.store.as_str(), &access) {
            let (cache, keys) = (request.cache.clone(), request.job.run.clone());
            sinks.push(Box::new(IndexSink::new(store, cache, keys)));
        }
        Self {
            tracker: Tracker::start(access, request.folder.clone(), sinks),
            stop: request.stop.clone(),
            wait: Duration::from_secs_f64(request.job.track.wait_s),
            warnings,
        }
    }

    /// Shows an event and tells it to whoever tracks the run. The result is shown last: after the trackers are done.
    pub(crate) fn show(&mut self, watched: &mut StoppableView, event: &Event) {
        self.tracker.hear(event);
        if matches!(event, Event::Result(_)) {
            let stop = self.stop.clone();
            self.tracker.finish(self.wait, &|| stop.get() == Stop::Now);
        }
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(self.tracker.warnings());
        for message in warnings {
            watched.show(&Event::Warning { message });
        }
        watched.show(event);
    }
}

/// Whoever shall hear of the run.
fn sinks(
    job: &Job,
    folder: &Path,
    access: &Access,
    warnings: &mut Vec<String>,
) -> Vec<Box<dyn Sink>> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    let track = &job.track;
    match MlflowSettings::of(track, &job.name, &|name| std::env::var(name).ok()) {
        Ok(None) => {}
        Ok(Some(settings)) => {
            sinks.push(Box::new(Mlflow::new(settings, access.clone(), export)));
        }
        Err(wrong) => warnings.push(format!("MLflow: {wrong}; the run is not tracked there")),
    }
    let folder_of_boards = match &track.tensorboard {
        JobTensorBoard::Switch(false) => None,
        JobTensorBoard::Switch(true) => Some(None),
        JobTensorBoard::Folder(folder) => Some(Some(folder.clone())),
    };
    if let Some(folder) = folder_of_boards {
        sinks.push(Box::new(TensorBoard::new(TensorBoardSettings {
            folder,
            system: track.system,
            histograms: track.histograms.then_some(weights_of as WeightsOf),
        })));
    }
    match notices(job, folder) {
        Ok(None) => {}
        Ok(Some(settings)) => sinks.push(Box::new(Notices::new(settings))),
        Err(wrong) => warnings.push(wrong),
    }
    sinks
}

/// Who is told of what happens, if anybody is.
fn notices(job: &Job, folder: &Path) -> Result<Option<NotifySettings>, String> {
    let notify = &job.notify;
    let webhook = match &notify.webhook {
        None => None,
        Some(hook) => Some(match hook.variable() {
            None => hook.secret().to_owned(),
            Some(name) => std::env::var(name).map_err(|_| {
                format!("notices: notify.webhook is to be in the variable {name}, which is not set")
            })?,
        }),
    };
    if webhook.is_none() && notify.command.is_empty() {
        return Ok(None);
    }
    let on = notify.on.iter().map(|occasion| match occasion {
        JobOccasion::Success => Occasion::Success,
        JobOccasion::Failure => Occasion::Failure,
        JobOccasion::Recovery => Occasion::Recovery,
    });
    Ok(Some(NotifySettings {
        job: job.name.clone(),
        folder: folder.to_owned(),
        shown: notify
            .webhook
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        webhook,
        command: notify.command.clone(),
        on: on.collect(),
        when: notify.when.clone(),
        timeout: Duration::from_secs_f64(notify.timeout_s),
    }))
}

/// Makes ONNX files of networks, for the module that loads them in Python.
pub(crate) fn export(run: &RunDir) -> Result<Vec<u8>, String> {
    let model = lockstep_onnx::of_run(run, InputForm::Columns);
    Ok(model.map_err(|error| describe(&error))?.to_bytes())
}

/// Writes the weights of a checkpoint as a file of named tensors.
fn weights_of(checkpoint: &Place, to: &Path) -> Result<(), String> {
    let to = Place::parse(&to.to_string_lossy(), &Access::default());
    let to = to.map_err(|error| error.to_string())?;
    let written = lockstep_train::export_weights(checkpoint, ForkFrom::Last, &to);
    written.map(drop).map_err(|error| describe(&error))
}
