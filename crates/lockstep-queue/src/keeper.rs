//! The process that looks after one job: it starts the command, keeps its log, stops it when asked, and writes down how
//! it ended.
//!
//! It is no child of the server in any sense that matters: it has a session of its own, and goes on when the server ends.
//! It holds the job's lock for as long as it lives. Two of them for one attempt do no harm: the second finds that the
//! attempt has begun, and goes.

use crate::cgroup::Group;
use crate::environments::Environment;
use crate::folder::{AttemptEnd, Begun, Folder, Started, now_ms};
use crate::leftovers::{kill_descendants, kill_marked};
use crate::log::LogWriter;
use crate::setup::{Surroundings, set_up};
use crate::{JobRecord, JobStatus, JobUser, Notice, QueueError};
use lockstep_base::fs::FileLock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, set_child_subreaper,
    setsid, test_kill_process_group, wait,
};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What such a process ends with that could not begin, because the system had no room: `EX_TEMPFAIL`.
pub const TRY_AGAIN: u8 = 75;
/// How long a disk that takes nothing is waited for at the end.
const FULL: Duration = Duration::from_secs(60);
/// How long the lock is waited for: somebody may just be looking at it.
const LOCKED: Duration = Duration::from_secs(2);
/// How long what a command left behind may take to end, once it was asked to.
const LEFT_BEHIND: Duration = Duration::from_secs(3);
/// How often a group is looked at whose first process has ended.
const LOOK: Duration = Duration::from_millis(10);
/// How often it is looked whether the job is to stop, where that cannot be heard.
const UNHEARD: Duration = Duration::from_millis(250);
/// How long the system is left alone that has no room for a process.
const NO_ROOM: Duration = Duration::from_millis(500);
/// How long the rest of the log may take to arrive after all processes have ended.
const REST: Duration = Duration::from_secs(2);
/// How much of the log is read at a time.
const BLOCK: usize = 64 << 10;
/// So often before anything else is looked at: a command may write without end.
const BLOCKS: usize = 16;
/// What of the log goes into a failure's message, as Ray has it.
const LAST: (usize, usize) = (10, 20_000);

/// What a process that looks after a job is told.
#[derive(Debug, Clone)]
pub struct JobProcess {
    /// The job's folder.
    pub folder: PathBuf,
    /// Which attempt it is.
    pub attempt: u32,
    /// The GPUs that it has.
    pub gpus: Vec<u32>,
    /// The user that its command runs as; this process's own if nothing is said.
    pub user: Option<String>,
}

/// Looks after one attempt of a job, to its end.
///
/// # Errors
/// When the job's folder cannot be read or written.
pub fn keep(process: &JobProcess) -> Result<(), QueueError> {
    let JobProcess {
        folder,
        attempt,
        gpus,
        user,
    } = process;
    let attempt = *attempt;
    let user = user.as_deref().map(JobUser::find).transpose()?;
    // It fails where this process leads a session already, which is as good.
    let _ = setsid();
    // Processes that lose their parent become children of this one, which can tell when they have ended.
    let _ = set_child_subreaper(Pid::from_raw(1));
    let folder = Folder::new(folder);
    let asked = folder.asked()?;
    // Users have room for some of these only. Without one it is looked now and then.
    let heard = Notice::new().and_then(|heard| heard.of_files(folder.path()).map(|_| heard));
    let heard = heard.ok();
    let Some(_lock) = lock(&folder, attempt)? else {
        return Ok(());
    };
    if folder.ended(attempt).is_some() {
        return Ok(());
    }
    if folder.is_to_stop() && folder.begun(attempt).is_none() {
        return folder.end(attempt, &AttemptEnd::stopped(None));
    }
    let begun = Begun {
        at_ms: now_ms(),
        gpus: gpus.to_vec(),
    };
    if !folder.begin(attempt, &begun)? {
        return Ok(());
    }
    let ended = Keeper {
        folder: &folder,
        asked: &asked,
        attempt,
        user: user.as_ref(),
        heard,
    }
    .run(gpus);
    write_end(&folder, attempt, &ended)
}

/// Writes down how an attempt ended, as soon as the disk takes it: what is not written is told as a loss.
fn write_end(folder: &Folder, attempt: u32, ended: &AttemptEnd) -> Result<(), QueueError> {
    let until = Instant::now() + FULL;
    loop {
        match folder.end(attempt, ended) {
            Err(_) if Instant::now() < until => std::thread::sleep(FULL / 60),
            written => return written,
        }
    }
}

/// Whether something failed because the system has no room for more files or processes at this moment.
pub(crate) fn lacks_room(error: &std::io::Error) -> bool {
    let known = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    let code = error.raw_os_error();
    known.iter().any(|known| code == Some(known.raw_os_error()))
}

/// Takes the job's lock, unless another looks after it or has.
fn lock(folder: &Folder, attempt: u32) -> Result<Option<FileLock>, QueueError> {
    let began = Instant::now();
    loop {
        if let Some(lock) = folder.lock()? {
            return Ok(Some(lock));
        }
        let over = folder.begun(attempt).is_some() || folder.ended(attempt).is_some();
        if over || began.elapsed() > LOCKED {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

struct Keeper<'a> {
    folder: &'a Folder,
    asked: &'a JobRecord,
    attempt: u32,
    user: Option<&'a JobUser>,
    heard: Option<Notice>,
}

/// A command that runs.
struct Running {
    child: Child,
    pid: Pid,
    /// It can be read when the command has ended.
    held: OwnedFd,
    output: OwnedFd,
    log: LogWriter,
    /// Whether the log can still be written.
    writable: bool,
}

impl Keeper<'_> {
    fn run(&self, gpus: &[u32]) -> AttemptEnd {
        let around = match set_up(self.folder, self.asked, self.attempt, gpus, self.user) {
            Ok(around) => around,
            Err(why) => {
                return AttemptEnd::failed(
                    "RUNTIME_ENV_SETUP_FAILURE",
                    format!("Failed to set up runtime environment: {why}"),
                );
            }
        };
        let group = Group::enter(&self.asked.id, &self.asked.needs);
        if let Some(environment) = &around.environment
            && let Err(ended) = self.make(environment, &around)
        {
            return ended;
        }
        let entrypoint = || {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(&self.asked.entrypoint);
            command
        };
        let started = loop {
            match self.start(&around, entrypoint()) {
                // There will be room again.
                Err(error) if lacks_room(&error) && !self.folder.is_to_stop() => {
                    std::thread::sleep(NO_ROOM);
                }
                started => break started,
            }
        };
        let mut running = match started {
            Ok(running) => running,
            Err(error) => {
                return AttemptEnd::failed(
                    "JOB_ENTRYPOINT_COMMAND_START_ERROR",
                    format!("The command could not be started: {error}"),
                );
            }
        };
        let started = Started {
            at_ms: now_ms(),
            pid: running.child.id(),
        };
        if let Err(error) = self.folder.start(self.attempt, &started) {
            // The job is told of as pending while it runs; that is better than to end it.
            eprintln!("{error}");
        }
        let (status, stopped) = self.look_after(&mut running, None);
        end_all(&self.asked.mark);
        running.drain(REST);
        drop(running.log);
        let out_of_memory = group.as_ref().is_some_and(Group::was_out_of_memory);
        self.judge(status, stopped, out_of_memory)
    }

    /// Makes the environment that the command runs in, unless it is there.
    fn make(&self, environment: &Environment, around: &Surroundings) -> Result<(), AttemptEnd> {
        let failed = |why: String| {
            AttemptEnd::failed(
                "RUNTIME_ENV_SETUP_FAILURE",
                format!("Failed to set up runtime environment: {why}"),
            )
        };
        let _lock = loop {
            if let Some(lock) = environment.lock().map_err(failed)? {
                break lock;
            }
            // Another job makes it.
            if self.folder.is_to_stop() {
                return Err(AttemptEnd::stopped(None));
            }
            std::thread::sleep(UNHEARD);
        };
        if environment.is_made() {
            return Ok(());
        }
        let command = environment.begin(self.user).map_err(failed)?;
        let started = self.start(around, command);
        let mut running = started.map_err(|error| failed(error.to_string()))?;
        // Without it the job goes on as well.
        let _ = running.log.write(environment.words().as_bytes());
        let until = environment
            .patience
            .map(|patience| Instant::now() + patience);
        let (status, stopped) = self.look_after(&mut running, until);
        end_all(&self.asked.mark);
        running.drain(REST);
        drop(running.log);
        if status.is_some_and(|status| status.success()) && !stopped {
            return environment.finish(self.user).map_err(failed);
        }
        environment.remove();
        if stopped {
            return Err(AttemptEnd::stopped(None));
        }
        let last = self.folder.log().last_lines(LAST.0, LAST.1);
        let why = match until.is_some_and(|until| until <= Instant::now()) {
            true => {
                "its packages were not installed in time; config.setup_timeout_seconds may allow more"
            }
            false => "its packages could not be installed",
        };
        Err(failed(format!("{why}:\n{}", last.unwrap_or_default())))
    }

    fn start(&self, around: &Surroundings, mut command: Command) -> std::io::Result<Running> {
        let (output, input) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&output, rustix::fs::OFlags::NONBLOCK)?;
        let mut log = LogWriter::open(self.folder.log(), self.asked.log_limit)?;
        if self.attempt > 1 {
            let line = format!(
                "--- attempt {} of {} ---\n",
                self.attempt,
                self.asked.retries + 1
            );
            log.write(line.as_bytes())?;
        }
        command
            .env_clear()
            .envs(&around.variables)
            .stdin(Stdio::null())
            .process_group(0);
        match self.user {
            None => drop(command.current_dir(&around.folder)),
            Some(user) => {
                user.give_pipe(&input)?;
                user.run(&mut command, &around.folder)?;
            }
        }
        let child = command.stdout(input.try_clone()?).stderr(input).spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(Errno::SRCH)?;
        Ok(Running {
            held: pidfd_open(pid, PidfdFlags::empty())?,
            child,
            pid,
            output,
            log,
            writable: true,
        })
    }

    /// Passes the log on and heeds being asked to stop, until no process of the group is left. What is not over at `until`
    /// is ended. Returns how the command ended, and whether it was asked to stop.
    fn look_after(
        &self,
        running: &mut Running,
        until: Option<Instant>,
    ) -> (Option<ExitStatus>, bool) {
        let told = terminations();
        let mut status = None;
        let (mut stopped, mut killed) = (false, false);
        let mut kill_at: Option<Instant> = None;
        loop {
            if !stopped && self.folder.is_to_stop() {
                stopped = status.is_none();
                running.signal(Signal::TERM);
                let grace = Duration::from_secs_f64(self.asked.grace_s);
                kill_at.get_or_insert(Instant::now() + grace);
            }
            if status.is_some() && !running.has_group() {
                return (status, stopped);
            }
            if kill_at.is_none() && until.is_some_and(|until| until <= Instant::now()) {
                running.signal(Signal::TERM);
                kill_at = Some(Instant::now() + LEFT_BEHIND);
            }
            let pause = match (kill_at.or(until), status.is_some()) {
                (_, true) => Some(LOOK),
                (Some(at), _) => Some(at.saturating_duration_since(Instant::now())),
                (None, _) => None,
            };
            let heard = running.wait(self.heard.as_ref(), told.as_ref(), pause);
            running.pass_on();
            if let Some(heard) = &self.heard {
                heard.clear();
            }
            if heard.told {
                // The machine is shut down, or somebody wants this job gone.
                running.signal(Signal::TERM);
                let grace = Duration::from_secs_f64(self.asked.grace_s);
                kill_at.get_or_insert(Instant::now() + grace);
            }
            if status.is_none() && heard.ended {
                status = running.child.wait().ok();
                if kill_at.is_none() && running.has_group() {
                    // What the command started and did not wait for.
                    running.signal(Signal::TERM);
                    kill_at = Some(Instant::now() + LEFT_BEHIND);
                }
            }
            if status.is_some() {
                reap();
            }
            if kill_at.is_some_and(|at| at <= Instant::now()) {
                if killed && status.is_some() {
                    // What is left cannot be killed; it waits for a disk, perhaps for ever.
                    return (status, stopped);
                }
                running.signal(Signal::KILL);
                kill_marked(&self.asked.mark);
                killed = true;
                kill_at = Some(Instant::now() + LEFT_BEHIND);
            }
        }
    }

    fn judge(&self, status: Option<ExitStatus>, stopped: bool, out_of_memory: bool) -> AttemptEnd {
        let of_signal = |status: ExitStatus| status.signal().map(|signal| 128 + signal);
        let code = status.and_then(|status| status.code().or(of_signal(status)));
        if stopped {
            return AttemptEnd::stopped(code);
        }
        if code == Some(0) {
            return AttemptEnd {
                at_ms: now_ms(),
                status: JobStatus::Succeeded,
                message: "Job finished successfully.".to_owned(),
                error_type: None,
                exit_code: code,
            };
        }
        let last = self.folder.log().last_lines(LAST.0, LAST.1);
        let last = last.unwrap_or_default();
        let number = code.map_or_else(|| "unknown".to_owned(), |code| code.to_string());
        let why = match out_of_memory {
            true => format!(
                " (it needed more memory than the {} bytes that it asked for)",
                self.asked.needs.memory
            ),
            false => String::new(),
        };
        let message = match last.is_empty() {
            true => format!(
                "Job entrypoint command failed with exit code {number}{why}. No logs available."
            ),
            false => format!(
                "Job entrypoint command failed with exit code {number}{why}, last available logs (truncated to \
                 20,000 chars):\n{last}"
            ),
        };
        AttemptEnd {
            exit_code: code,
            ..AttemptEnd::failed("JOB_ENTRYPOINT_COMMAND_ERROR", message)
        }
    }
}

/// What woke a keeper.
struct Woken {
    ended: bool,
    told: bool,
}

impl Running {
    /// Waits until something is to be done.
    fn wait(
        &self,
        heard: Option<&Notice>,
        told: Option<&UnixStream>,
        pause: Option<Duration>,
    ) -> Woken {
        let mut fds = vec![PollFd::new(&self.held, PollFlags::IN)];
        let pause = match heard {
            Some(heard) => {
                fds.push(PollFd::new(heard, PollFlags::IN));
                pause
            }
            None => Some(pause.map_or(UNHEARD, |pause| pause.min(UNHEARD))),
        };
        let told_at = told.map(|told| {
            fds.push(PollFd::from_borrowed_fd(told.as_fd(), PollFlags::IN));
            fds.len() - 1
        });
        if self.writable {
            fds.push(PollFd::new(&self.output, PollFlags::IN));
        }
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        // An interrupted wait is an early one.
        let _ = poll(&mut fds, pause.as_ref());
        let is_ready = |at: usize| !fds[at].revents().is_empty();
        let woken = Woken {
            ended: is_ready(0),
            told: told_at.is_some_and(is_ready),
        };
        if woken.told
            && let Some(mut told) = told
        {
            // It does not wait: there is something to read.
            let _ = std::io::Read::read(&mut told, &mut [0; 64]);
        }
        woken
    }

    /// Passes on what there is of the output.
    fn pass_on(&mut self) {
        let mut block = vec![0; BLOCK];
        for _ in 0..BLOCKS {
            if !self.writable {
                return;
            }
            match rustix::io::read(&self.output, &mut block) {
                // Nobody has the other end any more.
                Ok(0) => self.writable = false,
                Ok(count) => {
                    // A full disk must not end the job: its output is lost.
                    if let Err(error) = self.log.write(&block[..count]) {
                        eprintln!("the log cannot be written: {error}");
                    }
                }
                Err(Errno::INTR) => (),
                Err(Errno::AGAIN) => return,
                Err(_) => self.writable = false,
            }
        }
    }

    /// Passes on the rest of the output, which has `limit` to arrive.
    fn drain(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        loop {
            self.pass_on();
            let left = until.saturating_duration_since(Instant::now());
            if !self.writable || left.is_zero() {
                return;
            }
            let pause = Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(&self.output, PollFlags::IN)];
            let _ = poll(&mut fds, pause.as_ref());
        }
    }

    fn signal(&self, signal: Signal) {
        // There may be nobody left to hear it.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Whether a process of the group is left.
    fn has_group(&self) -> bool {
        test_kill_process_group(self.pid).is_ok()
    }
}

/// Ends all that is left of a job, within a time.
fn end_all(mark: &str) {
    let until = Instant::now() + LEFT_BEHIND;
    while kill_marked(mark) + kill_descendants() > 0 && Instant::now() < until {
        reap();
        std::thread::sleep(LOOK);
    }
    reap();
}

/// Takes note of the ends of processes that had no parent any more.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Can be read when this process is told to end. Without it, it ends as the system has it.
fn terminations() -> Option<UnixStream> {
    let (read, write) = UnixStream::pair().ok()?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, write).ok()?;
    Some(read)
}
