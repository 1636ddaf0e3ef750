//! The exchange among workers of several hosts, over TCP.
//!
//! Every two ranks have connections of their own, and a few threads of each rank, its [loops](event_loop), take
//! in what comes over any of them, always, and send what is queued. So no call that sends ever waits for a
//! peer, a slow one delays nobody who does not need it, and two ranks cannot block each other. A connection
//! that ends without a goodbye is a peer that died, and an error at once, whoever this rank is waiting for.

mod buffers;
mod connection;
mod event_loop;
mod exchange;
mod frame;
mod mesh;
mod outgoing;
mod peer;
mod reader;
mod receiver;
mod sender;
mod writer;

pub use mesh::{Mesh, MeshPeer};

use crate::collective::GATHER;
use crate::shares::ShareBuffers;
use crate::{GangError, KeeperLinks, Membership, Plan};
use buffers::FreeBuffers;
use event_loop::{Loops, LoopsToBe};
use frame::{FrameHeader, FrameKind, HEADER};
use mesh::Connections;
use peer::{Ends, LOOK, Peer};
use receiver::{PeerEvent, events_of_a_connection};
use sender::{Frame, Numbers, Patience};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver as Channel, sync_channel};
use std::time::{Duration, Instant};

/// How often a rank that leaves looks whether its peers were sent everything.
const DRAIN_LOOK: Duration = Duration::from_micros(200);

/// One rank's end of the exchange over TCP.
#[derive(Debug)]
pub struct TcpCollective {
    plan: Plan,
    rank: usize,
    generation: u16,
    patience: Patience,
    /// By rank; `None` for this one.
    peers: Vec<Option<Peer>>,
    loops: Loops,
    events: Channel<(usize, PeerEvent)>,
    /// Why the exchange cannot go on, once that is so.
    failure: Option<LinkFailure>,
    /// For each chunk that is about to be posted: its partial sums one after the other; else empty.
    outboxes: Vec<Vec<f32>>,
    /// Buffers for what is sent, and those that were sent and come back.
    free: FreeBuffers,
    spent: Channel<Vec<f32>>,
    /// This rank's parts of two rounds of gathering, used in turn.
    gathering: [Arc<Vec<f64>>; 2],
    shares: ShareBuffers,
    /// The links to this rank's keeper and wards, until somebody takes them.
    keeper_links: Option<KeeperLinks>,
    /// The ranks that vote and gather.
    voters: Vec<usize>,
    /// Chunks whose new values came and were not looked at yet, where somebody asks for those.
    fresh: Option<VecDeque<usize>>,
    /// How often each chunk was posted or published by this rank.
    sent: Vec<u64>,
    votes: u64,
    /// This rank's vote on the step, once cast.
    vote: Option<u64>,
    gathers: u64,
}

/// The lengths of all that a rank can have under way: what it posts, and a copy of what it publishes for each reader.
fn outgoing(plan: &Plan, rank: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    for piece in 0..plan.pieces() {
        let length = plan.chunk(piece).len();
        if plan.owner(piece) == rank {
            let readers = plan.others(rank).filter(|&other| plan.reads(other, piece));
            lengths.extend(readers.map(|_| length));
        } else if piece < plan.chunks() && plan.posts(rank, piece) {
            lengths.push(length * plan.partials_of(rank).len());
        }
    }
    lengths
}

#[derive(Debug)]
enum LinkFailure {
    Lost(usize, String),
    Stuck(usize),
    Broken(usize, String),
}

impl TcpCollective {
    /// Joins the gang: connects to every peer.
    ///
    /// # Errors
    /// [`GangError::PeerTimeout`] when a peer does not come within the deadline,
    /// [`GangError::PeerLost`] when one cannot be reached or is somebody else,
    /// [`GangError::Aborted`] as soon as it is called off, and [`GangError::Mismatch`] when a peer
    /// follows another plan.
    ///
    /// # Panics
    /// If the plan has no such rank, or the mesh not one peer for each.
    pub fn join(mesh: &Mesh<'_>, plan: Plan, membership: &Membership) -> Result<Self, GangError> {
        let (rank, generation) = (membership.rank, membership.generation);
        assert_eq!(
            mesh.peers.len(),
            plan.workers(),
            "an address for each worker"
        );
        assert!(
            rank < plan.workers(),
            "a gang of {} has no rank {rank}",
            plan.workers()
        );
        for chunk in 0..plan.pieces() {
            let partials = (0..plan.workers())
                .map(|rank| plan.partials_of(rank).len())
                .max();
            let bytes = plan
                .chunk(chunk)
                .len()
                .saturating_mul(4 * partials.unwrap_or(1));
            if u32::try_from(bytes).is_err() {
                let reason = format!("chunk {chunk} has {bytes} bytes; a frame holds 4 GiB");
                return Err(GangError::BadPlan { reason });
            }
        }
        let Connections {
            streams: channels,
            keeping,
        } = mesh::connect(mesh, &plan, membership)?;
        let keeper_links = (!mesh.keepers.is_empty()).then(|| KeeperLinks {
            rank,
            keepers: mesh.keepers.to_vec(),
            channels: keeping,
            plan: plan.clone(),
            encrypt: mesh.encrypt,
            deadline: membership.deadline,
            abort: membership.abort.clone(),
        });

        let streams = channels.iter().flatten().map(Vec::len).sum();
        let outgoing = outgoing(&plan, rank);
        let (spent, returned) = sync_channel(outgoing.len());
        let (sender, events) = sync_channel(streams * events_of_a_connection(&plan));
        let patience = Patience {
            deadline: membership.deadline,
            abort: membership.abort.clone(),
            given_up: Arc::default(),
        };
        let ends = Ends {
            encrypt: mesh.encrypt,
            rank,
            generation,
            plan: &plan,
            events: &sender,
            spent: &spent,
            patience: &patience,
        };
        let loops = LoopsToBe::new(streams)?;
        let mut next = 0;
        let (mut peers, mut connections) = (Vec::with_capacity(channels.len()), Vec::new());
        for (peer, channels) in channels.into_iter().enumerate() {
            let Some(channels) = channels else {
                peers.push(None);
                continue;
            };
            // Connections take turns with the loops.
            let turns = next..next + channels.len();
            next = turns.end;
            let numbers: Vec<usize> = turns.map(|turn| turn % loops.wakers.len()).collect();
            let wakers: Vec<_> = (numbers.iter())
                .map(|&number| loops.wakers[number].clone())
                .collect();
            let (peer, own) = Peer::new(channels, peer, &ends, &wakers)?;
            peers.push(Some(peer));
            connections.extend(numbers.into_iter().zip(own));
        }
        let loops = loops.start(connections, &patience)?;
        Ok(Self {
            outboxes: vec![Vec::new(); plan.chunks()],
            free: FreeBuffers::new(outgoing.into_iter()),
            spent: returned,
            gathering: [(); 2].map(|()| Arc::new(Vec::with_capacity(GATHER))),
            sent: vec![0; plan.pieces()],
            shares: ShareBuffers::new(&plan),
            voters: plan.voters(),
            keeper_links,
            fresh: None,
            plan,
            rank,
            generation,
            patience,
            peers,
            loops,
            events,
            failure: None,
            votes: 0,
            vote: None,
            gathers: 0,
        })
    }

    /// Asks to be told which chunks have new values.
    pub(crate) fn follow(&mut self) {
        self.fresh = Some(VecDeque::with_capacity(self.plan.chunks()));
    }

    /// A chunk of another rank whose new values have come, each once, in the order in which they came.
    pub(crate) fn next_fresh(&mut self) -> Option<usize> {
        self.take_in();
        self.fresh.as_mut()?.pop_front()
    }

    /// Whether nothing more comes from a rank, since it left on its own account.
    pub(crate) fn has_left(&self, rank: usize) -> bool {
        self.peers[rank].as_ref().is_some_and(Peer::has_left)
    }

    /// Takes note of everything that has come, without waiting.
    fn take_in(&mut self) {
        while let Ok((peer, event)) = self.events.try_recv() {
            self.note(peer, event);
        }
    }

    fn note(&mut self, rank: usize, event: PeerEvent) {
        let Some(peer) = &mut self.peers[rank] else {
            return;
        };
        match event {
            PeerEvent::Chunk(chunk, buffer) => {
                peer.chunks[chunk] = Some(buffer);
                if let Some(fresh) = &mut self.fresh
                    && self.plan.owner(chunk) == rank
                {
                    fresh.push_back(chunk);
                }
            }
            PeerEvent::Gathered(buffer) => peer.gathered.push_back(buffer),
            PeerEvent::Vote(vote) if peer.votes.len() < 2 => peer.votes.push_back(vote),
            PeerEvent::Vote(_) => {
                let what = "it voted two steps ahead".to_owned();
                self.failure.get_or_insert(LinkFailure::Broken(rank, what));
            }
            PeerEvent::Left => peer.said_goodbye(),
            PeerEvent::Lost(reason) => {
                self.failure.get_or_insert(LinkFailure::Lost(rank, reason));
            }
            PeerEvent::Stuck => {
                self.failure.get_or_insert(LinkFailure::Stuck(rank));
            }
            PeerEvent::Broken(what) => {
                self.failure.get_or_insert(LinkFailure::Broken(rank, what));
            }
        }
    }

    /// Why waiting for anything makes no sense any more, if so.
    pub(crate) fn check(&self) -> Result<(), GangError> {
        if self.patience.abort.is_aborted() {
            return Err(GangError::Aborted);
        }
        match &self.failure {
            None => Ok(()),
            Some(LinkFailure::Lost(rank, reason)) => Err(GangError::PeerLost {
                rank: *rank,
                reason: reason.clone(),
            }),
            Some(LinkFailure::Stuck(rank)) => Err(self.stuck(*rank)),
            Some(LinkFailure::Broken(rank, what)) => Err(GangError::Protocol {
                rank: *rank,
                what: what.clone(),
            }),
        }
    }

    fn peer(&mut self, rank: usize) -> &mut Peer {
        self.peers[rank]
            .as_mut()
            .expect("a rank is not its own peer")
    }

    /// Waits until `take` gets what it wants from what `rank` has sent.
    fn wait_for<T>(
        &mut self,
        rank: usize,
        what: impl Fn() -> String,
        mut take: impl FnMut(&mut Peer) -> Option<T>,
    ) -> Result<T, GangError> {
        let begin = Instant::now();
        loop {
            self.take_in();
            if let Some(taken) = take(self.peer(rank)) {
                return Ok(taken);
            }
            self.check()?;
            if self.peer(rank).has_left() {
                let reason = format!("it left and did not {}", what());
                return Err(GangError::PeerLost { rank, reason });
            }
            let in_vain = self.patience.abort.in_vain(begin.elapsed());
            let left = self.patience.deadline.0.saturating_sub(in_vain);
            if left.is_zero() {
                let seconds = self.patience.deadline.0.as_secs_f64();
                return Err(GangError::PeerTimeout {
                    rank,
                    what: what(),
                    seconds,
                });
            }
            let asleep = Instant::now();
            let heard = self.events.recv_timeout(left.min(LOOK));
            lockstep_base::progress::waited(asleep.elapsed());
            if let Ok((peer, event)) = heard {
                self.note(peer, event);
            }
        }
    }

    /// A buffer for so many numbers to be sent.
    fn buffer(&mut self, length: usize) -> Vec<f32> {
        while let Ok(buffer) = self.spent.try_recv() {
            self.free.give_back(buffer);
        }
        // There are as many as the protocol lets be under way, so that this is for a caller who does more than that.
        self.free.take(length).unwrap_or_else(|| vec![0.0; length])
    }

    fn header(&self, kind: FrameKind, chunk: usize, length: usize, sequence: u64) -> FrameHeader {
        FrameHeader {
            generation: self.generation,
            kind,
            chunk: chunk as u32,
            length: length as u32,
            sequence,
            value: 0,
        }
    }

    /// Sends a frame to `rank`, as far as its connection takes it now, and queues the rest.
    fn send(
        &mut self,
        rank: usize,
        header: FrameHeader,
        numbers: &Numbers,
    ) -> Result<(), GangError> {
        let bytes = numbers.bytes();
        let chunk = header.chunk as usize;
        let sent = self.peer(rank).sender(chunk).send_now(&header, bytes);
        match sent == HEADER + bytes.len() {
            true => Ok(()),
            false => self.queue(rank, header, numbers.clone(), sent),
        }
    }

    /// Queues what is left of a frame for `rank`. There is room for all that the protocol allows, so
    /// this waits only for a caller who does more than that.
    fn queue(
        &mut self,
        rank: usize,
        header: FrameHeader,
        numbers: Numbers,
        sent: usize,
    ) -> Result<(), GangError> {
        let begin = Instant::now();
        let chunk = header.chunk as usize;
        let mut frame = Frame {
            header,
            numbers,
            sent,
        };
        loop {
            frame = match self.peer(rank).sender(chunk).queue(frame) {
                Ok(()) => return Ok(()),
                Err(Some(frame)) => frame,
                Err(None) => {
                    // The sender has said why before it ended.
                    self.take_in();
                    self.check()?;
                    let reason = "a frame to it broke off".to_owned();
                    return Err(GangError::PeerLost { rank, reason });
                }
            };
            self.take_in();
            self.check()?;
            if self.patience.abort.in_vain(begin.elapsed()) > self.patience.deadline.0 {
                return Err(self.stuck(rank));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn stuck(&self, rank: usize) -> GangError {
        GangError::PeerTimeout {
            rank,
            what: "take in what it was sent".to_owned(),
            seconds: self.patience.deadline.0.as_secs_f64(),
        }
    }

    fn send_to_voters(&mut self, header: FrameHeader, numbers: &Numbers) -> Result<(), GangError> {
        for number in 0..self.voters.len() {
            let rank = self.voters[number];
            if rank != self.rank {
                self.send(rank, header, numbers)?;
            }
        }
        Ok(())
    }

    /// Waits until peers have been sent all that was queued for them, unless that makes no sense or
    /// takes too long.
    fn drain(&mut self) {
        let begin = Instant::now();
        loop {
            if self.peers.iter().flatten().all(Peer::is_sent_all) {
                break;
            }
            self.take_in();
            if self.check().is_err() || begin.elapsed() > self.patience.deadline.0 {
                break;
            }
            std::thread::sleep(DRAIN_LOOK);
        }
        // Whatever still waits for room is given up.
        self.patience.given_up.store(true, Ordering::Release);
    }
}

impl Drop for TcpCollective {
    fn drop(&mut self) {
        let panics = std::thread::panicking();
        self.take_in();
        if panics || self.check().is_err() {
            self.patience.given_up.store(true, Ordering::Release);
        }
        let goodbye = Frame {
            header: self.header(FrameKind::Goodbye, 0, 0, 0),
            numbers: Numbers::None,
            sent: 0,
        };
        for sender in self.peers.iter_mut().flatten().flat_map(Peer::senders) {
            // A worker that panics did not mean to leave: its peers see a connection that ended.
            sender.close((!panics).then(|| goodbye.clone()));
        }
        self.drain();
        self.loops.end();
        self.peers.iter().flatten().for_each(Peer::shut_down);
    }
}
