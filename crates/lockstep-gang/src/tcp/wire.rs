//! Frames on a connection: sealed, or as they are on a network that is trusted.
//!
//! A sealed frame is its header, then its numbers in pieces that fit a second-level cache; each is
//! followed by its tag. Numbers are copied to one buffer of such a piece's size, sealed there and
//! written; they are read to where they belong and opened there. So nothing is allocated, and numbers
//! pass through memory no more often than without it.

use super::frame::HEADER;
use crate::secure::cipher::{Altered, Cipher, TAG};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::TcpStream;

/// Bytes of numbers that are sealed at a time.
const PIECE: usize = 64 << 10;
/// The largest piece with all that may stand around it.
const ROOM: usize = HEADER + TAG + PIECE + TAG;

/// The sending direction of a connection: at most one frame is under way.
#[derive(Debug)]
pub(super) struct FrameWriter {
    stream: TcpStream,
    /// With what frames are sealed, if they are.
    sealer: Option<(Cipher, Box<[u8]>)>,
}

impl FrameWriter {
    pub(super) fn new(stream: TcpStream, sealer: Option<Cipher>) -> Self {
        let room = || vec![0; ROOM].into_boxed_slice();
        Self {
            stream,
            sealer: sealer.map(|sealer| (sealer, room())),
        }
    }

    /// The stream, to send frames by [`send_now`], unless they are sealed.
    pub(super) fn unsealed(&self) -> io::Result<Option<TcpStream>> {
        match self.sealer {
            Some(_) => Ok(None),
            None => self.stream.try_clone().map(Some),
        }
    }

    /// Sends a frame, of which `sent` bytes are sent already. `wait` is asked what to do when the connection has no room for now; its error
    /// ends the sending, and with it the connection, which has got half a frame.
    pub(super) fn send<E>(
        &mut self,
        header: &[u8; HEADER],
        numbers: &[u8],
        sent: usize,
        mut wait: impl FnMut(io::Error) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((sealer, room)) = &mut self.sealer else {
            return write_all(&mut self.stream, header, numbers, sent, &mut wait);
        };
        room[..HEADER].copy_from_slice(header);
        let tag = sealer.seal(&[], &mut room[..HEADER]);
        room[HEADER..][..TAG].copy_from_slice(&tag);
        let mut filled = HEADER + TAG;
        for piece in numbers.chunks(PIECE) {
            let sealed = &mut room[filled..][..piece.len()];
            sealed.copy_from_slice(piece);
            let tag = sealer.seal(&[], sealed);
            filled += piece.len();
            room[filled..][..TAG].copy_from_slice(&tag);
            filled += TAG;
            write_all(&mut self.stream, &room[..filled], &[], 0, &mut wait)?;
            filled = 0;
        }
        match filled {
            0 => Ok(()),
            _ => write_all(&mut self.stream, &room[..filled], &[], 0, &mut wait),
        }
    }
}

/// Sends as much of a frame as the connection has room for; returns how many bytes that is.
pub(super) fn send_now(
    stream: &TcpStream,
    header: &[u8; HEADER],
    numbers: &[u8],
) -> io::Result<usize> {
    let parts = [IoSlice::new(header), IoSlice::new(numbers)];
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(sendmsg(
        stream,
        &parts,
        &mut SendAncillaryBuffer::default(),
        flags,
    )?)
}

fn write_all<E>(
    stream: &mut TcpStream,
    first: &[u8],
    second: &[u8],
    mut sent: usize,
    wait: &mut impl FnMut(io::Error) -> Result<(), E>,
) -> Result<(), E> {
    while sent < first.len() + second.len() {
        let parts = [
            IoSlice::new(&first[sent.min(first.len())..]),
            IoSlice::new(&second[sent.saturating_sub(first.len())..]),
        ];
        match stream.write_vectored(&parts) {
            Ok(0) => wait(ErrorKind::WriteZero.into())?,
            Ok(more) => sent += more,
            Err(error) => wait(error)?,
        }
    }
    Ok(())
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
    stream: TcpStream,
    /// With what frames are opened, if they are sealed.
    opener: Option<Cipher>,
}

impl FrameReader {
    pub(super) fn new(stream: TcpStream, opener: Option<Cipher>) -> Self {
        Self { stream, opener }
    }

    /// Reads a header.
    pub(super) fn header(&mut self) -> Result<[u8; HEADER], ReadError> {
        let mut header = [0; HEADER];
        self.record(&mut header)?;
        Ok(header)
    }

    /// Reads a frame's numbers. What is left in `numbers` after an error means nothing.
    pub(super) fn numbers(&mut self, numbers: &mut [u8]) -> Result<(), ReadError> {
        match self.opener {
            None => Ok(self.stream.read_exact(numbers)?),
            Some(_) => numbers.chunks_mut(PIECE).try_for_each(|p| self.record(p)),
        }
    }

    fn record(&mut self, bytes: &mut [u8]) -> Result<(), ReadError> {
        let Some(opener) = &mut self.opener else {
            return Ok(self.stream.read_exact(bytes)?);
        };
        let mut tag = [0; TAG];
        let mut read = 0;
        while read < bytes.len() + TAG {
            let got = match bytes.get_mut(read..) {
                Some(rest) if !rest.is_empty() => {
                    let mut parts = [IoSliceMut::new(rest), IoSliceMut::new(&mut tag)];
                    self.stream.read_vectored(&mut parts)
                }
                _ => self.stream.read(&mut tag[read - bytes.len()..]),
            };
            match got {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(opener.open(&[], bytes, tag)?)
    }
}
