//! The control link: messages between the coordinator and one worker.
//!
//! A message is JSON, sealed, behind its length in four bytes. It carries words, never the numbers
//! that decide a result. The end of the link is an error of its own, [`GangError::Closed`], because it
//! means something: the other side is gone. A message that was altered, repeated or left out on the way
//! is [`GangError::Altered`], and the link is at its end too.

use crate::secure::cipher::{Cipher, TAG};
use crate::secure::handshake::{self, Introduction, Purpose, SecureChannel};
use crate::{AbortSwitch, GangError, SeatToken, Secret};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The largest message, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// How long sending one message may take before the other side counts as gone.
const SEND_TIME: Duration = Duration::from_secs(10);
/// Bytes of a message's length.
const LENGTH: usize = 4;

/// How a worker introduces itself to the coordinator. Its seat and incarnation are what its token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Its process id on the host that it runs on: a word for people, not an identity.
    pub pid: u32,
    /// Where it listens for its peers, when the gang exchanges over TCP.
    pub listener: Option<SocketAddr>,
    /// Which workers it can share memory with: those who say the same ([`memory_domain`](crate::memory_domain)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_domain: Option<String>,
}

/// A control link whose two ends have proven themselves to each other.
#[derive(Debug)]
pub struct Link {
    reader: LinkReader,
    writer: LinkWriter,
}

impl Link {
    /// Connects a worker to its coordinator at `address`. The token works once.
    ///
    /// # Errors
    /// [`GangError::Io`] when nobody listens there, [`GangError::Handshake`] when the one who does
    /// is not this run's coordinator, does not answer within `timeout`, or knows the token as used.
    pub fn connect(
        address: SocketAddr,
        token: &SeatToken,
        hello: &Hello,
        timeout: Duration,
    ) -> Result<Self, GangError> {
        lockstep_base::failpoint::set_worker(token.seat, 0);
        lockstep_base::failpoint::reach("link.connect");
        let introduction = Introduction {
            purpose: Purpose::Control,
            from: token.seat as u32,
            to: 0,
            number: token.incarnation,
        };
        Self::introduce(address, introduction, &token.key, hello, timeout)
    }

    /// Connects to one who listens at `address` as somebody who has this key.
    pub(crate) fn introduce<T: Serialize>(
        address: SocketAddr,
        introduction: Introduction,
        key: &Secret,
        hello: &T,
        timeout: Duration,
    ) -> Result<Self, GangError> {
        let by = Instant::now() + timeout;
        let stream = TcpStream::connect_timeout(&address, timeout).map_err(GangError::io(
            format!("connect to the coordinator at {address}"),
        ))?;
        let card = serde_json::to_vec(hello)?;
        let abort = AbortSwitch::default();
        let (_, channel) = handshake::initiate(stream, introduction, key, &card, by, &abort)
            .map_err(|failure| failure.with(&address.to_string()))?;
        Self::over(channel)
    }

    /// A link over a connection that has passed its handshake.
    pub(crate) fn over(channel: SecureChannel) -> Result<Self, GangError> {
        let SecureChannel {
            stream,
            sealer,
            opener,
        } = channel;
        let set_up = || {
            stream.set_write_timeout(Some(SEND_TIME))?;
            stream.try_clone()
        };
        let writing = set_up().map_err(GangError::io("set up a control link"))?;
        Ok(Self {
            reader: LinkReader {
                stream,
                opener,
                frame: Vec::new(),
            },
            writer: LinkWriter {
                stream: writing,
                sealer,
            },
        })
    }

    /// Sends a message. See [`LinkWriter::send`].
    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<(), GangError> {
        self.writer.send(message)
    }

    /// Receives a message. See [`LinkReader::recv`].
    pub fn recv<T: DeserializeOwned>(&mut self, timeout: Duration) -> Result<Option<T>, GangError> {
        self.reader.recv(timeout)
    }

    /// Takes the two directions apart, one for each of two threads.
    pub fn split(self) -> (LinkReader, LinkWriter) {
        (self.reader, self.writer)
    }
}

/// The receiving direction of a [`Link`].
#[derive(Debug)]
pub struct LinkReader {
    stream: TcpStream,
    opener: Cipher,
    /// What has come of the next message, its length and its tag included.
    frame: Vec<u8>,
}

impl LinkReader {
    /// The next message; `None` when it has not come, or not come whole, within `timeout`.
    ///
    /// # Errors
    /// [`GangError::Closed`] when the other side is gone, [`GangError::Altered`] and
    /// [`GangError::FrameTooLarge`] for what it did not send, [`GangError::Message`] for what is no
    /// message of this type. The link can be used after the last of these alone.
    pub fn recv<T: DeserializeOwned>(&mut self, timeout: Duration) -> Result<Option<T>, GangError> {
        let by = Instant::now() + timeout;
        loop {
            let wanted = match self.frame.first_chunk::<LENGTH>() {
                None => LENGTH,
                Some(length) => match u32::from_le_bytes(*length) as usize {
                    bytes @ ..=MAX_MESSAGE => LENGTH + bytes + TAG,
                    bytes => {
                        let limit = MAX_MESSAGE;
                        return Err(GangError::FrameTooLarge { bytes, limit });
                    }
                },
            };
            let missing = wanted - self.frame.len();
            if missing == 0 {
                let message = self.open().map(serde_json::from_slice);
                let message = message.ok_or(GangError::Altered);
                self.frame.clear();
                return Ok(Some(message??));
            }
            if !self.read_some(missing, by)? {
                return Ok(None);
            }
        }
    }

    /// The text of the message that has come whole, if the other side sealed it as the next one.
    fn open(&mut self) -> Option<&[u8]> {
        let (length, rest) = self.frame.split_first_chunk_mut::<LENGTH>()?;
        let (text, tag) = rest.split_last_chunk_mut::<TAG>()?;
        self.opener.open(length, text, *tag).ok()?;
        Some(text)
    }

    /// Reads at most `missing` bytes; false when none came by `by`.
    fn read_some(&mut self, missing: usize, by: Instant) -> Result<bool, GangError> {
        let mut bytes = [0; 4096];
        let bytes = &mut bytes[..missing.min(4096)];
        // A timeout of zero would mean none at all.
        let left = by
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        self.stream
            .set_read_timeout(Some(left))
            .map_err(GangError::io("set a timeout on the control link"))?;
        match self.stream.read(bytes) {
            Ok(0) => Err(GangError::Closed),
            Ok(read) => {
                self.frame.extend_from_slice(&bytes[..read]);
                Ok(true)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(false),
                ErrorKind::Interrupted => Ok(Instant::now() < by),
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => Err(GangError::Closed),
                _ => Err(GangError::io("read from the control link")(error)),
            },
        }
    }
}

/// The sending direction of a [`Link`].
#[derive(Debug)]
pub struct LinkWriter {
    stream: TcpStream,
    sealer: Cipher,
}

impl LinkWriter {
    /// Sends a message.
    ///
    /// # Errors
    /// [`GangError::Closed`] when the other side is gone or has not read for 10 seconds,
    /// [`GangError::FrameTooLarge`] above [`MAX_MESSAGE`]. The link cannot be used after the former.
    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<(), GangError> {
        let mut frame = vec![0; LENGTH];
        serde_json::to_writer(&mut frame, message)?;
        let bytes = frame.len() - LENGTH;
        if bytes > MAX_MESSAGE {
            return Err(GangError::FrameTooLarge {
                bytes,
                limit: MAX_MESSAGE,
            });
        }
        let (length, text) = frame.split_at_mut(LENGTH);
        length.copy_from_slice(&(bytes as u32).to_le_bytes());
        let tag = self.sealer.seal(length, text);
        frame.extend_from_slice(&tag);
        self.stream
            .write_all(&frame)
            .map_err(|error| match error.kind() {
                ErrorKind::WouldBlock
                | ErrorKind::TimedOut
                | ErrorKind::BrokenPipe
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted => GangError::Closed,
                _ => GangError::io("write to the control link")(error),
            })
    }

    /// Closes both directions: the other side, and whoever reads on this side, sees
    /// [`GangError::Closed`].
    pub fn close(&self) {
        // It fails only for a link that is closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
