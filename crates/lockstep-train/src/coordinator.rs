//! The coordinator's side of the learner of networks.

use crate::choice;
use crate::cuda;
use crate::learner::{self, LearnerPart};
use crate::prepare::{Prepared, check_start, plan, prepare, read_snapshot};
use crate::recover::recover_model;
use crate::sets::{DataFacts, FoundSets};
use crate::traffic::Traffic;
use crate::trained::Trained;
use crate::{TrainError, export_weights};
use lockstep_base::fs::{CacheDir, write_atomic};
use lockstep_cuda::DeviceDecision;
use lockstep_events::control::Assignment;
use lockstep_gang::tree;
use lockstep_learner::{
    Coordinator, EarlierRun, Fact, Forecast, Fork, ForkFrom, FoundData, Learner, LearnerError,
    LearnerFailure, LearnerNeeds, LearnerType, ModelDevice, PlannedMemory, ResumePoint, RunFacts,
    RunPlan, TrainedModel, VectorFacts,
};
use lockstep_nn::Precision;
use lockstep_nn::fixed16::Engine;
use lockstep_place::Place;
use lockstep_resolve::{EmbedPlan, PictureInput, ResolvedJob, TrainingSettings};
use lockstep_runs::{RunDir, RunsError};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What the learner is called in assignments.
const KIND: &str = "network";

/// The learner of networks.
#[derive(Debug)]
pub struct NetworkLearner;

impl LearnerType for NetworkLearner {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn open(&self, assignment: &Assignment) -> Result<Box<dyn Learner>, LearnerFailure> {
        learner::open(assignment)
    }

    fn needs(&self) -> LearnerNeeds {
        LearnerNeeds {
            program: None,
            opens_data: true,
        }
    }

    fn open_model(
        &self,
        run: &RunDir,
        on: ModelDevice,
    ) -> Result<Option<Box<dyn TrainedModel>>, LearnerError> {
        Ok(Some(Box::new(Trained::open(run, on)?)))
    }

    fn recover_model(&self, run: &RunDir) -> Result<Option<String>, LearnerError> {
        Ok(recover_model(run)?)
    }
}

/// Writes trained networks for other programs, which the trainer itself knows nothing of.
pub trait ModelExporter: Sync {
    /// Checks that a network of so many parameters can be written.
    ///
    /// # Errors
    /// When it is too large.
    fn check(&self, parameters: usize) -> Result<(), LearnerError>;

    /// Writes the network of a run into its folder.
    ///
    /// # Errors
    /// When it cannot be written.
    fn export(&self, run: &RunDir) -> Result<(), LearnerError>;
}

/// A job that trains a network.
pub struct NetworkCoordinator {
    job: ResolvedJob,
    exporter: &'static dyn ModelExporter,
}

impl NetworkCoordinator {
    /// Of what a job means. `exporter` is used where the job asks for its network to be written for other programs.
    pub fn new(job: ResolvedJob, exporter: &'static dyn ModelExporter) -> Self {
        Self { job, exporter }
    }
}

impl From<TrainError> for LearnerError {
    fn from(error: TrainError) -> Self {
        Self::of_job(error)
    }
}

impl Coordinator for NetworkCoordinator {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn embedding(&self) -> Option<&EmbedPlan> {
        self.job.embedding.as_ref()
    }

    fn forks(&self) -> Result<bool, LearnerError> {
        Ok(true)
    }

    fn prepare(
        self: Box<Self>,
        pictures: Option<PictureInput>,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn RunPlan>, LearnerError> {
        let Self { mut job, exporter } = *self;
        if pictures.is_some() {
            job.training.pictures = pictures;
        }
        let device = choice::decide(&mut job.training, job.asks_gpus);
        let (mut prepared, found) = prepare(&job, cache, progress)?;
        prepared.notes.extend(device.note.clone());
        let exporter = job.training.learner.onnx.then_some(exporter);
        if let Some(exporter) = exporter {
            exporter.check(prepared.parameters)?;
        }
        Ok(Box::new(NetworkRun {
            facts: RunFacts {
                copies: job.copies.then_some(prepared.copies),
                ..facts(&job.training, &prepared, &device, &found)
            },
            data: prepared.data,
            pretrained: None,
            job,
            found,
            exporter,
        }))
    }

    fn forecast(
        &self,
        vectors: Option<&VectorFacts>,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Forecast, LearnerError> {
        let mut job = self.job.clone();
        let device = choice::decide(&mut job.training, job.asks_gpus);
        let settings = &job.training;
        let prepared = match vectors {
            Some(vectors) => plan(settings, &DataFacts::of_vectors(settings, vectors))?,
            None => prepare(&job, cache, progress)?.0,
        };
        let mut notes = prepared.notes.clone();
        notes.extend(check_start(settings, &prepared.data)?.notes);
        notes.extend(device.note.clone());
        let mut forecast = forecast(settings, &prepared, &device, notes);
        if job.copies {
            let bytes = prepared.copies.bytes_touched();
            forecast.json["memory"]["copies_bytes"] = json!(bytes);
            let mut words = format!(
                "{} of the state in shared memory, where all workers are on one machine",
                megabytes(bytes)
            );
            if settings.workers > 1 {
                let held = prepared.copies.bytes_held(settings.workers);
                forecast.json["memory"]["copies_bytes_across"] = json!(held);
                words += &format!("; across machines {} in each worker", megabytes(held));
            }
            forecast.facts.push(("copies", Fact::Words(words)));
        }
        if device.gpu.is_some() {
            let (needed, set) = cuda::memory_needed(settings, &prepared.data)?;
            forecast.json["gpu_memory_bytes"] = json!(needed.total() + set);
            let words = format!(
                "{} in each worker: training set {}, {needed}",
                megabytes(needed.total() + set),
                megabytes(set)
            );
            forecast.facts.push(("GPU memory", Fact::Words(words)));
        }
        Ok(forecast)
    }
}

fn megabytes(bytes: usize) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn facts(
    settings: &TrainingSettings,
    prepared: &Prepared,
    device: &DeviceDecision,
    found: &FoundSets,
) -> RunFacts {
    let found = found.by_use();
    let memory = prepared.memory;
    RunFacts {
        train_samples: prepared.data.train,
        val_samples: prepared.data.val,
        test_samples: prepared.data.test,
        parameters: prepared.parameters,
        steps_per_epoch: prepared.steps_per_epoch,
        epochs: settings.learner.epochs,
        command: Vec::new(),
        metrics: {
            let own = settings.metrics.iter().map(|metric| metric.name.as_str());
            let all = prepared.metrics.iter().copied().chain(own);
            all.map(str::to_owned).collect()
        },
        notes: prepared.notes.clone(),
        sets: found
            .map(|(name, set)| FoundData::new(name, &set.name, &set.sha256))
            .collect(),
        plan: Some(prepared.plan.clone()),
        libraries: Vec::new(),
        threads: Some(prepared.threads.clone()),
        device: device.gpu.clone(),
        stall_s: None,
        memory: Some(PlannedMemory {
            per_worker: (memory.per_worker_bytes - memory.copies_bytes) as u64,
            first_worker: memory.copies_bytes as u64,
            shared: memory.shared_bytes as u64,
        }),
        copies: None,
    }
}

fn forecast(
    settings: &TrainingSettings,
    prepared: &Prepared,
    device: &DeviceDecision,
    notes: Vec<String>,
) -> Forecast {
    let (workers, lanes) = (settings.workers, settings.lanes);
    let lanes: Vec<usize> = (0..workers)
        .map(|rank| tree::lanes_of(rank, workers, lanes).len())
        .collect();
    let (memory, epochs) = (prepared.memory, settings.learner.epochs);
    let traffic = Traffic::of(&prepared.plan);
    let model_bytes = 4 * prepared.state_len;
    let json = json!({
        "event": "plan",
        "train_samples": prepared.data.train,
        "val_samples": prepared.data.val,
        "test_samples": prepared.data.test,
        "parameters": prepared.parameters,
        "model_bytes": model_bytes,
        "steps_per_epoch": prepared.steps_per_epoch,
        "epochs": epochs,
        "lanes_of_workers": lanes,
        "threads": prepared.threads,
        "memory": {
            "per_worker_bytes": memory.per_worker_bytes,
            "shared_bytes": memory.shared_bytes,
        },
        "bytes_sent": traffic.json(),
        "device": device.words(),
        "precision": settings.learner.precision.name(),
        "layers": prepared.layers,
        "notes": notes,
    });
    let samples = Fact::Samples {
        train: prepared.data.train,
        val: prepared.data.val,
        test: prepared.data.test,
    };
    let steps = Fact::Steps {
        per_epoch: prepared.steps_per_epoch,
        epochs,
    };
    let model = Fact::Model {
        parameters: prepared.parameters,
        bytes: model_bytes,
    };
    let memory = Fact::Memory {
        per_worker: memory.per_worker_bytes,
        shared: memory.shared_bytes,
    };
    let mut facts = vec![
        ("samples", samples),
        ("steps", steps),
        ("lanes", Fact::Lanes(lanes)),
        ("threads", Fact::Threads(prepared.threads.clone())),
        ("model", model),
        ("device", Fact::Words(device.words().to_owned())),
        ("precision", Fact::Words(precision_words(settings))),
        ("memory", memory),
    ];
    facts.extend(
        traffic
            .words()
            .map(|words| ("exchange", Fact::Words(words))),
    );
    Forecast {
        layers: prepared.layers.clone(),
        facts,
        notes,
        json,
    }
}

/// How products are computed, and by what on this machine.
fn precision_words(settings: &TrainingSettings) -> String {
    let precision = settings.learner.precision;
    match precision {
        // What a GPU computes with is its own matter.
        Precision::Fixed16 if !settings.gradients_only => {
            format!("{}, here by {}", precision.name(), Engine::current().name())
        }
        _ => precision.name().to_owned(),
    }
}

/// A run that trains a network.
struct NetworkRun {
    job: ResolvedJob,
    facts: RunFacts,
    data: DataFacts,
    found: FoundSets,
    /// SHA-256 of the file of weights to begin with.
    pretrained: Option<String>,
    /// Who writes the network for other programs, if the job asks for that.
    exporter: Option<&'static dyn ModelExporter>,
}

impl RunPlan for NetworkRun {
    fn facts(&self) -> &RunFacts {
        &self.facts
    }

    fn check_resume(&self, earlier: &EarlierRun<'_>) -> Result<ResumePoint, LearnerError> {
        let settings = &self.job.training;
        let snapshot = read_snapshot(settings, earlier.checkpoint, &self.found)
            .map_err(LearnerError::of_resume)?;
        let (step, epochs) = (snapshot.position.step, snapshot.position.epochs);
        if epochs == settings.learner.epochs && earlier.has_succeeded_with(epochs) {
            let reason = format!(
                "the run has trained {epochs} epochs already, and the job asks for {epochs}; ask for more"
            );
            let error = TrainError::resume(earlier.checkpoint, reason);
            return Err(LearnerError::of_resume(error));
        }
        let per_epoch = self.facts.steps_per_epoch;
        let inside = step.saturating_sub(u64::from(epochs) * per_epoch);
        let place = match inside {
            0 => format!("after epoch {epochs}"),
            _ => format!("at step {inside} of {per_epoch} in epoch {}", epochs + 1),
        };
        let name = &earlier.run.name;
        Ok(ResumePoint {
            step,
            epochs,
            history: snapshot.history,
            words: Some(format!("going on with {name} {place}, {step} steps done")),
        })
    }

    fn begin(&mut self) -> Result<Vec<String>, LearnerError> {
        let start = check_start(&self.job.training, &self.data)?;
        self.pretrained = start.pretrained;
        Ok(start.notes)
    }

    fn fork(
        &mut self,
        earlier: &EarlierRun<'_>,
        which: ForkFrom,
        run: &RunDir,
        cache: &CacheDir,
    ) -> Result<Option<Fork>, LearnerError> {
        let start = run.start();
        let best = export_weights(earlier.checkpoint, which, &start);
        let best = best.map_err(LearnerError::of_resume)?;
        let (name, step) = (&earlier.run.name, earlier.step);
        let words = match best {
            Some(epoch) => format!("beginning with the weights that {name} kept, of epoch {epoch}"),
            None => format!("beginning with the last weights of {name}, of step {step}"),
        };
        let weights = local_start(run, &start, cache)?;
        self.job.training.weights = Some(weights.clone());
        Ok(Some(Fork { weights, words }))
    }

    fn part(&self, _run: &str, workers: usize) -> Value {
        let mut settings = self.job.training.clone();
        settings.workers = workers;
        let part = LearnerPart {
            settings,
            sources: self.job.sets.clone(),
            access: self.job.access.clone(),
            pretrained: self.pretrained.clone(),
            found: self.found.clone(),
        };
        serde_json::to_value(part).expect("settings are plain data")
    }

    fn finish(&self, run: &RunDir) -> Result<(), LearnerError> {
        match self.exporter {
            Some(exporter) => exporter.export(run),
            None => Ok(()),
        }
    }
}

/// The file of this machine that the new run `run` begins with: weights to begin with are read from one.
fn local_start(run: &RunDir, weights: &Place, cache: &CacheDir) -> Result<PathBuf, TrainError> {
    match weights.local() {
        Some(path) => Ok(path.to_owned()),
        None => {
            let name = format!("{}.safetensors", run.name);
            let path = cache.folder("starts")?.join(name);
            let bytes = weights.read().map_err(RunsError::from)?;
            write_atomic(&path, &bytes)?;
            Ok(path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_job::Job;
    use lockstep_learner::conformance::{Subject, check};
    use std::fs;
    use std::path::Path;

    const JOB: &str = "name = 'x'\n[data]\ntrain = 'train.csv'\nval_split = 0.25\n\
         [model]\nkind = 'mlp'\nhidden = [3]\n\
         [train]\nepochs = 1\nbatch = 2\nworkers = 2\noptimizer = { kind = 'sgd' }\n";

    struct NoExporter;

    impl ModelExporter for NoExporter {
        fn check(&self, _parameters: usize) -> Result<(), LearnerError> {
            Ok(())
        }

        fn export(&self, _run: &RunDir) -> Result<(), LearnerError> {
            Ok(())
        }
    }

    #[test]
    fn networks_keep_the_promises_of_a_learner() {
        let folder = tempfile::tempdir().unwrap();
        // A worker looks for the cache in the environment, which is set before the process has threads.
        let mut child = lockstep_testkit::child!(in_a_process_of_its_own);
        lockstep_testkit::succeed(child.env("LOCKSTEP_CACHE", folder.path()));
    }

    #[test]
    #[ignore = "the test before starts it"]
    fn in_a_process_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let rows: String = (0..8).map(|i| format!("{i},{}\n", i % 2)).collect();
        fs::write(folder.path().join("train.csv"), format!("x,label\n{rows}")).unwrap();
        let make = || -> Box<dyn Coordinator> {
            let path = folder.path().join("job.toml");
            let job = Job::parse(&path, JOB, &[], None).unwrap();
            let network = job.network(Path::new("job.toml")).unwrap();
            let resolved = ResolvedJob::of(&job, network).unwrap();
            Box::new(NetworkCoordinator::new(resolved, &NoExporter))
        };
        check(&Subject {
            learner: &NetworkLearner,
            make: &make,
            folder: folder.path(),
            cache: &CacheDir::locate().unwrap(),
        });
    }
}
