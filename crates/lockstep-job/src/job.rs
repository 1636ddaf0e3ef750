//! The job as the rest of the program sees it: checked, complete, plain data.
//!
//! A [`Job`] that came out of [`Job::load`] has passed every check that needs no data: all defaults
//! are filled in, `lanes` is fixed and paths are absolute. Its serde form is the job file's own
//! vocabulary, so what travels to workers as JSON, what `lockstep job show` prints and what a run's
//! folder keeps are the same words that the user wrote.

use crate::field::Field;
use crate::keys::{Check, Table};
use crate::section::Section;
use crate::{Checkpoint, Data, Embed, Gang, Model, Recover, Run, Storage, Train};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to train, on which data, how, and where the result goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Name of the job; each of its runs is named after it. Letters, digits, `-`, `_` and `.`.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"))]
    pub name: String,
    /// What to learn from.
    pub data: Data,
    /// Pictures become vectors before anything is trained on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embed: Option<Embed>,
    /// The network and the weights it begins with.
    pub model: Model,
    /// How to train it.
    pub train: Train,
    /// Where the run goes.
    #[serde(default)]
    pub run: Run,
    /// When the run's state is written.
    #[serde(default)]
    pub checkpoint: Checkpoint,
    /// How the workers talk to each other.
    #[serde(default)]
    pub gang: Gang,
    /// What happens when a worker is lost.
    #[serde(default)]
    pub recover: Recover,
    /// How places outside this machine are reached.
    #[serde(default, skip_serializing_if = "Storage::is_default")]
    pub storage: Storage,
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
        let name = root.need("name", "add `name = \"...\"`").and_then(|field| {
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
        });
        let data = root
            .need("data", "add a [data] section with `train = \"...\"`")
            .and_then(|field| Data::read(field.section()?, root.has("embed")));
        let embed = root.maybe("embed", |field| Table(Embed::read_keys).read(&field));
        let model = root
            .need("model", "add a [model] section with a `kind` or `layers`")
            .and_then(|field| Model::read(field.section()?));
        let uses_batch_norm = model
            .as_ref()
            .is_some_and(|model| model.network.uses_batch_norm());
        let train = root
            .need(
                "train",
                "add a [train] section with `epochs`, `batch` and `optimizer`",
            )
            .and_then(|field| Train::read(field.section()?, workers, uses_batch_norm));
        let run = root.or("run", Run::default_in(root.folder()), |field| {
            Run::read(field.section()?)
        });
        let checkpoint = root.or("checkpoint", Checkpoint::default(), |field| {
            Table(Checkpoint::read_keys).read(&field)
        });
        let gang = root.or("gang", Gang::default(), |field| {
            Table(Gang::read_keys).read(&field)
        });
        let recover = root.or("recover", Recover::default(), |field| {
            Table(Recover::read_keys).read(&field)
        });
        let storage = root.or("storage", Storage::default(), |field| {
            Table(Storage::read_keys).read(&field)
        });
        root.finish();
        Some(Job {
            name: name?,
            data: data?,
            embed: embed?,
            model: model?,
            train: train?,
            run: run?,
            checkpoint: checkpoint?,
            gang: gang?,
            recover: recover?,
            storage: storage?,
        })
    }
}
