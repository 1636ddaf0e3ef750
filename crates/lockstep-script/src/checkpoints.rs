//! Checkpoints that scripts report: stored as those of networks are, and given back as folders of files.

use crate::ScriptError;
use crate::order::Position;
use lockstep_base::fs::sha256;
use lockstep_events::event::Reported;
use lockstep_place::{Access, Place};
use lockstep_resolve::ScriptCheckpoints;
use lockstep_runs::checkpoint::{Checkpoint, CheckpointWriter};
use lockstep_runs::files::{MODEL, SCRIPT_CARD};
use lockstep_runs::{Generation, RunDir};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::{fs, io};

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
    /// The report of the best checkpoint so far.
    #[serde(default)]
    pub(crate) best_report: u64,
    /// SHA-256 of all files and their names.
    pub(crate) sha256: String,
}

/// The files of a checkpoint, in memory, by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Reads the files below a folder that a script reported. Links to files are followed, those to folders are not: they
/// may lead in a circle.
pub(crate) fn read_files(folder: &Path) -> Result<Files, ScriptError> {
    let mut files = Files::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let here = folder.join(&below);
        let unread = |path: &Path| {
            let path = path.to_owned();
            |source| ScriptError::Reported { path, source }
        };
        for entry in fs::read_dir(&here).map_err(unread(&here))? {
            let entry = entry.map_err(unread(&here))?;
            let (name, path) = (below.join(entry.file_name()), entry.path());
            let refused = |why: &str| unread(&path)(io::Error::other(why.to_owned()));
            if entry.file_type().map_err(unread(&path))?.is_dir() {
                folders.push(name);
            } else if !fs::metadata(&path).map_err(unread(&path))?.is_file() {
                return Err(refused("it is neither a file nor a folder"));
            } else {
                let text = name
                    .to_str()
                    .ok_or_else(|| refused("its name is not UTF-8"))?;
                let bytes = fs::read(&path).map_err(unread(&path))?;
                files.insert(text.to_owned(), bytes);
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
        let header = serde_json::from_value(checkpoint.header().clone()).map_err(|error| {
            damaged(&format!("{place} is not a checkpoint of a script: {error}"))
        })?;
        Ok(Self { header, checkpoint })
    }

    /// Writes its files into `folder`, under the names that the script gave them. A name that leads out of it, as
    /// somebody else may have written it into a store that many share, is refused.
    pub(crate) fn unpack(&self, folder: &Path) -> Result<(), ScriptError> {
        let here = Place::parse(&folder.to_string_lossy(), &Access::default())?;
        here.make_folder()?;
        write_files(&here, &self.files()?)
    }

    /// Its files, as they were written.
    fn files(&self) -> Result<Files, ScriptError> {
        let read = |(name, part): (&String, &String)| {
            let bytes = self.checkpoint.part(part);
            let bytes = bytes.map_err(|error| ScriptError::Damaged(error.to_string()))?;
            let missing =
                || ScriptError::Damaged(format!("{} lacks {part}", self.checkpoint.place()));
            Ok((name.clone(), bytes.ok_or_else(missing)?))
        };
        self.header.files.iter().map(read).collect()
    }
}

/// The metrics that a run recorded up to the state that it goes on from.
///
/// # Errors
/// When the checkpoint is not a script's.
pub(crate) fn history(run: &RunDir, checkpoint: &Place) -> Result<String, ScriptError> {
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

/// Writes files below a place, under their names.
fn write_files(place: &Place, files: &Files) -> Result<(), ScriptError> {
    for (name, bytes) in files {
        let file = place.join(name)?;
        if let Some(above) = file.local().and_then(Path::parent) {
            fs::create_dir_all(above).map_err(ScriptError::system("make a folder"))?;
        }
        file.write(bytes)?;
    }
    Ok(())
}

/// Writes checkpoints in the background, one after the other.
pub(crate) struct Store {
    run: RunDir,
    generation: Generation,
    settings: ScriptCheckpoints,
    /// The best so far: its value of the metric that the best is chosen by, and its report.
    best: (Option<f64>, u64),
    /// The newest that this rank knows of: the number of its report, and its SHA-256.
    pub(crate) newest: Option<(u64, String)>,
    writer: Option<CheckpointWriter>,
    writing: Option<JoinHandle<Written>>,
}

/// What came of writing a checkpoint in the background.
struct Written {
    writer: CheckpointWriter,
    stored: Result<(u64, String), ScriptError>,
}

impl Store {
    pub(crate) fn new(
        run: RunDir,
        generation: Generation,
        settings: ScriptCheckpoints,
        resumed: Option<&Header>,
    ) -> Self {
        Self {
            run,
            generation,
            settings,
            best: resumed.map_or((None, 0), |header| (header.best, header.best_report)),
            newest: resumed.map(|header| (header.report, header.sha256.clone())),
            writer: None,
            writing: None,
        }
    }

    /// Publishes the files of the checkpoint that a run goes on from, if they are the best and a crash came in
    /// between. Those of any earlier one were published before the next was written.
    pub(crate) fn finish_publishing(&self, resumed: &Resumed) -> Result<(), ScriptError> {
        let header = &resumed.header;
        let card = self.run.file(SCRIPT_CARD).read().unwrap_or_default();
        let card: Value = serde_json::from_slice(&card).unwrap_or_default();
        if header.best_report != header.report || card["sha256"] == header.sha256 {
            return Ok(());
        }
        publish(&self.run, header, &resumed.files()?)
    }

    /// Begins to write a checkpoint; the one before it is whole when this returns. Returns what went wrong with that
    /// one, in words: what a disk that is full costs is a checkpoint, not the run.
    pub(crate) fn write(
        &mut self,
        mut header: Header,
        files: Files,
    ) -> Result<Option<String>, ScriptError> {
        let warning = self.settle()?;
        let is_best = self.is_best(&header);
        (header.best, header.best_report) = self.best;
        let mut hashed = String::new();
        // Names of a script may be paths, and those of parts may not.
        for (number, (name, bytes)) in files.iter().enumerate() {
            hashed += &format!("{name} {}\n", sha256(bytes));
            header
                .files
                .insert(name.clone(), format!("file-{number:04}"));
        }
        header.sha256 = sha256(hashed.as_bytes());
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let checkpoints = self.run.checkpoints();
                checkpoints.writer(self.settings.keep, self.generation.clone())?
            }
        };
        let run = self.run.clone();
        let write = move || {
            let parts = header.files.iter();
            let parts = parts.map(|(name, part)| (part.as_str(), files[name].as_slice()));
            let label = format!("report-{}", header.report);
            let named = serde_json::to_value(&header).expect("a header is plain data");
            let written = writer.write(&label, named, &parts.collect::<Vec<_>>());
            let mut stored = written.map(drop).map_err(ScriptError::from);
            if is_best && stored.is_ok() {
                stored = publish(&run, &header, &files);
            }
            Written {
                writer,
                stored: stored.map(|()| (header.report, header.sha256)),
            }
        };
        self.writing = Some(std::thread::spawn(write));
        Ok(warning)
    }

    /// Waits until what is being written is. Returns what went wrong, in words.
    ///
    /// # Errors
    /// When another generation writes by now, or the run's folder is gone.
    pub(crate) fn settle(&mut self) -> Result<Option<String>, ScriptError> {
        let Some(writing) = self.writing.take() else {
            return Ok(None);
        };
        let Ok(Written { writer, stored }) = writing.join() else {
            return Ok(Some(
                "a checkpoint was not written: its writer panicked".to_owned(),
            ));
        };
        self.writer = Some(writer);
        match stored {
            Ok(newest) => self.newest = Some(newest),
            Err(ScriptError::Runs(error)) if error.ends_the_run() => return Err(error.into()),
            Err(error) => return Ok(Some(format!("a checkpoint was not written: {error}"))),
        }
        Ok(None)
    }

    /// Whether a checkpoint is the best so far, which it then is.
    fn is_best(&mut self, header: &Header) -> bool {
        let value = match &self.settings.best {
            // The newest is the best.
            None => None,
            Some(name) => match header.metrics.get(name).and_then(Value::as_f64) {
                Some(value) if is_better(self.settings.lowest, value, self.best.0) => Some(value),
                _ => return false,
            },
        };
        self.best = (value, header.report);
        true
    }
}

/// A generation that fails leaves nobody behind who writes: the next one publishes the same files.
impl Drop for Store {
    fn drop(&mut self) {
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
    }
}

fn is_better(lowest: bool, value: f64, best: Option<f64>) -> bool {
    best.is_none_or(|best| match lowest {
        true => value < best,
        false => value > best,
    })
}

/// Makes the files of a checkpoint those of the run's model. Last comes a card that says what they belong to: without
/// it, they may be those of two checkpoints.
fn publish(run: &RunDir, header: &Header, files: &Files) -> Result<(), ScriptError> {
    let (model, card) = (run.file(MODEL), run.file(SCRIPT_CARD));
    card.delete()?;
    model.delete_all()?;
    model.make_folder()?;
    write_files(&model, files)?;
    let text = json!({
        "kind": "script",
        "report": header.report,
        "metrics": header.metrics,
        "sha256": header.sha256,
    });
    Ok(card.write(format!("{text}\n").as_bytes())?)
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
    fn what_is_no_file_or_leads_in_a_circle_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        let files = read_files(folder.path()).unwrap();
        assert_eq!(files["link"], b"a");
        std::os::unix::fs::symlink(".", folder.path().join("circle")).unwrap();
        let refused = read_files(folder.path()).unwrap_err().to_string();
        assert!(
            refused.contains("circle") && refused.contains("neither"),
            "{refused}"
        );
    }

    /// A run that nobody else writes to, and a store for it.
    fn run(folder: &Path) -> (RunDir, lockstep_runs::RunLock, Store) {
        let place = Place::parse(folder.to_str().unwrap(), &Access::default()).unwrap();
        let (run, lock) = RunDir::create(&place, "job").unwrap();
        let writing = lock.begin(1, None).unwrap();
        let generation = Generation {
            incarnation: writing.incarnation,
            generation: 1,
        };
        let settings = ScriptCheckpoints {
            keep: 1,
            best: Some("accuracy".to_owned()),
            lowest: false,
        };
        let store = Store::new(run.clone(), generation, settings, None);
        (run, lock, store)
    }

    fn write(store: &mut Store, name: &str, report: u64, accuracy: f64) {
        let metrics = json!({ "accuracy": accuracy });
        let header = Header {
            report,
            metrics: metrics.as_object().cloned().unwrap(),
            ..Header::default()
        };
        let files = Files::from([(name.to_owned(), report.to_string().into_bytes())]);
        assert_eq!(store.write(header, files).unwrap(), None);
    }

    fn newest(run: &RunDir) -> Resumed {
        let newest = run.checkpoints().newest().unwrap().unwrap();
        let place = newest.checkpoint.place().to_string();
        Resumed::open(&place, &Access::default()).unwrap()
    }

    #[test]
    fn a_checkpoint_of_a_script_is_whole_and_the_best_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (run, _lock, mut store) = run(folder.path());
        for (report, accuracy) in [(1, 0.5), (2, 0.9), (3, 0.7)] {
            write(&mut store, "deep/weights.pt", report, accuracy);
        }
        assert_eq!(store.settle().unwrap(), None);
        let resumed = newest(&run);
        let header = &resumed.header;
        assert_eq!(
            (header.report, header.best, header.best_report),
            (3, Some(0.9), 2)
        );
        let unpacked = folder.path().join("unpacked");
        resumed.unpack(&unpacked).unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(unpacked.join("deep/weights.pt")), "3");
        let home = folder.path().join(&run.name);
        assert_eq!(read(home.join("model/deep/weights.pt")), "2");
        assert!(read(home.join(SCRIPT_CARD)).contains("\"report\":2"));
    }

    #[test]
    fn nothing_is_written_any_more_when_a_store_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (run, _lock, mut store) = run(folder.path());
        write(&mut store, "weights.pt", 1, 0.5);
        drop(store);
        assert_eq!(newest(&run).header.report, 1);
        assert!(folder.path().join(&run.name).join(SCRIPT_CARD).exists());
    }

    #[test]
    fn a_crash_while_the_best_is_published_is_made_up_for() {
        let folder = tempfile::tempdir().unwrap();
        let (run, _lock, mut store) = run(folder.path());
        write(&mut store, "weights.pt", 1, 0.5);
        store.settle().unwrap();
        let home = folder.path().join(&run.name);
        fs::remove_file(home.join(SCRIPT_CARD)).unwrap();
        fs::write(home.join("model/weights.pt"), "torn").unwrap();
        store.finish_publishing(&newest(&run)).unwrap();
        assert_eq!(
            fs::read_to_string(home.join("model/weights.pt")).unwrap(),
            "1"
        );
        assert!(home.join(SCRIPT_CARD).exists());
    }

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (run, _lock, mut store) = run(folder.path());
        write(&mut store, "weights.pt", 1, 0.5);
        store.settle().unwrap();
        let mut resumed = newest(&run);
        let part = resumed.header.files.remove("weights.pt").unwrap();
        resumed.header.files.insert("../outside".to_owned(), part);
        let refused = resumed.unpack(&folder.path().join("in")).unwrap_err();
        assert!(refused.to_string().contains("../outside"), "{refused}");
        assert!(!folder.path().join("outside").exists());
    }

    #[test]
    fn a_store_that_refuses_costs_a_checkpoint_and_not_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let (run, _lock, mut store) = run(folder.path());
        write(&mut store, "weights.pt", 1, 0.5);
        store.settle().unwrap();
        // Where the next one's folder would be made lies a file.
        let checkpoints = folder.path().join(&run.name).join("checkpoints");
        fs::write(checkpoints.join("000002-report-2"), "in the way").unwrap();
        write(&mut store, "weights.pt", 2, 0.6);
        let words = store.settle().unwrap().unwrap();
        assert!(words.contains("not written"), "{words}");
        assert_eq!(store.newest.as_ref().unwrap().0, 1);
        write(&mut store, "weights.pt", 3, 0.7);
        assert_eq!(store.settle().unwrap(), None);
    }
}
