//! Two ends of a connection prove to each other that they hold the same key, and agree on fresh ones.
//!
//! ```text
//! initiator                                            responder
//!   magic, introduction, psk + e, card i           ->
//!                                                  <-  e + ee, card r
//!   sealed: nothing                                ->
//! ```
//!
//! This is the Noise pattern `NNpsk0` with AES-GCM and SHA-256, and a third message: the initiator's
//! first record. An [`Introduction`] says in clear who wants to talk to whom about what, so that the
//! responder knows which key to expect; as the handshake's prologue it cannot be changed on the way. A
//! *card* is a few bytes by which an end tells the other what it should know of it, encrypted.
//!
//! A recorded handshake is worth nothing: without the key nobody can answer the responder's fresh `e`,
//! and the responder lets nobody in before the third message has opened. Since the fresh keys follow from
//! both ends' ephemeral secrets, a key that leaks later opens nothing that was recorded before.

use super::cipher::Cipher;
use super::noise::{Failed, Handshake, OVERHEAD};
use crate::{AbortSwitch, GangError, Secret};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MAGIC: [u8; 8] = *b"lockstp2";
/// The largest message of a handshake.
const MAX_MESSAGE: usize = OVERHEAD + 2048;
/// How often one who waits looks whether it was called off.
const LOOK: Duration = Duration::from_millis(10);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// A worker's link to its coordinator.
    Control = 1,
    /// The exchange between two ranks.
    Mesh = 2,
    /// The link of a host that workers are to be started on.
    Host = 3,
}

/// Who wants to talk to whom, in clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Introduction {
    pub(crate) purpose: Purpose,
    /// A seat, a rank, or the number of a host.
    pub(crate) from: u32,
    /// A rank; 0 for the coordinator.
    pub(crate) to: u32,
    /// An incarnation, or a generation; 0 for a host.
    pub(crate) number: u32,
}

impl Introduction {
    const BYTES: usize = 13;

    fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.purpose as u8;
        bytes[1..5].copy_from_slice(&self.from.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.to.to_le_bytes());
        bytes[9..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let ([purpose], rest) = bytes.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (to, rest) = rest.split_first_chunk()?;
        Some(Self {
            purpose: match purpose {
                1 => Purpose::Control,
                2 => Purpose::Mesh,
                3 => Purpose::Host,
                _ => return None,
            },
            from: u32::from_le_bytes(*from),
            to: u32::from_le_bytes(*to),
            number: u32::from_le_bytes(*rest.first_chunk()?),
        })
    }

    /// What both ends must have seen alike.
    fn prologue(self) -> Vec<u8> {
        [&MAGIC[..], &self.encode()].concat()
    }
}

/// A connection whose two ends know each other.
#[derive(Debug)]
pub(crate) struct SecureChannel {
    pub(crate) stream: TcpStream,
    /// Seals what this end sends.
    pub(crate) sealer: Cipher,
    /// Opens what the other end sends.
    pub(crate) opener: Cipher,
}

/// Why a handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeFailure {
    /// The other end hung up.
    Ended,
    /// It took too long.
    Late,
    /// This end was called off.
    Aborted,
    /// The other end is not who it should be.
    Refused(String),
    /// The system refused something.
    Io(io::Error),
}

impl HandshakeFailure {
    /// The error of an end that can do nothing but report it.
    pub(crate) fn with(self, peer: &str) -> GangError {
        let reason = match self {
            Self::Aborted => return GangError::Aborted,
            Self::Ended => "it hung up; it may not know this token, or know it as used".to_owned(),
            Self::Late => "it took too long".to_owned(),
            Self::Refused(reason) => reason,
            Self::Io(error) => error.to_string(),
        };
        let peer = peer.to_owned();
        GangError::Handshake { peer, reason }
    }
}

impl From<io::Error> for HandshakeFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                Self::Ended
            }
            ErrorKind::TimedOut => Self::Late,
            _ => Self::Io(error),
        }
    }
}

impl From<Failed> for HandshakeFailure {
    fn from(_: Failed) -> Self {
        refused("it does not know the key")
    }
}

fn refused(reason: &str) -> HandshakeFailure {
    HandshakeFailure::Refused(reason.to_owned())
}

/// The connecting end's part. Returns the other end's card.
pub(crate) fn initiate(
    stream: TcpStream,
    introduction: Introduction,
    key: &Secret,
    card: &[u8],
    by: Instant,
    abort: &AbortSwitch,
) -> Result<(Vec<u8>, SecureChannel), HandshakeFailure> {
    let mut timed = Timed { stream, by, abort };
    let prologue = introduction.prologue();
    let mut noise = Handshake::new(&prologue, key);
    let first = noise.write(card)?;
    timed.write(&[&prologue, &length(&first), &first])?;
    let theirs = noise.read(&timed.read_message()?)?;
    let (sealer, opener) = noise.split();
    let mut channel = timed.channel(sealer, opener)?;
    let tag = channel.sealer.seal(&[], &mut []);
    channel.stream.write_all(&tag)?;
    Ok((theirs, channel))
}

/// The accepting end's part. `key` says which key the one who introduces itself must know, or why there
/// is none. Returns the introduction and the other end's card.
pub(crate) fn respond(
    stream: TcpStream,
    key: impl FnOnce(Introduction) -> Result<Secret, String>,
    card: &[u8],
    by: Instant,
) -> Result<(Introduction, Vec<u8>, SecureChannel), HandshakeFailure> {
    let abort = AbortSwitch::default();
    let mut timed = Timed {
        stream,
        by,
        abort: &abort,
    };
    if timed.read_array()? != MAGIC {
        return Err(refused("it does not speak this version of the protocol"));
    }
    let introduction = Introduction::decode(timed.read_array()?)
        .ok_or_else(|| refused("it does not say what it wants"))?;
    let first = timed.read_message()?;
    let key = key(introduction).map_err(HandshakeFailure::Refused)?;
    let prologue = introduction.prologue();
    let mut noise = Handshake::new(&prologue, &key);
    let theirs = noise.read(&first)?;
    let second = noise.write(card)?;
    timed.write(&[&length(&second), &second])?;
    let tag = timed.read_array()?;
    let (opener, sealer) = noise.split();
    let mut channel = timed.channel(sealer, opener)?;
    // Whoever repeats a recorded first message cannot make this one.
    let third = channel.opener.open(&[], &mut [], tag);
    third.map_err(|_| Failed)?;
    Ok((introduction, theirs, channel))
}

fn length(message: &[u8]) -> [u8; 2] {
    assert!(
        message.len() <= MAX_MESSAGE,
        "a message of {} bytes is over the limit of {MAX_MESSAGE}",
        message.len()
    );
    (message.len() as u16).to_le_bytes()
}

/// A stream on which everything must be over by one moment, however slowly bytes trickle in.
struct Timed<'a> {
    stream: TcpStream,
    by: Instant,
    abort: &'a AbortSwitch,
}

impl Timed<'_> {
    /// How long to wait for the next byte before looking up.
    fn look(&self) -> Result<Duration, HandshakeFailure> {
        if self.abort.is_aborted() {
            return Err(HandshakeFailure::Aborted);
        }
        match self.by.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(HandshakeFailure::Late),
            left => Ok(left.clamp(Duration::from_millis(1), LOOK)),
        }
    }

    fn read_exact(&mut self, mut buffer: &mut [u8]) -> Result<(), HandshakeFailure> {
        while !buffer.is_empty() {
            self.stream.set_read_timeout(Some(self.look()?))?;
            match self.stream.read(buffer) {
                Ok(0) => return Err(HandshakeFailure::Ended),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], HandshakeFailure> {
        let mut array = [0; N];
        self.read_exact(&mut array)?;
        Ok(array)
    }

    fn read_message(&mut self) -> Result<Vec<u8>, HandshakeFailure> {
        let length = usize::from(u16::from_le_bytes(self.read_array()?));
        if length > MAX_MESSAGE {
            return Err(refused("its message is too long"));
        }
        let mut message = vec![0; length];
        self.read_exact(&mut message)?;
        Ok(message)
    }

    /// Writes all parts at once. A handshake's message fits any socket's buffer, so that a timeout
    /// for each write is as good as one for all.
    fn write(&mut self, parts: &[&[u8]]) -> Result<(), HandshakeFailure> {
        let left = self.by.saturating_duration_since(Instant::now());
        let left = left.max(Duration::from_millis(1));
        self.stream.set_write_timeout(Some(left))?;
        Ok(self.stream.write_all(&parts.concat())?)
    }

    /// What comes of a handshake that is over. Lifts the timeouts.
    fn channel(self, sealer: Cipher, opener: Cipher) -> Result<SecureChannel, HandshakeFailure> {
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(None)?;
        self.stream.set_nodelay(true)?;
        Ok(SecureChannel {
            stream: self.stream,
            sealer,
            opener,
        })
    }
}
