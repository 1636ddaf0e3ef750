//! A worker: joins the gang and trains until the epochs are done or a stop is asked for.

use crate::TrainError;
use crate::control::{Assignment, FromWorker, ToWorker, Transport};
use crate::reporter::Reporter;
use crate::trainer::Trainer;
use lockstep_gang::{
    Abort, Collective, Deadline, GangError, Link, LinkReader, Plan, Secret, Segment,
};
use lockstep_gang::{ShmCollective, Solo, TcpCollective};
use lockstep_nn::threads::set_threads;
use lockstep_store::CacheDir;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the listening thread looks whether it is still wanted.
const LISTEN: Duration = Duration::from_secs(1);

/// Trains as assigned and reports over `link`. `listener` and `secret` are for peers over TCP.
///
/// # Errors
/// When training cannot begin or go on; the coordinator has been told by then.
pub fn run(
    assignment: Assignment,
    link: Link,
    secret: &Secret,
    listener: Option<TcpListener>,
) -> Result<(), TrainError> {
    let (reader, writer) = link.split();
    lockstep_failpoint::set_rank(assignment.rank);
    let mut reporter = Reporter::new(writer, assignment.rank);
    let outcome = train(&assignment, reader, &mut reporter, secret, listener);
    if let Err(error) = &outcome {
        // The coordinator may be what was lost; then there is nobody to tell.
        let _ = reporter.send(&FromWorker::Failed {
            error: error.to_string(),
            peer_lost: error.is_peer_lost(),
            waiting_for: error.waiting_for(),
        });
    }
    outcome
}

fn train(
    assignment: &Assignment,
    reader: LinkReader,
    reporter: &mut Reporter,
    secret: &Secret,
    listener: Option<TcpListener>,
) -> Result<(), TrainError> {
    set_threads(assignment.job.train.threads).map_err(|error| TrainError::Misfit {
        key: "train.threads",
        reason: error.to_string(),
    })?;
    let cache = CacheDir::locate()?;
    let stop = Arc::new(AtomicBool::new(false));
    let join = |plan: Plan| join(assignment, plan, secret, listener);
    let mut trainer = Trainer::new(assignment, &cache, join)?;
    listen(reader, stop.clone(), trainer.abort_handle());
    let finished = trainer.train(&stop, reporter)?;
    reporter.send(&FromWorker::Finished(finished))
}

/// Enters the exchange that the assignment names.
fn join(
    assignment: &Assignment,
    plan: Plan,
    secret: &Secret,
    listener: Option<TcpListener>,
) -> Result<Box<dyn Collective>, TrainError> {
    let deadline = Deadline(Duration::from_secs_f64(assignment.job.gang.deadline_s));
    let (rank, generation) = (assignment.rank, assignment.generation);
    Ok(match (&assignment.transport, listener) {
        (Transport::Solo, _) => Box::new(Solo::new(plan)?),
        (Transport::Shm { fd }, _) => {
            let segment = Segment::inherited(*fd)?;
            Box::new(ShmCollective::join(
                &segment, plan, rank, generation, deadline,
            )?)
        }
        (Transport::Tcp { peers }, Some(listener)) => Box::new(TcpCollective::join(
            listener, peers, secret, plan, rank, generation, deadline,
        )?),
        (Transport::Tcp { .. }, None) => {
            return Err(TrainError::Misfit {
                key: "gang.transport",
                reason: "this worker was told to use TCP but was given no listener".to_owned(),
            });
        }
    })
}

/// Hears the coordinator in the background: a stop sets the flag, its end calls everything off.
fn listen(mut reader: LinkReader, stop: Arc<AtomicBool>, abort: Abort) {
    let hear = move || {
        loop {
            match reader.recv(LISTEN) {
                Ok(Some(ToWorker::Stop)) => stop.store(true, Ordering::Relaxed),
                Ok(Some(ToWorker::Begin(_)) | None) => {}
                Err(GangError::Closed) | Err(_) => {
                    abort.abort();
                    return;
                }
            }
        }
    };
    std::thread::spawn(hear);
}
