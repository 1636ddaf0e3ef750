//! Jobs that are a user's own script, started as a gang.
//!
//! A job file whose `[train]` has a `command` describes no network. Its other sections mean what they mean to
//! every job.

use crate::field::{Field, Rule};
use crate::file::job_file;
use crate::keys::{Any, By, Each, FromField, NotEmpty, Table, keys, words};
use crate::resources::texts;
use crate::section::Section;
use crate::train::{MAX_SEED, MAX_WORKERS};
use crate::{
    Data, Job, JobGang, Kube, LearnerJob, Notify, Recover, Resources, Run, Storage, Track, Workers,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// More than any disk holds of anything worth keeping.
const MAX_KEEP: usize = 1_000_000;

job_file! {
    /// Which script to start, on how many workers, and where the result goes.
    ScriptFile "ScriptJob" of ScriptJob in Script given (workers: Option<Field<'_>>) {
        /// What the script may ask to be handed: `get_dataset_shard("train")`.
        data = optional => Table(|section: &mut Section<'_>| Data::read_keys(section, false));
        own {
            /// The script, and how many of it there are.
            train: ScriptTraining = need("add a [train] section with a `command`")
                => Any, |field, ()| ScriptTraining::read(field.section()?, workers);
        }
        /// How many of the checkpoints that the script reports stay.
        checkpoint: ScriptCheckpoint;
        gang = " How the workers talk to the coordinator.";
    }
}

keys! {
    /// A script that is started as a gang.
    pub struct ScriptTraining {
        /// What kind of training it is. `command` says it already.
        kind: ScriptKind = default(ScriptKind::Script) => Any;
        /// The program and its arguments, started once for each worker in the job file's folder.
        command: Vec<String> = need("add `command = [\"python3\", \"train.py\"]`")
            => NotEmpty(Any, "such as [\"python3\", \"train.py\"]");
        /// Files and folders that the script needs beside those that its command names, such as modules that it imports.
        /// `lockstep submit` brings those that are relative paths along.
        files: Vec<PathBuf> = default(Vec::new()) => Each(Any);
        /// How many of it are started. With `{ min = 2, max = 8 }` the run begins with two, and begins again from its
        /// newest checkpoint when others come or some leave.
        workers: Workers = default(Workers::exactly(1)) => Any;
        /// Where the order of samples that the script is handed comes from.
        seed: u64 = default(0) => 0..=MAX_SEED;
        /// Samples in a batch that the script is handed, if it does not say so itself.
        batch: usize = default(32) => 1..=MAX_KEEP;
        /// Variables in the script's environment.
        env: BTreeMap<String, String> = default(BTreeMap::new()) => By(texts);
        /// Seconds that the script may take to end after it was asked to (SIGTERM).
        stop_s: f64 = default(30.0) => Rule::SECONDS;
        /// Seconds that a report with a checkpoint, a barrier or a broadcast waits for the other workers.
        report_timeout_s: f64 = default(300.0) => Rule::SECONDS;
        /// Seconds without any sign of work (no processor time, no report) after which the script is taken to hang.
        stall_s: f64 = default(600.0) => Rule::SECONDS;
    }
}

words! {
    /// The kind of training that a script is.
    pub enum ScriptKind {
        /// The user's own script.
        "script" Script
    }
}

keys! {
    /// How many of the checkpoints that a script reports stay, and which is the best.
    pub struct ScriptCheckpoint: all default {
        /// How many of the newest stay.
        keep: usize = default(3) => 1..=MAX_KEEP;
        /// The metric by which the best one is chosen. If left out, the newest is the best.
        best: Option<String> = optional => Any;
        /// Which value of that metric is the best.
        mode: BestMode = default(BestMode::Max) => Any;
    }
}

words! {
    /// Which value of a metric is the best.
    pub enum BestMode {
        /// The highest.
        "max" Max
        /// The lowest.
        "min" Min
    }
}

impl ScriptTraining {
    /// Reads the table; `workers` is what the command line says about them.
    fn read(mut section: Section<'_>, workers: Option<Field<'_>>) -> Option<Self> {
        let train = ScriptTraining::read_keys(&mut section);
        section.finish();
        let mut train = train?;
        if let Some(field) = workers {
            train.workers = Workers::from_field(&field)?;
        }
        Some(train)
    }

    /// A command on so many workers, with the defaults of everything else.
    fn of(command: Vec<String>, workers: usize) -> Self {
        Self {
            kind: ScriptKind::Script,
            command,
            files: Vec::new(),
            workers: Workers::exactly(workers.clamp(1, MAX_WORKERS)),
            seed: 0,
            batch: 32,
            env: BTreeMap::new(),
            stop_s: 30.0,
            report_timeout_s: 300.0,
            stall_s: 600.0,
        }
    }
}

impl ScriptFile {
    /// Reads the whole file; `workers` is what the command line says about them.
    pub(crate) fn read(mut root: Section<'_>, workers: Option<Field<'_>>) -> Option<Self> {
        let folder = root.folder();
        let file = ScriptFile::read_keys(&mut root, folder, workers);
        root.finish();
        file
    }
}

impl Job {
    /// A job without a job file: a command on so many workers, whose runs go to `runs` in `folder`.
    pub fn of_command(name: &str, folder: &Path, command: Vec<String>, workers: usize) -> Self {
        Self {
            name: name.to_owned(),
            data: None,
            run: Run::default_in(folder),
            gang: JobGang::default(),
            recover: Recover::default(),
            resources: Resources::default(),
            kube: Kube::default(),
            track: Track::default(),
            notify: Notify::default(),
            storage: Storage::default(),
            learner: LearnerJob::Script(Box::new(ScriptJob {
                train: ScriptTraining::of(command, workers),
                checkpoint: ScriptCheckpoint::default(),
            })),
        }
    }
}

impl ScriptJob {
    /// A name for the runs of a command: that of its script, as far as a name may have its letters.
    pub fn name_of(command: &[String]) -> String {
        let script = command.iter().find(|word| word.ends_with(".py"));
        let word = script.or(command.first()).map_or("script", String::as_str);
        let stem = PathBuf::from(word);
        let stem = stem.file_stem().unwrap_or_default().to_string_lossy();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = stem.chars().take(50).map(plain).collect();
        match name.trim_matches('-') {
            "" => "script".to_owned(),
            name => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Job, String> {
        let path = Path::new("/jobs/job.toml");
        Job::parse(path, text, &[], Some(3)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_makes_a_job_a_script() {
        let text = "name = 'x'\n[train]\ncommand = ['python3', 'train.py']\nworkers = 2\n";
        let job = load(text).unwrap();
        let LearnerJob::Script(script) = &job.learner else {
            panic!("not a script: {job:?}");
        };
        assert_eq!(script.train.command, ["python3", "train.py"]);
        assert_eq!(script.train.workers, Workers::exactly(3), "the flag wins");
        assert_eq!(job.run.store.as_str(), "/jobs/runs");
        assert_eq!(load(&job.to_toml()).unwrap(), job);
    }

    #[test]
    fn keys_of_networks_are_refused_in_a_script() {
        let said = load("name = 'x'\n[train]\ncommand = ['a']\nepochs = 3\n").unwrap_err();
        assert!(said.contains("epochs"), "{said}");
        let said = load("name = 'x'\n[train]\ncommand = []\n").unwrap_err();
        assert!(said.contains("command"), "{said}");
    }

    #[test]
    fn runs_are_named_after_the_script() {
        let name = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            ScriptJob::name_of(&words)
        };
        assert_eq!(
            name(&["python3", "-u", "my dir/train it.py", "--lr"]),
            "train-it"
        );
        assert_eq!(name(&["./go"]), "go");
        assert_eq!(name(&["ü"]), "script");
    }
}
