//! A worker: trains as it is told, generation after generation, until it is dismissed.
//!
//! A worker whose peer was lost keeps its process and what its learner has opened: it says that it stopped, and
//! waits to be told to begin again. One that fails for a reason of its own says so and ends.

use crate::instructions::Instructions;
use crate::reporter::Reporter;
use crate::{Gang, GenerationEnd, JoinError, Learner, LearnerFailure, Learners};
use lockstep_events::control::{Assignment, CopyMemory, FromWorker, ToWorker, Transport};
use lockstep_gang::{
    Deadline, GangError, HostMesh, Link, LinkReader, Membership, Mesh, MeshPeer, Plan, Segment,
    SharingCollective, ShmCollective, Solo, TcpCollective, TreeCollective,
};
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How often the listening thread looks whether it is still wanted, and whether its lease holds.
const LISTEN: Duration = Duration::from_millis(250);

/// Trains with one of `learners` as the coordinator says over `link`, until it closes it. `listener` is for
/// peers over TCP. Ends the process when the coordinator was not heard for the length of the `lease`, if
/// there is one: then another may have taken its place. Once `leaving` is set, the coordinator is asked to do
/// without this worker.
///
/// # Errors
/// When training cannot begin or go on; the coordinator has been told by then.
pub fn run(
    link: Link,
    listener: Option<TcpListener>,
    lease: Option<Duration>,
    leaving: Arc<AtomicBool>,
    address: IpAddr,
    learners: Learners,
) -> Result<(), LearnerFailure> {
    let (reader, writer) = link.split();
    let mut reporter = Reporter::new(writer);
    reporter.show_life(leaving);
    let instructions = Arc::new(Instructions::default());
    let (sender, assignments) = channel();
    listen(reader, instructions.clone(), sender, lease);
    let mut learner = None;
    let warn = reporter.warnings();
    let share = reporter.shares();
    // Ends when the link does: the work is done, or the coordinator is gone.
    while let Ok(assignment) = assignments.recv() {
        lockstep_base::failpoint::set_worker(assignment.rank, assignment.generation);
        reporter.begin(assignment.rank);
        let gang = Gang {
            assignment: &assignment,
            membership: membership(&assignment),
            instructions: &instructions,
            listener: listener.as_ref(),
            address,
            share: &share,
            warn: &warn,
        };
        match generation(&gang, &mut learner, learners, &mut reporter) {
            Ok(GenerationEnd::Finished(finished)) => {
                reporter.send(&FromWorker::Finished(*finished))?;
            }
            Ok(GenerationEnd::Paused { step }) => reporter.send(&FromWorker::Paused { step })?,
            // Its last words, and not its report, say why: then another one takes its place.
            Err(failure) if failure.ends_process => return Err(failure),
            Err(failure) => {
                // The coordinator may be what was lost; then there is nobody to tell.
                let told = reporter.send(&FromWorker::Failed {
                    error: failure.to_string(),
                    peer_lost: failure.peer_lost,
                    again: failure.again,
                    waiting_for: failure.waiting_for,
                    step: failure.step,
                });
                if !(failure.peer_lost || failure.again) || told.is_err() {
                    return Err(failure);
                }
            }
        }
    }
    Ok(())
}

/// Who this worker is in the generation of the assignment.
fn membership(assignment: &Assignment) -> Membership {
    Membership {
        rank: assignment.rank,
        generation: assignment.generation,
        deadline: Deadline(Duration::from_secs_f64(assignment.deadline_s)),
        ..Membership::default()
    }
}

/// Trains in one generation of the gang.
fn generation(
    gang: &Gang<'_>,
    learner: &mut Option<Box<dyn Learner>>,
    learners: Learners,
    reporter: &mut Reporter,
) -> Result<GenerationEnd, LearnerFailure> {
    let learner = match learner {
        Some(learner) => learner,
        none => none.insert(learners.open(gang.assignment)?),
    };
    // Before joining: a peer may be lost while this rank waits for it to come.
    let abort = gang.membership.abort.clone();
    (gang.instructions).register(gang.assignment.generation, abort);
    learner.train(gang, reporter)
}

/// Enters the exchange that the assignment names.
pub(crate) fn join(
    assignment: &Assignment,
    plan: Plan,
    membership: &Membership,
    listener: Option<&TcpListener>,
    warn: &dyn Fn(String),
) -> Result<Box<dyn SharingCollective>, JoinError> {
    Ok(match (&assignment.transport, listener) {
        (Transport::Solo, _) => Box::new(Solo::new(plan, membership.abort.clone())?),
        (Transport::Shm { fd }, _) => {
            let segment = Segment::inherited(*fd)?;
            Box::new(ShmCollective::join(&segment, plan, membership)?)
        }
        (Transport::Tcp { peers, encrypt }, Some(listener)) => {
            let peers = mesh_peers(peers)?;
            let refused = |refusal| warn(format!("worker {} {refusal}", membership.rank));
            let mesh = Mesh {
                listener,
                peers: &peers,
                encrypt: *encrypt,
                keepers: keepers(assignment),
                refused: &refused,
            };
            Box::new(TcpCollective::join(&mesh, plan, membership)?)
        }
        (Transport::Tcp { .. }, None) => return Err(JoinError::NoListener),
        // Who is on hosts joins them by `join_hosts`.
        (Transport::Own | Transport::Hosts { .. }, _) => return Err(JoinError::NoExchange),
    })
}

/// Enters the exchange of a tree of hosts, whose ranks share `segment` on this one.
pub(crate) fn join_hosts(
    assignment: &Assignment,
    plan: Plan,
    segment: Segment,
    membership: &Membership,
    listener: Option<&TcpListener>,
    warn: &dyn Fn(String),
) -> Result<Box<dyn SharingCollective>, JoinError> {
    let Transport::Hosts { peers, encrypt, .. } = &assignment.transport else {
        return Err(JoinError::NoExchange);
    };
    let peers = mesh_peers(peers)?;
    let refused = |refusal| warn(format!("worker {} {refusal}", membership.rank));
    let meeting = HostMesh {
        segment,
        mesh: Mesh {
            listener: listener.ok_or(JoinError::NoListener)?,
            peers: &peers,
            encrypt: *encrypt,
            keepers: keepers(assignment),
            refused: &refused,
        },
    };
    Ok(Box::new(TreeCollective::join(meeting, plan, membership)?))
}

/// Who keeps copies of each rank's state, where ranks do that for each other.
fn keepers(assignment: &Assignment) -> &[usize] {
    match assignment.copies.as_ref().map(|copies| &copies.memory) {
        Some(CopyMemory::Processes { keepers }) => keepers,
        _ => &[],
    }
}

fn mesh_peers(peers: &serde_json::Value) -> Result<Vec<MeshPeer>, GangError> {
    Ok(serde_json::from_value(peers.clone())?)
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
                Ok(Some(ToWorker::Pause { generation })) => instructions.ask_to_pause(generation),
                Ok(Some(ToWorker::CallOff { generation })) => instructions.call_off(generation),
                Ok(Some(ToWorker::Shared {
                    generation,
                    name,
                    rank,
                    value,
                })) => instructions.shared.put(generation, name, rank, value),
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
