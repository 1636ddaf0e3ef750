//! What may come over a connection, frame by frame.
//!
//! Every buffer is made at the start and belongs here. The receiver names the one that a frame's numbers are
//! read to; it is handed over to the rank's own thread through a channel of fixed size, and comes back when it
//! was used. So a step allocates nothing, and no two threads ever see the same buffer.
//!
//! A peer may be anything: each header is checked against the plan and the frames before it, before
//! one byte that follows is read. What does not fit ends the connection with an error.

use super::buffers::FreeBuffers;
use super::frame::{FrameHeader, FrameKind, HEADER};
use super::reader::ReadError;
use crate::Plan;
use crate::collective::GATHER;
use std::sync::mpsc::{Receiver as Channel, SyncSender, sync_channel};

/// What a rank learns from one of its peers.
#[derive(Debug)]
pub(crate) enum PeerEvent {
    /// Partial sums of an own chunk, or new values of the peer's.
    Chunk(usize, Vec<f32>),
    /// Its numbers in the next round of gathering.
    Gathered(Vec<f64>),
    /// Its vote on the next step.
    Vote(u64),
    /// It left on its own account: nothing more comes over one of its connections.
    Left,
    /// The connection is gone.
    Lost(String),
    /// It has not taken in what it was sent.
    Stuck,
    /// It sent what it may not.
    Broken(String),
}

/// A buffer on its way in, or back.
#[derive(Debug)]
pub(crate) enum Used {
    Chunk(usize, Vec<f32>),
    Gathered(Vec<f64>),
}

impl Used {
    /// Where its numbers are read to.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Chunk(_, numbers) => bytemuck::cast_slice_mut(numbers),
            Self::Gathered(numbers) => bytemuck::cast_slice_mut(numbers),
        }
    }
}

impl From<Used> for PeerEvent {
    fn from(numbers: Used) -> Self {
        match numbers {
            Used::Chunk(chunk, buffer) => Self::Chunk(chunk, buffer),
            Used::Gathered(buffer) => Self::Gathered(buffer),
        }
    }
}

/// What follows from a header.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The whole frame.
    Event(PeerEvent),
    /// Where its numbers are to be read to.
    Numbers(Used),
}

/// Events that one connection can have under way: each of its buffers, two votes, and both of its ends.
pub(crate) fn events_of_a_connection(plan: &Plan) -> usize {
    plan.pieces() + 7
}

/// What one peer may send over one connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    generation: u16,
    /// What the peer may send of each chunk.
    chunks: Vec<Slot>,
    free: FreeBuffers,
    gathered: Vec<Vec<f64>>,
    gathers: u64,
    votes: u64,
    used: Channel<Used>,
}

/// What a peer may send of a chunk: frames of one kind and one length, each once the one before was
/// used.
#[derive(Debug)]
struct Slot {
    kind: Option<FrameKind>,
    sequence: u64,
    /// Numbers in each.
    length: usize,
    /// Whether one is in use.
    used: bool,
}

/// Why a receiver stops: the last event that it sends.
type End = PeerEvent;

impl Receiver {
    /// A receiver of what `peer` sends to `rank` over the connection that these chunks use, and the way back for
    /// its buffers.
    pub(crate) fn new(
        peer: usize,
        rank: usize,
        generation: u16,
        plan: &Plan,
        uses: impl Fn(usize) -> bool,
    ) -> (Self, SyncSender<Used>) {
        let slot = |chunk| {
            let len = plan.chunk(chunk).len();
            let (kind, floats) = match plan.owner(chunk) {
                _ if !uses(chunk) => (None, 0),
                owner if owner == rank && chunk < plan.chunks() && plan.posts(peer, chunk) => {
                    (Some(FrameKind::Post), len * plan.partials_of(peer).len())
                }
                owner if owner == peer && plan.reads(rank, chunk) => {
                    (Some(FrameKind::Publish), len)
                }
                _ => (None, 0),
            };
            Slot {
                kind,
                sequence: 0,
                length: floats,
                used: false,
            }
        };
        let (returns, used) = sync_channel(plan.pieces() + 2);
        let chunks: Vec<Slot> = (0..plan.pieces()).map(slot).collect();
        let expected = chunks.iter().filter(|slot| slot.kind.is_some());
        let receiver = Self {
            generation,
            free: FreeBuffers::new(expected.map(|slot| slot.length)),
            chunks,
            gathered: (0..2).map(|_| Vec::with_capacity(GATHER)).collect(),
            gathers: 0,
            votes: 0,
            used,
        };
        (receiver, returns)
    }

    /// Checks a header, and says what follows from it.
    pub(super) fn header(&mut self, bytes: &[u8; HEADER]) -> Result<Incoming, End> {
        let Some(header) = FrameHeader::decode(bytes) else {
            return Err(PeerEvent::Broken(
                "it sent bytes that are not a frame".to_owned(),
            ));
        };
        if header.generation != self.generation {
            return Err(broken(&header, "a frame of another generation"));
        }
        while let Ok(used) = self.used.try_recv() {
            match used {
                Used::Chunk(chunk, buffer) => {
                    self.chunks[chunk].used = false;
                    self.free.give_back(buffer);
                }
                Used::Gathered(buffer) => self.gathered.push(buffer),
            }
        }
        match header.kind {
            FrameKind::Post | FrameKind::Publish => self.chunk(&header),
            FrameKind::Gather => self.gather(&header),
            FrameKind::Vote if header.length != 0 => Err(broken(&header, "a vote with a tail")),
            FrameKind::Vote => {
                self.votes += 1;
                in_sequence(&header, self.votes)?;
                Ok(Incoming::Event(PeerEvent::Vote(header.value)))
            }
            FrameKind::Goodbye => Err(PeerEvent::Left),
        }
    }

    fn chunk(&mut self, header: &FrameHeader) -> Result<Incoming, End> {
        let chunk = header.chunk as usize;
        let Some(slot) = self
            .chunks
            .get_mut(chunk)
            .filter(|slot| slot.kind == Some(header.kind))
        else {
            return Err(broken(header, "a chunk that it has no business with"));
        };
        slot.sequence += 1;
        in_sequence(header, slot.sequence)?;
        if header.length as usize != slot.length * size_of::<f32>() {
            return Err(broken(header, "a chunk of the wrong length"));
        }
        // There is a buffer for each chunk that is not in use.
        let free = match slot.used {
            true => None,
            false => self.free.take(slot.length),
        };
        let Some(buffer) = free else {
            return Err(broken(header, "a chunk again before it was used"));
        };
        slot.used = true;
        Ok(Incoming::Numbers(Used::Chunk(chunk, buffer)))
    }

    fn gather(&mut self, header: &FrameHeader) -> Result<Incoming, End> {
        self.gathers += 1;
        in_sequence(header, self.gathers)?;
        let length = header.length as usize;
        if !length.is_multiple_of(8) || length > GATHER * 8 {
            return Err(broken(header, "a gathering of the wrong length"));
        }
        let Some(mut buffer) = self.gathered.pop() else {
            return Err(broken(header, "a gathering again before the last was used"));
        };
        buffer.resize(length / 8, 0.0);
        Ok(Incoming::Numbers(Used::Gathered(buffer)))
    }

    /// The last event of a connection from which nothing more can be read. A peer whose frames are altered on the
    /// way is lost like one whose connection ends: it may be healthy, and another connection may do better.
    pub(super) fn ended(&self, error: ReadError) -> End {
        PeerEvent::Lost(match error {
            ReadError::Ended(error) => format!("its connection ended: {error}"),
            ReadError::Altered => "what it sent was altered on the way".to_owned(),
        })
    }
}

fn in_sequence(header: &FrameHeader, expected: u64) -> Result<(), End> {
    match header.sequence == expected {
        true => Ok(()),
        false => Err(broken(
            header,
            &format!("number {} instead of {expected}", header.sequence),
        )),
    }
}

fn broken(header: &FrameHeader, what: &str) -> End {
    PeerEvent::Broken(format!(
        "it sent {what} ({:?}, chunk {})",
        header.kind, header.chunk
    ))
}

#[cfg(test)]
mod tests {
    use super::super::reader::FrameReader;
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::time::Duration;

    const GENERATION: u16 = 3;

    /// Rank 0 of three hears from rank 1, which owns chunk 1; chunk 2 is rank 0's, chunk 0 rank 2's.
    fn plan() -> Plan {
        let plan = Plan::new(vec![0..4, 4..8, 8..12], 3, 3).unwrap();
        assert_eq!([plan.owner(0), plan.owner(1), plan.owner(2)], [2, 1, 0]);
        plan
    }

    /// Everything that rank 0 learns from these bytes, none of whose buffers it ever gives back.
    fn learn(bytes: &[u8]) -> Vec<PeerEvent> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut reader = FrameReader::new(None);
        let (mut receiver, _returns) = Receiver::new(1, 0, GENERATION, &plan(), |_| true);
        peer.write_all(bytes).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        let mut events = Vec::new();
        loop {
            let mut note = |event| {
                events.push(event);
                true
            };
            if let Err(end) = reader.read(&stream, &mut receiver, &mut note) {
                events.push(end);
                return events;
            }
        }
    }

    fn header(kind: FrameKind, chunk: u32, length: u32, sequence: u64) -> FrameHeader {
        FrameHeader {
            generation: GENERATION,
            kind,
            chunk,
            length,
            sequence,
            value: 9,
        }
    }

    fn frame(header: FrameHeader) -> Vec<u8> {
        let mut bytes = header.encode().to_vec();
        bytes.resize(HEADER + header.length.min(1 << 16) as usize, 0);
        bytes
    }

    #[test]
    fn frames_that_fit_the_plan_come_through_in_order() {
        let frames = [
            header(FrameKind::Post, 2, 16, 1),
            header(FrameKind::Publish, 1, 16, 1),
            header(FrameKind::Vote, 0, 0, 1),
            header(FrameKind::Gather, 0, 24, 1),
            header(FrameKind::Gather, 0, 0, 2),
            header(FrameKind::Goodbye, 0, 0, 0),
        ];
        let events = learn(&frames.map(frame).concat());
        assert!(
            matches!(
                &events[..],
                [
                    PeerEvent::Chunk(2, _),
                    PeerEvent::Chunk(1, _),
                    PeerEvent::Vote(9),
                    PeerEvent::Gathered(three),
                    PeerEvent::Gathered(none),
                    PeerEvent::Left,
                ] if three.len() == 3 && none.is_empty()
            ),
            "{events:?}"
        );
    }

    #[test]
    fn a_frame_that_does_not_fit_ends_the_connection() {
        let bad = [
            (
                "another generation",
                FrameHeader {
                    generation: 2,
                    ..header(FrameKind::Vote, 0, 0, 1)
                },
            ),
            ("no business", header(FrameKind::Post, 1, 16, 1)),
            ("no business", header(FrameKind::Publish, 2, 16, 1)),
            ("no business", header(FrameKind::Publish, 0, 16, 1)),
            ("no business", header(FrameKind::Post, 3, 16, 1)),
            ("no business", header(FrameKind::Post, u32::MAX, 16, 1)),
            ("wrong length", header(FrameKind::Post, 2, 12, 1)),
            ("wrong length", header(FrameKind::Post, 2, u32::MAX, 1)),
            ("instead of 1", header(FrameKind::Post, 2, 16, 2)),
            ("instead of 1", header(FrameKind::Vote, 0, 0, 0)),
            ("tail", header(FrameKind::Vote, 0, 8, 1)),
            ("wrong length", header(FrameKind::Gather, 0, 12, 1)),
            (
                "wrong length",
                header(FrameKind::Gather, 0, u32::MAX - 7, 1),
            ),
        ];
        for (reason, header) in bad {
            let events = learn(&frame(header));
            let [PeerEvent::Broken(what)] = &events[..] else {
                panic!("{header:?}: {events:?}")
            };
            assert!(what.contains(reason), "{header:?}: {what}");
        }
    }

    #[test]
    fn a_chunk_that_was_not_used_yet_is_never_overwritten() {
        let events = learn(
            &[
                frame(header(FrameKind::Post, 2, 16, 1)),
                frame(header(FrameKind::Post, 2, 16, 2)),
            ]
            .concat(),
        );
        let [PeerEvent::Chunk(2, _), PeerEvent::Broken(what)] = &events[..] else {
            panic!("{events:?}")
        };
        assert!(what.contains("before it was used"), "{what}");
    }

    #[test]
    fn a_frame_that_breaks_off_is_a_lost_peer() {
        let whole = frame(header(FrameKind::Post, 2, 16, 1));
        for end in [0, 5, HEADER, whole.len() - 1] {
            let events = learn(&whole[..end]);
            assert!(
                matches!(&events[..], [PeerEvent::Lost(_)]),
                "{end}: {events:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..40) {
            // Garbage alone, and a good frame with garbage in it.
            let mut garbled = frame(header(FrameKind::Post, 2, 16, 1));
            let at = at.min(garbled.len());
            garbled.splice(at..at, bytes.iter().copied());
            for bytes in [&bytes, &garbled] {
                let events = learn(bytes);
                let last = events.last();
                prop_assert!(matches!(last, Some(PeerEvent::Broken(_) | PeerEvent::Lost(_))), "{last:?}");
            }
        }
    }
}
