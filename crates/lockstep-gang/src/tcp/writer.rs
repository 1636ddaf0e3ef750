//! The sending direction of a connection: frames sealed, or as they are on a network that is trusted.
//!
//! A sealed frame is its header, then its numbers in pieces that fit a second-level cache; each is
//! followed by its tag. Numbers are sealed where they lie, since nobody else needs them there any more, and opened
//! where they are read to. So nothing is allocated, and numbers pass through memory no more often than without it.
//!
//! Connections never block: a reader and a writer stand where they stopped, in the midst of a frame, until
//! there is more to read or room to write.

use super::frame::HEADER;
use super::sender::{Frame, Numbers};
use crate::collective::GATHER;
use crate::secure::cipher::{Cipher, TAG};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, ErrorKind, IoSlice};
use std::net::TcpStream;
use std::ops::Range;

/// Bytes of numbers that are sealed at a time.
pub(super) const PIECE: usize = 64 << 10;

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
