//! The receiving end of one TCP connection: a thread that turns a peer's bytes into buffers.
//!
//! Every buffer is made at the start and belongs here. The receiver fills it, hands it over to
//! the rank's own thread through a channel of fixed size, and gets it back when it was used. So a
//! step allocates nothing, and no two threads ever see the same buffer.
//!
//! A peer may be anything: each header is checked against the plan and the frames before it, before
//! one byte that follows is read. What does not fit ends the connection with an error.

use super::buffers::FreeBuffers;
use super::frame::{FrameHeader, FrameKind};
use super::wire::{FrameReader, ReadError};
use crate::Plan;
use crate::collective::GATHER;
use std::sync::Arc;
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
    /// It left on its own account.
    Left,
    /// The connection is gone.
    Lost(String),
    /// It has not taken in what it was sent.
    Stuck,
    /// It sent what it may not.
    Broken(String),
}

/// A buffer on its way back.
#[derive(Debug)]
pub(crate) enum Used {
    Chunk(usize, Vec<f32>),
    Gathered(Vec<f64>),
}

/// Events that one peer can have under way: each of its buffers, two votes, and both ends of its
/// connection.
pub(crate) fn events_of_a_peer(plan: &Plan) -> usize {
    plan.pieces() + 7
}

/// One peer's receiver.
pub(crate) struct Receiver {
    reader: FrameReader,
    peer: usize,
    generation: u16,
    /// What the peer may send of each chunk.
    chunks: Vec<Slot>,
    free: FreeBuffers,
    gathered: Vec<Vec<f64>>,
    gathers: u64,
    votes: u64,
    used: Channel<Used>,
    events: SyncSender<(usize, PeerEvent)>,
}

/// What a peer may send of a chunk: frames of one kind and one length, each once the one before was
/// used.
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
    /// A receiver of what `peer` sends to `rank` through `reader`, and the way back for its buffers.
    pub(crate) fn new(
        reader: FrameReader,
        peer: usize,
        rank: usize,
        generation: u16,
        plan: &Arc<Plan>,
        events: SyncSender<(usize, PeerEvent)>,
    ) -> (Self, SyncSender<Used>) {
        let slot = |chunk| {
            let len = plan.chunk(chunk).len();
            let (kind, floats) = match plan.owner(chunk) {
                owner if owner == rank && chunk < plan.chunks() => {
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
            reader,
            peer,
            generation,
            free: FreeBuffers::new(expected.map(|slot| slot.length)),
            chunks,
            gathered: (0..2).map(|_| Vec::with_capacity(GATHER)).collect(),
            gathers: 0,
            votes: 0,
            used,
            events,
        };
        (receiver, returns)
    }

    /// Receives until the connection ends or nobody wants to hear of it any more.
    pub(crate) fn run(mut self) {
        loop {
            let (event, ended) = match self.next() {
                Ok(event) => (event, false),
                Err(end) => (end, true),
            };
            if self.events.send((self.peer, event)).is_err() || ended {
                return;
            }
        }
    }

    fn next(&mut self) -> Result<PeerEvent, End> {
        let bytes = self.reader.header().map_err(ended)?;
        let Some(header) = FrameHeader::decode(&bytes) else {
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
                Ok(PeerEvent::Vote(header.value))
            }
            FrameKind::Goodbye => Err(PeerEvent::Left),
        }
    }

    fn chunk(&mut self, header: &FrameHeader) -> Result<PeerEvent, End> {
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
        let Some(mut buffer) = free else {
            return Err(broken(header, "a chunk again before it was used"));
        };
        slot.used = true;
        let bytes = bytemuck::cast_slice_mut(&mut buffer);
        self.reader.numbers(bytes).map_err(ended)?;
        Ok(PeerEvent::Chunk(chunk, buffer))
    }

    fn gather(&mut self, header: &FrameHeader) -> Result<PeerEvent, End> {
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
        let bytes = bytemuck::cast_slice_mut(&mut buffer);
        self.reader.numbers(bytes).map_err(ended)?;
        Ok(PeerEvent::Gathered(buffer))
    }
}

/// A peer whose frames are altered on the way is lost like one whose connection ends: it may be healthy,
/// and another connection may do better.
fn ended(error: ReadError) -> End {
    PeerEvent::Lost(match error {
        ReadError::Ended(error) => format!("its connection ended: {error}"),
        ReadError::Altered => "what it sent was altered on the way".to_owned(),
    })
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
    use super::super::frame::HEADER;
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::time::Duration;

    const GENERATION: u16 = 3;

    /// Rank 0 of three hears from rank 1, which owns chunk 1; chunk 2 is rank 0's, chunk 0 rank 2's.
    fn plan() -> Arc<Plan> {
        let plan = Plan::new(vec![0..4, 4..8, 8..12], 3, 3).unwrap();
        assert_eq!([plan.owner(0), plan.owner(1), plan.owner(2)], [2, 1, 0]);
        Arc::new(plan)
    }

    /// Everything that rank 0 learns from these bytes, none of whose buffers it ever gives back.
    fn learn(bytes: &[u8]) -> Vec<PeerEvent> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let (sender, events) = sync_channel(1000);
        let reader = FrameReader::new(stream, None);
        let (receiver, _returns) = Receiver::new(reader, 1, 0, GENERATION, &plan(), sender);
        peer.write_all(bytes).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        receiver.run();
        events.into_iter().map(|(_, event)| event).collect()
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
