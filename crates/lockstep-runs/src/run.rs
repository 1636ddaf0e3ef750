//! A run: its name, and where each of its files lies.
//!
//! A run's name is `JOB-YYYYMMDD-HHMMSS-xxxx`: the time in UTC, so that names sort by age, and four
//! random letters. On this machine its folder is made exclusively, and in a bucket its lock is, so two
//! runs never share a name, whatever their clocks and their random numbers say.

use crate::name::{check_job_name, split_run_name, timestamp};
use crate::{RunLock, RunsError, files};
use lockstep_base::calendar;
use lockstep_base::fs::{AtomicFile, FsError, random_letters};
use lockstep_events::event::{RunResult, Status};
use lockstep_place::{Place, PlaceError};
use std::path::Path;

/// How often a name is drawn again when it is taken. A second has a million names: when this many are
/// taken in a row, something else is wrong.
const DRAWS: usize = 16;

/// Letters of a time in a run's name.
const TIME: usize = "YYYYMMDD-HHMMSS".len();

/// One run.
#[derive(Debug, Clone)]
pub struct RunDir {
    /// The run's unique name, which is also its folder's.
    pub name: String,
    place: Place,
}

impl RunDir {
    /// Makes a new run of the job `job_name` in `store`, which is made too if need be, and takes it.
    ///
    /// # Errors
    /// When the store cannot be written, or the job's name cannot be part of a folder's name.
    pub fn create(store: &Place, job_name: &str) -> Result<(RunDir, RunLock), RunsError> {
        check_job_name(job_name)?;
        let store = &store.beneath();
        let unwritable = RunsError::unwritable(store);
        store.make_folder().map_err(&unwritable)?;
        for _ in 0..DRAWS {
            let name = Self::new_name(job_name)?;
            let place = store.join(&name)?;
            let run = RunDir { name, place };
            let free = run.place.make_new_folder().map_err(&unwritable)?
                && run.lock_file().entry().map_err(&unwritable)?.is_none();
            if free {
                return run.furnish(store);
            }
        }
        Err(RunsError::Unwritable {
            store: store.to_string(),
            reason: format!("{DRAWS} names for the run were taken"),
        })
    }

    /// A name for a run of the job `job_name` that begins now.
    ///
    /// # Errors
    /// When the job's name cannot be part of a folder's name, or the system has no random letters.
    pub fn new_name(job_name: &str) -> Result<String, RunsError> {
        check_job_name(job_name)?;
        let letters = random_letters::<4>()?;
        Ok(format!(
            "{job_name}-{}-{letters}",
            timestamp(calendar::now() as i64)
        ))
    }

    /// Takes the run of this name in `store`, and makes what is not there of it. Where several may begin one run, one
    /// after the other, its name is chosen before: whoever comes first makes it, and the next goes on with it. If it may
    /// take a while until it is free, `waiting` is told so.
    ///
    /// # Errors
    /// When another process has the run, the store cannot be written, or the name cannot be that of a folder.
    pub fn take(
        store: &Place,
        name: &str,
        waiting: &mut dyn FnMut(String),
    ) -> Result<(RunDir, RunLock), RunsError> {
        check_job_name(name)?;
        let run = RunDir::named(name, store.beneath().join(name)?);
        let folders = [files::MODEL, files::LOGS].map(|inner| run.file(inner));
        for folder in [store, &run.place].into_iter().chain(&folders) {
            folder.make_folder().map_err(RunsError::unwritable(store))?;
        }
        let lock = run.lock(waiting)?;
        Ok((run, lock))
    }

    /// Checks that runs could be made in `store`, without making it.
    ///
    /// # Errors
    /// When neither the store nor, while it is not there, the folder that would hold it can be
    /// written. A bucket is only asked whether it is there.
    pub fn check_store(store: &Place) -> Result<(), RunsError> {
        let Some(path) = store.local() else {
            let looked = store.folders().map(drop);
            return looked.map_err(RunsError::unwritable(store));
        };
        let folder = path.ancestors().find(|folder| folder.exists());
        // Only the file system itself knows whether it lets a file be made; this one is removed at once.
        let probed = AtomicFile::create(&folder.unwrap_or(Path::new(".")).join("run"));
        let probed = probed.map(drop).map_err(PlaceError::from);
        probed.map_err(RunsError::unwritable(store))
    }

    /// Makes the folders within a new run and takes it; a run that cannot have them is removed again.
    fn furnish(self, store: &Place) -> Result<(RunDir, RunLock), RunsError> {
        let folders = [files::MODEL, files::LOGS].map(|inner| self.file(inner));
        let made = folders
            .iter()
            .try_for_each(|folder| folder.make_new_folder().map(drop))
            .map_err(RunsError::unwritable(store));
        match made.and_then(|()| self.lock(&mut |_| {})) {
            Ok(lock) => Ok((self, lock)),
            Err(error) => {
                // The first error is the one worth reporting.
                let _ = self.place.delete_all();
                Err(error)
            }
        }
    }

    /// Opens an earlier run.
    ///
    /// # Errors
    /// When `place` is not that of a run: it holds no job file.
    pub fn open(place: &Place) -> Result<RunDir, RunsError> {
        let name = match place.local() {
            Some(path) => {
                let whole = path.canonicalize();
                let whole = whole.map_err(FsError::io("open the run", path))?;
                let name = whole.file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }
            None => {
                let shown = place.to_string();
                shown.rsplit('/').next().unwrap_or_default().to_owned()
            }
        };
        let run = RunDir {
            name,
            place: place.beneath(),
        };
        match run.job().entry()? {
            Some(_) => Ok(run),
            None => Err(RunsError::NotARun {
                place: place.to_string(),
            }),
        }
    }

    /// Finds the newest run of the job `job_name` in `store`, or of all jobs if none is named. `None` when there is none,
    /// or no such store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn newest(store: &Place, job_name: Option<&str>) -> Result<Option<RunDir>, RunsError> {
        let mut of_job: Vec<(String, String)> = Vec::new();
        for name in store.folders()? {
            let Some((job, suffix)) = split_run_name(&name) else {
                continue;
            };
            if job_name.is_none_or(|wanted| wanted == job) {
                of_job.push((suffix[..TIME].to_owned(), name));
            }
        }
        of_job.sort();
        let mut newest: Option<(String, u128, RunDir)> = None;
        for (time, name) in of_job.into_iter().rev() {
            if newest.as_ref().is_some_and(|(newest, ..)| *newest > time) {
                break;
            }
            let place = store.beneath().join(&name)?;
            let run = RunDir { name, place };
            // Runs of the same second are told apart by when their job file was written.
            let Some(written) = run.job().entry()? else {
                continue;
            };
            let written = written.version.parse().unwrap_or(0);
            if newest.as_ref().is_none_or(|(_, age, _)| written > *age) {
                newest = Some((time, written, run));
            }
        }
        Ok(newest.map(|(.., run)| run))
    }

    /// The run of this name at `place`, which is taken on trust. What is in it is not: links in a run, or in the store
    /// that `place` was made from, are not followed.
    pub fn named(name: &str, place: Place) -> RunDir {
        RunDir {
            name: name.to_owned(),
            place: place.beneath(),
        }
    }

    /// Removes the run and all that is in it: for one that failed before it began.
    ///
    /// # Errors
    /// When something in it cannot be removed.
    pub fn discard(self) -> Result<(), RunsError> {
        Ok(self.place.delete_all()?)
    }

    /// Where the run lies.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Makes the run's own name outlive a power cut, where that needs saying: of a folder of this machine
    /// it lies in the folder of the store.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync_name(&self) -> Result<(), RunsError> {
        if let Some(path) = self.place.local() {
            // The run's own folder may be given as `.` or through a link.
            let whole = path.canonicalize().map_err(FsError::io("sync", path))?;
            if let Some(store) = whole.parent() {
                lockstep_base::fs::sync_folder(store)?;
            }
        }
        Ok(())
    }

    /// A file of the run; `name` is one of [`files`], or leads down in another way.
    pub fn file(&self, name: &str) -> Place {
        self.place.join(name).expect("the name leads down")
    }

    /// The job as it ran.
    pub fn job(&self) -> Place {
        self.file(files::JOB)
    }

    /// The metrics, one JSON object a line.
    pub fn metrics(&self) -> Place {
        self.file(files::METRICS)
    }

    /// The trained weights.
    pub fn weights(&self) -> Place {
        self.file(files::WEIGHTS)
    }

    /// What the weights are for: architecture, input shape, label map.
    pub fn model(&self) -> Place {
        self.file(files::MODEL_CARD)
    }

    /// The trees of a run that grows some, as XGBoost writes them.
    pub fn trees(&self) -> Place {
        self.file(files::TREES)
    }

    /// The model as ONNX, if the job asks for it.
    pub fn onnx(&self) -> Place {
        self.file(files::ONNX)
    }

    /// The number of each class, by name.
    pub fn labels(&self) -> Place {
        self.file(files::LABELS)
    }

    /// What the weights came to on the test set.
    pub fn evaluation(&self) -> Place {
        self.file(files::EVALUATION)
    }

    /// A picture of which classes they took for which.
    pub fn confusion(&self) -> Place {
        self.file(files::CONFUSION)
    }

    /// A picture of how much each column of a table is used, of trees.
    pub fn importance(&self) -> Place {
        self.file(files::IMPORTANCE)
    }

    /// Pictures of the hardest mistakes, one below the other.
    pub fn mistakes(&self) -> Place {
        self.file(files::MISTAKES)
    }

    /// The folder of the workers' logs.
    pub fn logs(&self) -> Place {
        self.file(files::LOGS)
    }

    /// The log of the worker of rank `rank`.
    pub fn worker_log(&self, rank: usize) -> Place {
        self.file(&files::worker_log(rank))
    }

    /// How the run ended.
    pub fn result(&self) -> Place {
        self.file(files::RESULT)
    }

    /// Where the run comes from.
    pub fn origin(&self) -> Place {
        self.file(files::ORIGIN)
    }

    /// The weights that the run began with, if they were those of another run.
    pub fn start(&self) -> Place {
        self.file(files::START)
    }

    /// How the run ended, by its own word; nothing where it has not said so.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn read_result(&self) -> Result<Option<RunResult>, RunsError> {
        let file = self.result();
        if file.entry()?.is_none() {
            return Ok(None);
        }
        let result = serde_json::from_slice(&file.read()?);
        result.map(Some).map_err(|source| RunsError::DamagedResult {
            path: file.to_string(),
            source,
        })
    }

    /// Whether the run came to its end, by its own word.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn has_succeeded(&self) -> Result<bool, RunsError> {
        let result = self.read_result()?;
        Ok(result.is_some_and(|result| result.status == Status::Succeeded))
    }

    /// Who owns the run.
    pub(crate) fn lock_file(&self) -> Place {
        self.file(files::LOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;
    use std::collections::HashSet;
    use std::fs;
    use std::thread;

    fn at(path: &Path) -> Place {
        Place::parse(path.to_str().unwrap(), &Access::default()).unwrap()
    }

    #[test]
    fn names_never_collide_even_within_a_second_and_from_many_threads() {
        let store = tempfile::tempdir().unwrap();
        let make = || (0..50).map(|_| RunDir::create(&at(store.path()), "job").unwrap().0.name);
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
                .all(|name| split_run_name(name).is_some_and(|(job, _)| job == "job")),
            "{names:?}"
        );
    }

    #[test]
    fn a_new_run_has_a_place_for_every_file() {
        let store = tempfile::tempdir().unwrap();
        let (run, _lock) = RunDir::create(&at(&store.path().join("made/too")), "job").unwrap();
        let files = [
            run.job(),
            run.metrics(),
            run.weights(),
            run.model(),
            run.worker_log(3),
        ];
        for file in files.into_iter().chain([run.result(), run.start()]) {
            let path = file.local().unwrap();
            fs::write(path, "x").unwrap_or_else(|error| panic!("{file}: {error}"));
        }
        let path = run.place().local().unwrap();
        assert!(path.join("logs/worker-3.log").is_file());
        assert_eq!(RunDir::open(run.place()).unwrap().name, run.name);
    }

    #[test]
    fn a_run_whose_name_was_chosen_before_is_made_once_and_found_again() {
        let store = tempfile::tempdir().unwrap();
        let store = at(&store.path().join("made/too"));
        let name = RunDir::new_name("job").unwrap();
        let (run, lock) = RunDir::take(&store, &name, &mut |_| {}).unwrap();
        let error = RunDir::take(&store, &name, &mut |_| {}).unwrap_err();
        assert!(matches!(error, RunsError::InUse { .. }), "{error}");
        run.job().write(b"x").unwrap();
        drop(lock);
        let (again, _lock) = RunDir::take(&store, &name, &mut |_| {}).unwrap();
        assert_eq!(again.job().read().unwrap(), b"x");
        let newest = RunDir::newest(&store, Some("job")).unwrap().unwrap();
        assert_eq!(newest.name, name);
    }

    #[test]
    fn an_unwritable_store_is_named_with_the_key_that_moves_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("file");
        fs::write(&store, "").unwrap();
        let error = RunDir::create(&at(&store), "job").unwrap_err().to_string();
        assert!(
            error.contains(store.to_str().unwrap()) && error.contains("run.store"),
            "{error}"
        );
    }

    #[test]
    fn a_store_is_checked_without_being_made() {
        let folder = tempfile::tempdir().unwrap();
        RunDir::check_store(&at(&folder.path().join("a/b"))).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunDir::check_store(&at(&file.join("runs"))).unwrap_err();
        assert!(matches!(error, RunsError::Unwritable { .. }), "{error}");
    }

    #[test]
    fn a_name_that_escapes_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        assert!(matches!(
            RunDir::create(&at(&store), "../x"),
            Err(RunsError::Name { .. })
        ));
        assert!(!store.exists());
    }

    #[test]
    fn a_discarded_run_leaves_nothing() {
        let store = tempfile::tempdir().unwrap();
        let (run, _lock) = RunDir::create(&at(store.path()), "job").unwrap();
        run.job().write(b"x").unwrap();
        run.discard().unwrap();
        assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_without_a_job_is_not_a_run() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            RunDir::open(&at(folder.path())),
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
            RunDir::newest(&at(store.path()), Some(job))
                .unwrap()
                .map(|run| run.name)
        };
        assert_eq!(newest("job").as_deref(), Some("job-20250101-000001-aaaa"));
        assert_eq!(
            newest("job-longer").as_deref(),
            Some("job-longer-20260101-000000-aaaa")
        );
        assert_eq!(newest("none"), None);
        let missing = at(&store.path().join("missing"));
        assert!(RunDir::newest(&missing, Some("job")).unwrap().is_none());
    }
}
