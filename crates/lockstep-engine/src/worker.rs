//! The other side of the engine: what happens in a worker's process.
//!
//! A worker is told in private where its coordinator is, joins it, and trains. Where that came through
//! standard input it watches that all the while: its end means that the coordinator is gone, and then so
//! is this worker, whatever it is doing. Elsewhere a lease does that: a worker that has not heard the
//! coordinator for so long ends itself. SIGTERM, which comes before a machine is taken away, makes it ask to leave
//! in good order.

use crate::invitation::{self, Invitation};
use crate::parent::die_with_parent;
use lockstep_gang::{GangError, Hello, Link};
use lockstep_learner::{self as learner, LearnerFailure, Learners};
use signal_hook::consts::SIGTERM;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

/// The exit code after a panic, as Rust has it.
const PANICKED: i32 = 101;

/// Why a worker could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// Standard input did not hold an invitation.
    #[error(
        "a worker is started by `lockstep run`, which tells it through standard input what to do; \
         there was {0}"
    )]
    Uninvited(String),
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The coordinator could not be reached.
    #[error(transparent)]
    Gang(#[from] GangError),
    /// Training failed. The coordinator knows already.
    #[error(transparent)]
    Train(#[from] LearnerFailure),
    /// A task failed. The coordinator knows already.
    #[error("{0}")]
    Task(String),
}

/// Does a worker's work in this process: joins, trains with one of `learners`, and returns when it is done.
///
/// Ends the process when standard input ends, and on a panic of any thread, whose message goes to
/// standard error in one line.
///
/// # Errors
/// When this process was not started as a worker, the coordinator cannot be reached, or training
/// fails.
pub fn run(learners: Learners) -> Result<(), WorkerError> {
    die_with_parent().map_err(system("die with the parent"))?;
    let line = invitation::receive().map_err(system("read what to do"))?;
    let invitation: Invitation = serde_json::from_str(&line).map_err(|_| {
        WorkerError::Uninvited(match line.trim() {
            "" => "nothing".to_string(),
            _ => "something else".to_string(),
        })
    })?;
    report_panics(invitation.token.seat);
    ignore_interrupts().map_err(system("ignore Ctrl-C"))?;
    let leaving = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, leaving.clone()).map_err(system("hear SIGTERM"))?;
    if invitation::comes_through_stdin() {
        die_with_coordinator().map_err(system("watch standard input"))?;
    }

    let listener = invitation.listen.map(|at| TcpListener::bind((at, 0)));
    let listener = listener.transpose().map_err(system("listen for peers"))?;
    let peer_address = listener
        .as_ref()
        .map(|listener| advertised(listener.local_addr()?, invitation.address))
        .transpose();
    let hello = Hello {
        pid: std::process::id(),
        listener: peer_address.map_err(system("listen for peers"))?,
        memory_domain: lockstep_gang::memory_domain(),
    };
    let patience = Duration::from_secs_f64(invitation.join_s);
    let link = Link::connect(invitation.address, &invitation.token, &hello, patience)?;
    let lease = invitation.lease_s.map(Duration::from_secs_f64);
    let unspecified = match invitation.address {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let address = advertised(SocketAddr::new(unspecified, 0), invitation.address)
        .map_err(system("find this machine's address"))?;
    Ok(learner::worker::run(
        link,
        listener,
        lease,
        leaving,
        address.ip(),
        learners,
    )?)
}

/// Under which address others reach a listener. One that listens everywhere is reached at the address from
/// which this machine reaches the coordinator.
fn advertised(bound: SocketAddr, coordinator: SocketAddr) -> io::Result<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return Ok(bound);
    }
    // A connected datagram socket sends nothing, and knows which way it would.
    let socket = UdpSocket::bind((bound.ip(), 0))?;
    socket.connect(coordinator)?;
    Ok(SocketAddr::new(socket.local_addr()?.ip(), bound.port()))
}

/// Ends this process as soon as standard input ends.
fn die_with_coordinator() -> io::Result<()> {
    let watch = || {
        let mut ignored = [0; 64];
        loop {
            match io::stdin().lock().read(&mut ignored) {
                Ok(1..) => (),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Ok(0) | Err(_) => std::process::exit(1),
            }
        }
    };
    thread::Builder::new().name("stdin".into()).spawn(watch)?;
    Ok(())
}

/// Ctrl-C is for the coordinator, which then tells the workers what to do.
pub(crate) fn ignore_interrupts() -> io::Result<()> {
    let nobody_looks = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, nobody_looks)?;
    Ok(())
}

/// A panic in any thread ends the worker, and its message, in one line, is the last that it writes.
pub(crate) fn report_panics(rank: usize) {
    std::panic::set_hook(Box::new(move |panic| {
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            eprintln!("{backtrace}");
        }
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic
            .location()
            .map_or_else(String::new, |at| format!(" at {at}"));
        eprintln!("worker {rank} panicked{place}: {message}");
        std::process::exit(PANICKED);
    }));
}

pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> WorkerError {
    move |source| WorkerError::System { what, source }
}
