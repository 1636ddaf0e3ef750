//! The job as the rest of the program sees it: checked, complete, plain data.
//!
//! A [`Job`] that came out of [`Job::load`] has passed every check that needs no data: all defaults
//! are filled in, `lanes` is fixed and paths are absolute. Its serde form is the job file's own
//! vocabulary, so what travels to workers as JSON, what `lockstep job show` prints and what a run's
//! folder keeps are the same words that the user wrote.

use crate::field::Field;
use crate::keys::{Any, Check, SchemaLimits, Table, keys};
use crate::section::Section;
use crate::{
    Data, Embed, JobCheckpoint, JobGang, JobModel, Kube, Notify, Recover, Resources, Run, Storage,
    Track, Train,
};
use serde_json::{Map, Value, json};
use std::path::Path;

keys! {
    /// What to train, on which data, how, and where the result goes.
    pub struct Job given (workers: Option<Field<'_>>, embeds: bool, folder: &Path) {
        /// Name of the job; each of its runs is named after it. Letters, digits, `-`, `_` and `.`.
        name: String = need("add `name = \"...\"`") => JobName;
        /// What to learn from.
        data: Data = need("add a [data] section with `train = \"...\"`")
            => Any, |field, ()| Table(|section: &mut Section<'_>| Data::read_keys(section, embeds)).read(field);
        /// Pictures become vectors before anything is trained on them.
        embed: Option<Embed> = optional => Table(Embed::read_keys);
        /// The network and the weights it begins with.
        model: JobModel = need("add a [model] section with a `kind` or `layers`")
            => Any, |field, ()| JobModel::read(field.section()?);
        /// How to train it.
        train: Train = need("add a [train] section with `epochs`, `batch` and `optimizer`")
            => Any, |field, ()| {
                let batch_norm = model.as_ref().is_some_and(|model| model.network.uses_batch_norm());
                Train::read(field.section()?, workers, batch_norm)
            };
        /// Where the run goes.
        run: Run = shown(Run::default(), Run::default_in(folder))
            => Any, |field, ()| Run::read(field.section()?);
        /// When the run's state is written.
        checkpoint: JobCheckpoint = default(JobCheckpoint::default()) => Table(JobCheckpoint::read_keys);
        /// How the workers talk to each other.
        gang: JobGang = default(JobGang::default()) => Table(JobGang::read_keys);
        /// What happens when a worker is lost.
        recover: Recover = default(Recover::default()) => Table(Recover::read_keys);
        /// What a worker needs of a cluster, and how workers are spread over it.
        #[serde(default)]
        resources: Resources = hidden(Resources::default()) => Table(Resources::read_keys);
        /// How the job's pods look on Kubernetes.
        #[serde(default)]
        kube: Kube = hidden(Kube::default()) => Table(Kube::read_keys);
        /// Who else keeps a record of the run: MLflow, TensorBoard.
        #[serde(default)]
        track: Track = hidden(Track::default()) => Table(Track::read_keys);
        /// Who is told when something happens that people wait for.
        #[serde(default)]
        notify: Notify = hidden(Notify::default()) => Table(Notify::read_keys);
        /// How places outside this machine are reached.
        #[serde(default)]
        storage: Storage = hidden(Storage::default()) => Table(Storage::read_keys);
    }
}

/// The longest name: a run adds its number to it, and file systems stop at 255 bytes.
const NAME_LIMIT: usize = 100;

impl Job {
    /// Whether `name` may be a job's name, which is also the beginning of folder names.
    pub fn is_valid_name(name: &str) -> bool {
        name.len() <= NAME_LIMIT
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    }

    /// Reads the whole job; `workers` is what the command line says about them.
    pub(crate) fn read(mut root: Section<'_>, workers: Option<Field<'_>>) -> Option<Job> {
        let (embeds, folder) = (root.has("embed"), root.folder());
        let job = Job::read_keys(&mut root, workers, embeds, folder);
        root.finish();
        job
    }
}

/// What names runs, and so begins the names of folders.
pub(crate) struct JobName;

impl SchemaLimits for JobName {
    fn describe(&self, schema: &mut Map<String, Value>) {
        let pattern = format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}$", NAME_LIMIT - 1);
        schema.insert("pattern".to_owned(), json!(pattern));
    }
}

impl Check<String> for JobName {
    fn read(&self, field: &Field<'_>) -> Option<String> {
        let name = field.text()?;
        if !Job::is_valid_name(name) {
            return field.reject(
                format!("cannot be {name:?}"),
                format!(
                    "use 1 to {NAME_LIMIT} of letters, digits, `-`, `_` and `.`; \
                     begin with a letter or digit"
                ),
            );
        }
        Some(name.to_owned())
    }
}
