//! The thread that makes a queue go: it hears of what jobs do, and begins those whose turn it is.
//!
//! It sleeps until something happens: a job was submitted or asked to stop, or a file of a job changed. A job's keeper
//! has its lock open for as long as it lives, so that its end is heard as that file being closed.

use crate::ages::Ages;
use crate::environments::{Environment, remove_unused};
use crate::folder::{AttemptEnd, Folder};
use crate::keeper::{TRY_AGAIN, lacks_room};
use crate::leftovers::kill_marked;
use crate::memory::{Fingerprint, Job, State};
use crate::notice::LOST;
use crate::packages::packages_of;
use crate::plan::{Placed, plan};
use crate::queue::Shared;
use crate::state::Progress;
use crate::{Notice, QueueError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How often what has ended long ago is looked for.
const TIDY: Duration = Duration::from_secs(60);
/// How often a keeper is looked at that has not begun its job yet, and a job that cannot be watched.
const BEGINNING: Duration = Duration::from_millis(500);
/// How long a job waits for which the system had no room.
const NO_ROOM: Duration = Duration::from_secs(1);

/// The thread that makes a queue go.
pub(crate) struct Scheduler {
    shared: Weak<Shared>,
    /// Nothing where the system has no room for one more: then it is looked often.
    heard: Option<Notice>,
    /// Which job a watched folder is of.
    watched: BTreeMap<i32, String>,
    /// When it tidied up last; not yet, at the beginning.
    tidied: Option<Instant>,
    ages: Ages,
    wake: Arc<OwnedFd>,
    /// What was told of last.
    seen: Fingerprint,
}

/// The end of a job's attempt that has no keeper, to be written down.
struct Ending {
    id: String,
    attempt: u32,
    ended: AttemptEnd,
}

impl Scheduler {
    /// Starts the thread. It ends with the last of those who share the queue.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<(), QueueError> {
        let cannot = |error| QueueError::file(&shared.settings.folder)(error);
        let mut scheduler = Scheduler {
            shared: Arc::downgrade(shared),
            heard: Notice::new().ok(),
            watched: BTreeMap::new(),
            tidied: None,
            ages: Ages::read(shared.settings.folder.join("ages.json")),
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
            let mut fds = vec![PollFd::new(&*self.wake, PollFlags::IN)];
            if let Some(heard) = &self.heard {
                fds.push(PollFd::new(heard, PollFlags::IN));
            }
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
    ///
    /// What waits for the disk is done while nobody else has to wait for the state.
    fn pass(&mut self, shared: &Shared) -> Duration {
        let mut touched: BTreeSet<String> = BTreeSet::new();
        for change in self.heard.iter().flat_map(Notice::changes) {
            match change.watch {
                // More happened than the system could remember.
                LOST => touched.extend(self.watched.values().cloned()),
                watch => touched.extend(self.watched.get(&watch).cloned()),
            }
        }
        loop {
            let endings = settle_all(shared, &mut shared.state(), &touched);
            touched.clear();
            if !conclude(shared, endings) {
                break;
            }
        }
        let (mut pause, unstarted) = {
            let mut state = shared.state();
            let begun = begin(shared, &mut state);
            self.watch(shared, &mut state);
            begun
        };
        conclude(shared, unstarted);
        if shared
            .state()
            .jobs
            .values()
            .any(|job| job.is_placed() && job.watch.is_none())
        {
            pause = pause.min(BEGINNING);
        }
        if self.tidied.is_none_or(|tidied| tidied.elapsed() >= TIDY) {
            self.tidied = Some(Instant::now());
            tidy(shared, &mut self.ages);
        }
        let now = shared.state().fingerprint();
        if std::mem::replace(&mut self.seen, now.clone()) != now {
            shared.changed.send_modify(|count| *count += 1);
        }
        pause
    }

    /// Watches the folders of jobs that something may happen to, and no others.
    fn watch(&mut self, shared: &Shared, state: &mut State) {
        let Some(heard) = &self.heard else {
            return;
        };
        self.watched.retain(|watch, id| {
            let open = state.jobs.get(id).is_some_and(Job::is_placed);
            if !open {
                heard.forget(*watch);
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
            // One that cannot be watched is looked at often.
            if let Ok(watch) = heard.of_files(shared.folder(id).path()) {
                job.watch = Some(watch);
                job.unread = true;
                self.watched.insert(watch, id.clone());
                missed = true;
            }
        }
        if missed {
            // Something may have happened before it was watched.
            shared.wake();
        }
    }
}

/// Reads again what has changed. Returns what must be ended: what has no keeper, and what must not begin.
fn settle_all(shared: &Shared, state: &mut State, touched: &BTreeSet<String>) -> Vec<Ending> {
    let mut endings = Vec::new();
    for (id, job) in &mut state.jobs {
        if !job.progress.is_final() {
            let ended = settle(&shared.folder(id), job, touched.contains(id));
            endings.extend(ended.map(|ended| Ending::of(job, ended)));
        }
    }
    if !endings.is_empty() {
        // Only when all ends are known that can be is it known what must not begin.
        return endings;
    }
    let waiting = |job: &&Job| !job.progress.is_final() && !job.is_placed();
    let doomed = state.jobs.values().filter(waiting);
    doomed
        .filter_map(|job| Some(Ending::of(job, state.doomed(job)?)))
        .collect()
}

impl Ending {
    fn of(job: &Job, ended: AttemptEnd) -> Ending {
        Ending {
            id: job.asked.id.clone(),
            attempt: job.progress.attempt,
            ended,
        }
    }
}

/// Writes down ends; whether any attempt has ended by that. What cannot be written now is tried again at the next look.
fn conclude(shared: &Shared, endings: Vec<Ending>) -> bool {
    let mut ended_any = false;
    for Ending { id, attempt, ended } in endings {
        let folder = shared.folder(&id);
        if let Err(error) = folder.conclude(attempt, &ended) {
            eprintln!("warning: {error}");
        }
        if let Some(job) = shared.state().jobs.get_mut(&id) {
            read(&folder, job);
            let over = job.progress.is_final() || job.progress.attempt != attempt;
            ended_any |= over;
            if over {
                reap(job);
            }
        }
    }
    ended_any
}

/// Begins all jobs whose turn it is. Returns when to look again, and those that cannot begin.
fn begin(shared: &Shared, state: &mut State) -> (Duration, Vec<Ending>) {
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
        let left = due.map_or(Duration::ZERO, Job::wait);
        if !left.is_zero() {
            pause = pause.min(left);
        }
        left.is_zero()
    });
    let chosen = plan(&settings.machine, &placed, &line, settings.per_user);
    drop(placed);
    let mut unstarted = Vec::new();
    for (id, gpus) in chosen {
        let Some(job) = state.jobs.get_mut(&id) else {
            continue;
        };
        let folder = shared.folder(&id);
        let attempt = job.progress.attempt;
        match spawn(shared, &folder, attempt, &gpus) {
            Ok(child) => job.keeper = Some((child, gpus)),
            Err(error) if lacks_room(&error) => {
                job.not_before = Some(Instant::now() + NO_ROOM);
                pause = pause.min(NO_ROOM);
            }
            Err(error) => {
                let message =
                    format!("The process that looks after the job cannot be started: {error}");
                let ended = AttemptEnd::failed("JOB_SUPERVISOR_ACTOR_START_FAILURE", message);
                unstarted.push(Ending::of(job, ended));
            }
        }
    }
    let beginning = |job: &Job| job.keeper.is_some() && job.progress.begun.is_none();
    if state.jobs.values().any(beginning) {
        pause = pause.min(BEGINNING);
    }
    (pause, unstarted)
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
    if let Some(user) = &shared.settings.job_user {
        command.args(["--user", &user.name]);
    }
    // Whoever looks after a job hands its own environment on.
    let variables = shared.settings.variables.iter();
    command
        .envs(variables.map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .spawn()
}

/// Forgets jobs that ended long ago, and packages that nobody needs.
fn tidy(shared: &Shared, ages: &mut Ages) {
    let (ended, named, environments): (_, _, BTreeSet<PathBuf>) = {
        let state = shared.state();
        let ended = state.jobs.values().filter(|job| job.progress.is_final());
        let ended: BTreeMap<String, u64> = ended
            .map(|job| (job.asked.id.clone(), job.asked.number))
            .collect();
        let named = state.jobs.values().flat_map(|job| {
            let owner = job.asked.packages_of.as_deref();
            let names = packages_of(&job.asked).into_iter();
            names.filter_map(move |name| shared.packages.path(owner, name))
        });
        let named: BTreeSet<PathBuf> = named.collect();
        let home = &shared.settings.folder;
        let environments = state.jobs.values();
        let environments = environments.filter_map(|job| Environment::of(&job.asked, home).ok()?);
        let environments = environments.map(|environment| environment.folder().to_owned());
        (ended, named, environments.collect())
    };
    let aged = ages.of(&ended.keys().cloned().collect(), Instant::now());
    let aged = aged.into_iter().map(|(age, id)| (age, ended[&id], id));
    for id in shared.settings.retention.forgotten(aged.collect()) {
        match shared.forget(&id) {
            // Another is to run after it.
            Ok(()) | Err(QueueError::Needed { .. } | QueueError::Missing(_)) => (),
            Err(error) => eprintln!("warning: {error}"),
        }
    }
    shared.packages.remove_unused(&named);
    remove_unused(&shared.settings.folder, &environments);
}

/// Reads again how far a job has come, if there may be news. Returns its end if it has no keeper where it should.
fn settle(folder: &Folder, job: &mut Job, touched: bool) -> Option<AttemptEnd> {
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
            return Some(lost(job));
        }
    }
    if job.progress.attempt != attempt || job.progress.is_final() {
        // Its keeper was that of an attempt that is over.
        reap(job);
    }
    if job.progress.is_final() {
        return None;
    }
    if job.progress.begun.is_none()
        && let Some(code) = exit_of(job)
        && !folder.is_kept()
    {
        if code == Some(TRY_AGAIN.into()) && !job.progress.stop {
            // The system had no room for it.
            reap(job);
            job.not_before = Some(Instant::now() + NO_ROOM);
            return None;
        }
        return Some(not_begun(folder));
    }
    (!job.is_placed() && job.progress.stop).then(|| AttemptEnd::stopped(None))
}

fn read(folder: &Folder, job: &mut Job) {
    let attempt = job.progress.attempt;
    job.progress = Progress::read(folder, &job.asked, attempt);
    if job.progress.attempt != attempt {
        job.not_before = Some(Instant::now() + job.progress.pause());
    }
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

/// What the job's keeper ended with, if it was started by this server and has ended.
#[allow(clippy::option_option, reason = "a process may end without a code")]
fn exit_of(job: &mut Job) -> Option<Option<i32>> {
    let (child, _) = job.keeper.as_mut()?;
    Some(child.try_wait().ok()??.code())
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
