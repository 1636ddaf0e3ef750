//! The thread that makes a queue go: it hears of what jobs do, and begins those whose turn it is.
//!
//! It sleeps until something happens: a job was submitted or asked to stop, or a file of a job changed. A job's keeper
//! has its lock open for as long as it lives, so that its end is heard as that file being closed.

use crate::folder::{Ended, Folder, now_ms};
use crate::leftovers::kill_marked;
use crate::packages::packages_in;
use crate::plan::{Placed, Waiting, in_line, plan};
use crate::queue::{PASSING, Shared};
use crate::state::Progress;
use crate::{Asked, JobStatus, JobView, Notice, QueueError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How often what has ended long ago is looked for.
const TIDY: Duration = Duration::from_secs(60);
/// How often a keeper is looked at that has not begun its job yet.
const BEGINNING: Duration = Duration::from_millis(500);

/// A job in memory.
#[derive(Debug)]
struct Job {
    asked: Arc<Asked>,
    progress: Progress,
    /// The keeper that was started for this attempt, and the GPUs it was given.
    keeper: Option<(Child, Vec<u32>)>,
    /// Whether its folder is watched.
    watch: Option<i32>,
}

impl Job {
    /// Whether it has room on the machine.
    fn is_placed(&self) -> bool {
        !self.progress.is_final() && (self.progress.begun.is_some() || self.keeper.is_some())
    }
}

/// All jobs in memory.
#[derive(Debug, Default)]
pub(crate) struct State {
    jobs: BTreeMap<String, Job>,
}

impl State {
    /// Reads all jobs, and removes what was being made or removed when the last server ended.
    pub(crate) fn load(folder: &Path) -> Result<State, QueueError> {
        let mut state = State::default();
        for entry in fs::read_dir(folder).map_err(QueueError::file(folder))? {
            let entry = entry.map_err(QueueError::file(folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(PASSING) {
                let _ = fs::remove_dir_all(entry.path());
                continue;
            }
            match Folder::new(entry.path()).asked() {
                Ok(asked) if asked.id == name => {
                    let progress = Progress::read(&Folder::new(entry.path()), &asked, 1);
                    state.insert(asked, progress);
                }
                Ok(_) => eprintln!("warning: {} holds another job", entry.path().display()),
                Err(error) => eprintln!("warning: {error}"),
            }
        }
        Ok(state)
    }

    fn insert(&mut self, asked: Asked, progress: Progress) {
        let job = Job {
            asked: Arc::new(asked),
            progress,
            keeper: None,
            watch: None,
        };
        self.jobs.insert(job.asked.id.clone(), job);
    }

    pub(crate) fn next_number(&self) -> u64 {
        let numbers = self.jobs.values().map(|job| job.asked.number);
        numbers.max().map_or(1, |last| last + 1)
    }

    pub(crate) fn add(&mut self, asked: Asked) -> Option<JobView> {
        let id = asked.id.clone();
        let progress = Progress {
            attempt: 1,
            ..Progress::default()
        };
        self.insert(asked, progress);
        self.view(&id)
    }

    pub(crate) fn asked(&self, id: &str) -> Option<Arc<Asked>> {
        self.jobs.get(id).map(|job| Arc::clone(&job.asked))
    }

    pub(crate) fn drop_job(&mut self, id: &str) {
        self.jobs.remove(id);
    }

    /// Whether a job can be forgotten.
    pub(crate) fn may_remove(&self, id: &str) -> Result<(), QueueError> {
        let job = self.jobs.get(id);
        let job = job.ok_or_else(|| QueueError::Missing(id.to_owned()))?;
        if !job.progress.is_final() {
            return Err(QueueError::NotEnded {
                id: id.to_owned(),
                status: job.progress.status(),
            });
        }
        match self.needed_by(id) {
            Some(by) => Err(QueueError::Needed {
                id: id.to_owned(),
                by,
            }),
            None => Ok(()),
        }
    }

    /// A job that is to run after `id`.
    fn needed_by(&self, id: &str) -> Option<String> {
        let waits = |job: &&Job| {
            !job.progress.is_final() && job.asked.after.iter().any(|after| after == id)
        };
        let by = self.jobs.values().find(waits);
        by.map(|job| job.asked.id.clone())
    }

    pub(crate) fn view(&self, id: &str) -> Option<JobView> {
        let job = self.jobs.get(id)?;
        let mut view = self.told(job);
        if view.status == JobStatus::Pending && !job.is_placed() {
            let line = self.line();
            view.position = line.iter().position(|waiting| waiting.id == id);
        }
        Some(view)
    }

    pub(crate) fn views(&self) -> Vec<JobView> {
        let line = self.line();
        let places: BTreeMap<&str, usize> = line
            .iter()
            .enumerate()
            .map(|(place, waiting)| (waiting.id, place))
            .collect();
        let told = |job: &Job| {
            let mut view = self.told(job);
            view.position = places.get(job.asked.id.as_str()).copied();
            view
        };
        let mut views: Vec<JobView> = self.jobs.values().map(told).collect();
        views.sort_by_key(|view| view.number);
        views
    }

    fn told(&self, job: &Job) -> JobView {
        let waits_for = match job.progress.status() == JobStatus::Pending && !job.is_placed() {
            true => self.waits_for(job),
            false => None,
        };
        job.progress.view(&job.asked, waits_for)
    }

    /// What a job waits for beside room.
    fn waits_for(&self, job: &Job) -> Option<String> {
        let open = |id: &&String| {
            let before = self.jobs.get(*id);
            before.is_some_and(|before| !before.progress.is_final())
        };
        let open: Vec<&str> = job
            .asked
            .after
            .iter()
            .filter(open)
            .map(String::as_str)
            .collect();
        match open.is_empty() {
            true => None,
            false => Some(format!("It is to run after {}.", open.join(", "))),
        }
    }

    /// The jobs that could begin if there is room, in line.
    fn line(&self) -> Vec<Waiting<'_>> {
        let ready = |job: &&Job| {
            !job.progress.is_final() && !job.is_placed() && self.waits_for(job).is_none()
        };
        let mut line: Vec<Waiting<'_>> = self
            .jobs
            .values()
            .filter(ready)
            .map(|job| Waiting {
                id: &job.asked.id,
                user: &job.asked.user,
                needs: &job.asked.needs,
                priority: job.asked.priority,
                number: job.asked.number,
            })
            .collect();
        in_line(&mut line);
        line
    }

    /// A job that must not begin any more, because one that it was to run after did not succeed.
    fn doomed(&self, job: &Job) -> Option<Ended> {
        job.asked.after.iter().find_map(|id| {
            let how = match self.jobs.get(id).map(|before| before.progress.status()) {
                None => "is gone".to_owned(),
                Some(JobStatus::Failed | JobStatus::Stopped) => "did not succeed".to_owned(),
                Some(_) => return None,
            };
            let message = format!("It was to run after the job {id}, which {how}.");
            Some(Ended::failed("JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE", message))
        })
    }
}

/// The thread that makes a queue go.
pub(crate) struct Scheduler {
    shared: Weak<Shared>,
    heard: Notice,
    /// Which job a watched folder is of.
    watched: BTreeMap<i32, String>,
    tidied: Instant,
    wake: Arc<OwnedFd>,
    /// What was told of last.
    seen: Fingerprint,
}

/// What somebody could see of jobs.
type Fingerprint = Vec<(u64, u32, JobStatus, bool)>;

impl Scheduler {
    /// Starts the thread. It ends with the last of those who share the queue.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<(), QueueError> {
        let cannot = |error| QueueError::file(&shared.settings.folder)(error);
        let mut scheduler = Scheduler {
            shared: Arc::downgrade(shared),
            heard: Notice::new().map_err(cannot)?,
            watched: BTreeMap::new(),
            tidied: Instant::now(),
            wake: Arc::clone(&shared.wake),
            seen: Vec::new(),
        };
        scheduler.pass(shared);
        let thread = thread::Builder::new().name("queue".into());
        thread.spawn(move || scheduler.run()).map_err(cannot)?;
        Ok(())
    }

    fn run(&mut self) {
        let mut pause = TIDY;
        loop {
            let timeout = Timespec::try_from(pause).ok();
            let mut fds = [
                PollFd::new(&self.heard, PollFlags::IN),
                PollFd::new(&*self.wake, PollFlags::IN),
            ];
            // An interrupted wait is an early one.
            let _ = poll(&mut fds, timeout.as_ref());
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            pause = self.pass(&shared);
        }
    }

    /// Does all that there is to do now. Returns for how long there is nothing else.
    fn pass(&mut self, shared: &Shared) -> Duration {
        let mut touched: BTreeSet<String> = BTreeSet::new();
        for change in self.heard.changes() {
            touched.extend(self.watched.get(&change.watch).cloned());
        }
        let mut pause = TIDY;
        {
            let mut state = shared.state();
            self.settle(shared, &mut state, &touched);
            let beginning = begin(shared, &mut state);
            pause = pause.min(beginning);
            self.watch(shared, &mut state);
        }
        if self.tidied.elapsed() >= TIDY {
            self.tidied = Instant::now();
            tidy(shared);
        }
        let now = shared.state().fingerprint();
        if std::mem::replace(&mut self.seen, now.clone()) != now {
            shared.changed.send_modify(|count| *count += 1);
        }
        pause
    }

    /// Reads again what has changed, and ends what has no keeper or must not begin.
    fn settle(&mut self, shared: &Shared, state: &mut State, touched: &BTreeSet<String>) {
        let open: Vec<String> = state
            .jobs
            .values()
            .filter(|job| !job.progress.is_final())
            .map(|job| job.asked.id.clone())
            .collect();
        for id in open {
            let folder = shared.folder(&id);
            let doomed = state.jobs.get(&id).and_then(|job| state.doomed(job));
            let Some(job) = state.jobs.get_mut(&id) else {
                continue;
            };
            let asked = Arc::clone(&job.asked);
            let read = |attempt: u32| Progress::read(&folder, &asked, attempt);
            if touched.contains(&id) || job.watch.is_none() || job.keeper.is_some() {
                job.progress = read(job.progress.attempt);
            }
            job.progress.stop |= folder.is_to_stop();
            let attempt = job.progress.attempt;
            if job.progress.begun.is_some() && job.progress.ended.is_none() && !folder.is_kept() {
                // It may have ended in this moment.
                job.progress = read(attempt);
                if job.progress.ended.is_none() && job.progress.attempt == attempt {
                    kill_marked(&asked.mark);
                    conclude(&folder, attempt, &lost(job));
                    job.progress = read(attempt);
                }
            }
            if job.progress.attempt != attempt || job.progress.is_final() {
                reap(job);
            } else if job.progress.begun.is_none() && has_exited(job) && !folder.is_kept() {
                conclude(&folder, attempt, &not_begun(&folder));
                job.progress = read(attempt);
            } else if !job.is_placed() && job.progress.stop {
                conclude(&folder, attempt, &Ended::stopped(None));
                job.progress = read(attempt);
            } else if !job.is_placed()
                && let Some(ended) = doomed
            {
                conclude(&folder, attempt, &ended);
                job.progress = read(attempt);
            }
        }
    }

    /// Watches the folders of jobs that something may happen to, and no others.
    fn watch(&mut self, shared: &Shared, state: &mut State) {
        self.watched.retain(|watch, id| {
            let open = state.jobs.get(id).is_some_and(Job::is_placed);
            if !open {
                self.heard.forget(*watch);
                if let Some(job) = state.jobs.get_mut(id) {
                    job.watch = None;
                }
            }
            open
        });
        let mut missed = false;
        for (id, job) in &mut state.jobs {
            if job.watch.is_some() || !job.is_placed() {
                continue;
            }
            match self.heard.of_files(shared.folder(id).path()) {
                Ok(watch) => {
                    job.watch = Some(watch);
                    self.watched.insert(watch, id.clone());
                    missed = true;
                }
                Err(error) => eprintln!("warning: the job {id} cannot be watched: {error}"),
            }
        }
        if missed {
            // Something may have happened before it was watched.
            shared.wake();
        }
    }
}

impl State {
    /// Changes when a job does, in a way that somebody could see.
    fn fingerprint(&self) -> Fingerprint {
        let of = |job: &Job| {
            (
                job.asked.number,
                job.progress.attempt,
                job.progress.status(),
                job.progress.stop,
            )
        };
        self.jobs.values().map(of).collect()
    }
}

/// Begins all jobs whose turn it is. Returns when to look again.
fn begin(shared: &Shared, state: &mut State) -> Duration {
    let mut pause = TIDY;
    let settings = &shared.settings;
    let placed: Vec<Placed<'_>> = state
        .jobs
        .values()
        .filter(|job| job.is_placed())
        .map(|job| Placed {
            user: &job.asked.user,
            needs: &job.asked.needs,
            gpus: match (&job.progress.begun, &job.keeper) {
                (Some(begun), _) => &begun.gpus,
                (None, Some((_, gpus))) => gpus,
                (None, None) => &[],
            },
        })
        .collect();
    let mut line = state.line();
    line.retain(|waiting| {
        let due = state.jobs.get(waiting.id);
        let left = due.map_or(0, |job| job.progress.pause_ms());
        if left > 0 {
            pause = pause.min(Duration::from_millis(left));
        }
        left == 0
    });
    let chosen = plan(&settings.machine, &placed, &line, settings.per_user);
    drop(placed);
    for (id, gpus) in chosen {
        let Some(job) = state.jobs.get_mut(&id) else {
            continue;
        };
        let folder = shared.folder(&id);
        let attempt = job.progress.attempt;
        match spawn(shared, &folder, attempt, &gpus) {
            Ok(child) => job.keeper = Some((child, gpus)),
            Err(error) => {
                let message =
                    format!("The process that looks after the job cannot be started: {error}");
                let ended = Ended::failed("JOB_SUPERVISOR_ACTOR_START_FAILURE", message);
                conclude(&folder, attempt, &ended);
                job.progress = Progress::read(&folder, &job.asked, attempt);
            }
        }
    }
    let beginning = |job: &Job| job.keeper.is_some() && job.progress.begun.is_none();
    if state.jobs.values().any(beginning) {
        pause = pause.min(BEGINNING);
    }
    pause
}

fn spawn(shared: &Shared, folder: &Folder, attempt: u32, gpus: &[u32]) -> std::io::Result<Child> {
    let said = fs::File::create(folder.at("keeper.log"))?;
    let mut command = Command::new(&shared.settings.program);
    command
        .arg("job-process")
        .arg(folder.path())
        .args(["--attempt", &attempt.to_string()]);
    if !gpus.is_empty() {
        let gpus: Vec<String> = gpus.iter().map(u32::to_string).collect();
        command.args(["--gpus", &gpus.join(",")]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .spawn()
}

/// Forgets jobs that ended long ago, and packages that nobody needs.
fn tidy(shared: &Shared) {
    let (ended, named) = {
        let state = shared.state();
        let end = |job: &Job| Some((job.progress.ended.as_ref()?.at_ms, job.asked.id.clone()));
        let ended: Vec<(u64, String)> = state.jobs.values().filter_map(end).collect();
        let named = state
            .jobs
            .values()
            .map(|job| packages_in(&job.asked.runtime_env));
        let named: BTreeSet<String> = named.flatten().collect();
        (ended, named)
    };
    for id in shared.settings.retention.forgotten(ended, now_ms()) {
        if shared.state().may_remove(&id).is_ok()
            && let Err(error) = shared.forget(&id)
        {
            eprintln!("warning: {error}");
        }
    }
    shared.packages.remove_unused(&named);
}

fn conclude(folder: &Folder, attempt: u32, ended: &Ended) {
    // What cannot be written now is tried again at the next look.
    if let Err(error) = folder.conclude(attempt, ended) {
        eprintln!("warning: {error}");
    }
}

/// The end of a job whose keeper is gone.
fn lost(job: &Job) -> Ended {
    match job.progress.stop {
        true => Ended::stopped(None),
        false => Ended::failed(
            "JOB_SUPERVISOR_ACTOR_DIED",
            "The process that looked after the job is gone: it was killed, or the machine was restarted. What was left \
             of the job was ended.",
        ),
    }
}

/// The end of a job whose keeper went before it began.
fn not_begun(folder: &Folder) -> Ended {
    let said = fs::read_to_string(folder.at("keeper.log")).unwrap_or_default();
    let message = format!(
        "The process that looks after the job ended before it began: {}",
        said.trim()
    );
    Ended::failed("JOB_SUPERVISOR_ACTOR_START_FAILURE", message)
}

/// Whether the job's keeper was started by this server and has ended.
fn has_exited(job: &mut Job) -> bool {
    let exited = |(child, _): &mut (Child, Vec<u32>)| matches!(child.try_wait(), Ok(Some(_)));
    job.keeper.as_mut().is_some_and(exited)
}

/// Lets go of a keeper whose attempt is over, without leaving a process that nobody waits for.
fn reap(job: &mut Job) {
    if let Some((mut child, _)) = job.keeper.take()
        && !matches!(child.try_wait(), Ok(Some(_)))
    {
        // It ends within moments: it has written down its job's end.
        let waiting = thread::Builder::new().name("keeper".into());
        let _ = waiting.spawn(move || child.wait());
    }
}
