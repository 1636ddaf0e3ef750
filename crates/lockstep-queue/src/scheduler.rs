//! The thread that makes a queue go: it hears of what jobs do, and begins those whose turn it is.
//!
//! It sleeps until something happens: a job was submitted or asked to stop, or a file of a job changed. A job's keeper
//! has its lock open for as long as it lives, so that its end is heard as that file being closed.

use crate::folder::{AttemptEnd, Folder, now_ms};
use crate::leftovers::kill_marked;
use crate::memory::{Fingerprint, Job, State};
use crate::notice::LOST;
use crate::packages::packages_in;
use crate::plan::{Placed, plan};
use crate::queue::Shared;
use crate::state::Progress;
use crate::{Notice, QueueError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How often what has ended long ago is looked for.
const TIDY: Duration = Duration::from_secs(60);
/// How often a keeper is looked at that has not begun its job yet.
const BEGINNING: Duration = Duration::from_millis(500);

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
            match change.watch {
                // More happened than the system could remember.
                LOST => touched.extend(self.watched.values().cloned()),
                watch => touched.extend(self.watched.get(&watch).cloned()),
            }
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
    fn settle(&self, shared: &Shared, state: &mut State, touched: &BTreeSet<String>) {
        for (id, job) in &mut state.jobs {
            if !job.progress.is_final() {
                settle(&shared.folder(id), job, touched.contains(id));
            }
        }
        // All ends that can be known are known now. One that must not begin may be what another was to run after.
        loop {
            let waiting = |job: &&Job| !job.progress.is_final() && !job.is_placed();
            let doomed = state.jobs.values().filter(waiting).filter_map(|job| {
                let ended = state.doomed(job)?;
                Some((job.asked.id.clone(), ended))
            });
            let doomed: Vec<(String, AttemptEnd)> = doomed.collect();
            let mut ended_any = false;
            for (id, ended) in doomed {
                if let Some(job) = state.jobs.get_mut(&id) {
                    conclude(&shared.folder(&id), job, &ended);
                    ended_any |= job.progress.is_final();
                }
            }
            if !ended_any {
                return;
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
                    job.unread = true;
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
                let ended = AttemptEnd::failed("JOB_SUPERVISOR_ACTOR_START_FAILURE", message);
                conclude(&folder, job, &ended);
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
        match shared.forget(&id) {
            // Another is to run after it.
            Ok(()) | Err(QueueError::Needed { .. } | QueueError::Missing(_)) => (),
            Err(error) => eprintln!("warning: {error}"),
        }
    }
    shared.packages.remove_unused(&named);
}

/// Reads again how far a job has come, if there may be news, and ends it if it has no keeper where it should.
fn settle(folder: &Folder, job: &mut Job, touched: bool) {
    let attempt = job.progress.attempt;
    let news = touched || job.unread || job.watch.is_none() || job.keeper.is_some();
    job.unread = false;
    if news {
        read(folder, job);
    }
    job.progress.stop |= folder.is_to_stop();
    if job.progress.begun.is_some() && !job.progress.is_final() && !folder.is_kept() {
        // It may have ended in this moment.
        let begun = job.progress.attempt;
        read(folder, job);
        if job.progress.attempt == begun && !job.progress.is_final() {
            kill_marked(&job.asked.mark);
            let ended = lost(job);
            conclude(folder, job, &ended);
        }
    }
    if job.progress.attempt != attempt || job.progress.is_final() {
        // Its keeper was that of an attempt that is over.
        reap(job);
    }
    if job.progress.is_final() {
        return;
    }
    if job.progress.begun.is_none() && has_exited(job) && !folder.is_kept() {
        conclude(folder, job, &not_begun(folder));
        reap(job);
    } else if !job.is_placed() && job.progress.stop {
        conclude(folder, job, &AttemptEnd::stopped(None));
    }
}

fn read(folder: &Folder, job: &mut Job) {
    job.progress = Progress::read(folder, &job.asked, job.progress.attempt);
}

/// Ends a job's attempt that has no keeper.
fn conclude(folder: &Folder, job: &mut Job, ended: &AttemptEnd) {
    // What cannot be written now is tried again at the next look.
    if let Err(error) = folder.conclude(job.progress.attempt, ended) {
        eprintln!("warning: {error}");
    }
    read(folder, job);
}

/// The end of a job whose keeper is gone.
fn lost(job: &Job) -> AttemptEnd {
    match job.progress.stop {
        true => AttemptEnd::stopped(None),
        false => AttemptEnd::failed(
            "JOB_SUPERVISOR_ACTOR_DIED",
            "The process that looked after the job is gone: it was killed, or the machine was restarted. What was left \
             of the job was ended.",
        ),
    }
}

/// The end of a job whose keeper went before it began.
fn not_begun(folder: &Folder) -> AttemptEnd {
    let said = fs::read_to_string(folder.at("keeper.log")).unwrap_or_default();
    let message = format!(
        "The process that looks after the job ended before it began: {}",
        said.trim()
    );
    AttemptEnd::failed("JOB_SUPERVISOR_ACTOR_START_FAILURE", message)
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
