//! The folder of a run: its name, and where each of its files lies.
//!
//! A run's name is `JOB-YYYYMMDD-HHMMSS-xxxx`: the time in UTC, so that names sort by age, and four
//! random letters. The folder is made exclusively, so two runs never share a name, whatever their
//! clocks and their random numbers say.

use crate::RunsError;
use crate::name::{check_job_name, is_run_suffix, timestamp};
use lockstep_fs::{AtomicFile, FsError, random_letters};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How often a name is drawn again when it is taken. A second has a million names: when this many are
/// taken in a row, something else is wrong.
const DRAWS: usize = 16;

/// The file that an evaluation is written to.
pub const EVALUATION: &str = "evaluation.json";
/// The file that the picture of an evaluation is written to.
pub const CONFUSION: &str = "confusion.svg";

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    /// The run's unique name, which is also its folder's.
    pub name: String,
    /// The folder.
    pub path: PathBuf,
}

impl RunDir {
    /// Makes the folder of a new run of the job `job_name` in the folder `store`, which is made too
    /// if need be.
    ///
    /// # Errors
    /// When the store cannot be written, or the job's name cannot be part of a folder's name.
    pub fn create(store: &Path, job_name: &str) -> Result<RunDir, RunsError> {
        check_job_name(job_name)?;
        let unwritable = |source| RunsError::Unwritable {
            path: store.to_owned(),
            source,
        };
        fs::create_dir_all(store).map_err(unwritable)?;
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..DRAWS {
            let letters = random_letters::<4>()?;
            let name = format!("{job_name}-{}-{letters}", timestamp(SystemTime::now()));
            let run = RunDir {
                path: store.join(&name),
                name,
            };
            match fs::create_dir(&run.path) {
                Ok(()) => return run.furnish().map_err(unwritable),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(unwritable(error)),
            }
        }
        Err(unwritable(taken))
    }

    /// Checks that runs could be made in the folder `store`, without making it.
    ///
    /// # Errors
    /// When neither the store nor, while it is not there, the folder that would hold it can be
    /// written.
    pub fn check_store(store: &Path) -> Result<(), RunsError> {
        let folder = store.ancestors().find(|folder| folder.exists());
        // Only the file system itself knows whether it lets a file be made; this one is removed at once.
        let probed = AtomicFile::create(&folder.unwrap_or(Path::new(".")).join("run"));
        match probed {
            Err(FsError::Io { source, .. }) => Err(RunsError::Unwritable {
                path: store.to_owned(),
                source,
            }),
            other => Ok(other.map(drop)?),
        }
    }

    /// Makes the folders within a new run's folder; a run that cannot have them is removed again.
    fn furnish(self) -> io::Result<RunDir> {
        for inner in ["model", "logs"] {
            if let Err(error) = fs::create_dir(self.path.join(inner)) {
                // The first error is the one worth reporting.
                let _ = fs::remove_dir_all(&self.path);
                return Err(error);
            }
        }
        Ok(self)
    }

    /// Opens the folder of an earlier run.
    ///
    /// # Errors
    /// When `path` is not the folder of a run: it holds no job file.
    pub fn open(path: &Path) -> Result<RunDir, RunsError> {
        let whole = path
            .canonicalize()
            .map_err(FsError::io("open the run", path))?;
        let name = whole
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let run = RunDir {
            name,
            path: path.to_owned(),
        };
        if run.job().is_file() {
            Ok(run)
        } else {
            Err(RunsError::NotARun {
                path: path.to_owned(),
            })
        }
    }

    /// Finds the newest run of the job `job_name` in `store`. `None` when there is none, or no such
    /// store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn newest(store: &Path, job_name: &str) -> Result<Option<RunDir>, RunsError> {
        let reading = || FsError::io("read the run store", store);
        let entries = match fs::read_dir(store) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(reading())?,
        };
        let mut newest = None;
        for entry in entries {
            let entry = entry.map_err(reading())?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let suffix = name
                .strip_prefix(job_name)
                .and_then(|rest| rest.strip_prefix('-'));
            let Some(suffix) = suffix.filter(|suffix| is_run_suffix(suffix)) else {
                continue;
            };
            let run = RunDir {
                path: entry.path(),
                name: name.clone(),
            };
            // Runs of the same second are told apart by when their job file was written.
            let Ok(written) = fs::metadata(run.job()).and_then(|job| job.modified()) else {
                continue;
            };
            let age = (suffix[..15].to_owned(), written);
            if newest
                .as_ref()
                .is_none_or(|(newest_age, _)| age > *newest_age)
            {
                newest = Some((age, run));
            }
        }
        Ok(newest.map(|(_, run)| run))
    }

    /// Removes the folder and all that is in it: for a run that failed before it began.
    ///
    /// # Errors
    /// When something in the folder cannot be removed.
    pub fn discard(self) -> Result<(), RunsError> {
        Ok(fs::remove_dir_all(&self.path).map_err(FsError::io("remove", &self.path))?)
    }

    /// The job as it ran.
    pub fn job(&self) -> PathBuf {
        self.path.join("job.toml")
    }

    /// The metrics, one JSON object a line.
    pub fn metrics(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// The trained weights.
    pub fn weights(&self) -> PathBuf {
        self.path.join("model/weights.safetensors")
    }

    /// What the weights are for: architecture, input shape, label map.
    pub fn model(&self) -> PathBuf {
        self.path.join("model/model.json")
    }

    /// The number of each class, by name.
    pub fn labels(&self) -> PathBuf {
        self.path.join("model/labels.json")
    }

    /// What the weights came to on the test set.
    pub fn evaluation(&self) -> PathBuf {
        self.path.join(EVALUATION)
    }

    /// A picture of which classes they took for which.
    pub fn confusion(&self) -> PathBuf {
        self.path.join(CONFUSION)
    }

    /// The folder of the workers' logs.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// The log of the worker of rank `rank`.
    pub fn worker_log(&self, rank: usize) -> PathBuf {
        self.path.join(format!("logs/worker-{rank}.log"))
    }

    /// How the run ended.
    pub fn result(&self) -> PathBuf {
        self.path.join("result.json")
    }

    /// The weights that the run began with, if they were those of another run.
    pub fn start(&self) -> PathBuf {
        self.path.join("model/start.safetensors")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread;

    #[test]
    fn names_never_collide_even_within_a_second_and_from_many_threads() {
        let store = tempfile::tempdir().unwrap();
        let make = || (0..50).map(|_| RunDir::create(store.path(), "job").unwrap().name);
        let names: Vec<String> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| make().collect::<Vec<_>>()))
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 200);
        assert!(
            names
                .iter()
                .all(|name| is_run_suffix(&name["job-".len()..])),
            "{names:?}"
        );
    }

    #[test]
    fn a_new_run_has_a_place_for_every_file() {
        let store = tempfile::tempdir().unwrap();
        let run = RunDir::create(&store.path().join("made/too"), "job").unwrap();
        let files = [
            run.job(),
            run.metrics(),
            run.weights(),
            run.model(),
            run.worker_log(3),
        ];
        for file in files.into_iter().chain([run.result(), run.start()]) {
            fs::write(&file, "x").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        assert!(run.path.join("logs/worker-3.log").is_file());
        assert_eq!(RunDir::open(&run.path).unwrap(), run);
    }

    #[test]
    fn an_unwritable_store_is_named_with_the_key_that_moves_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("file");
        fs::write(&store, "").unwrap();
        let error = RunDir::create(&store, "job").unwrap_err().to_string();
        assert!(
            error.contains(store.to_str().unwrap()) && error.contains("run.store"),
            "{error}"
        );
    }

    #[test]
    fn a_store_is_checked_without_being_made() {
        let folder = tempfile::tempdir().unwrap();
        RunDir::check_store(&folder.path().join("a/b")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunDir::check_store(&file.join("runs")).unwrap_err();
        assert!(matches!(error, RunsError::Unwritable { .. }), "{error}");
    }

    #[test]
    fn a_name_that_escapes_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        assert!(matches!(
            RunDir::create(&store, "../x"),
            Err(RunsError::Name { .. })
        ));
        assert!(!store.exists());
    }

    #[test]
    fn a_discarded_run_leaves_nothing() {
        let store = tempfile::tempdir().unwrap();
        let run = RunDir::create(store.path(), "job").unwrap();
        fs::write(run.job(), "x").unwrap();
        run.discard().unwrap();
        assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_without_a_job_is_not_a_run() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            RunDir::open(folder.path()),
            Err(RunsError::NotARun { .. })
        ));
    }

    #[test]
    fn the_newest_run_of_a_job_is_found_among_others() {
        let store = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            fs::create_dir(store.path().join(name)).unwrap();
            fs::write(store.path().join(name).join("job.toml"), "").unwrap();
        };
        make("job-20250101-000000-zzzz");
        make("job-20250101-000001-aaaa");
        make("job-longer-20260101-000000-aaaa");
        make("other-20260101-000000-aaaa");
        // Not begun yet, or not a run at all.
        fs::create_dir(store.path().join("job-20260101-000000-aaaa")).unwrap();
        make("job-notes");
        let newest = |job| {
            RunDir::newest(store.path(), job)
                .unwrap()
                .map(|run| run.name)
        };
        assert_eq!(newest("job").as_deref(), Some("job-20250101-000001-aaaa"));
        assert_eq!(
            newest("job-longer").as_deref(),
            Some("job-longer-20260101-000000-aaaa")
        );
        assert_eq!(newest("none"), None);
        assert_eq!(
            RunDir::newest(&store.path().join("missing"), "job").unwrap(),
            None
        );
    }
}
