//! The arguments of `lockstep submit -- COMMAND`.

use super::key_value;
use super::remote::pairs;
use super::serve::{amount, resource, size};
use clap::{Args, ValueHint};
use lockstep_cluster::submit::CommandRequest;
use std::path::PathBuf;

/// A command that is to run elsewhere, and what it needs there.
#[derive(Debug, Args)]
pub(crate) struct CommandArgs {
    /// A command instead of a job file
    #[arg(
        last = true,
        index = 2,
        value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments,
        conflicts_with_all = ["path", "workers", "set", "epochs", "name", "engine", "binary", "resume", "fork"],
    )]
    pub(crate) command: Vec<String>,
    /// A folder that travels and that the command runs in; .gitignore and .rayignore say what of it does not
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, requires = "command")]
    pub(crate) working_dir: Option<PathBuf>,
    /// Something to be found again with the job; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = key_value, requires = "command")]
    pub(crate) metadata: Vec<String>,
    /// Processors that the command takes
    #[arg(long, value_name = "N", value_parser = amount, requires = "command")]
    pub(crate) cpus: Option<f64>,
    /// GPUs that the command takes
    #[arg(long, value_name = "N", value_parser = amount, requires = "command")]
    pub(crate) gpus: Option<f64>,
    /// Memory that the command takes, such as 4GiB
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "command")]
    pub(crate) memory: Option<u64>,
    /// Something else that is counted there; may be repeated
    #[arg(long = "resource", value_name = "NAME=N", value_parser = resource, requires = "command")]
    pub(crate) resources: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

impl CommandArgs {
    /// The same for the crate that submits it.
    pub(crate) fn request(&self) -> CommandRequest {
        CommandRequest {
            command: self.command.clone(),
            working_dir: self.working_dir.clone(),
            metadata: pairs(&self.metadata),
            cpus: self.cpus,
            gpus: self.gpus,
            memory: self.memory,
            resources: self.resources.iter().cloned().collect(),
        }
    }
}

/// A job's place in the queue of `lockstep serve`, which a Ray head has no words for.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Jobs of a higher priority begin first; by default 0
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i64>,
    /// A job that must have succeeded before; may be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) after: Vec<String>,
    /// How often it is tried again after an exit code that asks for it
    #[arg(long, value_name = "N")]
    pub(crate) retries: Option<u32>,
    /// An exit code that asks for another attempt, by default 75; may be repeated
    #[arg(long = "retry-code", value_name = "CODE")]
    pub(crate) retry_codes: Vec<i32>,
}

impl PlaceArgs {
    /// What is given of it, as the server reads it from a job's metadata.
    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        let list = |words: Vec<String>| (!words.is_empty()).then(|| words.join(","));
        let codes = self.retry_codes.iter().map(i32::to_string).collect();
        let pairs = [
            ("lockstep.priority", self.priority.map(|n| n.to_string())),
            ("lockstep.after", list(self.after.clone())),
            ("lockstep.retries", self.retries.map(|n| n.to_string())),
            ("lockstep.retry_codes", list(codes)),
        ];
        let given = pairs.into_iter();
        given
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}
