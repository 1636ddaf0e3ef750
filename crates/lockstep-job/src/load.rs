//! From a file and the command line to a checked job.

use crate::field::{Field, Report};
use crate::file::JobFile;
use crate::keys::{Check, FromField, Table};
use crate::secrets::{LEFT_OUT, is_secret_name, was_masked};
use crate::section::Section;
use crate::source::{JobText, Spot};
use crate::tree::Node;
use crate::{Diagnostic, Job, JobError, Keep, LearnerJob, Override, Storage};
use lockstep_base::fs::file_kind;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The key that says how many carry the lanes, and never how many lanes there are.
const WORKERS: [&str; 2] = ["train", "workers"];

/// Tables of which the kind alone may be written, as a word.
const BY_WORD: [[&str; 2]; 2] = [["train", "optimizer"], ["train", "schedule"]];

/// A job file lies here in thought, to see which paths move with it.
const ELSEWHERE: &str = "/a folder that is not there/job.toml";

impl Job {
    /// Reads the job file at `path`, puts `overrides` over it in their order, and checks the whole.
    ///
    /// Relative paths are taken from the job file's folder, those of overrides too unless they name another
    /// ([`Override::parse_in`]). `workers` is the `--workers` flag. Neither it nor an override of `train.workers` changes the lanes: those
    /// default to the workers that the *file* asks for.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or anything in the job is not right. All mistakes that do not
    /// depend on each other are reported together.
    pub fn load(
        path: &Path,
        overrides: &[Override],
        workers: Option<usize>,
    ) -> Result<Self, JobError> {
        let text = decode(path, read(path)?)?;
        Self::parse(path, &text, overrides, workers)
    }

    /// The job as it would be if its file lay in another folder: all that it names by relative paths lies elsewhere.
    ///
    /// # Errors
    ///
    /// As [`Job::load`].
    pub fn elsewhere(
        path: &Path,
        overrides: &[Override],
        workers: Option<usize>,
    ) -> Result<Self, JobError> {
        let text = decode(path, read(path)?)?;
        Self::parse(Path::new(ELSEWHERE), &text, overrides, workers)
    }

    /// Checks that a job which a run has kept ([`Job::to_toml`]) lacks none of the secrets that it cannot be run without.
    ///
    /// # Errors
    ///
    /// If one was left out and not given again by an override.
    pub fn check_secrets(&self) -> Result<(), JobError> {
        let LearnerJob::Script(script) = &self.learner else {
            return Ok(());
        };
        let train = &script.train;
        if train.command.iter().any(|word| was_masked(word)) {
            return Err(JobError::LeftOut {
                key: "train.command".to_owned(),
                example: "[\"python3\", ...]",
            });
        }
        let mut variables = train.env.iter();
        let lacking = variables.find(|(name, value)| is_secret_name(name) && *value == LEFT_OUT);
        lacking.map_or(Ok(()), |(name, _)| {
            Err(JobError::LeftOut {
                key: format!("train.env.{name}"),
                example: "...",
            })
        })
    }

    /// [`Job::load`] for a text that is at hand; `path` is where it lies or would lie.
    ///
    /// # Errors
    ///
    /// As those of [`Job::load`].
    pub fn parse(
        path: &Path,
        text: &str,
        overrides: &[Override],
        workers: Option<usize>,
    ) -> Result<Self, JobError> {
        let folder = folder_of(path)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = Arc::new(JobText::File {
            path: path.into(),
            text: text.to_owned(),
        });
        let invalid = |diagnostic| JobError::Invalid(vec![diagnostic]);
        let mut root = Node::document(&source, text).map_err(invalid)?;
        expand_words(&mut root);

        let flag = workers.map(|n| Override::integer("--workers", &WORKERS.join("."), n as u64));
        let (carriers, overrides): (Vec<&Override>, Vec<&Override>) = overrides
            .iter()
            .chain(&flag)
            .partition(|change| change.sets(&WORKERS));
        for change in overrides {
            root.set(&change.path, change.node.clone())
                .map_err(invalid)?;
            // At once: a later change may set another key of the table.
            expand_words(&mut root);
        }

        let report = Report::new(path, &folder);
        let carriers = carriers
            .last()
            .map(|change| Field::new(&change.node, WORKERS.join("."), &report));
        let job = Field::new(&root, "", &report)
            .section()
            .and_then(|section| JobFile::read(section, carriers));
        match (job, report.into_found()) {
            (Some(job), found) if found.is_empty() => Ok(job.into()),
            (_, found) => Err(JobError::Invalid(found)),
        }
    }
}

/// Makes tables of the words that stand for them.
fn expand_words(root: &mut Node) {
    for path in BY_WORD {
        root.expand_kind(&path);
    }
}

/// What the command line says where there is no job file: the document that only `changes` are in, as `read` reads it.
fn of_command_line<'a, T>(
    changes: impl IntoIterator<Item = &'a Override>,
    read: impl FnOnce(Section<'_>) -> Option<T>,
) -> Result<T, JobError> {
    let path = Path::new("the command line");
    let source = Arc::new(JobText::File {
        path: path.into(),
        text: String::new(),
    });
    let invalid = |diagnostic| JobError::Invalid(vec![diagnostic]);
    let mut root = Node::document(&source, "").map_err(invalid)?;
    for change in changes {
        root.set(&change.path, change.node.clone())
            .map_err(invalid)?;
    }
    let report = Report::new(path, Path::new(""));
    let value = Field::new(&root, "", &report).section().and_then(read);
    match (value, report.into_found()) {
        (Some(value), found) if found.is_empty() => Ok(value),
        (_, found) => Err(JobError::Invalid(found)),
    }
}

impl Storage {
    /// What the command line says of `[storage]` where there is no job file. Other keys are passed over.
    ///
    /// # Errors
    ///
    /// If such a key is unknown, or its value is not right.
    pub fn of_overrides(overrides: &[Override]) -> Result<Storage, JobError> {
        let is_storage = |change: &&Override| {
            let first = change.path.first();
            first.is_some_and(|key| key.name == "storage")
        };
        of_command_line(
            overrides.iter().filter(is_storage),
            |mut section| match section.get("storage") {
                None => Some(Storage::default()),
                Some(field) => Table(Storage::read_keys).read(&field),
            },
        )
    }
}

impl Keep {
    /// Understands what the command line says in place of `run.keep`.
    ///
    /// # Errors
    ///
    /// If it is not a value of that key.
    pub fn parse(text: &str) -> Result<Keep, JobError> {
        let change: Override = format!("run.keep={text}").parse()?;
        of_command_line([&change], |mut section| {
            let run = section.get("run").and_then(|run| run.section());
            let keep = run.and_then(|mut run| run.get("keep"));
            keep.and_then(|keep| Keep::from_field(&keep))
        })
    }
}

/// The file's bytes. What it is comes first: merely opening a FIFO would wait for its writer.
fn read(path: &Path) -> Result<Vec<u8>, JobError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => JobError::Missing { path: path.into() },
        _ => JobError::Read {
            path: path.into(),
            source,
        },
    };
    let file_type = fs::metadata(path).map_err(failed)?.file_type();
    if !file_type.is_file() {
        return Err(JobError::NotAFile {
            path: path.into(),
            kind: file_kind(file_type),
        });
    }
    fs::read(path).map_err(failed)
}

/// The folder of the job file, absolute, and such that paths in it can be written down.
fn folder_of(path: &Path) -> Result<std::path::PathBuf, JobError> {
    let folder = std::path::absolute(path)
        .map_err(|source| JobError::Read {
            path: path.into(),
            source,
        })?
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default();
    if folder.to_str().is_none() {
        return Err(JobError::Folder { path: folder });
    }
    Ok(folder)
}

/// The file's text, or where it stops being one.
fn decode(path: &Path, bytes: Vec<u8>) -> Result<String, JobError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return JobError::Invalid(vec![Diagnostic::of_file(
                path,
                "the job file is UTF-16, not UTF-8",
                "save it as UTF-8",
            )]);
        }
        let source = Arc::new(JobText::File {
            path: path.into(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        });
        let what = format!(
            "the job file is not UTF-8: found the byte 0x{:02x}",
            bytes[at]
        );
        JobError::Invalid(vec![Diagnostic::at(
            &Spot::new(&source, at..at + 1),
            what,
            "save the file as UTF-8",
        )])
    })
}
