//! The exchange among workers of several hosts, over TCP.
//!
//! Every two ranks have a connection of their own, and each rank a thread for each peer that takes
//! in what comes, always. So a rank that sends never waits for one that is itself sending, and two
//! ranks cannot block each other. A connection that ends without a goodbye is a peer that died, and
//! an error at once, whoever this rank is waiting for.

use crate::frame::{HEADER, Header, Kind};
use crate::layout::GATHER;
use crate::peer::{LOOK, Peer};
use crate::receiver::{Event, Used, events_of_a_peer};
use crate::shelf::Shelf;
use crate::{Abort, Collective, Deadline, GangError, Plan, Secret, mesh};
use std::io::{ErrorKind, IoSlice, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
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
    abort: Abort,
    /// By rank; `None` for this one.
    peers: Vec<Option<Peer>>,
    events: Channel<(usize, Event)>,
    /// Why the exchange cannot go on, once that is so.
    failure: Option<Failure>,
    /// For each chunk: its partial sums one after the other if another rank owns it, else empty.
    outboxes: Vec<Vec<f32>>,
    shelf: Shelf,
    /// How often each chunk was posted or published by this rank.
    sent: Vec<u64>,
    votes: u64,
    /// This rank's vote on the step, once cast.
    vote: Option<u64>,
    gathers: u64,
}

#[derive(Debug)]
enum Failure {
    Lost(usize, String),
    Broken(usize, String),
}

impl TcpCollective {
    /// Joins the gang as `rank`: connects to every peer, whose listeners are at `addresses`, by
    /// rank. `listener` is this rank's own; it stays open, for the next generation's peers.
    ///
    /// # Errors
    /// [`GangError::PeerTimeout`] when a peer does not come within the deadline,
    /// [`GangError::Handshake`], [`GangError::Mismatch`] or [`GangError::Replaced`] when it is not
    /// of this run, plan or generation.
    ///
    /// # Panics
    /// If the plan has no such rank, or there is not one address for each.
    pub fn join(
        listener: &TcpListener,
        addresses: &[SocketAddr],
        secret: &Secret,
        plan: Plan,
        rank: usize,
        generation: u16,
        deadline: Deadline,
    ) -> Result<Self, GangError> {
        assert_eq!(
            addresses.len(),
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
        let streams = mesh::connect(
            listener, addresses, secret, &plan, rank, generation, deadline,
        )?;

        let plan = Arc::new(plan);
        let (sender, events) = sync_channel(plan.workers() * events_of_a_peer(&plan));
        let mut peers = Vec::with_capacity(streams.len());
        for (peer, stream) in streams.into_iter().enumerate() {
            peers.push(match stream {
                Some(stream) => Some(Peer::start(stream, peer, rank, generation, &plan, &sender)?),
                None => None,
            });
        }
        let outbox = |chunk| match plan.owner(chunk) == rank {
            true => Vec::new(),
            false => vec![0.0; plan.chunk(chunk).len() * plan.partials_of(rank).len()],
        };
        Ok(Self {
            outboxes: (0..plan.chunks()).map(outbox).collect(),
            sent: vec![0; plan.pieces()],
            shelf: Shelf::new(&plan),
            plan,
            rank,
            generation,
            deadline,
            abort: Abort::default(),
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

    fn note(&mut self, rank: usize, event: Event) {
        let Some(peer) = &mut self.peers[rank] else {
            return;
        };
        match event {
            Event::Chunk(chunk, buffer) => peer.chunks[chunk] = Some(buffer),
            Event::Gathered(buffer) => peer.gathered.push_back(buffer),
            Event::Vote(vote) if peer.votes.len() < 2 => peer.votes.push_back(vote),
            Event::Vote(_) => {
                let what = "it voted two steps ahead".to_owned();
                self.failure.get_or_insert(Failure::Broken(rank, what));
            }
            Event::Left => peer.left = true,
            Event::Lost(reason) => {
                self.failure.get_or_insert(Failure::Lost(rank, reason));
            }
            Event::Broken(what) => {
                self.failure.get_or_insert(Failure::Broken(rank, what));
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
            Some(Failure::Lost(rank, reason)) => Err(GangError::PeerLost {
                rank: *rank,
                reason: reason.clone(),
            }),
            Some(Failure::Broken(rank, what)) => Err(GangError::Protocol {
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
            let left = self.deadline.0.saturating_sub(begin.elapsed());
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

    fn header(&self, kind: Kind, chunk: usize, length: usize, sequence: u64) -> Header {
        Header {
            generation: self.generation,
            kind,
            chunk: chunk as u32,
            length: length as u32,
            sequence,
            value: 0,
        }
    }

    /// Sends a frame to `rank`, waiting for room in the connection if need be.
    fn send(&mut self, rank: usize, header: &Header, numbers: &[u8]) -> Result<(), GangError> {
        let begin = Instant::now();
        let header = header.encode();
        let mut sent = 0;
        while sent < HEADER + numbers.len() {
            let parts = [
                IoSlice::new(&header[sent.min(HEADER)..]),
                IoSlice::new(&numbers[sent.saturating_sub(HEADER)..]),
            ];
            let error = match self.peer(rank).stream.write_vectored(&parts) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(more) => {
                    sent += more;
                    continue;
                }
                Err(error) => error,
            };
            self.take_in();
            self.check()?;
            match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    if begin.elapsed() > self.deadline.0 {
                        let what = "take in what it was sent".to_owned();
                        let seconds = self.deadline.0.as_secs_f64();
                        return Err(GangError::PeerTimeout {
                            rank,
                            what,
                            seconds,
                        });
                    }
                }
                _ => {
                    let reason = format!("its connection ended: {error}");
                    return Err(GangError::PeerLost { rank, reason });
                }
            }
        }
        Ok(())
    }

    fn send_to_all(&mut self, header: &Header, numbers: &[u8]) -> Result<(), GangError> {
        for rank in self.plan.others(self.rank) {
            self.send(rank, header, numbers)?;
        }
        Ok(())
    }
}

impl Collective for TcpCollective {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn abort_handle(&self) -> Abort {
        self.abort.clone()
    }

    fn outbox(&mut self, chunk: usize, partial: usize) -> &mut [f32] {
        self.plan.require_owner(chunk, self.rank, false);
        let len = self.plan.chunk(chunk).len();
        &mut self.outboxes[chunk][partial * len..(partial + 1) * len]
    }

    fn post(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        self.sent[chunk] += 1;
        let owner = self.plan.owner(chunk);
        // The buffer steps aside for the time of the call: sending also takes in what comes.
        let outbox = std::mem::take(&mut self.outboxes[chunk]);
        let numbers = bytemuck::cast_slice(&outbox);
        let header = self.header(Kind::Post, chunk, numbers.len(), self.sent[chunk]);
        let sent = self.send(owner, &header, numbers);
        self.outboxes[chunk] = outbox;
        sent
    }

    fn arrived(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        self.take_in();
        let arrived = self
            .peers
            .iter()
            .flatten()
            .all(|peer| peer.chunks[chunk].is_some());
        if !arrived {
            self.check()?;
        }
        Ok(arrived)
    }

    fn wait_arrived(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        for rank in self.plan.others(self.rank) {
            self.wait_for(
                rank,
                || format!("post chunk {chunk}"),
                |peer| peer.chunks[chunk].is_some().then_some(()),
            )?;
        }
        Ok(())
    }

    fn inbox(&self, chunk: usize, from: usize, partial: usize) -> &[f32] {
        self.plan.require_owner(chunk, self.rank, true);
        let peer = self.peers[from]
            .as_ref()
            .expect("a rank does not send to itself");
        let all = peer.chunks[chunk].as_ref().expect("the chunk has arrived");
        let len = self.plan.chunk(chunk).len();
        &all[partial * len..(partial + 1) * len]
    }

    fn publish(&mut self, chunk: usize, values: &[f32]) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        assert_eq!(
            values.len(),
            self.plan.chunk(chunk).len(),
            "chunk {chunk} has another length"
        );
        // Home first: a peer may post again as soon as it has these values.
        for peer in self.peers.iter_mut().flatten() {
            if let Some(buffer) = peer.chunks[chunk].take() {
                peer.give_back(Used::Chunk(chunk, buffer));
            }
        }
        self.sent[chunk] += 1;
        let numbers = bytemuck::cast_slice(values);
        let header = self.header(Kind::Publish, chunk, numbers.len(), self.sent[chunk]);
        for rank in self.plan.others(self.rank) {
            if self.plan.reads(rank, chunk) {
                self.send(rank, &header, numbers)?;
            }
        }
        Ok(())
    }

    fn published(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        self.take_in();
        let owner = self.plan.owner(chunk);
        let published = self.peer(owner).chunks[chunk].is_some();
        if !published {
            self.check()?;
        }
        Ok(published)
    }

    fn fetch(&mut self, chunk: usize, into: &mut [f32]) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        let owner = self.plan.owner(chunk);
        let what = || format!("publish chunk {chunk}");
        let buffer = self.wait_for(owner, what, |peer| peer.chunks[chunk].take())?;
        into.copy_from_slice(&buffer);
        self.peer(owner).give_back(Used::Chunk(chunk, buffer));
        Ok(())
    }

    fn draft(&mut self, share: usize) -> Result<&mut [f32], GangError> {
        Ok(self.shelf.get_mut(share))
    }

    fn announce(&mut self, share: usize) -> Result<(), GangError> {
        let values = std::mem::take(self.shelf.get_mut(share));
        let sent = self.publish(share, &values);
        *self.shelf.get_mut(share) = values;
        sent
    }

    fn accept(&mut self, share: usize) -> Result<(), GangError> {
        let mut values = std::mem::take(self.shelf.get_mut(share));
        let fetched = self.fetch(share, &mut values);
        *self.shelf.get_mut(share) = values;
        fetched
    }

    fn view(&self, share: usize) -> &[f32] {
        self.shelf.get(share)
    }

    fn cast(&mut self, vote: u64) -> Result<(), GangError> {
        assert!(self.vote.is_none(), "a rank votes once a step");
        self.vote = Some(vote);
        self.votes += 1;
        let header = Header {
            value: vote,
            ..self.header(Kind::Vote, 0, 0, self.votes)
        };
        self.send_to_all(&header, &[])
    }

    fn end_step(&mut self) -> Result<u64, GangError> {
        let mut largest = self.vote.expect("a rank votes before it ends a step");
        for rank in self.plan.others(self.rank) {
            let what = || "end the step".to_owned();
            largest = largest.max(self.wait_for(rank, what, |peer| peer.votes.pop_front())?);
        }
        self.vote = None;
        Ok(largest)
    }

    fn all_gather(&mut self, mine: &[f64], all: &mut [f64]) -> Result<(), GangError> {
        let len = mine.len();
        assert_eq!(
            all.len(),
            self.plan.workers() * len,
            "room for every rank's {len} numbers"
        );
        // At least one round, so that gathering nothing is a barrier.
        for begin in (0..len.max(1)).step_by(GATHER) {
            let piece = begin..len.min(begin + GATHER);
            self.gathers += 1;
            let numbers = bytemuck::cast_slice(&mine[piece.clone()]);
            let header = self.header(Kind::Gather, 0, numbers.len(), self.gathers);
            self.send_to_all(&header, numbers)?;
            all[self.rank * len..][piece.clone()].copy_from_slice(&mine[piece.clone()]);
            for rank in self.plan.others(self.rank) {
                let what = || "take part in a gathering".to_owned();
                let buffer = self.wait_for(rank, what, |peer| peer.gathered.pop_front())?;
                if buffer.len() != piece.len() {
                    let what = format!("it gathers {} numbers, not {}", buffer.len(), piece.len());
                    return Err(GangError::Protocol { rank, what });
                }
                all[rank * len..][piece.clone()].copy_from_slice(&buffer);
                self.peer(rank).give_back(Used::Gathered(buffer));
            }
        }
        Ok(())
    }
}

impl Drop for TcpCollective {
    fn drop(&mut self) {
        let goodbye = self.header(Kind::Goodbye, 0, 0, 0).encode();
        for peer in self.peers.iter_mut().flatten() {
            // A worker that panics did not mean to leave: its peers see a connection that ended.
            if !std::thread::panicking() {
                let _ = peer.stream.write_all(&goodbye);
            }
            let _ = peer.stream.shutdown(Shutdown::Both);
        }
        // A receiver that waits for room among the events must find that nobody takes them.
        let (_, nobody) = sync_channel(0);
        drop(std::mem::replace(&mut self.events, nobody));
        self.peers.iter_mut().flatten().for_each(Peer::join);
    }
}
