//! The receiving direction of a connection: what [`FrameWriter`](super::writer::FrameWriter) has written, as it comes.

use super::frame::HEADER;
use super::receiver::{Incoming, PeerEvent, Receiver, Used};
use super::writer::PIECE;
use crate::secure::cipher::{Altered, Cipher, TAG};
use std::io::{self, ErrorKind, IoSliceMut, Read};
use std::net::TcpStream;

/// Bytes that are read from a connection before others have their turn.
const TURN: usize = 4 << 20;

/// Why nothing more can be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The connection ended.
    Ended(io::Error),
    /// What came was altered on the way.
    Altered,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Ended(error)
    }
}

impl From<Altered> for ReadError {
    fn from(_: Altered) -> Self {
        Self::Altered
    }
}

/// The receiving direction of a connection.
#[derive(Debug)]
pub(super) struct FrameReader {
    /// With what frames are opened, if they are sealed.
    opener: Option<Cipher>,
    /// The next header, with its tag if frames are sealed, and how much of it was read.
    head: [u8; HEADER + TAG],
    head_read: usize,
    /// The numbers of the frame whose header was read.
    body: Option<Body>,
}

/// A frame's numbers on their way in.
#[derive(Debug)]
struct Body {
    numbers: Used,
    /// Where the piece that is being read begins, and what was read of it and its tag.
    piece: usize,
    read: usize,
    tag: [u8; TAG],
}

impl FrameReader {
    pub(super) fn new(opener: Option<Cipher>) -> Self {
        Self {
            opener,
            head: [0; HEADER + TAG],
            head_read: 0,
            body: None,
        }
    }

    /// Reads what is there, as far as it is this connection's turn, and tells `events` of each frame that is
    /// complete. An error is the last event.
    pub(super) fn read(
        &mut self,
        mut stream: &TcpStream,
        receiver: &mut Receiver,
        events: &mut dyn FnMut(PeerEvent) -> bool,
    ) -> Result<(), PeerEvent> {
        let mut turn = 0;
        while turn < TURN {
            let (asked, got) = self.read_some(&mut stream);
            let got = match got {
                Ok(0) => Err(io::Error::from(ErrorKind::UnexpectedEof)),
                got => got,
            };
            match got {
                Ok(got) => {
                    turn += got;
                    let goes_on = self.take(got, receiver, events)?;
                    // Less than was asked for is all that there is.
                    if got < asked || !goes_on {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(receiver.ended(error.into())),
            }
        }
        Ok(())
    }

    /// Bytes of a header and its tag.
    fn head_length(&self) -> usize {
        HEADER + self.tag_length()
    }

    /// Bytes of a tag, if there are any.
    fn tag_length(&self) -> usize {
        if self.opener.is_some() { TAG } else { 0 }
    }

    /// Asks for what is left of a piece, and after the last piece of a frame for the next header too; returns how
    /// much that is, and how much came.
    fn read_some(&mut self, stream: &mut &TcpStream) -> (usize, io::Result<usize>) {
        let (head, tag) = (self.head_length(), self.tag_length());
        let Some(body) = &mut self.body else {
            let head = &mut self.head[self.head_read..head];
            return (head.len(), stream.read(head));
        };
        let read = body.read;
        let bytes = body.numbers.bytes_mut();
        let end = bytes.len().min(body.piece + PIECE);
        let is_last = end == bytes.len();
        let piece = &mut bytes[body.piece..end];
        let tag_read = read.saturating_sub(piece.len());
        let read = read.min(piece.len());
        let piece = &mut piece[read..];
        let tag = &mut body.tag[..tag][tag_read..];
        let next = if is_last {
            &mut self.head[..head]
        } else {
            &mut []
        };
        let asked = piece.len() + tag.len() + next.len();
        let mut parts = [
            IoSliceMut::new(piece),
            IoSliceMut::new(tag),
            IoSliceMut::new(next),
        ];
        (asked, stream.read_vectored(&mut parts))
    }

    /// Takes in bytes that were read to where they belong. Whether there is room for further events.
    fn take(
        &mut self,
        got: usize,
        receiver: &mut Receiver,
        events: &mut dyn FnMut(PeerEvent) -> bool,
    ) -> Result<bool, PeerEvent> {
        let tag = self.tag_length();
        let mut goes_on = true;
        match &mut self.body {
            None => self.head_read += got,
            Some(body) => {
                let length = body.numbers.bytes_mut().len();
                let end = length.min(body.piece + PIECE);
                let whole = end - body.piece + tag;
                let more = got.min(whole - body.read);
                body.read += more;
                self.head_read += got - more;
                if body.read == whole {
                    if let Some(opener) = &mut self.opener {
                        let piece = &mut body.numbers.bytes_mut()[body.piece..end];
                        opener
                            .open(&[], piece, body.tag)
                            .map_err(|altered| receiver.ended(altered.into()))?;
                    }
                    (body.piece, body.read) = (end, 0);
                    if end == length
                        && let Some(body) = self.body.take()
                    {
                        goes_on &= events(body.numbers.into());
                    }
                }
            }
        }
        while self.body.is_none() && self.head_read == self.head_length() {
            self.head_read = 0;
            goes_on &= self.begin_frame(receiver, events)?;
        }
        Ok(goes_on)
    }

    /// Begins the frame whose header was read.
    fn begin_frame(
        &mut self,
        receiver: &mut Receiver,
        events: &mut dyn FnMut(PeerEvent) -> bool,
    ) -> Result<bool, PeerEvent> {
        let (header, tag) = self.head.split_first_chunk_mut::<HEADER>().expect("longer");
        if let Some(opener) = &mut self.opener {
            let tag = *tag.first_chunk().expect("as long as a tag");
            let opened = opener.open(&[], header, tag);
            opened.map_err(|altered| receiver.ended(altered.into()))?;
        }
        match receiver.header(header)? {
            Incoming::Event(event) => Ok(events(event)),
            Incoming::Numbers(mut numbers) => {
                if numbers.bytes_mut().is_empty() {
                    return Ok(events(numbers.into()));
                }
                self.body = Some(Body {
                    numbers,
                    piece: 0,
                    read: 0,
                    tag: [0; TAG],
                });
                Ok(true)
            }
        }
    }
}
