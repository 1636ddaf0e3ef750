//! The files that a job names, and which of them travel with it.
//!
//! The rule is one sentence: what is written as a relative path travels, what is written as an absolute path or
//! as a URL is read where the job runs. So whoever has data on storage that the whole cluster sees names it as the
//! cluster does, and whoever has a folder with a job and its data submits it as it is.

use crate::args::JobArgs;
use anyhow::Context;
use lockstep_job::{DataRef, Job, JobError, Location, Validation};
use std::path::{Path, PathBuf};

/// A job file lies here in thought, to see which paths move with it.
const ELSEWHERE: &str = "/a folder that is not there/job.toml";

/// A file or folder that a job reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    /// The key of the job file that names it.
    pub(super) key: &'static str,
    /// Where it is.
    pub(super) path: PathBuf,
}

/// What a job reads and writes that moves with its file.
pub(super) struct Moving {
    /// What it reads.
    pub(super) inputs: Vec<Input>,
    /// Whether its runs go to a folder beside it.
    pub(super) store: bool,
}

/// What of `job` moves with its file: all that it names by relative paths.
pub(super) fn moving(args: &JobArgs, job: &Job) -> anyhow::Result<Moving> {
    let text = std::fs::read_to_string(&args.path)
        .with_context(|| format!("cannot read {}", args.path.display()))?;
    let elsewhere = parse_elsewhere(args, &text)?;
    let pairs = inputs(job).into_iter().zip(inputs(&elsewhere));
    let moved = pairs.filter(|(here, there)| here.path != there.path);
    let mut found = Vec::new();
    for (input, _) in moved {
        input.check()?;
        let beside = input.beside();
        found.push(input);
        found.extend(beside);
    }
    Ok(Moving {
        inputs: found,
        store: job.run.store != elsewhere.run.store,
    })
}

fn parse_elsewhere(args: &JobArgs, text: &str) -> Result<Job, JobError> {
    Job::parse(Path::new(ELSEWHERE), text, &args.overrides()?, args.workers)
}

/// All files and folders of this machine that a job reads.
fn inputs(job: &Job) -> Vec<Input> {
    let mut found = Vec::new();
    let val = match &job.data.validation {
        Validation::Set(set) => Some(set),
        Validation::Split(_) => None,
    };
    let sets = [
        ("data.train", Some(&job.data.train)),
        ("data.val", val),
        ("data.test", job.data.test.as_ref()),
    ];
    for (key, set) in sets {
        let paths = set.map(local_paths).unwrap_or_default();
        found.extend(paths.into_iter().map(|path| Input { key, path }));
    }
    let weights = job.model.weights.clone();
    found.extend(weights.map(|path| Input {
        key: "model.weights",
        path,
    }));
    let encoder = job.embed.as_ref().map(|embed| embed.model.clone());
    found.extend(encoder.map(|path| Input {
        key: "embed.model",
        path,
    }));
    found
}

fn local_paths(set: &DataRef) -> Vec<PathBuf> {
    let local = |location: &Location| match location.is_url() {
        true => Vec::new(),
        false => vec![PathBuf::from(location.as_str())],
    };
    match set {
        DataRef::Known { .. } => Vec::new(),
        DataRef::Idx { images, labels } => [Some(images), labels.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect(),
        DataRef::CifarFolder { folder, .. } => vec![folder.clone()],
        DataRef::CifarFiles { files } => files.clone(),
        DataRef::Pictures { folder } => local(folder),
        DataRef::Parquet { files, .. } => local(files),
        DataRef::Csv { file, .. } => local(file),
    }
}

impl Input {
    fn check(&self) -> anyhow::Result<()> {
        if !self.path.exists() {
            anyhow::bail!(
                "{}: {} does not exist; a path that is there on the cluster alone must be absolute",
                self.key,
                self.path.display()
            );
        }
        Ok(())
    }

    /// What belongs to it without being named.
    fn beside(&self) -> Option<Input> {
        let path = match self.key {
            // A file of weights may have its encoder's description beside it.
            "embed.model" if self.path.is_file() => Some(self.path.with_file_name("config.json")),
            "data.train" | "data.val" | "data.test" if self.path.is_file() => {
                lockstep_data::labels_beside(&self.path).ok()
            }
            _ => None,
        };
        let path = path.filter(|path| path.is_file());
        path.map(|path| Input {
            key: self.key,
            path,
        })
    }
}
