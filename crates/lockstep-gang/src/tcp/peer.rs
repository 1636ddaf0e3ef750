//! What a rank knows of one of its peers over TCP: the connections, and all that came over them.

use super::connection::Connection;
use super::event_loop::Waker;
use super::outgoing::Outgoing;
use super::reader::FrameReader;
use super::receiver::{PeerEvent, Receiver, Used};
use super::sender::{Patience, Sender, queue_of_frames};
use super::writer::FrameWriter;
use crate::secure::handshake::SecureChannel;
use crate::{GangError, Plan};
use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a rank that waits, to receive or to send, looks whether it was called off.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// What both ends of every connection of a rank have in common.
pub(super) struct Ends<'a> {
    pub(super) encrypt: bool,
    pub(super) rank: usize,
    pub(super) generation: u16,
    pub(super) plan: &'a Plan,
    pub(super) events: &'a SyncSender<(usize, PeerEvent)>,
    /// Takes back what was sent.
    pub(super) spent: &'a SyncSender<Vec<f32>>,
    pub(super) patience: &'a Patience,
}

/// Which of so many connections a chunk uses. Neighbours often have two owners who take turns: both use all of them.
fn stream_of(chunk: usize, count: usize) -> usize {
    chunk / 2 % count
}

/// One connection to a peer, as the rank sees it.
#[derive(Debug)]
struct Stream {
    stream: Arc<TcpStream>,
    sender: Sender,
    /// Takes used buffers back to the receiver.
    returns: SyncSender<Used>,
}

/// One peer.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Chunks go over one of these each, everything else over the first.
    streams: Vec<Stream>,
    /// What has arrived of each chunk and waits to be used.
    pub(crate) chunks: Vec<Option<Vec<f32>>>,
    pub(crate) votes: VecDeque<u64>,
    pub(crate) gathered: VecDeque<Vec<f64>>,
    /// Over how many of its connections it said goodbye.
    goodbyes: usize,
}

impl Peer {
    /// A peer that is reached over these channels, and the connections for the loops that are woken by `wakers`.
    pub(super) fn new(
        channels: Vec<SecureChannel>,
        peer: usize,
        ends: &Ends<'_>,
        wakers: &[Arc<Waker>],
    ) -> Result<(Self, Vec<Connection>), GangError> {
        let (mut streams, mut connections) = (Vec::new(), Vec::new());
        let count = channels.len();
        for (number, (channel, waker)) in channels.into_iter().zip(wakers).enumerate() {
            let SecureChannel {
                stream,
                sealer,
                opener,
            } = channel;
            (stream.set_nonblocking(true))
                .map_err(GangError::io(format!("set up rank {peer}'s connection")))?;
            let stream = Arc::new(stream);
            let uses = |chunk| stream_of(chunk, count) == number;
            let (receiver, returns) =
                Receiver::new(peer, ends.rank, ends.generation, ends.plan, uses);
            let (queue, frames, state) = queue_of_frames(ends.plan);
            let outgoing = Outgoing::new(
                (peer, stream.clone()),
                FrameWriter::new(ends.encrypt.then_some(sealer)),
                (frames, state.clone()),
                ends.spent.clone(),
                ends.events.clone(),
            );
            let outgoing = Arc::new(Mutex::new(outgoing));
            connections.push(Connection::new(
                stream.clone(),
                (peer, receiver),
                FrameReader::new(ends.encrypt.then_some(opener)),
                (outgoing.clone(), state.clone()),
                ends.events.clone(),
            ));
            let direct = (!ends.encrypt).then(|| stream.clone());
            let (waker, patience) = (waker.clone(), ends.patience.clone());
            let sender = Sender::new((queue, state), outgoing, direct, waker, patience);
            streams.push(Stream {
                stream,
                sender,
                returns,
            });
        }
        let peer = Self {
            streams,
            chunks: vec![None; ends.plan.pieces()],
            votes: VecDeque::with_capacity(2),
            gathered: VecDeque::with_capacity(2),
            goodbyes: 0,
        };
        Ok((peer, connections))
    }

    /// Where frames of a chunk go.
    pub(super) fn sender(&self, chunk: usize) -> &Sender {
        &self.streams[stream_of(chunk, self.streams.len())].sender
    }

    /// All of them.
    pub(super) fn senders(&mut self) -> impl Iterator<Item = &mut Sender> {
        self.streams.iter_mut().map(|stream| &mut stream.sender)
    }

    /// Whether it was sent all that will be.
    pub(super) fn is_sent_all(&self) -> bool {
        self.streams
            .iter()
            .all(|stream| stream.sender.is_finished())
    }

    /// Gives a used buffer back to the receiver.
    pub(crate) fn give_back(&self, used: Used) {
        let number = match used {
            Used::Chunk(chunk, _) => stream_of(chunk, self.streams.len()),
            Used::Gathered(_) => 0,
        };
        // There is room for every buffer. A receiver that is gone does not need its buffers.
        let _ = self.streams[number].returns.try_send(used);
    }

    /// It said goodbye on one of its connections.
    pub(super) fn said_goodbye(&mut self) {
        self.goodbyes += 1;
    }

    /// Whether nothing more comes from it, since it left on its own account.
    pub(crate) fn has_left(&self) -> bool {
        self.goodbyes >= self.streams.len()
    }

    /// Ends both directions.
    pub(crate) fn shut_down(&self) {
        for stream in &self.streams {
            // It fails only for a connection that has ended already.
            let _ = stream.stream.shutdown(Shutdown::Both);
        }
    }
}
