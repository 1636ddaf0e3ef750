//! Frames on a connection: sealed, or as they are on a network that is trusted.
//!
//! A sealed frame is its header, then its numbers in pieces that fit a second-level cache; each is
//! followed by its tag. Numbers are sealed where they lie, since nobody else needs them there any more, and opened
//! where they are read to. So nothing is allocated, and numbers pass through memory no more often than without it.
//!
//! Connections never block: a reader and a writer stand where they stopped, in the midst of a frame, until
//! there is more to read or room to write.

use super::frame::HEADER;
use super::receiver::{PeerEvent, Receiver, Used};
use super::sender::{Frame, Numbers};
use crate::collective::GATHER;
use crate::secure::cipher::{Altered, Cipher, TAG};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read};
use std::net::TcpStream;
use std::ops::Range;

/// Bytes of numbers that are sealed at a time.
const PIECE: usize = 64 << 10;
/// Bytes that are read from a connection before others have their turn.
const TURN: usize = 4 << 20;

/// The sending direction of a connection: at most one frame is under way.
#[derive(Debug)]
pub(super) struct FrameWriter {
    /// With what frames are sealed, if they are.
    sealer: Option<Sealer>,
}

/// Seals the frame that is under way, a piece at a time.
#[derive(Debug)]
struct Sealer {
    cipher: Cipher,
    /// The header and its tag, and how much of them goes before the piece.
    head: [u8; HEADER + TAG],
    head_length: usize,
    /// Which of the frame's numbers are sealed, and their tag.
    piece: Range<usize>,
    tag: [u8; TAG],
    /// Where numbers are sealed that others need as they are: a gathering.
    room: [u8; GATHER * 8],
    /// Bytes of all these that were written.
    written: usize,
}

impl FrameWriter {
    pub(super) fn new(sealer: Option<Cipher>) -> Self {
        Self {
            sealer: sealer.map(|cipher| Sealer {
                cipher,
                head: [0; HEADER + TAG],
                head_length: 0,
                piece: 0..0,
                tag: [0; TAG],
                room: [0; GATHER * 8],
                written: 0,
            }),
        }
    }

    /// Sends what there is room for of what is left of a frame; true when all of it was sent. An error but
    /// [`WouldBlock`](ErrorKind::WouldBlock), which it never is, ends the connection, which has got half a frame.
    pub(super) fn send(&mut self, stream: &TcpStream, frame: &mut Frame) -> io::Result<bool> {
        match &mut self.sealer {
            None => {
                let header = frame.header.encode();
                let all = HEADER + frame.numbers.bytes().len();
                while frame.sent < all {
                    match send_now(stream, &header, frame.numbers.bytes(), frame.sent)? {
                        0 => return Ok(false),
                        more => frame.sent += more,
                    }
                }
                Ok(true)
            }
            Some(sealer) => sealer.send(stream, frame),
        }
    }
}

impl Sealer {
    fn send(&mut self, stream: &TcpStream, frame: &mut Frame) -> io::Result<bool> {
        let all = HEADER + frame.numbers.bytes().len();
        loop {
            let numbers = match &frame.numbers {
                Numbers::Gathered(_) => &self.room[..],
                numbers => numbers.bytes(),
            };
            let tag = if self.piece.is_empty() { 0 } else { TAG };
            let parts = [
                &self.head[..self.head_length],
                &numbers[self.piece.clone()],
                &self.tag[..tag],
            ];
            while self.written < parts.iter().map(|part| part.len()).sum() {
                match send_parts(stream, parts, self.written)? {
                    0 => return Ok(false),
                    more => self.written += more,
                }
            }
            (self.head_length, self.piece, self.written) = (0, 0..0, 0);
            if frame.sent == all {
                return Ok(true);
            }
            self.seal_next(frame);
        }
    }

    /// Seals the next piece of a frame, and before the first the header; `sent` counts what was sealed.
    fn seal_next(&mut self, frame: &mut Frame) {
        if frame.sent == 0 {
            self.head[..HEADER].copy_from_slice(&frame.header.encode());
            let tag = self.cipher.seal(&[], &mut self.head[..HEADER]);
            self.head[HEADER..].copy_from_slice(&tag);
            (self.head_length, frame.sent) = (HEADER + TAG, HEADER);
        }
        let begin = frame.sent - HEADER;
        let length = frame.numbers.bytes().len();
        self.piece = begin..length.min(begin + PIECE);
        if self.piece.is_empty() {
            return;
        }
        let sealed = match &mut frame.numbers {
            Numbers::None => return,
            Numbers::Piece(numbers) => &mut bytemuck::cast_slice_mut(numbers)[self.piece.clone()],
            Numbers::Gathered(numbers) => {
                let room = &mut self.room[self.piece.clone()];
                room.copy_from_slice(bytemuck::cast_slice(numbers));
                room
            }
        };
        self.tag = self.cipher.seal(&[], sealed);
        frame.sent += self.piece.len();
    }
}

/// Sends as much of a frame, of which `sent` bytes are sent already, as the connection has room for; returns
/// how many bytes that is.
pub(super) fn send_now(
    stream: &TcpStream,
    header: &[u8],
    numbers: &[u8],
    sent: usize,
) -> io::Result<usize> {
    send_parts(stream, [header, numbers, &[]], sent)
}

/// The same of parts that follow each other.
fn send_parts(stream: &TcpStream, parts: [&[u8]; 3], mut sent: usize) -> io::Result<usize> {
    let parts = parts.map(|part| {
        let skipped = sent.min(part.len());
        sent -= skipped;
        IoSlice::new(&part[skipped..])
    });
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        let sent = sendmsg(stream, &parts, &mut SendAncillaryBuffer::default(), flags);
        match sent.map_err(io::Error::from) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            sent => return sent,
        }
    }
}

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
            super::receiver::Incoming::Event(event) => Ok(events(event)),
            super::receiver::Incoming::Numbers(mut numbers) => {
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
