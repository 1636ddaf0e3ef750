//! What is to be done by task workers, what is heard of it, and how it ended.

use super::coordinator::TaskCoordinator;
use crate::{EngineError, StopFlag};
use lockstep_events::event::{Event, LogLine};
use lockstep_job::Job;
use lockstep_launch::Launcher;
use serde_json::Value;
use std::time::Duration;

/// What to do, and by whom.
pub struct Request<'a> {
    /// Where the workers run.
    pub launcher: &'a mut dyn Launcher,
    /// Worker processes; no more are started than there are tasks.
    pub workers: usize,
    /// What the tasks are: a verb and what it is done to, as in "cannot embed pictures".
    pub kind: &'a str,
    /// What all tasks have in common.
    pub setup: Value,
    /// The tasks, by number. They are begun in this order.
    pub tasks: Vec<Value>,
    /// Raised by whoever wants the work to end early.
    pub stop: StopFlag,
    /// How often lost workers are replaced, in all.
    pub max_restarts: usize,
    /// How long a worker with something to do may make no progress before it is given up.
    pub deadline: Duration,
}

/// How many workers a crew has, and what becomes of lost ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrewSettings {
    /// Worker processes.
    pub workers: usize,
    /// How often lost workers are replaced, in all.
    pub max_restarts: usize,
    /// How long a worker with something to do may make no progress before it is given up.
    pub deadline: Duration,
    /// How long it may take until workers can be started.
    pub start_deadline: Duration,
}

impl CrewSettings {
    /// What `job` says of its workers.
    pub fn of(job: &Job) -> Self {
        Self {
            workers: job.workers().max,
            max_restarts: job.recover.max_restarts as usize,
            deadline: Duration::from_secs_f64(job.gang.deadline_s),
            start_deadline: Duration::from_secs_f64(job.gang.start_deadline_s),
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TaskEvent {
    /// A process was started.
    Worker {
        /// The worker's number.
        worker: usize,
        /// Its process id.
        pid: u32,
    },
    /// A worker took up a task.
    Started {
        /// The task's number.
        task: usize,
        /// The worker's number.
        worker: usize,
    },
    /// A worker got on with a task.
    Progress {
        /// The task's number.
        task: usize,
        /// How far, in the words of the kind.
        value: Value,
    },
    /// A task is done. Comes once for every task, in the order in which they are done.
    Done {
        /// The task's number.
        task: usize,
        /// What came of it.
        payload: Value,
    },
    /// A worker wrote something for people.
    Log {
        /// The worker's number.
        worker: usize,
        /// Its process id.
        pid: u32,
        /// The line without its end.
        line: String,
    },
    /// A worker was lost, and another was started in its place.
    Restart {
        /// How often that happened, this time included.
        restart: usize,
        /// The task that is done again.
        task: Option<usize>,
        /// Who was lost, and how.
        reason: String,
    },
    /// A stop was asked for; the tasks in progress are finished.
    Stopping,
}

impl TaskEvent {
    /// What a person who follows the work is told of it, if anything.
    pub fn news(self) -> Option<Event> {
        match self {
            TaskEvent::Log { worker, pid, line } => Some(Event::Log(LogLine {
                rank: worker,
                pid,
                line,
                count: 1,
            })),
            TaskEvent::Restart { reason, .. } => Some(Event::Warning { message: reason }),
            TaskEvent::Stopping => Some(Event::Stopping),
            _ => None,
        }
    }
}

/// How the work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TasksDone {
    /// Tasks that are done.
    pub done: usize,
    /// Whether that is not all of them, because a stop was asked for.
    pub stopped: bool,
    /// How often a lost worker was replaced.
    pub restarts: usize,
}

/// Does all tasks on the workers of a launcher, and passes on what happens.
///
/// A wish to stop in good order finishes the tasks in progress; one to stop now does not. Either way the
/// summary says that it was heeded.
///
/// # Guarantees
/// Those of the [module](super). Workers also die with the calling thread.
///
/// # Errors
/// When a task fails or loses its worker twice, more workers are lost than may be replaced, or one cannot
/// be started. What was delivered by then was done.
pub fn run(
    request: Request<'_>,
    events: &mut dyn FnMut(TaskEvent),
) -> Result<TasksDone, EngineError> {
    let total = request.tasks.len();
    let mut coordinator = TaskCoordinator::open(request, events)?;
    let finished = coordinator.work()?;
    Ok(TasksDone {
        done: total - coordinator.open_tasks(),
        stopped: !finished,
        restarts: coordinator.restarts(),
    })
}
