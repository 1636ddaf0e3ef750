//! The coordinator's loop: hands out tasks, passes on what comes of them, replaces who is lost.
//!
//! All that happens to workers arrives at one place, one after the other. What a lost worker means the
//! [`TaskQueue`] decides; here are the processes.

use super::message::{FromTaskWorker, ToTaskWorker, line};
use super::queue::{AfterLoss, TASK_KILLS, TaskQueue};
use super::run::{Request, TaskEvent};
use crate::{EngineError, Stop};
use lockstep_launch::{LaunchNotice, Notify, WorkerEnd, WorkerEvent, WorkerId, WorkerSpec};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// How many notices may wait. A worker that says more than is heard is held back by its pipe.
const WAITING: usize = 256;
/// How often wishes to stop and deadlines are looked at.
const TICK: Duration = Duration::from_millis(20);
/// The most time that counts against workers between two looks: if it was more, this process was stopped.
const LONGEST_TICK: Duration = Duration::from_millis(100);
/// How long the output of a worker that ended is waited for, if something that it started holds it open.
const OUTPUT_DEADLINE: Duration = Duration::from_secs(1);
/// How much of a worker's last line is repeated in an error.
const LAST_LINE: usize = 300;

/// What is known of one worker.
#[derive(Debug, Default)]
struct Seat {
    /// Who sits here.
    id: WorkerId,
    /// Its process id, for people; 0 while it is not known.
    pid: u32,
    /// It has what it needs.
    ready: bool,
    /// The task that it has.
    task: Option<usize>,
    /// How it ended, and when that was learned.
    end: Option<(WorkerEnd, Instant)>,
    /// All that it said and wrote was heard.
    output_ended: bool,
    /// How far its work is, in a count that only grows while it works.
    progress: u64,
    /// How long nothing new was heard of its work.
    still_for: Duration,
    /// It was ended because of that.
    was_still: bool,
    /// The last line that it wrote for people and that says something.
    last_line: Option<String>,
    /// Its end was judged, and nobody took its place.
    empty: bool,
}

impl Seat {
    fn new(id: WorkerId) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }
}

/// The coordinator at work. Dropping it ends all workers.
pub(super) struct TaskCoordinator<'r, 'e> {
    request: Request<'r>,
    queue: TaskQueue,
    seats: Vec<Seat>,
    stopping: bool,
    notify: Notify,
    notices: Receiver<LaunchNotice>,
    /// When time was last counted.
    counted: Instant,
    events: &'e mut dyn FnMut(TaskEvent),
}

impl<'r, 'e> TaskCoordinator<'r, 'e> {
    /// Starts the workers, no more than there are tasks.
    pub(super) fn open(
        request: Request<'r>,
        events: &'e mut dyn FnMut(TaskEvent),
    ) -> Result<Self, EngineError> {
        let (sender, notices) = sync_channel(WAITING);
        let tasks = request.tasks.len();
        let workers = request.workers.max(1).min(tasks);
        let mut coordinator = Self {
            queue: TaskQueue::new(tasks, request.max_restarts),
            seats: Vec::new(),
            stopping: false,
            notify: Arc::new(move |notice| sender.send(notice).is_ok()),
            notices,
            counted: Instant::now(),
            request,
            events,
        };
        for seat in 0..workers {
            let first = WorkerId {
                seat,
                incarnation: 1,
            };
            coordinator.seats.push(Seat::new(first));
            coordinator.start(first)?;
        }
        Ok(coordinator)
    }

    /// How many tasks are not done.
    pub(super) fn open_tasks(&self) -> usize {
        self.queue.open()
    }

    /// How often a lost worker was replaced.
    pub(super) fn restarts(&self) -> usize {
        self.queue.restarts()
    }

    /// Works until all tasks are done, or a stop was heeded: then returns false.
    pub(super) fn work(&mut self) -> Result<bool, EngineError> {
        loop {
            if self.queue.is_done() {
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
            if let Ok(notice) = self.notices.recv_timeout(TICK) {
                self.take(notice)?;
            }
            self.count_time()?;
        }
    }

    /// Starts a worker on a seat that is empty, or whose worker has ended.
    fn start(&mut self, id: WorkerId) -> Result<(), EngineError> {
        let seat = id.seat;
        let setup = ToTaskWorker::Setup {
            worker: seat,
            kind: self.request.kind.to_owned(),
            setup: self.request.setup.clone(),
        };
        let spec = WorkerSpec {
            id,
            command: lockstep_launch::TASK_WORKER,
            invitation: line(&setup),
            speaks: true,
            memory: None,
        };
        let launched = self.request.launcher.start(&spec, self.notify.clone())?;
        self.seats[seat] = Seat::new(id);
        if let Some(pid) = launched.pid {
            self.seats[seat].pid = pid;
            (self.events)(TaskEvent::Worker { worker: seat, pid });
        }
        Ok(())
    }

    fn take(&mut self, notice: LaunchNotice) -> Result<(), EngineError> {
        let seat = notice.id.seat;
        if self.seats[seat].id != notice.id {
            // The last words of one that was replaced already.
            return Ok(());
        }
        match notice.what {
            WorkerEvent::Said(text) => match serde_json::from_str(&text) {
                Ok(message) => return self.hear(seat, message),
                // What is no message was written for people.
                Err(_) => self.wrote(seat, text),
            },
            WorkerEvent::Started(pid) => {
                self.seats[seat].pid = pid;
                (self.events)(TaskEvent::Worker { worker: seat, pid });
            }
            WorkerEvent::Wrote(text) => self.wrote(seat, text),
            // It finishes its task if it can; if not, that is done again.
            WorkerEvent::Leaving(_) => {}
            WorkerEvent::OutputEnded => self.seats[seat].output_ended = true,
            WorkerEvent::Ended(end) => self.seats[seat].end = Some((end, Instant::now())),
        }
        self.judge_end(seat)
    }

    fn wrote(&mut self, seat: usize, line: String) {
        let state = &mut self.seats[seat];
        if !line.trim().is_empty() {
            state.last_line = Some(line.trim().chars().take(LAST_LINE).collect());
        }
        let (worker, pid) = (seat, state.pid);
        (self.events)(TaskEvent::Log { worker, pid, line });
    }

    fn hear(&mut self, seat: usize, message: FromTaskWorker) -> Result<(), EngineError> {
        let kind = || self.request.kind.to_owned();
        let state = &mut self.seats[seat];
        match &message {
            FromTaskWorker::Alive { progress } if *progress == state.progress => {}
            FromTaskWorker::Alive { progress } => {
                state.progress = *progress;
                state.still_for = Duration::ZERO;
            }
            // All else is said by the one who works.
            _ => state.still_for = Duration::ZERO,
        }
        match message {
            FromTaskWorker::Alive { .. } => {}
            FromTaskWorker::Ready => {
                self.seats[seat].ready = true;
                self.hand_out(seat);
            }
            FromTaskWorker::Started { task } => {
                (self.events)(TaskEvent::Started { task, worker: seat });
            }
            FromTaskWorker::Progress { task, value } => {
                (self.events)(TaskEvent::Progress { task, value });
            }
            FromTaskWorker::Done { task, payload } => {
                if self.seats[seat].task == Some(task) {
                    self.seats[seat].task = None;
                    self.queue.done();
                    // The worker shall not wait for what is done with its result.
                    self.hand_out(seat);
                    (self.events)(TaskEvent::Done { task, payload });
                }
            }
            FromTaskWorker::Failed {
                task: None,
                error,
                passing,
            } => {
                return Err(EngineError::TaskSetup {
                    kind: kind(),
                    error,
                    passing,
                });
            }
            FromTaskWorker::Failed {
                task: Some(task),
                error,
                passing,
            } => {
                return Err(EngineError::TaskFailed {
                    kind: kind(),
                    task,
                    error,
                    passing,
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
        if let Some(task) = self.queue.take() {
            self.seats[seat].task = Some(task);
            let value = self.request.tasks[task].clone();
            let task = line(&ToTaskWorker::Task { task, value });
            self.seats[seat].still_for = Duration::ZERO;
            self.request.launcher.tell(self.seats[seat].id, &task);
        }
    }

    /// Looks at what time alone brings about. Time in which this process itself was stopped does not count
    /// against the workers, nor does that in which they have nothing to do.
    fn count_time(&mut self) -> Result<(), EngineError> {
        let passed = self.counted.elapsed();
        if passed < TICK {
            return Ok(());
        }
        self.counted = Instant::now();
        let others_work = self.seats.iter().any(|seat| seat.ready && !seat.empty);
        for seat in 0..self.seats.len() {
            let state = &mut self.seats[seat];
            if state.empty {
                continue;
            }
            if state.end.is_some() {
                self.judge_end(seat)?;
                continue;
            }
            // One for which there is no room yet may come as late as it likes.
            let may_wait = state.pid == 0 && others_work;
            if (!state.ready && !may_wait) || state.task.is_some() {
                state.still_for += passed.min(LONGEST_TICK);
            }
            if state.still_for > self.request.deadline && !state.was_still {
                state.was_still = true;
                self.request.launcher.end(state.id);
            }
        }
        Ok(())
    }

    /// An end is judged only when all that the worker said was heard: its last words may be a result.
    fn judge_end(&mut self, seat: usize) -> Result<(), EngineError> {
        let state = &mut self.seats[seat];
        let Some((end, since)) = state.end.clone() else {
            return Ok(());
        };
        if state.empty || (!state.output_ended && since.elapsed() < OUTPUT_DEADLINE) {
            return Ok(());
        }
        state.empty = true;
        let task = state.task.take();
        let reason = self.reason(seat, &end);
        if self.stopping {
            return Ok(());
        }
        let kind = || self.request.kind.to_owned();
        match self.queue.lost(task) {
            AfterLoss::LetGo => Ok(()),
            AfterLoss::Replace => {
                let restart = self.queue.restarts();
                (self.events)(TaskEvent::Restart {
                    restart,
                    task,
                    reason,
                });
                self.start(self.seats[seat].id.successor())
            }
            AfterLoss::TaskKills(task) => Err(EngineError::TaskKills {
                kind: kind(),
                task,
                times: TASK_KILLS,
                reason,
            }),
            AfterLoss::TooMany => Err(EngineError::TaskRestarts {
                kind: kind(),
                restarts: self.queue.restarts(),
                reason,
            }),
        }
    }

    /// Who ended and how, in words.
    fn reason(&self, seat: usize, end: &WorkerEnd) -> String {
        let state = &self.seats[seat];
        let worker = format!(
            "worker {seat} ({})",
            self.request.launcher.describe(state.id)
        );
        if state.was_still {
            let seconds = self.request.deadline.as_secs_f64();
            return format!("{worker} made no progress for {seconds} s");
        }
        match &state.last_line {
            Some(line) if matches!(end, WorkerEnd::Code(_)) => {
                format!("{worker}: {end}; the last it wrote was: {line}")
            }
            _ => format!("{worker}: {end}"),
        }
    }
}

impl Drop for TaskCoordinator<'_, '_> {
    fn drop(&mut self) {
        self.request.launcher.end_all();
    }
}
