//! What a job reads: its sets by name, and the files and folders of this machine among its inputs.

use crate::{Data, DataRef, Job, Location, ScriptJob, Validation};
use std::path::PathBuf;

/// A file or folder of this machine that a job reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalInput {
    /// The key of the job file that names it.
    pub key: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

impl Data {
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

impl ScriptJob {
    /// All files and folders of this machine that the job names. What the script reads by itself is not known.
    pub fn local_inputs(&self) -> Vec<LocalInput> {
        self.data.as_ref().map_or_else(Vec::new, Data::local_inputs)
    }
}

impl Job {
    /// The sets that the job names, `train`, `val` and `test`, and what it says of each.
    pub fn sets(&self) -> impl Iterator<Item = (&'static str, &DataRef)> {
        self.data.sets()
    }

    /// All files and folders of this machine that the job reads. Those that lie beside them without being named
    /// are not among them.
    pub fn local_inputs(&self) -> Vec<LocalInput> {
        let mut found = self.data.local_inputs();
        let weights = self.model.weights.clone();
        let encoder = self.embed.as_ref().map(|embed| embed.model.clone());
        for (key, path) in [("model.weights", weights), ("embed.model", encoder)] {
            found.extend(path.map(|path| LocalInput { key, path }));
        }
        found
    }
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
