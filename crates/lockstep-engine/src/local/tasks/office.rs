//! The coordinator's loop: hands out tasks, passes on what comes of them, replaces who is lost.
//!
//! All that happens to workers arrives at one place, one after the other. What a lost worker means the
//! [`Board`] decides; here are the processes.

use super::board::{Board, Loss, TASK_KILLS};
use super::message::{FromWorker, ToWorker, line};
use super::run::{Request, TaskEvent};
use crate::local::blame::describe_exit;
use crate::local::crew::Crew;
use crate::local::lines::each_line;
use crate::{EngineError, Stop};
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The hidden command of the program that is a task worker.
const COMMAND: &str = "task-worker";
/// How many notices may wait. A worker that says more than is heard is held back by its pipe.
const WAITING: usize = 256;
/// How often wishes to stop and deadlines are looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long a worker may give no sign of life: it sends one every other second, whatever it does.
const SILENCE: Duration = Duration::from_secs(30);
/// How long the output of a worker that ended is waited for, if something that it started holds it open.
const OUTPUT_DEADLINE: Duration = Duration::from_secs(1);
/// How much of a worker's last line is repeated in an error.
const LAST_LINE: usize = 300;

/// What is known of one worker.
#[derive(Debug, Default)]
struct Seat {
    /// Which process sits here, of all that were started.
    process: usize,
    /// It has what it needs.
    ready: bool,
    /// The task that it has.
    task: Option<usize>,
    /// How it ended, and when that was learned.
    exit: Option<(ExitStatus, Instant)>,
    /// How many of its two streams have ended.
    streams_ended: usize,
    /// How long nothing was heard of it.
    silent_for: Duration,
    /// It was ended because of that.
    was_silent: bool,
    /// The last line that it wrote for people and that says something.
    last_line: Option<String>,
    /// Its end was judged, and nobody took its place.
    empty: bool,
}

/// One thing that happened to a process.
struct Notice {
    seat: usize,
    process: usize,
    what: What,
}

enum What {
    Said(FromWorker),
    Wrote(String),
    StreamEnded,
    Exited,
}

/// The coordinator at work. Dropping it ends all workers.
pub(super) struct Office<'a> {
    request: Request<'a>,
    board: Board,
    seats: Vec<Seat>,
    crew: Crew,
    /// Processes that were started so far.
    processes: usize,
    stopping: bool,
    sender: SyncSender<Notice>,
    notices: Receiver<Notice>,
    events: &'a mut dyn FnMut(TaskEvent),
}

impl<'a> Office<'a> {
    /// Starts the workers, no more than there are tasks.
    pub(super) fn open(
        request: Request<'a>,
        events: &'a mut dyn FnMut(TaskEvent),
    ) -> Result<Self, EngineError> {
        let (sender, notices) = sync_channel(WAITING);
        let tasks = request.tasks.len();
        let workers = request.workers.max(1).min(tasks);
        let mut office = Self {
            board: Board::new(tasks, request.max_restarts),
            seats: Vec::new(),
            crew: Crew::default(),
            processes: 0,
            stopping: false,
            sender,
            notices,
            request,
            events,
        };
        for seat in 0..workers {
            office.seats.push(Seat::default());
            office.start(seat)?;
        }
        Ok(office)
    }

    /// How many tasks are not done.
    pub(super) fn open_tasks(&self) -> usize {
        self.board.open()
    }

    /// How often a lost worker was replaced.
    pub(super) fn restarts(&self) -> usize {
        self.board.restarts()
    }

    /// Works until all tasks are done, or a stop was heeded: then returns false.
    pub(super) fn work(&mut self) -> Result<bool, EngineError> {
        loop {
            if self.board.is_done() {
                return Ok(true);
            }
            match self.request.stop.get() {
                Stop::No => {}
                Stop::Now => return Ok(false),
                Stop::Graceful => {
                    if !std::mem::replace(&mut self.stopping, true) {
                        (self.events)(TaskEvent::Stopping);
                    }
                    if self.seats.iter().all(|seat| seat.task.is_none()) {
                        return Ok(false);
                    }
                }
            }
            match self.notices.recv_timeout(TICK) {
                Ok(notice) => self.take(notice)?,
                Err(_) => self.look_around()?,
            }
        }
    }

    /// Starts a process in a seat that is empty, or whose process has ended.
    fn start(&mut self, seat: usize) -> Result<(), EngineError> {
        self.processes += 1;
        let process = self.processes;
        self.seats[seat] = Seat {
            process,
            ..Seat::default()
        };
        let mut command = Command::new(&self.request.worker_exe);
        command
            .arg(COMMAND)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.launch(seat, process, command)
            .map_err(|source| EngineError::Spawn {
                rank: seat,
                exe: self.request.worker_exe.clone(),
                source: source.into(),
            })?;
        let setup = ToWorker::Setup {
            worker: seat,
            kind: self.request.kind.to_owned(),
            setup: self.request.setup.clone(),
        };
        self.crew.tell(seat, &line(&setup));
        let pid = self.crew.pid(seat);
        (self.events)(TaskEvent::Worker { worker: seat, pid });
        Ok(())
    }

    /// Starts the process, and the threads that hear it.
    fn launch(&mut self, seat: usize, process: usize, command: Command) -> io::Result<()> {
        let child = self.crew.start(seat, command)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let notify = move |sender: &SyncSender<Notice>, what| {
            sender
                .send(Notice {
                    seat,
                    process,
                    what,
                })
                .is_ok()
        };
        if let Some(stdout) = stdout {
            let sender = self.sender.clone();
            let hear = move || {
                each_message(stdout, |what| notify(&sender, what));
                notify(&sender, What::StreamEnded);
            };
            let thread = thread::Builder::new().name(format!("tasks-{seat}"));
            thread.spawn(hear)?;
        }
        if let Some(stderr) = stderr {
            let sender = self.sender.clone();
            let hear = move || {
                // What can no longer be read is lost; how the worker ends is heard in any case.
                let _ = each_line(stderr, |line| notify(&sender, What::Wrote(line)));
                notify(&sender, What::StreamEnded);
            };
            let thread = thread::Builder::new().name(format!("output-{seat}"));
            thread.spawn(hear)?;
        }
        let sender = self.sender.clone();
        self.crew.when_ended(seat, move || {
            notify(&sender, What::Exited);
        })
    }

    fn take(&mut self, notice: Notice) -> Result<(), EngineError> {
        let Notice {
            seat,
            process,
            what,
        } = notice;
        if self.seats[seat].process != process {
            // The last words of one that was replaced already.
            return Ok(());
        }
        match what {
            What::Said(message) => {
                self.seats[seat].silent_for = Duration::ZERO;
                return self.hear(seat, message);
            }
            What::Wrote(line) => {
                if !line.trim().is_empty() {
                    let last = line.trim().chars().take(LAST_LINE).collect();
                    self.seats[seat].last_line = Some(last);
                }
                let (worker, pid) = (seat, self.crew.pid(seat));
                (self.events)(TaskEvent::Log { worker, pid, line });
            }
            What::StreamEnded => self.seats[seat].streams_ended += 1,
            What::Exited => {
                let status = self.crew.reap(seat);
                let status = status.map_err(|source| EngineError::System {
                    what: "learn how a worker ended",
                    source,
                })?;
                self.seats[seat].exit = Some((status, Instant::now()));
            }
        }
        self.judge_end(seat)
    }

    fn hear(&mut self, seat: usize, message: FromWorker) -> Result<(), EngineError> {
        let kind = || self.request.kind.to_owned();
        match message {
            FromWorker::Alive => {}
            FromWorker::Ready => {
                self.seats[seat].ready = true;
                self.hand_out(seat);
            }
            FromWorker::Started { task } => {
                (self.events)(TaskEvent::Started { task, worker: seat });
            }
            FromWorker::Progress { task, value } => {
                (self.events)(TaskEvent::Progress { task, value });
            }
            FromWorker::Done { task, payload } => {
                if self.seats[seat].task == Some(task) {
                    self.seats[seat].task = None;
                    self.board.done();
                    // The worker shall not wait for what is done with its result.
                    self.hand_out(seat);
                    (self.events)(TaskEvent::Done { task, payload });
                }
            }
            FromWorker::Failed { task: None, error } => {
                return Err(EngineError::TaskSetup {
                    kind: kind(),
                    error,
                });
            }
            FromWorker::Failed {
                task: Some(task),
                error,
            } => {
                return Err(EngineError::TaskFailed {
                    kind: kind(),
                    task,
                    error,
                });
            }
        }
        Ok(())
    }

    /// Gives an idle worker the next task.
    fn hand_out(&mut self, seat: usize) {
        if self.stopping {
            return;
        }
        if let Some(task) = self.board.take() {
            self.seats[seat].task = Some(task);
            let value = self.request.tasks[task].clone();
            self.crew.tell(seat, &line(&ToWorker::Task { task, value }));
        }
    }

    /// Looks at what time alone brings about. Called when there is nothing to hear, so that time in which
    /// this process itself was stopped does not count against the workers.
    fn look_around(&mut self) -> Result<(), EngineError> {
        for seat in 0..self.seats.len() {
            let state = &mut self.seats[seat];
            if state.empty {
                continue;
            }
            if state.exit.is_some() {
                self.judge_end(seat)?;
                continue;
            }
            state.silent_for += TICK;
            if state.silent_for > SILENCE && !state.was_silent {
                state.was_silent = true;
                self.crew.kill_one(seat);
            }
        }
        Ok(())
    }

    /// An end is judged only when all that the worker said was heard: its last words may be a result.
    fn judge_end(&mut self, seat: usize) -> Result<(), EngineError> {
        let state = &mut self.seats[seat];
        let Some((status, since)) = state.exit else {
            return Ok(());
        };
        if state.empty || (state.streams_ended < 2 && since.elapsed() < OUTPUT_DEADLINE) {
            return Ok(());
        }
        state.empty = true;
        let task = state.task.take();
        let reason = self.reason(seat, status);
        if self.stopping {
            return Ok(());
        }
        let kind = || self.request.kind.to_owned();
        match self.board.lost(task) {
            Loss::LetGo => Ok(()),
            Loss::Replace => {
                let restart = self.board.restarts();
                (self.events)(TaskEvent::Restart {
                    restart,
                    task,
                    reason,
                });
                self.start(seat)
            }
            Loss::TaskKills(task) => Err(EngineError::TaskKills {
                kind: kind(),
                task,
                times: TASK_KILLS,
                reason,
            }),
            Loss::TooMany => Err(EngineError::TaskRestarts {
                kind: kind(),
                restarts: self.board.restarts(),
                reason,
            }),
        }
    }

    /// Who ended and how, in words.
    fn reason(&self, seat: usize, status: ExitStatus) -> String {
        let pid = self.crew.pid(seat);
        let state = &self.seats[seat];
        if state.was_silent {
            let seconds = SILENCE.as_secs();
            return format!("worker {seat} (pid {pid}) gave no sign of life for {seconds} s");
        }
        let end = describe_exit(status);
        match &state.last_line {
            Some(line) if status.code().is_some() => {
                format!("worker {seat} (pid {pid}): {end}; the last it wrote was: {line}")
            }
            _ => format!("worker {seat} (pid {pid}): {end}"),
        }
    }
}

/// Reads a worker's standard output to its end. What is no message was written for people.
fn each_message(source: impl Read, mut each: impl FnMut(What) -> bool) {
    let mut source = BufReader::new(source);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match source.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let what = match serde_json::from_slice(&bytes) {
            Ok(message) => What::Said(message),
            Err(_) => What::Wrote(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        };
        if !each(what) {
            return;
        }
    }
}
