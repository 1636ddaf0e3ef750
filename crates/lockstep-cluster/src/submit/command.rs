//! Any command on its way to a head.

use super::{Packed, Prepared};
use crate::jobs::{Client, Package, RuntimeEnv, Submission, files_to_send};
use crate::{ClusterError, shell_line};
use lockstep_base::fs::random_letters;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most letters of a command's name in its job's id.
const NAME: usize = 40;

/// A command that is to run on a cluster, and what it needs there.
#[derive(Debug, Default)]
pub struct CommandRequest {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// A folder that travels and that the command runs in.
    pub working_dir: Option<PathBuf>,
    /// Something to be found again with the job.
    pub metadata: BTreeMap<String, String>,
    /// Processors that the command takes.
    pub cpus: Option<f64>,
    /// GPUs that it takes.
    pub gpus: Option<f64>,
    /// Bytes of memory that it takes.
    pub memory: Option<u64>,
    /// Anything else that is counted there.
    pub resources: BTreeMap<String, f64>,
}

impl CommandRequest {
    /// The files of the folder that travels, if one does.
    pub(super) fn package(&self) -> Result<Package, ClusterError> {
        match &self.working_dir {
            None => Ok(Package::new()),
            Some(folder) if !folder.is_dir() => Err(ClusterError::WorkingDir {
                path: folder.clone(),
            }),
            Some(folder) => Ok(Package::of(files_to_send(folder)?)),
        }
    }

    pub(super) fn prepare(
        &self,
        packed: Packed<'_>,
        client: &Client,
    ) -> Result<Prepared, ClusterError> {
        let request = packed.request;
        let mut metadata = self.metadata.clone();
        metadata.extend(request.place_in_queue(client)?.iter().cloned());
        let submission = Submission {
            entrypoint: shell_line(&self.command),
            submission_id: match &request.id {
                Some(id) => id.clone(),
                None => format!("{}-{}", name(&self.command), random_letters::<8>()?),
            },
            runtime_env: RuntimeEnv {
                working_dir: None,
                env_vars: request.variables.clone(),
            },
            metadata,
            entrypoint_num_cpus: self.cpus,
            entrypoint_num_gpus: self.gpus,
            entrypoint_memory: self.memory,
            entrypoint_resources: self.resources.clone(),
        };
        Ok(Prepared {
            warning: None,
            sent: None,
            package: self.working_dir.is_some().then_some(packed.package),
            submission,
        })
    }
}

/// What a job is called whose command this is.
fn name(command: &[String]) -> String {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    let program = program.map(|name| name.to_string_lossy().into_owned());
    let plain = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    let name: String = program
        .unwrap_or_default()
        .chars()
        .filter(plain)
        .take(NAME)
        .collect();
    match name.is_empty() {
        true => "job".to_owned(),
        false => name,
    }
}
