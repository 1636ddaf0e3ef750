//! What a job reads: its sets by name, and the files and folders of this machine among its inputs.

use crate::{Data, DataRef, Job, LearnerJob, Location, Validation};
use lockstep_base::known_encoders::EncoderRef;
use std::path::{Component, Path, PathBuf};

/// A file or folder of this machine that a job reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalInput {
    /// The key of the job file that names it.
    pub key: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

impl Data {
    /// Whether models are tested: on a set of their own, or on a part of the one that is trained on.
    pub fn has_test(&self) -> bool {
        let is_fold = (self.split.as_ref()).is_some_and(|split| split.fold.is_some());
        self.test.is_some() || self.test_split > 0.0 || is_fold
    }

    /// The sets that it names, `train`, `val` and `test`, and what it says of each.
    pub fn sets(&self) -> impl Iterator<Item = (&'static str, &DataRef)> {
        let val = match &self.validation {
            Validation::Set(reference) => Some(reference),
            Validation::Split(_) => None,
        };
        let sets = [
            ("train", Some(&self.train)),
            ("val", val),
            ("test", self.test.as_ref()),
        ];
        let named = sets.into_iter();
        named.filter_map(|(name, reference)| Some((name, reference?)))
    }

    /// All files and folders of this machine among its sets.
    fn local_inputs(&self) -> Vec<LocalInput> {
        let mut found = Vec::new();
        for (name, reference) in self.sets() {
            let key = match name {
                "train" => "data.train",
                "val" => "data.val",
                _ => "data.test",
            };
            let paths = local_paths(reference).into_iter();
            found.extend(paths.map(|path| LocalInput { key, path }));
        }
        found
    }
}

impl Job {
    /// All files and folders of this machine that the job names by keys of their own. Those that lie beside them without
    /// being named are not among them, nor what a script reads by itself; which words of a command are files is known
    /// only where these lie ([`Self::command_inputs`]).
    pub fn local_inputs(&self) -> Vec<LocalInput> {
        let mut found = self.data.as_ref().map_or_else(Vec::new, Data::local_inputs);
        let mut add = |key, path: &Path| {
            let path = path.to_owned();
            found.push(LocalInput { key, path });
        };
        match &self.learner {
            LearnerJob::Network(network) => {
                let weights = network.model.weights.iter();
                weights.for_each(|path| add("model.weights", path));
                let encoder = network.embed.as_ref().map(|embed| &embed.model);
                if let Some(EncoderRef::Path(path)) = encoder {
                    add("embed.model", path);
                }
            }
            LearnerJob::Script(script) => {
                let files = script.train.files.iter();
                files.for_each(|path| add("train.files", path));
            }
            LearnerJob::Trees(_) => {}
        }
        found
    }

    /// The files and folders below `folder`, where a script starts, that its command names by relative paths: as a
    /// word, or behind the `=` of one. A Python script that is named counts also if it is not there.
    pub fn command_inputs(&self, folder: &Path) -> Vec<LocalInput> {
        let LearnerJob::Script(script) = &self.learner else {
            return Vec::new();
        };
        let words = script.train.command.iter().enumerate();
        let named = words.filter_map(|(at, word)| {
            let path = match word.split_once('=') {
                Some((option, path)) if option.starts_with('-') => path,
                _ => word,
            };
            // A program without a folder is looked for in PATH.
            let is_path = !path.is_empty() && (at > 0 || path.contains('/'));
            let joined = folder.join(path);
            let names = joined.is_file() || joined.is_dir() || path.ends_with(".py");
            // The folder itself, or one above it, would bring everything.
            let above = folder.starts_with(lexical(&joined));
            (is_path && Path::new(path).is_relative() && names && !above).then_some(joined)
        });
        let named = named.map(|path| LocalInput {
            key: "train.command",
            path,
        });
        named.collect()
    }
}

/// The path without `.` and `..`.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
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
        DataRef::Parquet { files, .. }
        | DataRef::Arrow { files, .. }
        | DataRef::JsonLines { files, .. } => local(files),
        DataRef::Csv { file, .. } => local(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_command_names_what_lies_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["train.py", "conf.json", "python3", "go.sh", "0.1"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("lib")).unwrap();
        let found = |words: &[&str]| -> Vec<String> {
            let command = words.iter().map(|&word| word.to_owned()).collect();
            let job = Job::of_command("x", folder.path(), command, 1);
            let inputs = job.command_inputs(folder.path()).into_iter();
            let name = |input: LocalInput| {
                let path = input.path.strip_prefix(folder.path()).unwrap();
                path.to_str().unwrap().to_owned()
            };
            inputs.map(name).collect()
        };
        let words = ["python3", "-u", "train.py", "--config=conf.json", "lib"];
        assert_eq!(found(&words), ["train.py", "conf.json", "lib"]);
        assert_eq!(found(&["./go.sh", "--lr", "0.2", "/etc"]), ["go.sh"]);
        assert_eq!(found(&["sh", ".", "..", "lib/..", "", "x="]), [""; 0]);
        assert_eq!(found(&["python3", "lost.py"]), ["lost.py"]);
    }
}
