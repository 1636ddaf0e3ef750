//! What travels between two ranks over TCP: a header of fixed size, then at most one buffer's worth
//! of numbers, little-endian.

#[cfg(target_endian = "big")]
compile_error!("numbers travel as they lie in memory, which must be little-endian");

/// Marks the beginning of a frame.
const MAGIC: u32 = u32::from_le_bytes(*b"lsgf");
/// Bytes of a header.
pub(crate) const HEADER: usize = 32;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// The sender's partial sums of a chunk that the receiver owns.
    Post = 1,
    /// The new values of a chunk that the sender owns.
    Publish = 2,
    /// The sender's vote on a step; the vote is in the header.
    Vote = 3,
    /// The sender's numbers in a round of gathering.
    Gather = 4,
    /// The sender leaves on its own account; nothing follows.
    Goodbye = 5,
}

/// What stands before a frame's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) generation: u16,
    pub(crate) kind: FrameKind,
    pub(crate) chunk: u32,
    /// Bytes that follow.
    pub(crate) length: u32,
    /// How many frames of this kind (and chunk) the sender has sent, this one included.
    pub(crate) sequence: u64,
    /// A vote.
    pub(crate) value: u64,
}

impl FrameHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.generation.to_le_bytes());
        bytes[6] = self.kind as u8;
        bytes[8..12].copy_from_slice(&self.chunk.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }

    /// `None` if these bytes are no header.
    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        let ([kind, reserved], rest) = rest.split_first_chunk()?;
        let (chunk, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let value = rest.first_chunk()?;
        if u32::from_le_bytes(*magic) != MAGIC || *reserved != 0 {
            return None;
        }
        Some(Self {
            generation: u16::from_le_bytes(*generation),
            kind: match kind {
                1 => FrameKind::Post,
                2 => FrameKind::Publish,
                3 => FrameKind::Vote,
                4 => FrameKind::Gather,
                5 => FrameKind::Goodbye,
                _ => return None,
            },
            chunk: u32::from_le_bytes(*chunk),
            length: u32::from_le_bytes(*length),
            sequence: u64::from_le_bytes(*sequence),
            value: u64::from_le_bytes(*value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_survives_the_way(
            generation: u16, kind in 1u8..=5, chunk: u32, length: u32, sequence: u64, value: u64,
        ) {
            let kinds = [FrameKind::Post, FrameKind::Publish, FrameKind::Vote, FrameKind::Gather, FrameKind::Goodbye];
            let kind = kinds[usize::from(kind) - 1];
            let header = FrameHeader { generation, kind, chunk, length, sequence, value };
            prop_assert_eq!(FrameHeader::decode(&header.encode()), Some(header));
        }

        #[test]
        fn bytes_without_the_mark_are_no_header(bytes: [u8; HEADER]) {
            prop_assume!(bytes[..4] != MAGIC.to_le_bytes());
            prop_assert_eq!(FrameHeader::decode(&bytes), None);
        }
    }
}
