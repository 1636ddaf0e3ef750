//! A queue of jobs, as whoever serves it has it.

use crate::folder::{Folder, WORK, now_ms};
use crate::id::new_id;
use crate::job_record::Extras;
use crate::memory::State;
use crate::scheduler::Scheduler;
use crate::{
    JobRecord, JobUser, JobView, Log, Machine, Packages, QueueError, Retention, Submission,
    is_valid_id,
};
use lockstep_base::fs::{FileLock, random_letters, restricted_folder, sync_folder};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Folders of jobs that are being made or removed begin with this.
pub(crate) const PASSING: &str = ".";
/// The longest command, in bytes: the system takes no longer argument.
const LONGEST_COMMAND: usize = 120 << 10;

/// How a queue is to be.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// The folder that jobs and packages lie in.
    pub folder: PathBuf,
    /// The program that looks after a job as `PROGRAM job-process`, and that jobs find as `lockstep`.
    pub program: PathBuf,
    /// What jobs may use.
    pub machine: Machine,
    /// How many jobs of one user run at a time.
    pub per_user: Option<usize>,
    /// Which jobs that have ended are remembered.
    pub retention: Retention,
    /// Seconds between being asked to stop and being killed, unless a job says otherwise.
    pub grace_s: f64,
    /// How many bytes of a job's log are kept.
    pub log_limit: u64,
    /// The largest package, in bytes.
    pub package_limit: u64,
    /// The user that jobs run as; the server's own if nothing is said.
    pub job_user: Option<JobUser>,
    /// Environment variables that every job finds, unless it sets them itself.
    pub variables: Vec<(&'static str, String)>,
}

impl QueueSettings {
    /// The usual ones.
    pub fn new(folder: PathBuf, program: PathBuf) -> QueueSettings {
        QueueSettings {
            folder,
            program,
            machine: Machine::here(),
            per_user: None,
            retention: Retention::default(),
            grace_s: 30.0,
            log_limit: 64 << 20,
            package_limit: 100 << 20,
            job_user: None,
            variables: Vec::new(),
        }
    }
}

/// A queue of jobs. A clone is the same queue.
#[derive(Debug, Clone)]
pub struct Queue(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: QueueSettings,
    pub(crate) packages: Packages,
    state: Mutex<State>,
    /// Written to make the scheduler look.
    pub(crate) wake: Arc<OwnedFd>,
    pub(crate) changed: watch::Sender<u64>,
    next: AtomicU64,
    /// A queue has one server at a time.
    _lock: FileLock,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left is read from the files again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn jobs(&self) -> PathBuf {
        self.settings.folder.join("jobs")
    }

    pub(crate) fn folder(&self, id: &str) -> Folder {
        Folder::new(self.jobs().join(id))
    }

    pub(crate) fn wake(&self) {
        // It can only be full, and then the scheduler is about to look anyway.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The scheduler finds that nobody is left.
        self.wake();
    }
}

impl Queue {
    /// Opens a queue, and goes on with what was in it. Jobs begin by themselves from now on.
    ///
    /// # Errors
    /// When its folder cannot be used, or another process serves it.
    pub fn open(settings: QueueSettings) -> Result<Queue, QueueError> {
        let (jobs, work) = (settings.folder.join("jobs"), settings.folder.join(WORK));
        // What jobs are given may be secret. Where they run as another user, that one must get to its own folder.
        let passing = if settings.job_user.is_some() {
            0o711
        } else {
            0o700
        };
        let packages = settings.folder.join("packages");
        for (folder, mode) in [
            (&settings.folder, passing),
            (&work, passing),
            (&jobs, 0o700),
            (&packages, 0o700),
        ] {
            restricted_folder(folder, mode)?;
        }
        let Some(lock) = FileLock::try_take(&settings.folder.join("queue.lock"))? else {
            return Err(QueueError::InUse {
                path: settings.folder,
            });
        };
        link_program(&settings)?;
        if let Some(user) = &settings.job_user {
            user.check(&settings.folder, &work)?;
        }
        let state = State::load(&jobs, settings.machine.clone())?;
        remove_forgotten(&work, &state);
        let cannot = QueueError::file(&jobs);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = wake.map_err(|error| cannot(error.into()))?;
        let shared = Arc::new(Shared {
            packages: Packages::open(packages, settings.package_limit)?,
            next: AtomicU64::new(state.next_number()),
            state: Mutex::new(state),
            wake: Arc::new(wake),
            changed: watch::Sender::new(0),
            _lock: lock,
            settings,
        });
        Scheduler::start(&shared)?;
        Ok(Queue(shared))
    }

    /// All jobs, in the order in which they came.
    pub fn list(&self) -> Vec<JobView> {
        self.0.state().views()
    }

    /// A job.
    pub fn get(&self, id: &str) -> Option<JobView> {
        self.0.state().view(id)
    }

    /// Adds a job. When this returns, it is on the disk.
    ///
    /// # Errors
    /// When it cannot be, when there is one of that id, or when the disk refuses.
    pub fn submit(&self, submission: Submission) -> Result<JobView, QueueError> {
        self.add(self.asked(submission)?)
    }

    fn add(&self, asked: JobRecord) -> Result<JobView, QueueError> {
        let folder = self.0.folder(&asked.id);
        let (jobs, passing) = (self.0.jobs(), self.passing()?);
        let made = Folder::new(&passing);
        fs::create_dir_all(passing.join("log")).map_err(QueueError::file(&passing))?;
        made.write_asked(&asked)?;
        match renameat_with(CWD, &passing, CWD, folder.path(), RenameFlags::NOREPLACE) {
            Ok(()) => (),
            Err(error) => {
                let _ = fs::remove_dir_all(&passing);
                return Err(match error {
                    Errno::EXIST => QueueError::Exists(asked.id),
                    other => QueueError::file(folder.path())(other.into()),
                });
            }
        }
        if let Err(error) = sync_folder(&jobs) {
            // Nobody is told its id, so it must not run.
            let _ = fs::remove_dir_all(folder.path());
            return Err(error.into());
        }
        let id = asked.id.clone();
        let view = self.0.state().add(asked);
        self.0.wake();
        view.ok_or(QueueError::Missing(id))
    }

    /// Submits a job once more, under a new id.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), and when there is no such job.
    pub fn resubmit(
        &self,
        id: &str,
        user: &str,
        highest_priority: Option<i64>,
    ) -> Result<JobView, QueueError> {
        let before = self.0.state().asked(id);
        let before = before.ok_or_else(|| QueueError::Missing(id.to_owned()))?;
        let asked = self.asked(Submission {
            id: None,
            user: user.to_owned(),
            entrypoint: before.entrypoint.clone(),
            runtime_env: before.runtime_env.clone(),
            metadata: before.metadata.clone(),
            needs: before.needs.clone(),
            highest_priority,
        })?;
        // Its packages are those of whoever sent them.
        self.add(JobRecord {
            packages_of: before.packages_of.clone(),
            ..asked
        })
    }

    /// Asks a job to stop; whether it had not ended. It ends in good order, and is killed if that takes too long.
    ///
    /// # Errors
    /// When there is no such job, or the disk refuses.
    pub fn stop(&self, id: &str) -> Result<bool, QueueError> {
        match self.get(id) {
            None => return Err(QueueError::Missing(id.to_owned())),
            Some(job) if job.status.is_final() => return Ok(false),
            Some(_) => (),
        }
        self.0.folder(id).ask_to_stop()?;
        self.0.wake();
        Ok(true)
    }

    /// Forgets a job that has ended, with its log and its folder.
    ///
    /// # Errors
    /// When there is no such job, when it has not ended, when another is to run after it, or when the disk refuses.
    pub fn remove(&self, id: &str) -> Result<(), QueueError> {
        self.0.forget(id)?;
        self.0.wake();
        Ok(())
    }

    /// The log of a job.
    ///
    /// # Errors
    /// When there is no such job.
    pub fn log(&self, id: &str) -> Result<Log, QueueError> {
        match self.get(id) {
            Some(job) => Ok(self.0.folder(&job.id).log()),
            None => Err(QueueError::Missing(id.to_owned())),
        }
    }

    /// Changes whenever a job does.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// The packages that jobs may name.
    pub fn packages(&self) -> &Packages {
        &self.0.packages
    }

    /// How it was to be.
    pub fn settings(&self) -> &QueueSettings {
        &self.0.settings
    }

    /// A folder beside those of jobs that nobody else makes.
    fn passing(&self) -> Result<PathBuf, QueueError> {
        let name = format!("{PASSING}new-{}", random_letters::<16>()?);
        Ok(self.0.jobs().join(name))
    }

    fn asked(&self, submission: Submission) -> Result<JobRecord, QueueError> {
        let id = match submission.id {
            Some(id) if is_valid_id(&id) => id,
            Some(id) => {
                return Err(QueueError::Wrong(format!(
                    "submission_id {id:?} cannot be; use letters, digits, `-`, `_` and `.`, at most 128"
                )));
            }
            None => new_id()?,
        };
        let command = &submission.entrypoint;
        if command.trim().is_empty() || command.contains('\0') || command.len() > LONGEST_COMMAND {
            return Err(QueueError::Wrong(format!(
                "entrypoint must be a command of at most {LONGEST_COMMAND} bytes"
            )));
        }
        let settings = &self.0.settings;
        let wrong = submission.needs.wrong();
        if let Some(why) = wrong.or_else(|| settings.machine.lacks(&submission.needs)) {
            return Err(QueueError::Wrong(why));
        }
        let extras = Extras::read(&submission.metadata)?;
        let asked = extras.priority;
        if let Some(highest) = submission
            .highest_priority
            .filter(|highest| asked > *highest)
        {
            return Err(QueueError::Priority { asked, highest });
        }
        let state = self.0.state();
        if let Some(missing) = extras.after.iter().find(|id| state.asked(id).is_none()) {
            return Err(QueueError::Wrong(format!(
                "metadata lockstep.after: there is no job {missing}"
            )));
        }
        drop(state);
        let packages_of = Some(submission.user.clone());
        // Without tokens all are the same; a name that is given tells them apart.
        let user = match (submission.user.as_str(), extras.user) {
            ("local", Some(user)) => user,
            _ => submission.user,
        };
        Ok(JobRecord {
            id,
            number: self.0.next.fetch_add(1, Ordering::Relaxed),
            user,
            submitted_ms: now_ms(),
            entrypoint: submission.entrypoint,
            runtime_env: submission.runtime_env,
            packages_of,
            metadata: submission.metadata,
            needs: submission.needs,
            priority: extras.priority,
            after: extras.after,
            retries: extras.retries,
            retry_codes: extras.retry_codes,
            grace_s: extras.grace_s.unwrap_or(settings.grace_s),
            log_limit: settings.log_limit,
            mark: random_letters::<24>()?,
        })
    }
}

impl Shared {
    /// Removes a job that may be: first its folder's name, in one step, then what is in it.
    pub(crate) fn forget(&self, id: &str) -> Result<(), QueueError> {
        let folder = self.folder(id);
        let gone = self
            .jobs()
            .join(format!("{PASSING}gone-{}", random_letters::<16>()?));
        let mut state = self.state();
        state.may_remove(id)?;
        let (work, gone_work) = (folder.work(), gone.join(WORK));
        fs::rename(folder.path(), &gone).map_err(QueueError::file(folder.path()))?;
        // A job that never began has none.
        let _ = fs::rename(&work, &gone_work);
        state.drop_job(id);
        drop(state);
        // What cannot be removed now is when the queue is opened next.
        let _ = fs::remove_dir_all(&gone);
        Ok(())
    }
}

/// Removes what commands left whose jobs are forgotten: a server was killed in between.
fn remove_forgotten(work: &Path, state: &State) {
    for entry in fs::read_dir(work).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name
            .to_str()
            .is_none_or(|name| !state.jobs.contains_key(name))
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Lets jobs find the program as `lockstep`, whatever its file is named.
fn link_program(settings: &QueueSettings) -> Result<(), QueueError> {
    let folder = settings.folder.join("bin");
    fs::create_dir_all(&folder).map_err(QueueError::file(&folder))?;
    let link = folder.join("lockstep");
    let new = folder.join(".lockstep.new");
    let _ = fs::remove_file(&new);
    let made = std::os::unix::fs::symlink(absolute(&settings.program), &new);
    made.and_then(|()| fs::rename(&new, &link))
        .map_err(QueueError::file(&link))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
