//! A worker: trains as it is told, generation after generation, until it is dismissed.
//!
//! A worker whose peer was lost keeps its process, its data and its model: it says that it stopped, and
//! waits to be told to begin again. One that fails for a reason of its own says so and ends.

use crate::TrainError;
use crate::instructions::Instructions;
use crate::reporter::Reporter;
use crate::trainer::{Opened, Trainer};
use lockstep_events::control::{Assignment, Finished, FromWorker, ToWorker, Transport};
use lockstep_fs::CacheDir;
use lockstep_gang::{
    Deadline, Link, LinkReader, Membership, Plan, Secret, Segment, SharingCollective,
    ShmCollective, Solo, TcpCollective,
};
use lockstep_job::Job;
use serde::{Deserialize, Serialize};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How often the listening thread looks whether it is still wanted, and whether its lease holds.
const LISTEN: Duration = Duration::from_millis(250);

/// What the trainer of networks is told in [`Assignment::learner`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LearnerPart {
    /// The effective job, paths already resolved.
    pub job: Job,
    /// SHA-256 of the file of weights to begin with, as it was when the job was checked.
    pub pretrained: Option<String>,
}

impl LearnerPart {
    /// Reads the learner's part of an assignment.
    fn of(assignment: &Assignment) -> Result<Self, TrainError> {
        serde_json::from_value(assignment.learner.clone()).map_err(TrainError::Assignment)
    }
}

/// Trains as the coordinator says over `link`, until it closes it. `listener` and `secret` are for
/// peers over TCP. Ends the process when the coordinator was not heard for the length of the `lease`, if
/// there is one: then another may have taken its place.
///
/// # Errors
/// When training cannot begin or go on; the coordinator has been told by then.
pub fn run(
    link: Link,
    secret: &Secret,
    listener: Option<TcpListener>,
    lease: Option<Duration>,
) -> Result<(), TrainError> {
    let (reader, writer) = link.split();
    let mut reporter = Reporter::new(writer);
    reporter.show_life();
    let instructions = Arc::new(Instructions::default());
    let (sender, assignments) = channel();
    listen(reader, instructions.clone(), sender, lease);
    let mut opened = None;
    // Ends when the link does: the work is done, or the coordinator is gone.
    while let Ok(assignment) = assignments.recv() {
        lockstep_failpoint::set_rank(assignment.rank);
        reporter.begin(assignment.rank);
        let outcome = generation(
            &assignment,
            &mut opened,
            &instructions,
            &mut reporter,
            secret,
            listener.as_ref(),
        );
        match outcome {
            Ok(finished) => reporter.send(&FromWorker::Finished(finished))?,
            Err((error, step)) => {
                let stopped = error.is_peer_lost();
                // The coordinator may be what was lost; then there is nobody to tell.
                let told = reporter.send(&FromWorker::Failed {
                    error: error.to_string(),
                    peer_lost: stopped,
                    waiting_for: error.waiting_for(),
                    step,
                });
                if !stopped || told.is_err() {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Trains in one generation of the gang. An error comes with the number of steps that were done.
fn generation(
    assignment: &Assignment,
    opened: &mut Option<Opened>,
    instructions: &Instructions,
    reporter: &mut Reporter,
    secret: &Secret,
    listener: Option<&TcpListener>,
) -> Result<Finished, (TrainError, u64)> {
    let part = LearnerPart::of(assignment).map_err(|error| (error, 0))?;
    let opened = match opened {
        Some(opened) => opened,
        none => none.insert(open(&part.job).map_err(|error| (error, 0))?),
    };
    let membership = Membership {
        rank: assignment.rank,
        generation: assignment.generation,
        deadline: Deadline(Duration::from_secs_f64(assignment.deadline_s)),
        ..Membership::default()
    };
    // Before joining: a peer may be lost while this rank waits for it to come.
    instructions.register(assignment.generation, membership.abort.clone());
    let join = |plan: Plan| join(assignment, plan, &membership, secret, listener);
    let mut trainer = Trainer::new(assignment, &part, opened, join).map_err(|error| (error, 0))?;
    trainer
        .train(&instructions.stop, reporter)
        .map_err(|error| (error, trainer.steps()))
}

/// What outlives a generation.
fn open(job: &Job) -> Result<Opened, TrainError> {
    Opened::open(job, &CacheDir::locate()?)
}

/// Enters the exchange that the assignment names.
fn join(
    assignment: &Assignment,
    plan: Plan,
    membership: &Membership,
    secret: &Secret,
    listener: Option<&TcpListener>,
) -> Result<Box<dyn SharingCollective>, TrainError> {
    Ok(match (&assignment.transport, listener) {
        (Transport::Solo, _) => Box::new(Solo::new(plan, membership.abort.clone())?),
        (Transport::Shm { fd }, _) => {
            let segment = Segment::inherited(*fd)?;
            Box::new(ShmCollective::join(&segment, plan, membership)?)
        }
        (Transport::Tcp { peers }, Some(listener)) => Box::new(TcpCollective::join(
            listener, peers, secret, plan, membership,
        )?),
        (Transport::Tcp { .. }, None) => {
            return Err(TrainError::Misfit {
                key: "gang.transport",
                reason: "this worker was told to use TCP but was given no listener".to_owned(),
            });
        }
    })
}

/// Hears the coordinator in the background. Its end calls everything off; its silence for longer than the
/// lease ends this process.
fn listen(
    mut reader: LinkReader,
    instructions: Arc<Instructions>,
    begin: Sender<Assignment>,
    lease: Option<Duration>,
) {
    let hear = move || {
        let mut heard = Instant::now();
        loop {
            let said = reader.recv(LISTEN);
            // One that was stopped meanwhile must not take an old word for a new one.
            if let Some(lease) = lease.filter(|lease| heard.elapsed() > *lease) {
                let seconds = lease.as_secs_f64();
                eprintln!("the coordinator was not heard for {seconds} s; this worker ends");
                std::process::exit(1);
            }
            match said {
                Ok(None) => continue,
                Ok(Some(ToWorker::Alive { progress })) => instructions.gets_on(progress),
                Ok(Some(ToWorker::Stop)) => instructions.ask_to_stop(),
                Ok(Some(ToWorker::CallOff { generation })) => instructions.call_off(generation),
                Ok(Some(ToWorker::Begin(assignment))) => {
                    // The other end is gone only when this worker is about to end.
                    let _ = begin.send(*assignment);
                }
                Err(_) => return instructions.call_off(u16::MAX),
            }
            heard = Instant::now();
        }
    };
    std::thread::spawn(hear);
}
