//! Two ends of a connection prove to each other that they know the run's secret, and say who they
//! are.
//!
//! ```text
//! initiator                                            responder
//!   magic, nonce i                                 ->
//!                                                  <-  magic, nonce r, card r, tag r
//!   card i, tag i                                  ->
//! ```
//!
//! A *card* is a few bytes by which an end introduces itself. A tag is a keyed hash over the purpose
//! of the connection, the role of the one who sends it, both nonces and the cards so far. So a
//! recorded handshake is worth nothing (the nonces are new each time), a tag cannot be sent back to
//! its maker (the roles differ), a handshake for one purpose does not serve for another, and a card
//! cannot be changed on the way. What follows the handshake is neither encrypted nor authenticated:
//! the network must be one where nobody can take over a connection.

use crate::secret::random_bytes;
use crate::{GangError, Secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const MAGIC: [u8; 8] = *b"lockstp1";
const RESPONDER: &[u8] = b"responder";
const INITIATOR: &[u8] = b"initiator";
/// The largest card that is read.
const MAX_CARD: usize = 1024;
/// How long one incoming connection may take to prove itself.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// Connections that may be proving themselves at a time; with one more, the oldest is dropped.
const MAX_PENDING: usize = 64;
/// How often an acceptor looks for new connections while others are proving themselves.
const ACCEPT_POLL: Duration = Duration::from_millis(1);

/// The connecting end's part. Returns the other end's card.
pub(crate) fn initiate(
    stream: &TcpStream,
    secret: &Secret,
    purpose: &str,
    card: &[u8],
    by: Instant,
) -> Result<Vec<u8>, GangError> {
    let timed = Timed { stream, by };
    let run = || {
        let mine = random_bytes().map_err(io::Error::other)?;
        timed.write(&[&MAGIC, &mine])?;
        timed.expect_magic()?;
        let theirs = timed.read_array::<32>()?;
        let other = timed.read_card()?;
        let tag = timed.read_array::<32>()?;
        let purpose = purpose.as_bytes();
        if !secret.verify(&[purpose, RESPONDER, &mine, &theirs, &other], &tag) {
            return Err(refused("it does not know this run's secret"));
        }
        let tag = secret.tag(&[purpose, INITIATOR, &mine, &theirs, &other, card]);
        timed.write(&[&card_length(card), card, &tag])?;
        timed.done()?;
        Ok(other)
    };
    run().map_err(|error| failed(stream, &error))
}

/// The accepting end's part. Returns the other end's card.
pub(crate) fn respond(
    stream: &TcpStream,
    secret: &Secret,
    purpose: &str,
    card: &[u8],
    by: Instant,
) -> Result<Vec<u8>, GangError> {
    let timed = Timed { stream, by };
    let run = || {
        timed.expect_magic()?;
        let theirs = timed.read_array::<32>()?;
        let mine = random_bytes().map_err(io::Error::other)?;
        let purpose = purpose.as_bytes();
        let tag = secret.tag(&[purpose, RESPONDER, &theirs, &mine, card]);
        timed.write(&[&MAGIC, &mine, &card_length(card), card, &tag])?;
        let other = timed.read_card()?;
        let tag = timed.read_array::<32>()?;
        if !secret.verify(&[purpose, INITIATOR, &theirs, &mine, card, &other], &tag) {
            return Err(refused("it does not know this run's secret"));
        }
        timed.done()?;
        Ok(other)
    };
    run().map_err(|error| failed(stream, &error))
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

fn failed(stream: &TcpStream, error: &io::Error) -> GangError {
    let peer = stream
        .peer_addr()
        .map_or_else(|_| "a peer".to_owned(), |a| a.to_string());
    let reason = match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "it hung up; it may not accept this run's secret".to_owned()
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "it took too long".to_owned(),
        _ => error.to_string(),
    };
    GangError::Handshake { peer, reason }
}

fn card_length(card: &[u8]) -> [u8; 2] {
    assert!(
        card.len() <= MAX_CARD,
        "a card of {} bytes is over the limit of {MAX_CARD}",
        card.len()
    );
    (card.len() as u16).to_le_bytes()
}

/// A stream on which everything must be over by one moment, however slowly bytes trickle in.
struct Timed<'a> {
    stream: &'a TcpStream,
    by: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.by.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(Some(left.max(Duration::from_millis(1)))),
        }
    }

    fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            self.stream.set_read_timeout(self.left()?)?;
            let mut stream = self.stream;
            match stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read_array<const N: usize>(&self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        self.read_exact(&mut array)?;
        Ok(array)
    }

    fn read_card(&self) -> io::Result<Vec<u8>> {
        let length = usize::from(u16::from_le_bytes(self.read_array()?));
        if length > MAX_CARD {
            return Err(refused("its introduction is too long"));
        }
        let mut card = vec![0; length];
        self.read_exact(&mut card)?;
        Ok(card)
    }

    fn expect_magic(&self) -> io::Result<()> {
        match self.read_array()? {
            MAGIC => Ok(()),
            _ => Err(refused("it does not speak this version of the protocol")),
        }
    }

    /// Writes all parts at once. A handshake's message fits any socket's buffer, so that a timeout
    /// for each write is as good as one for all.
    fn write(&self, parts: &[&[u8]]) -> io::Result<()> {
        self.stream.set_write_timeout(self.left()?)?;
        let mut stream = self.stream;
        stream.write_all(&parts.concat())
    }

    /// Lifts the timeouts.
    fn done(&self) -> io::Result<()> {
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(None)?;
        self.stream.set_nodelay(true)
    }
}

/// Accepts connections and lets each prove itself on a thread of its own, so that garbage, a
/// stranger or a slow peer disturbs nobody: they are dropped without a word.
pub(crate) struct Acceptor {
    listener: TcpListener,
    secret: Secret,
    purpose: &'static str,
    card: Arc<[u8]>,
    /// Connections that are proving themselves, oldest first; kept to be able to drop them.
    pending: VecDeque<(u64, TcpStream)>,
    next: u64,
    proven: (Sender<Outcome>, Receiver<Outcome>),
}

/// The number of a connection, and its card and stream if it proved itself.
type Outcome = (u64, Option<(Vec<u8>, TcpStream)>);

impl Acceptor {
    pub(crate) fn new(
        listener: TcpListener,
        secret: &Secret,
        purpose: &'static str,
        card: &[u8],
    ) -> Result<Self, GangError> {
        listener
            .set_nonblocking(true)
            .map_err(GangError::io("set up a listener"))?;
        Ok(Self {
            listener,
            secret: secret.clone(),
            purpose,
            card: card.into(),
            pending: VecDeque::new(),
            next: 0,
            proven: channel(),
        })
    }

    /// The next connection that proved itself, with its card; `None` when there is none by `by`.
    pub(crate) fn accept(
        &mut self,
        by: Instant,
    ) -> Result<Option<(Vec<u8>, TcpStream)>, GangError> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.examine(stream)?,
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
            if let Ok((number, outcome)) = self.proven.1.recv_timeout(ACCEPT_POLL) {
                self.pending.retain(|(pending, _)| *pending != number);
                if outcome.is_some() {
                    return Ok(outcome);
                }
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
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

    fn examine(&mut self, stream: TcpStream) -> Result<(), GangError> {
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
        let (secret, purpose, card) = (self.secret.clone(), self.purpose, self.card.clone());
        let report = self.proven.0.clone();
        std::thread::Builder::new()
            .name("handshake".to_owned())
            .spawn(move || {
                let by = Instant::now() + HANDSHAKE_TIME;
                let outcome = respond(&stream, &secret, purpose, &card, by);
                // Nobody listens any more when the acceptor is gone: then the stream is dropped.
                let _ = report.send((number, outcome.ok().map(|card| (card, stream))));
            })
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
