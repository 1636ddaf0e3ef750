//! A trained model with what it is to look at, open and checked.

use super::{InferError, InferRequest, NamedSamples, infer, samples};
use crate::embed::{EmbedRequest, embed};
use crate::tasks::CrewSettings;
use crate::{EngineError, StopFlag};
use lockstep_base::fs::CacheDir;
use lockstep_base::known_encoders::EncoderRef;
use lockstep_cuda::DeviceChoice;
use lockstep_data::{DataError, Dataset, KeptColumn, SkippedFile, Source};
use lockstep_events::event::Event;
use lockstep_job::{Data, DataRef, Job, JobDevice, JobPrecision, Location};
use lockstep_launch::Launcher;
use lockstep_learner::{Learners, ModelDevice};
use lockstep_model::{Block, Outputs, PictureFiles, class_name, open_test, test_source};
use lockstep_place::Access;
use lockstep_resolve::{
    PictureInput, Precision, ResolveError, TestSource, access, device, precision,
};
use lockstep_runs::RunDir;

/// What starts so many workers of a job.
pub type OpenLauncher<'a> =
    &'a dyn Fn(&Job, usize, &CacheDir) -> Result<Box<dyn Launcher>, EngineError>;

/// A model, and what it is to look at.
pub struct OpenRequest<'a> {
    /// The run whose model it is.
    pub run: RunDir,
    /// One set, or several. At least one.
    pub samples: &'a [NamedSamples],
    /// `KEY=VALUE` of the command line: changes to the run's job.
    pub set: &'a [String],
    /// Worker processes, if not as many as the run's job has.
    pub workers: Option<usize>,
    /// What the model and the encoder are computed on, if not what the run's job says.
    pub device: Option<JobDevice>,
    /// How precisely the model is computed, if not as it was trained.
    pub precision: Option<JobPrecision>,
    /// Whether workers run on a cluster, which keeps for them what the run's job asks for.
    pub is_on_cluster: bool,
    /// The learners that models are known to.
    pub learners: Learners,
    /// Resolves the test set of a job.
    pub test_source: fn(&Job) -> Result<TestSource, ResolveError>,
    /// What starts workers.
    pub launcher: OpenLauncher<'a>,
    /// Raised by whoever wants the work to end early.
    pub stop: StopFlag,
}

/// A trained model and what it is to look at.
pub struct Inference<'a> {
    /// The run whose model it is.
    pub run: RunDir,
    /// The run's job, whose test set is the first of the sets.
    pub job: Job,
    /// One set, or several that were named. At least one.
    pub samples: Vec<Samples>,
    /// What the model predicts.
    pub outputs: Outputs,
    /// How pictures become its samples, if that is known.
    pictures: Option<PictureInput>,
    access: Access,
    /// How precisely it is computed, if not as it was trained.
    precision: Option<Precision>,
    cache: CacheDir,
    launcher: OpenLauncher<'a>,
    crew: CrewSettings,
    stop: StopFlag,
}

/// A set that a model is to look at.
#[derive(Debug)]
pub struct Samples {
    /// The set.
    pub set: Dataset,
    /// What comes before the names of its samples.
    prefix: String,
    /// Of vectors, the folder of their pictures, with the `/` at its end, and which of these are meant, where not all
    /// of it are.
    pictures: Option<(String, Option<Vec<String>>)>,
    /// Where they come from.
    source: Source,
    /// Where that is decoded.
    cache: CacheDir,
}

impl Samples {
    /// Where a sample comes from, if the set says so.
    pub fn path(&self, row: usize) -> Option<String> {
        Some(format!("{}{}", self.prefix, self.name(row)?))
    }

    /// Some columns of the table that the samples are rows of, as they are.
    ///
    /// # Errors
    /// When they are no rows of a table, or it lacks one of the columns.
    pub fn keep_columns(&self, names: &[String]) -> Result<Vec<KeptColumn>, DataError> {
        self.source.keep_columns(names, &self.cache)
    }

    /// Whether what is right is known of any sample.
    pub fn is_labelled(&self) -> bool {
        let numbers = || self.set.numbers().iter().any(|number| !number.is_nan());
        let classes = || {
            let mut labels = self.set.labels().iter();
            labels.any(|&label| !class_name(&self.set, label as usize).is_empty())
        };
        self.set.is_labelled() && (numbers() || classes())
    }

    /// The name of a sample in its folder.
    fn name(&self, row: usize) -> Option<&str> {
        let name = self.set.sample_name(row)?;
        // The vectors of pictures have whole paths.
        let folder = self.pictures.as_ref().map_or("", |(folder, _)| folder);
        Some(name.strip_prefix(folder).unwrap_or(name))
    }

    /// The rows of the set in the order of the data, where the set has another: vectors of pictures lie in the order of
    /// their parts, and pictures come in the order of their paths, or in that in which they were named.
    pub fn order(&self) -> Option<Vec<usize>> {
        let (_, named) = self.pictures.as_ref()?;
        let mut rows: Vec<usize> = (0..self.set.len()).collect();
        rows.sort_by_key(|&row| self.name(row));
        let Some(named) = named else {
            return Some(rows);
        };
        let find = |name: &String| {
            let found = rows.binary_search_by_key(&Some(name.as_str()), |&row| self.name(row));
            found.ok().map(|at| rows[at])
        };
        Some(named.iter().filter_map(find).collect())
    }
}

impl<'a> Inference<'a> {
    /// Opens the model and the sets, whose pictures are embedded first if the run's were. What cannot be used is found
    /// here. Nothing after a stop: the same request then goes on where this was.
    ///
    /// # Errors
    /// When the model or a set cannot be used, or they do not fit each other.
    pub fn open(
        request: OpenRequest<'a>,
        events: &mut dyn FnMut(Event),
    ) -> Result<Option<Self>, InferError> {
        let OpenRequest { run, stop, .. } = request;
        let overrides = request.set.iter().map(|set| samples::here(set));
        let overrides: Vec<_> = overrides.collect::<Result<_, _>>()?;
        let file = run.job().local_copy()?;
        let load = |named: &NamedSamples| named.load(file.path(), &overrides);
        let mut jobs: Vec<Job> = request.samples.iter().map(load).collect::<Result<_, _>>()?;
        let has_test = |job: &Job| job.data.as_ref().is_some_and(Data::has_test);
        if !jobs.iter().all(has_test) {
            return Err(InferError::NoSamples { run: run.name });
        }
        let asks_gpu = matches!(request.device, Some(JobDevice::Cuda(_)));
        let asked = [
            ("--device", asks_gpu),
            ("--precision", request.precision.is_some()),
        ];
        if let Some((option, _)) = asked.into_iter().find(|(_, is_asked)| *is_asked)
            && jobs[0].device().is_none()
        {
            let run = run.name;
            return Err(InferError::NoNetwork { run, option });
        }
        if !request.is_on_cluster {
            jobs.iter_mut().for_each(|job| job.resources.gpus = 0.0);
        }
        for device in jobs.iter_mut().flat_map(Job::devices_mut) {
            *device = match (request.device, *device) {
                (Some(asked), _) => asked,
                // What was trained on a GPU can be asked where there is none.
                (None, JobDevice::Cuda(_)) => JobDevice::Auto,
                (None, own) => own,
            };
        }
        let cache = CacheDir::locate()?;
        let processor = ModelDevice::processor(1);
        let trained = request.learners.open_model(&run, processor)?;
        let outputs = trained.outputs();
        let workers = request.workers.unwrap_or(jobs[0].workers().max).max(1);
        let mut all = Vec::new();
        for (job, named) in jobs.iter_mut().zip(request.samples) {
            if !(named.is_own() && overrides.is_empty()) {
                own_vectors(job, named, &cache)?;
            }
            let mut test = (request.test_source)(job)?;
            if let Some(pictures) = trained.pictures() {
                as_trained(&mut test, pictures, &run.name)?;
            }
            if let Some(embedding) = &test.embedding {
                let done = embed(
                    EmbedRequest {
                        embedding,
                        access: &access(&job.storage)?,
                        samples: named.samples(),
                        crew: crew(job, workers),
                        launcher: &mut *(request.launcher)(job, workers, &cache)?,
                        stop: stop.clone(),
                    },
                    &mut |event| match event {
                        Event::Embedding(_) | Event::Warning { .. } => events(event),
                        _ => {}
                    },
                )?;
                if done.is_none() {
                    return Ok(None);
                }
            }
            let source = test_source(&test, outputs, trained.inputs(), named.samples());
            let mut preparing = |message: &str| {
                events(Event::Preparing {
                    message: message.to_owned(),
                });
            };
            let set = open_test(&source, outputs, &cache, &mut preparing)?;
            trained.check(&set)?;
            tell_of(&set, events);
            all.push(Samples {
                set,
                prefix: named.prefix(job),
                pictures: (test.embedding.as_ref())
                    .and_then(|embedding| embedding.sets.first())
                    .map(|set| (format!("{}/", set.folder), named.pictures.clone())),
                source,
                cache: cache.clone(),
            });
        }
        let job = jobs.swap_remove(0);
        Ok(Some(Self {
            outputs: outputs.clone(),
            pictures: trained.pictures().cloned(),
            access: access(&job.storage)?,
            precision: request.precision.map(precision),
            launcher: request.launcher,
            crew: crew(&job, workers),
            run,
            job,
            samples: all,
            cache,
            stop,
        }))
    }

    /// What its workers compute on. Says so if it is a GPU, or why it is none.
    fn device(&self, events: &mut dyn FnMut(Event)) -> DeviceChoice {
        // Only networks are computed on a GPU.
        let asked = self.job.device().map_or(DeviceChoice::Cpu, device);
        let decision = asked.decide(self.job.resources.gpus > 0.0);
        if let Some(gpu) = &decision.gpu {
            let message = format!("predicting on {gpu}");
            events(Event::Preparing { message });
        }
        if let Some(message) = decision.note {
            events(Event::Note { message });
        }
        decision.choice
    }

    /// The files that the vectors of its sets were made of, if they are vectors of pictures.
    pub fn picture_files(&self) -> Option<PictureFiles<'_>> {
        PictureFiles::of(self.pictures.as_ref(), &self.access)
    }

    /// Hands what the model says of a set to `each`, in the order of the set. False if that was not all,
    /// because of a stop.
    ///
    /// # Errors
    /// When workers cannot be started or fail too often, or `each` fails, which ends the work.
    pub fn go<E: From<EngineError>>(
        &self,
        samples: &Samples,
        probabilities: bool,
        events: &mut dyn FnMut(Event),
        each: &mut dyn FnMut(Block) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut launcher = (self.launcher)(&self.job, self.crew.workers, &self.cache)?;
        let request = InferRequest {
            run: &self.run,
            access: &self.access,
            source: &samples.source,
            threads: self.job.threads(),
            device: self.device(events),
            precision: self.precision,
            probabilities,
            crew: self.crew,
            stop: self.stop.clone(),
            launcher: &mut *launcher,
        };
        infer(request, &samples.set, events, each)
    }
}

/// So many workers, in all else as the job says.
fn crew(job: &Job, workers: usize) -> CrewSettings {
    CrewSettings {
        workers,
        ..CrewSettings::of(job)
    }
}

fn test_of(job: &Job) -> Option<&DataRef> {
    job.data.as_ref()?.test.as_ref()
}

/// Tells what is odd about a set that can be used.
fn tell_of(set: &Dataset, events: &mut dyn FnMut(Event)) {
    let name = set.name();
    for note in set.table().unseen_notes() {
        let message = format!("{name}: {note}");
        events(Event::Note { message });
    }
    if let Some(SkippedFile { path, reason }) = set.skipped().first() {
        let bad = set.skipped().len();
        let message = format!("{bad} unreadable in {name}, left out; first {path:?}: {reason}");
        events(Event::Warning { message });
    }
}

/// Has the pictures of `test` become samples as those did that the model of `run` learned from.
fn as_trained(test: &mut TestSource, trained: &PictureInput, run: &str) -> Result<(), InferError> {
    match (&mut test.source, &mut test.embedding, &trained.encoder) {
        (Source::Pictures(pictures), _, None) => {
            pictures.transform.clone_from(&trained.transform);
        }
        (_, Some(embedding), Some(encoder)) => {
            if let EncoderRef::Path(path) = &embedding.model
                && !path.exists()
            {
                return Err(InferError::NoEncoder {
                    run: run.to_owned(),
                    path: path.clone(),
                    sha256: encoder.sha256.clone(),
                });
            }
            embedding.model_sha256 = Some(encoder.sha256.clone());
            embedding.transform = Some(trained.transform.clone());
            embedding.normalise = Some(encoder.normalise);
        }
        _ => (),
    }
    Ok(())
}

/// Lets the vectors of pictures that are not the job's own test set go to the cache.
fn own_vectors(job: &mut Job, named: &NamedSamples, cache: &CacheDir) -> Result<(), InferError> {
    if let Some(DataRef::Pictures { folder }) = test_of(job) {
        // Some pictures of a folder have vectors of their own.
        let folder = match &named.pictures {
            Some(names) => folder.join(&names.join(":")),
            None => folder.clone(),
        };
        let Some(settings) = job.embed_mut() else {
            return Ok(());
        };
        let store = cache.folder("embedded")?.join(settings.name_for(&folder));
        settings.store = Location::new(store.to_string_lossy());
    }
    Ok(())
}
