//! The control link: messages between the coordinator and one worker.
//!
//! A message is JSON behind its length in four bytes. It carries words, never the numbers that
//! decide a result. The end of the link is an error of its own, [`GangError::Closed`], because it
//! means something: the other side is gone.

use crate::{GangError, Secret, handshake};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The largest message, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// How long sending one message may take before the other side counts as gone.
const SEND_TIME: Duration = Duration::from_secs(10);
/// The purpose that control links' handshakes are bound to.
pub(crate) const PURPOSE: &str = "control";

/// How a worker introduces itself to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The rank that it was started as.
    pub rank: usize,
    /// Its process id.
    pub pid: u32,
    /// The generation of the gang that it was started for.
    pub generation: u16,
    /// Where it listens for its peers, when the gang exchanges over TCP.
    pub listener: Option<SocketAddr>,
}

/// A control link whose other end has proven that it knows the run's secret.
#[derive(Debug)]
pub struct Link {
    reader: LinkReader,
    writer: LinkWriter,
}

impl Link {
    /// Connects a worker to its coordinator at `address`.
    ///
    /// # Errors
    /// [`GangError::Io`] when nobody listens there, [`GangError::Handshake`] when the one who does
    /// is not this run's coordinator, or does not answer within `timeout`.
    pub fn connect(
        address: SocketAddr,
        secret: &Secret,
        hello: &Hello,
        timeout: Duration,
    ) -> Result<Self, GangError> {
        let by = Instant::now() + timeout;
        let stream = TcpStream::connect_timeout(&address, timeout).map_err(GangError::io(
            format!("connect to the coordinator at {address}"),
        ))?;
        let card = serde_json::to_vec(hello)?;
        handshake::initiate(&stream, secret, PURPOSE, &card, by)?;
        Self::over(stream)
    }

    /// A link over a connection that has passed its handshake.
    pub(crate) fn over(stream: TcpStream) -> Result<Self, GangError> {
        let set_up = || {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(SEND_TIME))?;
            stream.try_clone()
        };
        let writer = set_up().map_err(GangError::io("set up a control link"))?;
        Ok(Self {
            reader: LinkReader {
                stream,
                frame: Vec::new(),
            },
            writer: LinkWriter { stream: writer },
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
    /// What has come of the next message, its length included.
    frame: Vec<u8>,
}

impl LinkReader {
    /// The next message; `None` when it has not come, or not come whole, within `timeout`.
    ///
    /// # Errors
    /// [`GangError::Closed`] when the other side is gone, [`GangError::FrameTooLarge`] and
    /// [`GangError::Message`] for what is no message of this type.
    pub fn recv<T: DeserializeOwned>(&mut self, timeout: Duration) -> Result<Option<T>, GangError> {
        let by = Instant::now() + timeout;
        loop {
            let wanted = match self.frame.first_chunk::<4>() {
                None => 4,
                Some(length) => 4 + u32::from_le_bytes(*length) as usize,
            };
            if wanted > 4 + MAX_MESSAGE {
                return Err(GangError::FrameTooLarge {
                    bytes: wanted - 4,
                    limit: MAX_MESSAGE,
                });
            }
            let missing = wanted - self.frame.len();
            if missing == 0 {
                let message = serde_json::from_slice(&self.frame[4..]);
                self.frame.clear();
                return Ok(Some(message?));
            }
            if !self.read_some(missing, by)? {
                return Ok(None);
            }
        }
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
}

impl LinkWriter {
    /// Sends a message.
    ///
    /// # Errors
    /// [`GangError::Closed`] when the other side is gone or has not read for 10 seconds,
    /// [`GangError::FrameTooLarge`] above [`MAX_MESSAGE`]. The link cannot be used after the former.
    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<(), GangError> {
        let mut frame = vec![0; 4];
        serde_json::to_writer(&mut frame, message)?;
        let bytes = frame.len() - 4;
        if bytes > MAX_MESSAGE {
            return Err(GangError::FrameTooLarge {
                bytes,
                limit: MAX_MESSAGE,
            });
        }
        frame[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
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

    /// The socket itself, to write what a link would not.
    #[cfg(test)]
    pub(crate) fn socket(&self) -> TcpStream {
        self.stream.try_clone().expect("a socket can be duplicated")
    }

    /// Closes both directions: the other side, and whoever reads on this side, sees
    /// [`GangError::Closed`].
    pub fn close(&self) {
        // It fails only for a link that is closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
