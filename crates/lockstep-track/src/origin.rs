//! Where a run comes from: the command, the machine, and the version of the code around the job.
//!
//! `git` is asked in the job's folder. What it is asked runs no hook and no filter of the repository's, and has a
//! deadline; a folder that is in no repository has no version.

use crate::bounded::run_bounded;
use lockstep_job::without_secrets;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How long `git` may take, all in all.
const GIT_DEADLINE: Duration = Duration::from_secs(10);
/// How much of the uncommitted changes is kept.
pub(crate) const MOST_DIFF: usize = 1 << 20;

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

/// The state of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repository {
    /// The commit that is checked out.
    pub commit: String,
    /// The branch, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where it was cloned from, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Whether tracked files differ from the commit. Then `uncommitted.diff` in the run's folder says how.
    pub uncommitted: bool,
}

impl Origin {
    /// Finds out about this process and `folder`. Also what is not committed there, up to a bound.
    pub(crate) fn find(folder: &Path) -> (Origin, Vec<u8>) {
        let (git, diff) = repository(folder).unzip();
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
    std::env::args().map(|word| masked(&word)).collect()
}

/// A word of the command line without secrets, also of one such as `--set key=URL`.
fn masked(word: &str) -> String {
    match word.split_once('=') {
        // All of such an address is a secret.
        Some((key, _)) if key.ends_with("webhook") => format!("{key}=..."),
        Some((key, value)) => format!("{key}={}", without_secrets(value)),
        None => without_secrets(word).into_owned(),
    }
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

/// The repository around a folder, and what is not committed in it.
fn repository(folder: &Path) -> Option<(Repository, Vec<u8>)> {
    let deadline = Instant::now() + GIT_DEADLINE;
    let ask = |words: &[&str], most: usize| {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(folder)
            .args([
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.hooksPath=/dev/null",
            ])
            .args(words)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0");
        let said = run_bounded(&mut command, Vec::new(), most, deadline).ok()?;
        said.status.success().then_some(said)
    };
    let line = |words: &[&str]| {
        let said = ask(words, 10_000)?;
        let text = String::from_utf8_lossy(&said.output).trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    let commit = line(&["rev-parse", "--verify", "HEAD"])?;
    let diff = [
        "diff",
        "HEAD",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
    ];
    let diff = ask(&diff, MOST_DIFF);
    let mut changes = Vec::new();
    if let Some(said) = diff {
        changes = said.output;
        if said.cut {
            changes.extend_from_slice(b"\n... and more, which is left out\n");
        }
    }
    let repository = Repository {
        commit,
        branch: line(&["symbolic-ref", "--short", "--quiet", "HEAD"]),
        remote: line(&["config", "--get", "remote.origin.url"])
            .map(|url| without_secrets(&url).into_owned()),
        uncommitted: !changes.is_empty(),
    };
    Some((repository, changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, words: &[&str]) {
        let done = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(words)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    #[test]
    fn the_commit_and_what_is_not_committed_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(Origin::find(path).0.git, None, "no repository");
        git(path, &["init", "--quiet", "--initial-branch=trunk"]);
        fs::write(path.join("job.toml"), "a\n").unwrap();
        git(path, &["add", "job.toml"]);
        git(path, &["commit", "--quiet", "-m", "x"]);
        git(
            path,
            &["remote", "add", "origin", "https://me:hunter2@host/x.git"],
        );
        let (origin, diff) = Origin::find(path);
        let found = origin.git.unwrap();
        assert_eq!((found.commit.len(), found.uncommitted), (40, false));
        assert_eq!(found.branch.as_deref(), Some("trunk"));
        assert_eq!(found.remote.as_deref(), Some("https://host/x.git"));
        assert!(diff.is_empty());
        fs::write(path.join("job.toml"), "b\n").unwrap();
        let (origin, diff) = Origin::find(path);
        assert!(origin.git.unwrap().uncommitted);
        assert!(String::from_utf8(diff).unwrap().contains("-a\n+b\n"));
    }

    #[test]
    fn this_machine_says_what_it_is() {
        let (origin, _) = Origin::find(Path::new("/"));
        assert!(origin.machine.cores > 0 && !origin.machine.host.is_empty());
        assert!(!origin.user.is_empty() && !origin.command.is_empty());
        let text = serde_json::to_string(&origin).unwrap();
        assert_eq!(serde_json::from_str::<Origin>(&text).unwrap(), origin);
    }

    #[test]
    fn a_secret_on_the_command_line_is_left_out() {
        assert_eq!(masked("--set=a"), "--set=a");
        assert_eq!(
            masked("track.mlflow=http://me:hunter2@host:5000"),
            "track.mlflow=http://host:5000"
        );
    }
}
