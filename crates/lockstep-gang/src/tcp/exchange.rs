//! The exchange over TCP: which frame each call sends, and which it waits for.

use super::TcpCollective;
use super::frame::{FrameHeader, FrameKind, HEADER};
use super::receiver::Used;
use super::sender::{Numbers, writable};
use crate::collective::{Collective, GATHER};
use crate::{GangError, Plan, SharingCollective};

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
        &mut writable(&mut self.outboxes[chunk])[partial * len..(partial + 1) * len]
    }

    fn post(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        self.sent[chunk] += 1;
        let owner = self.plan.owner(chunk);
        let numbers = self.outboxes[chunk].clone();
        let header = self.header(FrameKind::Post, chunk, numbers.len() * 4, self.sent[chunk]);
        self.send(owner, header, &Numbers::Piece(numbers))
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
        let header = self.header(FrameKind::Publish, chunk, numbers.len(), self.sent[chunk]);
        // Copied only if somebody cannot take them at once.
        let mut copy = None;
        for rank in self.plan.others(self.rank) {
            if self.plan.reads(rank, chunk) {
                let sent = self.peer(rank).sender(chunk).send_now(&header, numbers);
                if sent < HEADER + numbers.len() {
                    let copy = copy.get_or_insert_with(|| self.copies.of(values)).clone();
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
        self.send_to_all(header, &Numbers::None)
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
            // A peer may not have read the round before, but has the one before that.
            let numbers = &mut self.gathering[(self.gathers % 2) as usize];
            writable(numbers).clear();
            writable(numbers).extend_from_slice(&mine[piece.clone()]);
            let numbers = Numbers::Gathered(numbers.clone());
            let header = self.header(FrameKind::Gather, 0, piece.len() * 8, self.gathers);
            self.send_to_all(header, &numbers)?;
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
}
