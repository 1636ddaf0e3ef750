//! Checkpoints that scripts report: stored as those of networks are, and given back as folders of files.

use crate::ScriptError;
use crate::order::Position;
use lockstep_events::event::Reported;
use lockstep_fs::sha256;
use lockstep_job::{BestMode, ScriptCheckpoint};
use lockstep_place::{Access, Place};
use lockstep_runs::checkpoint::{Checkpoint, CheckpointWriter};
use lockstep_runs::{Generation, RunDir, RunsError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// The folder of a run that holds the files of the best checkpoint.
const MODEL: &str = "model";

/// What the header of a script's checkpoint says.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The number of the report that it came with.
    pub(crate) report: u64,
    /// What was reported with it.
    pub(crate) metrics: Map<String, Value>,
    /// The files, by the names that the script gave them, and the parts that hold them.
    pub(crate) files: BTreeMap<String, String>,
    /// How far each data set was handed out.
    pub(crate) positions: BTreeMap<String, Position>,
    /// The best value so far of the metric that the best checkpoint is chosen by.
    pub(crate) best: Option<f64>,
    /// SHA-256 of all files and their names.
    pub(crate) sha256: String,
}

/// The files of a checkpoint, in memory, by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Reads the files below a folder that a script reported.
pub(crate) fn read_files(folder: &Path) -> Result<Files, ScriptError> {
    let mut files = Files::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let path = folder.join(&below);
        let failed = |source| ScriptError::Reported {
            path: path.clone(),
            source,
        };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let name = below.join(entry.map_err(failed)?.file_name());
            let path = folder.join(&name);
            let failed = |source| ScriptError::Reported {
                path: path.clone(),
                source,
            };
            if fs::metadata(&path).map_err(failed)?.is_dir() {
                folders.push(name);
            } else {
                let bytes = fs::read(&path).map_err(failed)?;
                files.insert(name.to_string_lossy().into_owned(), bytes);
            }
        }
    }
    Ok(files)
}

/// The newest checkpoint, as a generation begins with it.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) header: Header,
    checkpoint: Checkpoint,
}

impl Resumed {
    /// Opens the checkpoint in the folder `place`.
    pub(crate) fn open(place: &str, access: &Access) -> Result<Self, ScriptError> {
        let damaged = |error: &dyn std::fmt::Display| ScriptError::Damaged(error.to_string());
        let checkpoint =
            Checkpoint::open(&Place::parse(place, access)?).map_err(|error| damaged(&error))?;
        let header = serde_json::from_value(checkpoint.header().clone())
            .map_err(|error| damaged(&format!("{place} is no checkpoint of a script: {error}")))?;
        Ok(Self { header, checkpoint })
    }

    /// Writes its files into `folder`, under the names that the script gave them.
    pub(crate) fn unpack(&self, folder: &Path) -> Result<(), ScriptError> {
        let failed = || ScriptError::system("write a checkpoint for the script");
        fs::create_dir_all(folder).map_err(failed())?;
        for (name, part) in &self.header.files {
            let path = folder.join(name);
            let bytes = self.checkpoint.part(part);
            let bytes = bytes.map_err(|error| ScriptError::Damaged(error.to_string()))?;
            if let Some(above) = path.parent() {
                fs::create_dir_all(above).map_err(failed())?;
            }
            fs::write(&path, bytes.unwrap_or_default()).map_err(failed())?;
        }
        Ok(())
    }
}

/// The metrics that a run recorded up to the state that it goes on from.
///
/// # Errors
/// When the checkpoint is not a script's.
pub fn history(run: &RunDir, checkpoint: &Place) -> Result<String, ScriptError> {
    let found = Checkpoint::open(checkpoint);
    let found = found.map_err(|error| ScriptError::Damaged(error.to_string()))?;
    let header: Header = serde_json::from_value(found.header().clone()).unwrap_or_default();
    let text = run.metrics().read().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let is_before = |line: &&str| {
        serde_json::from_str::<Reported>(line).is_ok_and(|row| row.report <= header.report)
    };
    Ok(text
        .lines()
        .filter(is_before)
        .map(|line| format!("{line}\n"))
        .collect())
}

/// Writes checkpoints in the background, one after the other.
pub(crate) struct Store {
    run: RunDir,
    generation: Generation,
    settings: ScriptCheckpoint,
    /// The best value so far of the metric that the best is chosen by.
    best: Option<f64>,
    /// The newest that this rank knows of: the number of its report, and its SHA-256.
    pub(crate) newest: Option<(u64, String)>,
    writer: Option<CheckpointWriter>,
    writing: Option<JoinHandle<(CheckpointWriter, Result<(), RunsError>)>>,
}

impl Store {
    pub(crate) fn new(
        run: RunDir,
        generation: Generation,
        settings: ScriptCheckpoint,
        resumed: Option<&Header>,
    ) -> Self {
        Self {
            run,
            generation,
            settings,
            best: resumed.and_then(|header| header.best),
            newest: resumed.map(|header| (header.report, header.sha256.clone())),
            writer: None,
            writing: None,
        }
    }

    /// Begins to write a checkpoint; the one before it is whole when this returns.
    pub(crate) fn write(&mut self, mut header: Header, files: Files) -> Result<(), RunsError> {
        self.settle()?;
        let is_best = self.is_best(&header.metrics);
        header.best = self.best;
        let mut parts = Vec::new();
        let mut hashed = String::new();
        for (number, (name, bytes)) in files.into_iter().enumerate() {
            // Names of a script may be paths, and those of parts may not.
            let part = format!("file-{number:04}");
            hashed += &format!("{name} {}\n", sha256(&bytes));
            header.files.insert(name, part.clone());
            parts.push((part, bytes));
        }
        header.sha256 = sha256(hashed.as_bytes());
        self.newest = Some((header.report, header.sha256.clone()));
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let checkpoints = self.run.checkpoints();
                checkpoints.writer(self.settings.keep, self.generation.clone())?
            }
        };
        let model = is_best.then(|| self.run.file(MODEL));
        let write = move || {
            let borrowed: Vec<(&str, &[u8])> = parts
                .iter()
                .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
                .collect();
            let label = format!("report-{}", header.report);
            let named = serde_json::to_value(&header).expect("a header is plain data");
            let mut written = writer.write(&label, named, &borrowed).map(drop);
            if let (Ok(()), Some(model)) = (&written, model) {
                let by_part: BTreeMap<&str, &[u8]> = borrowed.into_iter().collect();
                written = publish(&model, &header, &by_part);
            }
            (writer, written)
        };
        self.writing = Some(std::thread::spawn(write));
        Ok(())
    }

    /// Waits until what is being written is.
    pub(crate) fn settle(&mut self) -> Result<(), RunsError> {
        if let Some(writing) = self.writing.take()
            && let Ok((writer, written)) = writing.join()
        {
            self.writer = Some(writer);
            written?;
        }
        Ok(())
    }

    /// Whether a checkpoint with these metrics is the best so far, which it then is.
    fn is_best(&mut self, metrics: &Map<String, Value>) -> bool {
        let Some(name) = &self.settings.best else {
            return true;
        };
        let mode: BestMode = self.settings.mode;
        let Some(value) = metrics.get(name).and_then(Value::as_f64) else {
            return false;
        };
        let better = self.best.is_none_or(|best| mode.is_better(value, best));
        if better {
            self.best = Some(value);
        }
        better
    }
}

/// Writes the files of the best checkpoint, and last what they belong to.
fn publish(model: &Place, header: &Header, parts: &BTreeMap<&str, &[u8]>) -> Result<(), RunsError> {
    model.delete_all()?;
    model.make_folder()?;
    for (name, part) in &header.files {
        let file = model.join(name)?;
        if let (Some(path), Some(_)) = (file.local(), name.rfind('/')) {
            let above = path.parent().unwrap_or(path);
            fs::create_dir_all(above)
                .map_err(|source| lockstep_place::PlaceError::io("make", above, source))?;
        }
        file.write(parts.get(part.as_str()).copied().unwrap_or_default())?;
    }
    let card = serde_json::json!({
        "kind": "script",
        "report": header.report,
        "metrics": header.metrics,
        "sha256": header.sha256,
    });
    model
        .join("report.json")?
        .write(format!("{card}\n").as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_below_a_folder_are_read_with_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/a.bin"), "a").unwrap();
        fs::write(folder.path().join("b"), "b").unwrap();
        let files = read_files(folder.path()).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["b", "sub/a.bin"]);
        let missing = read_files(&folder.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
    }

    #[test]
    fn a_checkpoint_of_a_script_is_whole_and_the_best_stays() {
        let store = tempfile::tempdir().unwrap();
        let place = Place::parse(store.path().to_str().unwrap(), &Access::default()).unwrap();
        let (run, lock) = RunDir::create(&place, "job").unwrap();
        let writing = lock.begin(1, None).unwrap();
        let generation = Generation {
            incarnation: writing.incarnation,
            generation: 1,
        };
        let settings = ScriptCheckpoint {
            keep: 1,
            best: Some("accuracy".to_owned()),
            mode: BestMode::Max,
        };
        let mut checkpoints = Store::new(run.clone(), generation, settings, None);
        for (report, accuracy) in [(1, 0.5), (2, 0.9), (3, 0.7)] {
            let header = Header {
                report,
                metrics: json!({ "accuracy": accuracy })
                    .as_object()
                    .cloned()
                    .unwrap(),
                ..Header::default()
            };
            let name = "deep/weights.pt".to_owned();
            let files = Files::from([(name, report.to_string().into_bytes())]);
            checkpoints.write(header, files).unwrap();
        }
        checkpoints.settle().unwrap();
        let newest = run.checkpoints().newest().unwrap().unwrap();
        let resumed = newest.checkpoint.place().to_string();
        let resumed = Resumed::open(&resumed, &Access::default()).unwrap();
        assert_eq!((resumed.header.report, resumed.header.best), (3, Some(0.9)));
        let folder = store.path().join("unpacked");
        resumed.unpack(&folder).unwrap();
        assert_eq!(
            fs::read_to_string(folder.join("deep/weights.pt")).unwrap(),
            "3"
        );
        let best = store.path().join(&run.name).join("model/deep/weights.pt");
        assert_eq!(fs::read_to_string(best).unwrap(), "2");
    }
}
