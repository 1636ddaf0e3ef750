//! The job file as a whole: the keys that every job has, and between them those of its learner.
//!
//! Each learner declares its own keys with [`job_file!`], in its own file. Which learner a file is for is decided here, and
//! nowhere else.

use crate::field::Field;
use crate::network::NetworkFile;
use crate::script::ScriptFile;
use crate::section::Section;
use crate::trees::{TreesFile, TreesKind};
use crate::{Job, LearnerJob};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a job file describes: a network to train, a script to start as a gang, or trees to grow.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum JobFile {
    Network(Box<NetworkFile>),
    Script(Box<ScriptFile>),
    Trees(Box<TreesFile>),
}

impl JobFile {
    /// Reads the whole file; `workers` is what the command line says about them.
    pub(crate) fn read(mut root: Section<'_>, workers: Option<Field<'_>>) -> Option<Self> {
        Some(if is_script(&mut root) {
            Self::Script(Box::new(ScriptFile::read(root, workers)?))
        } else if grows_trees(&mut root) {
            Self::Trees(Box::new(TreesFile::read(root, workers)?))
        } else {
            Self::Network(Box::new(NetworkFile::read(root, workers)?))
        })
    }

    /// The file that says the same as `job`.
    pub(crate) fn of(job: &Job) -> Self {
        match &job.learner {
            LearnerJob::Network(own) => Self::Network(Box::new(NetworkFile::of(job, own))),
            LearnerJob::Script(own) => Self::Script(Box::new(ScriptFile::of(job, own))),
            LearnerJob::Trees(own) => Self::Trees(Box::new(TreesFile::of(job, own))),
        }
    }
}

impl From<JobFile> for Job {
    fn from(file: JobFile) -> Self {
        match file {
            JobFile::Network(file) => file.into_job(),
            JobFile::Script(file) => file.into_job(),
            JobFile::Trees(file) => file.into_job(),
        }
    }
}

/// Whether a job file describes a script: its `[train]` has a `command`, or says so.
fn is_script(root: &mut Section<'_>) -> bool {
    let train = root.get("train").filter(Field::is_table);
    let Some(mut train) = train.and_then(|train| train.section()) else {
        return false;
    };
    train.has("command") || train.get("kind").is_some_and(|kind| kind.says("script"))
}

/// Whether a job file describes trees: its `[model]` says so.
fn grows_trees(root: &mut Section<'_>) -> bool {
    let model = root.get("model").filter(Field::is_table);
    let kind = model.and_then(|model| model.section()?.get("kind"));
    kind.is_some_and(|kind| kind.says(TreesKind::Xgboost.word()))
}

/// Declares what a learner adds to a job, and the job file that has it: the name of the file's table and of its schema,
/// the struct of what is the learner's own, and how that is a [`LearnerJob`]. `data` is the entry of `[data]`, `gang` what
/// the schema says of `[gang]`; the learner's `own` keys stand before `[run]`, and its `[checkpoint]` after it.
macro_rules! job_file {
    (
        $(#[doc = $doc:literal])*
        $file:ident $schema:literal of $own:ident in $kind:ident given ($($given:ident : $given_type:ty),*) {
            $(#[doc = $data_doc:literal])*
            data = $data_mode:ident $(($data_left:expr))? => $data_check:expr $(, $data_and:expr)?;
            own { $(
                $(#[doc = $key_doc:literal])*
                $(#[serde($key_serde:ident)])?
                $key:ident : $type:ty = $mode:ident $(($($left:expr),+))? => $check:expr $(, $and:expr)?;
            )* }
            $(#[doc = $checkpoint_doc:literal])*
            checkpoint: $checkpoint:ty $(, $checkpoint_and:expr)?;
            gang = $gang_doc:literal;
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $own {
            $($(#[doc = $key_doc])* pub $key: $type,)*
            $(#[doc = $checkpoint_doc])*
            pub checkpoint: $checkpoint,
        }

        $crate::keys::keys! {
            $(#[doc = $doc])*
            pub(crate) struct $file named $schema given (folder: &std::path::Path $(, $given: $given_type)*) {
                /// Name of the job; each of its runs is named after it. Letters, digits, `-`, `_` and `.`.
                name: String = need("add `name = \"...\"`") => $crate::job::JobName;
                $(#[doc = $data_doc])*
                data: Option<$crate::Data> as $crate::Data = $data_mode $(($data_left))? => $data_check $(, $data_and)?;
                $(
                    $(#[doc = $key_doc])*
                    $(#[serde($key_serde)])?
                    $key: $type = $mode $(($($left),+))? => $check $(, $and)?;
                )*
                /// Where the run goes.
                run: $crate::Run = shown($crate::Run::default(), $crate::Run::default_in(folder))
                    => $crate::keys::Any, |field, ()| $crate::Run::read(field.section()?);
                $(#[doc = $checkpoint_doc])*
                checkpoint: $checkpoint = default(<$checkpoint>::default())
                    => $crate::keys::Table(<$checkpoint>::read_keys) $(, $checkpoint_and)?;
                #[doc = $gang_doc]
                gang: $crate::JobGang = default($crate::JobGang::default())
                    => $crate::keys::Table($crate::JobGang::read_keys);
                /// What happens when a worker is lost.
                recover: $crate::Recover = default($crate::Recover::default())
                    => $crate::keys::Table($crate::Recover::read_keys);
                /// What a worker needs of a cluster, and how workers are spread over it.
                #[serde(default)]
                resources: $crate::Resources = hidden($crate::Resources::default())
                    => $crate::keys::Table($crate::Resources::read_keys);
                /// How the job's pods look on Kubernetes.
                #[serde(default)]
                kube: $crate::Kube = hidden($crate::Kube::default()) => $crate::keys::Table($crate::Kube::read_keys);
                /// Who else keeps a record of the run: MLflow, TensorBoard.
                #[serde(default)]
                track: $crate::Track = hidden($crate::Track::default())
                    => $crate::keys::Table($crate::Track::read_keys);
                /// Who is told when something happens that people wait for.
                #[serde(default)]
                notify: $crate::Notify = hidden($crate::Notify::default())
                    => $crate::keys::Table($crate::Notify::read_keys);
                /// How places outside this machine are reached.
                #[serde(default)]
                storage: $crate::Storage = hidden($crate::Storage::default())
                    => $crate::keys::Table($crate::Storage::read_keys);
            }
        }

        $crate::file::job_file! {
            parts $file $own $kind
            common (name data run gang recover resources kube track notify storage)
            own ($($key)* checkpoint)
        }
    };
    (parts $file:ident $own:ident $kind:ident common ($($common:ident)*) own ($($key:ident)*)) => {
        impl $file {
            /// The job that the file describes.
            pub(crate) fn into_job(self) -> $crate::Job {
                $crate::Job {
                    $($common: self.$common,)*
                    learner: $crate::LearnerJob::$kind(Box::new($own { $($key: self.$key),* })),
                }
            }

            /// The file that says the same as a job and what is its learner's own.
            pub(crate) fn of(job: &$crate::Job, own: &$own) -> Self {
                Self {
                    $($common: job.$common.clone(),)*
                    $($key: own.$key.clone(),)*
                }
            }
        }
    };
}

pub(crate) use job_file;
