//! The files that a job names, and which of them travel with it.
//!
//! The rule is one sentence: what is written as a relative path travels, what is written as an absolute path or
//! as a URL is read where the job runs. So whoever has data on storage that the whole cluster sees names it as the
//! cluster does, and whoever has a folder with a job and its data submits it as it is.

use crate::ClusterError;
use crate::submit::JobSource;
use lockstep_base::known::labels_name;
use lockstep_job::{Job, LocalInput};
use std::path::Path;

/// What a job reads and writes that moves with its file.
pub(super) struct Moving {
    /// What it reads.
    pub(super) inputs: Vec<LocalInput>,
    /// Whether its runs go to a folder beside it.
    pub(super) store: bool,
}

/// What of a job moves with its file: all that it names by relative paths.
pub(super) fn moving(source: &JobSource) -> Result<Moving, ClusterError> {
    let (job, path) = (&source.job, &source.path);
    let elsewhere = Job::elsewhere(path, &source.overrides, source.workers)?;
    let pairs = job.local_inputs().into_iter().zip(elsewhere.local_inputs());
    let moved = pairs.filter(|(here, there)| here.path != there.path);
    let moved = moved.map(|(here, _)| here);
    let mut inputs = Vec::new();
    for input in moved.chain(of_command(source)?) {
        if !input.path.exists() {
            return Err(ClusterError::MissingInput {
                key: input.key,
                path: input.path,
            });
        }
        let beside = beside(&input);
        inputs.push(input);
        inputs.extend(beside);
    }
    Ok(Moving {
        inputs,
        store: job.run.store != elsewhere.run.store,
    })
}

/// The files that a script's command names.
fn of_command(source: &JobSource) -> Result<Vec<LocalInput>, ClusterError> {
    let file = std::path::absolute(&source.path).map_err(ClusterError::Folder)?;
    Ok(source
        .job
        .command_inputs(file.parent().unwrap_or(Path::new("/"))))
}

/// What belongs to it without being named.
fn beside(input: &LocalInput) -> Option<LocalInput> {
    let path = match input.key {
        // A file of weights may have its encoder's description beside it.
        "embed.model" if input.path.is_file() => Some(input.path.with_file_name("config.json")),
        "data.train" | "data.val" | "data.test" if input.path.is_file() => {
            let name = input.path.file_name().and_then(|name| name.to_str());
            let labels = name.and_then(labels_name);
            labels.map(|labels| input.path.with_file_name(labels))
        }
        _ => None,
    };
    let path = path.filter(|path| path.is_file());
    path.map(|path| LocalInput {
        key: input.key,
        path,
    })
}
