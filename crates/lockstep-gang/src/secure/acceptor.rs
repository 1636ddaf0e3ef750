//! Accepts connections and lets each prove itself on a thread of its own, so that garbage, a stranger or
//! a slow peer disturbs nobody.

use super::handshake::{self, HandshakeFailure, Introduction, SecureChannel};
use crate::{GangError, Secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long one incoming connection may take to prove itself.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// Connections that may be proving themselves at a time; with one more, the oldest is dropped.
const MAX_PENDING: usize = 64;
/// How often an acceptor looks for new connections while others are proving themselves.
const ACCEPT_POLL: Duration = Duration::from_millis(1);
/// Refusals that are reported; a stranger who tries for ever shall not fill a log.
const MAX_REFUSALS: usize = 50;

/// Somebody who was not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where it came from.
    pub from: SocketAddr,
    /// What was wrong, in words.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "refused a connection from {}: {}",
            self.from, self.reason
        )
    }
}

/// What became of a connection.
#[derive(Debug)]
pub(crate) enum ConnectionOutcome {
    /// It proved itself.
    Proven(Introduction, Vec<u8>, SecureChannel),
    /// It was refused.
    Refused(Refusal),
}

/// Says which key one who introduces itself must know, or why it is refused.
pub(crate) type KeyOf = Arc<dyn Fn(Introduction) -> Result<Secret, String> + Send + Sync>;

/// Accepts connections that prove themselves.
pub(crate) struct Acceptor {
    listener: TcpListener,
    key_of: KeyOf,
    card: Arc<[u8]>,
    /// Connections that are proving themselves, oldest first; kept to be able to drop them.
    pending: VecDeque<(u64, TcpStream)>,
    next: u64,
    outcomes: (Sender<Examined>, Receiver<Examined>),
    refusals: usize,
}

/// The number of a connection, and what became of it; `None` for one that just went away.
type Examined = (u64, Option<ConnectionOutcome>);

impl Acceptor {
    pub(crate) fn new(
        listener: TcpListener,
        card: &[u8],
        key_of: KeyOf,
    ) -> Result<Self, GangError> {
        listener
            .set_nonblocking(true)
            .map_err(GangError::io("set up a listener"))?;
        Ok(Self {
            listener,
            key_of,
            card: card.into(),
            pending: VecDeque::new(),
            next: 0,
            outcomes: channel(),
            refusals: 0,
        })
    }

    /// The next connection that proved itself or was refused; `None` when there is none by `by`.
    pub(crate) fn accept(&mut self, by: Instant) -> Result<Option<ConnectionOutcome>, GangError> {
        loop {
            match self.listener.accept() {
                Ok((stream, from)) => self.examine(stream, from)?,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(GangError::io("accept a connection")(error)),
            }
            let left = by.saturating_duration_since(Instant::now());
            if self.pending.is_empty() && !left.is_zero() {
                // A worker has a better use for the core than looking again and again.
                self.wait_for_connection(left)?;
                continue;
            }
            // The sender lives in self, so that the only error is that nothing came in time.
            if let Ok((number, outcome)) = self.outcomes.1.recv_timeout(ACCEPT_POLL) {
                self.pending.retain(|(pending, _)| *pending != number);
                if let Some(outcome) = self.report(outcome) {
                    return Ok(Some(outcome));
                }
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// What is to be reported of an outcome.
    fn report(&mut self, outcome: Option<ConnectionOutcome>) -> Option<ConnectionOutcome> {
        if let Some(ConnectionOutcome::Refused(refusal)) = outcome {
            self.refusals += 1;
            let reason = match self.refusals {
                ..MAX_REFUSALS => refusal.reason,
                MAX_REFUSALS => format!("{}; further ones are not reported", refusal.reason),
                _ => return None,
            };
            return Some(ConnectionOutcome::Refused(Refusal { reason, ..refusal }));
        }
        outcome
    }

    /// Sleeps until somebody connects, or for so long.
    fn wait_for_connection(&self, most: Duration) -> Result<(), GangError> {
        let mut connection = [PollFd::new(&self.listener, PollFlags::IN)];
        let most = Timespec::try_from(most).ok();
        match poll(&mut connection, most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(GangError::io("wait for a connection")(error.into())),
        }
    }

    fn examine(&mut self, stream: TcpStream, from: SocketAddr) -> Result<(), GangError> {
        // A connection that died between accept and here is dropped like any other stranger.
        let Ok(handle) = stream
            .set_nonblocking(false)
            .and_then(|()| stream.try_clone())
        else {
            return Ok(());
        };
        if self.pending.len() >= MAX_PENDING
            && let Some((_, oldest)) = self.pending.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let number = self.next;
        self.next += 1;
        self.pending.push_back((number, handle));
        let (key_of, card) = (self.key_of.clone(), self.card.clone());
        let report = self.outcomes.0.clone();
        let examine = move || {
            let by = Instant::now() + HANDSHAKE_TIME;
            let refused =
                |reason: String| Some(ConnectionOutcome::Refused(Refusal { from, reason }));
            let outcome =
                match handshake::respond(stream, |introduction| key_of(introduction), &card, by) {
                    Ok((introduction, card, channel)) => {
                        Some(ConnectionOutcome::Proven(introduction, card, channel))
                    }
                    // One that goes away may have been lost, or only looked whether somebody listens.
                    Err(HandshakeFailure::Ended | HandshakeFailure::Aborted) => None,
                    Err(HandshakeFailure::Late) => {
                        refused("it did not prove itself in time".to_owned())
                    }
                    Err(HandshakeFailure::Refused(reason)) => refused(reason),
                    Err(HandshakeFailure::Io(error)) => refused(error.to_string()),
                };
            // Nobody listens any more when the acceptor is gone: then the stream is dropped.
            let _ = report.send((number, outcome));
        };
        std::thread::Builder::new()
            .name("handshake".to_owned())
            .spawn(examine)
            .map_err(GangError::io("start a thread for a handshake"))?;
        Ok(())
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        for (_, stream) in &self.pending {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Whether accepting may succeed if it is tried again.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
    )
}
