//! The exchange over TCP: which frame each call sends, and which it waits for.

use super::TcpCollective;
use super::frame::{FrameHeader, FrameKind, HEADER};
use super::peer::Peer;
use super::receiver::Used;
use super::sender::{Numbers, writable};
use crate::collective::{Collective, GATHER};
use crate::{GangError, KeeperLinks, Plan, SharingCollective};

impl Collective for TcpCollective {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn outbox(&mut self, chunk: usize, partial: usize) -> &mut [f32] {
        self.plan.require_owner(chunk, self.rank, false);
        let len = self.plan.chunk(chunk).len();
        if self.outboxes[chunk].is_empty() {
            self.outboxes[chunk] = self.buffer(len * self.plan.partials_of(self.rank).len());
        }
        &mut self.outboxes[chunk][partial * len..(partial + 1) * len]
    }

    fn post(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        self.sent[chunk] += 1;
        let owner = self.plan.owner(chunk);
        if self.outboxes[chunk].is_empty() {
            // All of it is absent.
            self.outbox(chunk, 0);
        }
        let numbers = std::mem::take(&mut self.outboxes[chunk]);
        let header = self.header(FrameKind::Post, chunk, numbers.len() * 4, self.sent[chunk]);
        let bytes = bytemuck::cast_slice(&numbers);
        let sent = self.peer(owner).sender(chunk).send_now(&header, bytes);
        match sent == HEADER + bytes.len() {
            true => {
                self.free.give_back(numbers);
                Ok(())
            }
            false => self.queue(owner, header, Numbers::Piece(numbers), sent),
        }
    }

    fn arrived(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        self.take_in();
        let arrived = self.missing_post(chunk).is_none();
        if !arrived {
            self.check()?;
        }
        Ok(arrived)
    }

    fn wait_arrived(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        while let Some(rank) = self.missing_post(chunk) {
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
        let header = self.header(FrameKind::Publish, chunk, numbers.len(), self.sent[chunk]);
        // Copied only for those who cannot take them at once.
        for rank in 0..self.peers.len() {
            if self.peers[rank].is_some() && self.plan.reads(rank, chunk) {
                let sent = self.peer(rank).sender(chunk).send_now(&header, numbers);
                if sent < HEADER + numbers.len() {
                    let mut copy = self.buffer(values.len());
                    copy.copy_from_slice(values);
                    self.queue(rank, header, Numbers::Piece(copy), sent)?;
                }
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

    fn cast(&mut self, vote: u64) -> Result<(), GangError> {
        assert!(self.vote.is_none(), "a rank votes once a step");
        self.vote = Some(vote);
        self.votes += 1;
        let header = FrameHeader {
            value: vote,
            ..self.header(FrameKind::Vote, 0, 0, self.votes)
        };
        self.send_to_voters(header, &Numbers::None)
    }

    fn end_step(&mut self) -> Result<u64, GangError> {
        while let Some(rank) = self.missing_vote() {
            let what = || "end the step".to_owned();
            self.wait_for(rank, what, |peer| (!peer.votes.is_empty()).then_some(()))?;
        }
        Ok(self.take_votes())
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
            self.offer(&mine[piece.clone()])?;
            while let Some(rank) = self.missing_offer() {
                let what = || "take part in a gathering".to_owned();
                self.wait_for(rank, what, |peer| (!peer.gathered.is_empty()).then_some(()))?;
            }
            all[self.rank * len..][piece.clone()].copy_from_slice(&mine[piece.clone()]);
            for rank in self.plan.others(self.rank) {
                self.take_offer(rank, &mut all[rank * len..][piece.clone()])?;
            }
        }
        Ok(())
    }
}

/// The exchange in halves, for one who has other things to do while it waits.
impl TcpCollective {
    /// The first rank whose sums of an own chunk have not come.
    pub(crate) fn missing_post(&self, chunk: usize) -> Option<usize> {
        let mut posters =
            (0..self.plan.posting()).filter_map(|number| self.plan.poster(chunk, number));
        posters.find(|&rank| !self.has_chunk(rank, chunk))
    }

    /// Whether a chunk has come from `rank` and was not used yet.
    pub(crate) fn has_chunk(&self, rank: usize, chunk: usize) -> bool {
        let peer = self.peers[rank].as_ref();
        peer.is_some_and(|peer| peer.chunks[chunk].is_some())
    }

    /// The first rank whose vote on the step has not come.
    pub(crate) fn missing_vote(&self) -> Option<usize> {
        self.first_voter(|peer| peer.votes.is_empty())
    }

    /// Ends the step, once all votes have come; returns the largest.
    pub(crate) fn take_votes(&mut self) -> u64 {
        let mut largest = self
            .vote
            .take()
            .expect("a rank votes before it ends a step");
        for &rank in &self.voters {
            if let Some(peer) = &mut self.peers[rank] {
                largest = largest.max(peer.votes.pop_front().expect("all votes have come"));
            }
        }
        largest
    }

    /// Offers numbers to all who gather, at most [`GATHER`] of them.
    pub(crate) fn offer(&mut self, mine: &[f64]) -> Result<(), GangError> {
        self.gathers += 1;
        // A peer may not have read the round before, but has the one before that.
        let numbers = &mut self.gathering[(self.gathers % 2) as usize];
        writable(numbers).clear();
        writable(numbers).extend_from_slice(mine);
        let numbers = Numbers::Gathered(numbers.clone());
        let header = self.header(FrameKind::Gather, 0, mine.len() * 8, self.gathers);
        self.send_to_voters(header, &numbers)
    }

    /// The first rank whose numbers of the round have not come.
    pub(crate) fn missing_offer(&self) -> Option<usize> {
        self.first_voter(|peer| peer.gathered.is_empty())
    }

    /// Takes what a rank has offered in the round.
    pub(crate) fn take_offer(&mut self, rank: usize, into: &mut [f64]) -> Result<(), GangError> {
        let numbers = self.peer(rank).gathered.pop_front();
        let buffer = numbers.expect("its numbers have come");
        if buffer.len() != into.len() {
            let what = format!("it gathers {} numbers, not {}", buffer.len(), into.len());
            return Err(GangError::Protocol { rank, what });
        }
        into.copy_from_slice(&buffer);
        self.peer(rank).give_back(Used::Gathered(buffer));
        Ok(())
    }

    fn first_voter(&self, is_missing: impl Fn(&Peer) -> bool) -> Option<usize> {
        let mut voters = self.voters.iter().copied();
        voters.find(|&rank| self.peers[rank].as_ref().is_some_and(&is_missing))
    }
}

impl SharingCollective for TcpCollective {
    fn draft(&mut self, share: usize) -> Result<&mut [f32], GangError> {
        Ok(self.shares.get_mut(share))
    }

    fn announce(&mut self, share: usize) -> Result<(), GangError> {
        let values = std::mem::take(self.shares.get_mut(share));
        let sent = self.publish(share, &values);
        *self.shares.get_mut(share) = values;
        sent
    }

    fn accept(&mut self, share: usize) -> Result<(), GangError> {
        let mut values = std::mem::take(self.shares.get_mut(share));
        let fetched = self.fetch(share, &mut values);
        *self.shares.get_mut(share) = values;
        fetched
    }

    fn view(&self, share: usize) -> &[f32] {
        self.shares.get(share)
    }

    fn take_keeper_links(&mut self) -> Option<KeeperLinks> {
        self.keeper_links.take()
    }
}
