//! The worker's side: does one task after the other until the coordinator ends it.

use super::message::{FromTaskWorker, ToTaskWorker, line};
use crate::describe;
use crate::parent::die_with_parent;
use crate::worker::{WorkerError, ignore_interrupts, report_panics, system};
use lockstep_place::is_passing;
use serde_json::Value;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// How often a worker says that it is alive.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Told how far a task got, in the words of its kind.
pub type TellProgress<'a> = dyn FnMut(Value) + 'a;

/// Does one task and says what came of it, or why it cannot be done.
pub type Work = Box<dyn FnMut(Value, &mut TellProgress<'_>) -> Result<Value, TaskFailure>>;

/// Why a task, or what all of them need, cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFailure {
    /// What went wrong.
    pub error: String,
    /// Whether it may be gone later: a store is out of reach.
    pub passing: bool,
    /// Whether only this process can do nothing more: another one in its place goes on. Then it ends as one that dies.
    pub ends_process: bool,
}

impl TaskFailure {
    /// From an error with its causes.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        Self {
            error: describe(error),
            passing: is_passing(error),
            ends_process: false,
        }
    }
}

impl From<String> for TaskFailure {
    /// What would come again.
    fn from(error: String) -> Self {
        Self {
            error,
            passing: false,
            ends_process: false,
        }
    }
}

/// Does a task worker's work in this process: `open` is told the worker's number, what the tasks are and what they have in
/// common, and returns what does one; that is then called for every task that the coordinator sends.
///
/// Does not return while the coordinator lives, unless something fails. Ends the process when standard
/// input or standard output ends, and on a panic of any thread, whose message goes to standard error in
/// one line.
///
/// # Errors
/// When this process was not started as a task worker, or a task fails. The coordinator knows that
/// already.
pub fn serve(
    open: impl FnOnce(usize, &str, Value) -> Result<Work, TaskFailure>,
) -> Result<(), WorkerError> {
    die_with_parent().map_err(system("die with the parent"))?;
    let mut first = String::new();
    let read = io::stdin().lock().read_line(&mut first);
    read.map_err(system("read standard input"))?;
    let Ok(ToTaskWorker::Setup {
        worker,
        kind,
        setup,
    }) = serde_json::from_str(&first)
    else {
        let what = if first.trim().is_empty() {
            "nothing"
        } else {
            "something else"
        };
        return Err(WorkerError::Uninvited(what.to_owned()));
    };
    report_panics(worker);
    ignore_interrupts().map_err(system("ignore Ctrl-C"))?;
    let tasks = hear_tasks().map_err(system("watch standard input"))?;
    show_life().map_err(system("start a thread"))?;

    let failed = |task, failure: TaskFailure| {
        let TaskFailure {
            error,
            passing,
            ends_process,
        } = failure;
        let message = error.clone();
        match ends_process {
            true => eprintln!("{error}"),
            false => say(&FromTaskWorker::Failed {
                task,
                error,
                passing,
            }),
        }
        Err(WorkerError::Task(message))
    };
    let mut work = match open(worker, &kind, setup) {
        Ok(work) => work,
        Err(error) => return failed(None, error),
    };
    say(&FromTaskWorker::Ready);
    for (task, value) in tasks {
        say(&FromTaskWorker::Started { task });
        let mut progress = |value| say(&FromTaskWorker::Progress { task, value });
        match work(value, &mut progress) {
            Ok(payload) => say(&FromTaskWorker::Done { task, payload }),
            Err(error) => return failed(Some(task), error),
        }
    }
    Ok(())
}

/// The tasks as they come. The end of standard input means that the coordinator is gone, and then so is
/// this process, whatever it is doing.
fn hear_tasks() -> io::Result<Receiver<(usize, Value)>> {
    let (sender, tasks) = sync_channel(1);
    let hear = move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let Ok(ToTaskWorker::Task { task, value }) = serde_json::from_str(&line) else {
                break;
            };
            if sender.send((task, value)).is_err() {
                // A task has failed, which the process ends with.
                return;
            }
        }
        std::process::exit(1);
    };
    thread::Builder::new().name("stdin".into()).spawn(hear)?;
    Ok(tasks)
}

fn show_life() -> io::Result<()> {
    let beat = || {
        loop {
            thread::sleep(HEARTBEAT);
            let progress = lockstep_base::progress::count();
            say(&FromTaskWorker::Alive { progress });
        }
    };
    thread::Builder::new()
        .name("heartbeat".into())
        .spawn(beat)?;
    Ok(())
}

/// Tells the coordinator; if it cannot hear any more, there is nobody to work for.
fn say(message: &FromTaskWorker) {
    let text = line(message) + "\n";
    let mut out = io::stdout().lock();
    let said = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if said.is_err() {
        std::process::exit(1);
    }
}
