//! The exchange among workers of several hosts, over TCP.
//!
//! Every two ranks have a connection of their own, and each rank a thread for each peer that takes
//! in what comes, always. So a rank that sends never waits for one that is itself sending, and two
//! ranks cannot block each other. A connection that ends without a goodbye is a peer that died, and
//! an error at once, whoever this rank is waiting for.

mod exchange;
mod frame;
mod mesh;
mod peer;
mod receiver;
mod wire;

pub use mesh::{Mesh, MeshPeer};

use crate::shares::ShareBuffers;
use crate::{AbortSwitch, Deadline, GangError, Membership, Plan};
use frame::{FrameHeader, FrameKind};
use peer::{LOOK, Peer};
use receiver::{PeerEvent, events_of_a_peer};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Channel, sync_channel};
use std::time::Instant;

/// One rank's end of the exchange over TCP.
#[derive(Debug)]
pub struct TcpCollective {
    plan: Arc<Plan>,
    rank: usize,
    generation: u16,
    deadline: Deadline,
    abort: AbortSwitch,
    /// By rank; `None` for this one.
    peers: Vec<Option<Peer>>,
    events: Channel<(usize, PeerEvent)>,
    /// Why the exchange cannot go on, once that is so.
    failure: Option<LinkFailure>,
    /// For each chunk: its partial sums one after the other if another rank owns it, else empty.
    outboxes: Vec<Vec<f32>>,
    shares: ShareBuffers,
    /// How often each chunk was posted or published by this rank.
    sent: Vec<u64>,
    votes: u64,
    /// This rank's vote on the step, once cast.
    vote: Option<u64>,
    gathers: u64,
}

#[derive(Debug)]
enum LinkFailure {
    Lost(usize, String),
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
        let channels = mesh::connect(mesh, &plan, membership)?;

        let plan = Arc::new(plan);
        let (sender, events) = sync_channel(plan.workers() * events_of_a_peer(&plan));
        let mut peers = Vec::with_capacity(channels.len());
        for (peer, channel) in channels.into_iter().enumerate() {
            let start = |channel| {
                Peer::start(
                    channel,
                    mesh.encrypt,
                    peer,
                    rank,
                    generation,
                    &plan,
                    &sender,
                )
            };
            peers.push(channel.map(start).transpose()?);
        }
        let outbox = |chunk| match plan.owner(chunk) == rank {
            true => Vec::new(),
            false => vec![0.0; plan.chunk(chunk).len() * plan.partials_of(rank).len()],
        };
        Ok(Self {
            outboxes: (0..plan.chunks()).map(outbox).collect(),
            sent: vec![0; plan.pieces()],
            shares: ShareBuffers::new(&plan),
            plan,
            rank,
            generation,
            deadline: membership.deadline,
            abort: membership.abort.clone(),
            peers,
            events,
            failure: None,
            votes: 0,
            vote: None,
            gathers: 0,
        })
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
            PeerEvent::Chunk(chunk, buffer) => peer.chunks[chunk] = Some(buffer),
            PeerEvent::Gathered(buffer) => peer.gathered.push_back(buffer),
            PeerEvent::Vote(vote) if peer.votes.len() < 2 => peer.votes.push_back(vote),
            PeerEvent::Vote(_) => {
                let what = "it voted two steps ahead".to_owned();
                self.failure.get_or_insert(LinkFailure::Broken(rank, what));
            }
            PeerEvent::Left => peer.left = true,
            PeerEvent::Lost(reason) => {
                self.failure.get_or_insert(LinkFailure::Lost(rank, reason));
            }
            PeerEvent::Broken(what) => {
                self.failure.get_or_insert(LinkFailure::Broken(rank, what));
            }
        }
    }

    /// Why waiting for anything makes no sense any more, if so.
    fn check(&self) -> Result<(), GangError> {
        if self.abort.is_aborted() {
            return Err(GangError::Aborted);
        }
        match &self.failure {
            None => Ok(()),
            Some(LinkFailure::Lost(rank, reason)) => Err(GangError::PeerLost {
                rank: *rank,
                reason: reason.clone(),
            }),
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
            if self.peer(rank).left {
                let reason = format!("it left and did not {}", what());
                return Err(GangError::PeerLost { rank, reason });
            }
            let in_vain = self.abort.in_vain(begin.elapsed());
            let left = self.deadline.0.saturating_sub(in_vain);
            if left.is_zero() {
                let seconds = self.deadline.0.as_secs_f64();
                return Err(GangError::PeerTimeout {
                    rank,
                    what: what(),
                    seconds,
                });
            }
            if let Ok((peer, event)) = self.events.recv_timeout(left.min(LOOK)) {
                self.note(peer, event);
            }
        }
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

    /// Sends a frame to `rank`, waiting for room in the connection if need be.
    fn send(&mut self, rank: usize, header: &FrameHeader, numbers: &[u8]) -> Result<(), GangError> {
        let begin = Instant::now();
        let Some(mut writer) = self.peer(rank).writer.take() else {
            let reason = "a frame to it broke off".to_owned();
            return Err(GangError::PeerLost { rank, reason });
        };
        writer.send(&header.encode(), numbers, |error| {
            self.wait_to_send(rank, begin, &error)
        })?;
        self.peer(rank).writer = Some(writer);
        Ok(())
    }

    /// Whether to go on with a frame that could not be sent whole for now.
    fn wait_to_send(
        &mut self,
        rank: usize,
        begin: Instant,
        error: &std::io::Error,
    ) -> Result<(), GangError> {
        self.take_in();
        self.check()?;
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                match self.abort.in_vain(begin.elapsed()) > self.deadline.0 {
                    false => Ok(()),
                    true => Err(GangError::PeerTimeout {
                        rank,
                        what: "take in what it was sent".to_owned(),
                        seconds: self.deadline.0.as_secs_f64(),
                    }),
                }
            }
            _ => {
                let reason = format!("its connection ended: {error}");
                Err(GangError::PeerLost { rank, reason })
            }
        }
    }

    fn send_to_all(&mut self, header: &FrameHeader, numbers: &[u8]) -> Result<(), GangError> {
        for rank in self.plan.others(self.rank) {
            self.send(rank, header, numbers)?;
        }
        Ok(())
    }
}

impl Drop for TcpCollective {
    fn drop(&mut self) {
        let goodbye = self.header(FrameKind::Goodbye, 0, 0, 0).encode();
        for peer in self.peers.iter_mut().flatten() {
            // A worker that panics did not mean to leave: its peers see a connection that ended.
            if let Some(writer) = peer.writer.as_mut().filter(|_| !std::thread::panicking()) {
                let _ = writer.send(&goodbye, &[], Err);
            }
            peer.shut_down();
        }
        // A receiver that waits for room among the events must find that nobody takes them.
        let (_, nobody) = sync_channel(0);
        drop(std::mem::replace(&mut self.events, nobody));
        self.peers.iter_mut().flatten().for_each(Peer::join);
    }
}
