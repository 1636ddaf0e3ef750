//! Where a run comes from: the command, the machine, and the version of the code around the job.

use crate::repository::{self, Repository};
use lockstep_job::masked_words;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::thread;

/// Where a run comes from. In a run's folder it is `origin.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The command line, without secrets.
    pub command: Vec<String>,
    /// The job file's folder.
    pub folder: String,
    /// Who gave the command.
    pub user: String,
    /// The version of Lockstep.
    pub lockstep: String,
    /// The coordinator's machine.
    pub machine: Machine,
    /// The id of the job on a jobs server that gave the command, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<String>,
    /// The repository around the job's folder, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<Repository>,
}

/// A machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// Processors that may be used.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// What its processors are called.
    pub cpu: String,
    /// Its operating system.
    pub os: String,
}

impl Origin {
    /// Finds out about this process and `folder`. Also what is not committed there, up to a bound.
    pub(crate) fn find(folder: &Path) -> (Origin, Vec<u8>) {
        let (git, diff) = repository::find(folder).unzip();
        let origin = Origin {
            command: command_line(),
            folder: folder.to_string_lossy().into_owned(),
            user: user(),
            lockstep: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::this(),
            submitted: std::env::var("LOCKSTEP_JOB").ok(),
            git,
        };
        (origin, diff.unwrap_or_default())
    }
}

/// The words of this process's command line, without secrets.
pub fn command_line() -> Vec<String> {
    let words: Vec<String> = std::env::args().collect();
    masked_words(words.iter().map(String::as_str))
}

fn user() -> String {
    let named = ["USER", "LOGNAME"].map(std::env::var);
    let named = named.into_iter().flatten().find(|name| !name.is_empty());
    named.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string())
}

impl Machine {
    /// The machine that this runs on.
    pub fn this() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let memory = text("/proc/meminfo");
        let kilobytes = value_of(&memory, "MemTotal", ':').and_then(|kb| {
            let number = kb.split_whitespace().next()?;
            number.parse::<u64>().ok()
        });
        let cpu = text("/proc/cpuinfo");
        let cpu = ["model name", "Model", "CPU part"]
            .iter()
            .find_map(|key| value_of(&cpu, key, ':'));
        let release = text("/etc/os-release");
        let system = value_of(&release, "PRETTY_NAME", '=').unwrap_or(std::env::consts::OS);
        let uname = rustix::system::uname();
        Self {
            host: uname.nodename().to_string_lossy().into_owned(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kilobytes.unwrap_or(0) * 1024,
            cpu: cpu.unwrap_or(std::env::consts::ARCH).to_owned(),
            os: format!(
                "{} ({} {})",
                system.trim_matches('"'),
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
        }
    }
}

/// The value of the first line that begins with `key`.
fn value_of<'t>(text: &'t str, key: &str, separator: char) -> Option<&'t str> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_once(separator).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_says_what_it_is() {
        let (origin, _) = Origin::find(Path::new("/"));
        assert!(origin.machine.cores > 0 && !origin.machine.host.is_empty());
        assert!(!origin.user.is_empty() && !origin.command.is_empty());
        let text = serde_json::to_string(&origin).unwrap();
        assert_eq!(serde_json::from_str::<Origin>(&text).unwrap(), origin);
    }
}
