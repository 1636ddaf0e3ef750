//! What travels from a rank to its keeper: a header of fixed size, then the bytes that it says.

use crate::GangError;
use crate::secure::cipher::{Cipher, TAG};
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Bytes of a header.
const HEADER: usize = 24;
/// The most bytes of numbers that one message carries.
pub(super) const MOST_BYTES: usize = 256 << 10;

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MessageKind {
    /// The stamp of the older version is taken back.
    Begin = 1,
    /// Numbers of a vector, from a place on.
    Numbers = 2,
    /// What a lane has summed up.
    Lane = 3,
    /// The version is complete.
    Complete = 4,
    /// Numbers of the vector that the next note is about, from a place on.
    Extra = 5,
    /// A note.
    Note = 6,
    /// The newest note is forgotten.
    Forget = 7,
}

/// What stands before a message's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageHeader {
    pub(super) kind: MessageKind,
    /// Bytes that follow.
    pub(super) length: u32,
    /// A vector, a lane, or what a note is about.
    pub(super) subject: u64,
    /// Where numbers begin.
    pub(super) at: u64,
}

impl MessageHeader {
    fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.subject.to_le_bytes());
        bytes[16..].copy_from_slice(&self.at.to_le_bytes());
        bytes
    }

    /// `None` if these bytes are no header.
    fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let ([kind, reserved @ ..], rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (subject, rest) = rest.split_first_chunk()?;
        if *reserved != [0; 3] {
            return None;
        }
        Some(Self {
            kind: match kind {
                1 => MessageKind::Begin,
                2 => MessageKind::Numbers,
                3 => MessageKind::Lane,
                4 => MessageKind::Complete,
                5 => MessageKind::Extra,
                6 => MessageKind::Note,
                7 => MessageKind::Forget,
                _ => return None,
            },
            length: u32::from_le_bytes(*length),
            subject: u64::from_le_bytes(*subject),
            at: u64::from_le_bytes(*rest.first_chunk()?),
        })
    }
}

/// The end of a link that writes.
pub(super) struct MessageWriter {
    stream: TcpStream,
    /// Seals what is sent, if it is sealed.
    sealer: Option<Cipher>,
    message: Vec<u8>,
}

impl MessageWriter {
    pub(super) fn new(stream: TcpStream, sealer: Option<Cipher>) -> Self {
        Self {
            stream,
            sealer,
            message: Vec::new(),
        }
    }

    /// Sends a message, and waits for room.
    pub(super) fn send(
        &mut self,
        kind: MessageKind,
        (subject, at): (u64, u64),
        bytes: &[u8],
    ) -> io::Result<()> {
        let header = MessageHeader {
            kind,
            length: u32::try_from(bytes.len()).map_err(io::Error::other)?,
            subject,
            at,
        };
        let header = header.encode();
        self.message.clear();
        self.message.extend_from_slice(&header);
        self.message.extend_from_slice(bytes);
        if let Some(sealer) = &mut self.sealer {
            let tag = sealer.seal(&header, &mut self.message[HEADER..]);
            self.message.extend_from_slice(&tag);
        }
        self.stream.write_all(&self.message)
    }
}

/// The end of a link that reads.
pub(super) struct MessageReader {
    stream: TcpStream,
    /// Opens what comes, if it is sealed.
    opener: Option<Cipher>,
    /// The most bytes of a message.
    most: usize,
    /// In words, so that any numbers in it lie as they must.
    message: Vec<u64>,
}

impl MessageReader {
    /// One that takes no more than `most` bytes at a time.
    pub(super) fn new(stream: TcpStream, opener: Option<Cipher>, most: usize) -> Self {
        Self {
            stream,
            opener,
            most,
            message: Vec::new(),
        }
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// [`GangError::Closed`] when the other end is gone, [`GangError::Altered`] and [`GangError::FrameTooLarge`] for what it
    /// did not send.
    pub(super) fn read(&mut self) -> Result<(MessageHeader, &[u8]), GangError> {
        let mut clear = [0; HEADER];
        let closed = |_| GangError::Closed;
        self.stream.read_exact(&mut clear).map_err(closed)?;
        let header = MessageHeader::decode(&clear).ok_or(GangError::Altered)?;
        let (length, limit) = (header.length as usize, self.most);
        if length > limit {
            return Err(GangError::FrameTooLarge {
                bytes: length,
                limit,
            });
        }
        self.message.resize(length.div_ceil(8), 0);
        let message = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut self.message)[..length];
        self.stream.read_exact(message).map_err(closed)?;
        if let Some(opener) = &mut self.opener {
            let mut tag = [0; TAG];
            self.stream.read_exact(&mut tag).map_err(closed)?;
            let opened = opener.open(&clear, message, tag);
            opened.map_err(|_| GangError::Altered)?;
        }
        Ok((header, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    fn pair(keys: [Option<[u8; 32]>; 2]) -> (MessageWriter, MessageReader) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        let [sealer, opener] = keys.map(|key| key.map(|key| Cipher::new(&key)));
        (
            MessageWriter::new(one, sealer),
            MessageReader::new(other, opener, MOST_BYTES),
        )
    }

    proptest! {
        #[test]
        fn a_header_survives_the_way(kind in 1u8..=7, length: u32, subject: u64, at: u64) {
            let mut bytes = [0; HEADER];
            bytes[0] = kind;
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
            bytes[8..16].copy_from_slice(&subject.to_le_bytes());
            bytes[16..].copy_from_slice(&at.to_le_bytes());
            let header = MessageHeader::decode(&bytes).unwrap();
            prop_assert_eq!((header.length, header.subject, header.at), (length, subject, at));
            prop_assert_eq!(header.encode(), bytes);
        }

        #[test]
        fn what_is_no_header_is_refused(kind: u8, reserved: [u8; 3]) {
            prop_assume!(!(1..=7).contains(&kind) || reserved != [0; 3]);
            let mut bytes = [0; HEADER];
            bytes[0] = kind;
            bytes[1..4].copy_from_slice(&reserved);
            prop_assert_eq!(MessageHeader::decode(&bytes), None);
        }
    }

    #[test]
    fn messages_come_as_they_were_sent_sealed_or_not_and_what_was_altered_is_refused() {
        for key in [None, Some([7; 32])] {
            let (mut writer, mut reader) = pair([key; 2]);
            for text in [&b"one"[..], b"", b"three"] {
                writer.send(MessageKind::Note, (1, 2), text).unwrap();
                let (header, bytes) = reader.read().unwrap();
                assert_eq!((header.subject, header.at, bytes), (1, 2, text));
            }
        }
        let (mut writer, mut reader) = pair([Some([7; 32]), Some([8; 32])]);
        writer.send(MessageKind::Begin, (0, 0), &[]).unwrap();
        assert!(matches!(reader.read(), Err(GangError::Altered)));
    }

    #[test]
    fn a_message_that_is_too_long_or_breaks_off_is_an_error() {
        let (mut writer, mut reader) = pair([None; 2]);
        let long = vec![0; MOST_BYTES + 1];
        writer.send(MessageKind::Numbers, (0, 0), &long).unwrap();
        assert!(matches!(
            reader.read(),
            Err(GangError::FrameTooLarge { .. })
        ));
        let (mut writer, mut reader) = pair([None; 2]);
        writer.stream.write_all(&[4, 0, 0]).unwrap();
        drop(writer);
        assert!(matches!(reader.read(), Err(GangError::Closed)));
    }
}
