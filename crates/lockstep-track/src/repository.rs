//! The version of the code around a job, told without running anything of the repository's.
//!
//! A folder from a stranger may hold a `.git` whose configuration names programs: filters, helpers that fetch what is
//! missing, viewers. `git` obeys it in almost every command. So `git` never gets to see it: it works in a private
//! repository that is made for the moment, whose configuration is empty, and of the stranger's it is given only the
//! objects, the index and the files. What is checked out is read here, from the few small files that say it.
//! `docs/decisions/0044-git-without-its-configuration.md` has the reasons.

mod folder;
mod secret_files;

use crate::bounded::{ProgramOutput, run_bounded};
use folder::{GitFolder, Head};
use lockstep_base::fs::{FsError, PrivateFolder, private_folder};
use lockstep_job::{masked, without_secrets};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long `git` may take, all in all.
const GIT_DEADLINE: Duration = Duration::from_secs(10);
/// How much of the uncommitted changes is kept.
const MOST_DIFF: usize = 1 << 20;
/// How much is read of what `git` says otherwise.
const MOST_ANSWER: usize = 10_000;
/// Keys of a repository's configuration that say how its files lie on the disk, and can say nothing else.
const PLAIN_KEYS: [&str; 3] = ["core.filemode", "core.symlinks", "core.autocrlf"];
/// What they may say.
const PLAIN_VALUES: [&str; 3] = ["true", "false", "input"];
/// The key that says where a repository was cloned from.
const REMOTE_KEY: &str = "remote.origin.url";

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
    /// Whether tracked files differ from the commit, or may. Then `uncommitted.diff` in the run's folder says how.
    pub uncommitted: bool,
}

/// The repository around a folder, and what is not committed in it, without secrets and up to a bound.
pub(crate) fn find(folder: &Path) -> Option<(Repository, Vec<u8>)> {
    let found = GitFolder::around(folder)?;
    let head = found.head()?;
    let asked = PrivateRepository::new(&found, &head).map(|git| {
        let settings = git.settings();
        let changes = git.changes(&settings);
        (settings.remote, changes)
    });
    let (remote, changes) = asked.unwrap_or_default();
    let changes = changes.unwrap_or_else(|| {
        b"What is not committed is unknown: git is not here, could not compare the files, or took too long.\n".to_vec()
    });
    let repository = Repository {
        commit: head.commit,
        branch: head.branch,
        remote: remote.map(|url| without_secrets(&url).into_owned()),
        uncommitted: !changes.is_empty(),
    };
    Some((repository, changes))
}

/// A repository of ours that borrows the objects, the index and the files of another.
struct PrivateRepository<'r> {
    private: PrivateFolder,
    found: &'r GitFolder,
    commit: &'r str,
    deadline: Instant,
}

/// What is taken from the configuration of the other.
#[derive(Debug, Default)]
struct Settings {
    /// Where it was cloned from.
    remote: Option<String>,
    /// How its files lie on the disk, each as `key=value`.
    plain: Vec<String>,
}

impl<'r> PrivateRepository<'r> {
    fn new(found: &'r GitFolder, head: &'r Head) -> Result<Self, FsError> {
        let private = private_folder()?;
        let write = |name: &str, text: &str| {
            let path = private.path().join(name);
            fs::write(&path, text).map_err(FsError::io("write", &path))
        };
        write("HEAD", &head.commit)?;
        write(
            "config",
            match head.is_sha256() {
                true => {
                    "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
                }
                false => "",
            },
        )?;
        let refs = private.path().join("refs");
        fs::create_dir(&refs).map_err(FsError::io("create", &refs))?;
        Ok(Self {
            private,
            found,
            commit: &head.commit,
            deadline: Instant::now() + GIT_DEADLINE,
        })
    }

    /// Has `git` do something, without any setting of the user's, of the machine's or of the environment's.
    fn ask(&self, options: &[String], words: &[&str], most: usize) -> Option<ProgramOutput> {
        let mut command = Command::new("git");
        let own = std::env::vars_os().map(|(name, _)| name);
        for name in own.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        for option in options {
            command.args(["-c", option]);
        }
        let found = self.found;
        command
            .arg("--no-pager")
            .args(words)
            .current_dir(&found.root)
            .env("GIT_DIR", self.private.path())
            .env("GIT_WORK_TREE", &found.root)
            .env("GIT_OBJECT_DIRECTORY", found.common.join("objects"))
            .env("GIT_INDEX_FILE", found.own.join("index"))
            // Configurations of the machine and of the user: with a filter of theirs, such as that of large files, what
            // the folder says about it would count again.
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("HOME", self.private.path())
            .env_remove("XDG_CONFIG_HOME")
            // Nothing is fetched, asked for or written.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0");
        let said = run_bounded(&mut command, Vec::new(), most, self.deadline).ok()?;
        said.status.success().then_some(said)
    }

    /// What is taken from the configuration: `git` reads it as a file like any other, and obeys nothing in it.
    fn settings(&self) -> Settings {
        let file = self.found.common.join("config");
        let file = file.to_string_lossy();
        let keys = PLAIN_KEYS.map(|key| key.replace('.', "\\."));
        let keys = format!("^({}|{})$", REMOTE_KEY.replace('.', "\\."), keys.join("|"));
        let words = ["config", "--file", &*file, "--no-includes", "-z"];
        let words = [&words[..], &["--get-regexp", &keys]].concat();
        let said = self.ask(&[], &words, MOST_ANSWER);
        let said = said.map(|said| said.output).unwrap_or_default();
        let mut settings = Settings::default();
        for line in String::from_utf8_lossy(&said).split('\0') {
            match line.split_once('\n') {
                Some((REMOTE_KEY, url)) if !url.is_empty() => {
                    settings.remote = Some(url.to_owned());
                }
                Some((key, value)) if PLAIN_VALUES.contains(&value) && key != REMOTE_KEY => {
                    settings.plain.push(format!("{key}={value}"));
                }
                _ => {}
            }
        }
        settings
    }

    /// What differs from the commit, without secrets; none if that cannot be told.
    fn changes(&self, settings: &Settings) -> Option<Vec<u8>> {
        let diff = |more: &[&str], only: Vec<String>, most| {
            // To look into a module would be to obey its configuration: only its commit is compared.
            let words = [
                "diff",
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                "--ignore-submodules=dirty",
            ];
            let only = only.iter().map(String::as_str);
            let words = words.into_iter().chain(more.iter().copied());
            let words = words.chain([self.commit, "--"]).chain(only);
            self.ask(&settings.plain, &words.collect::<Vec<_>>(), most)
        };
        let said = diff(&[], secret_files::all_others(), MOST_DIFF)?;
        let mut changes = masked(&String::from_utf8_lossy(&said.output)).into_bytes();
        if said.cut {
            changes.extend_from_slice(b"\n... and more, which is left out\n");
        }
        let left_out = diff(&["--name-only"], secret_files::all(), MOST_ANSWER)?;
        for name in String::from_utf8_lossy(&left_out.output).lines() {
            let words = format!("Left out, since it may hold secrets: {name}\n");
            changes.extend_from_slice(words.as_bytes());
        }
        Some(changes)
    }
}

#[cfg(test)]
mod tests;
