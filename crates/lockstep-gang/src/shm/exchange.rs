//! The exchange of chunks, votes and gathered numbers through shared memory.

use super::ShmCollective;
use crate::collective::{Collective, GATHER};
use crate::{GangError, Plan};
use std::sync::atomic::Ordering::Relaxed;

impl Collective for ShmCollective {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn outbox(&mut self, chunk: usize, partial: usize) -> &mut [f32] {
        self.plan.require_owner(chunk, self.rank, false);
        assert!(
            !self.posted[chunk],
            "chunk {chunk} was posted and not yet fetched"
        );
        assert!(
            partial < self.plan.partials_of(self.rank).len(),
            "no partial sum {partial}"
        );
        let len = self.plan.chunk(chunk).len();
        let offset = self.layout.outbox(self.rank, chunk) + partial * len * 4;
        // SAFETY: only this rank writes its outboxes. The owner reads this one between this rank's
        // `post` and its own `publish`, and it is not posted or was fetched since. The slice
        // borrows self, so that `post` cannot come before its end.
        unsafe { self.region.floats_mut(offset, len) }
    }

    fn post(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, false);
        self.check_generation()?;
        assert!(
            !self.posted[chunk],
            "chunk {chunk} was posted and not yet fetched"
        );
        self.posted[chunk] = true;
        self.posts[chunk] += 1;
        self.set(self.layout.posted(self.rank, chunk), self.posts[chunk]);
        self.beat();
        Ok(())
    }

    fn arrived(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        let next = self.posts[chunk] + 1;
        let arrived = self.arrived[chunk]
            || self
                .plan
                .others(self.rank)
                .all(|peer| self.is_at(self.layout.posted(peer, chunk), next));
        self.arrived[chunk] = arrived;
        if !arrived {
            self.check_abort()?;
        }
        Ok(arrived)
    }

    fn wait_arrived(&mut self, chunk: usize) -> Result<(), GangError> {
        self.plan.require_owner(chunk, self.rank, true);
        if !self.arrived[chunk] {
            let next = self.posts[chunk] + 1;
            for peer in self.plan.others(self.rank) {
                let offset = self.layout.posted(peer, chunk);
                self.wait_for(peer, offset, next, || format!("post chunk {chunk}"))?;
            }
            self.arrived[chunk] = true;
        }
        Ok(())
    }

    fn inbox(&self, chunk: usize, from: usize, partial: usize) -> &[f32] {
        self.plan.require_owner(chunk, self.rank, true);
        assert!(self.arrived[chunk], "chunk {chunk} has not arrived");
        assert!(from != self.rank, "a rank does not send to itself");
        assert!(
            partial < self.plan.partials_of(from).len(),
            "no partial sum {partial}"
        );
        let len = self.plan.chunk(chunk).len();
        let offset = self.layout.outbox(from, chunk) + partial * len * 4;
        // SAFETY: the chunk has arrived, so `from` has posted it and does not write there until it
        // has fetched what this rank publishes; publishing needs `&mut self`, after the slice's end.
        unsafe { self.region.floats(offset, len) }
    }

    fn publish(&mut self, chunk: usize, values: &[f32]) -> Result<(), GangError> {
        self.values_mut(chunk)?.copy_from_slice(values);
        self.set_published(chunk)
    }

    fn published(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.require_others(chunk);
        let published = self.is_at(self.layout.published(chunk), self.next_round(chunk));
        if !published {
            self.check_abort()?;
        }
        Ok(published)
    }

    fn fetch(&mut self, chunk: usize, into: &mut [f32]) -> Result<(), GangError> {
        self.wait_published(chunk)?;
        into.copy_from_slice(self.values(chunk));
        Ok(())
    }

    fn cast(&mut self, vote: u64) -> Result<(), GangError> {
        assert_eq!(self.casts, self.steps, "a rank votes once a step");
        self.check_generation()?;
        let offset = self.layout.vote(self.rank, self.casts);
        self.casts += 1;
        self.region.word(offset + 8).store(vote, Relaxed);
        self.set(offset, self.casts);
        Ok(())
    }

    fn end_step(&mut self) -> Result<u64, GangError> {
        assert_eq!(
            self.casts,
            self.steps + 1,
            "a rank votes before it ends a step"
        );
        for rank in 0..self.plan.workers() {
            let offset = self.layout.vote(rank, self.steps);
            self.wait_for(rank, offset, self.casts, || "end the step".to_owned())?;
        }
        let largest = self.largest_vote();
        self.steps += 1;
        self.beat();
        Ok(largest)
    }

    fn all_gather(&mut self, mine: &[f64], all: &mut [f64]) -> Result<(), GangError> {
        let (workers, len) = (self.plan.workers(), mine.len());
        assert_eq!(
            all.len(),
            workers * len,
            "room for every rank's {len} numbers"
        );
        // At least one round, so that gathering nothing is a barrier.
        for begin in (0..len.max(1)).step_by(GATHER) {
            let piece = begin..len.min(begin + GATHER);
            self.offer(&mine[piece.clone()])?;
            for rank in 0..workers {
                let offset = self.layout.gather(rank, self.gathers - 1);
                self.wait_for(rank, offset, self.gathers, || {
                    "take part in a gathering".to_owned()
                })?;
                self.read_offer(rank, &mut all[rank * len..][piece.clone()]);
            }
        }
        self.beat();
        Ok(())
    }
}

/// The exchange in halves, for one who has other things to do while it waits.
impl ShmCollective {
    /// The first rank that has not posted an own chunk.
    pub(crate) fn missing_post(&mut self, chunk: usize) -> Option<usize> {
        if self.arrived[chunk] {
            return None;
        }
        let next = self.posts[chunk] + 1;
        let mut others = self.plan.others(self.rank);
        let missing = others.find(|&peer| !self.is_at(self.layout.posted(peer, chunk), next));
        self.arrived[chunk] = missing.is_none();
        missing
    }

    /// Whether new values of a chunk that another rank holds are there.
    pub(crate) fn is_published(&self, chunk: usize) -> bool {
        self.is_at(self.layout.published(chunk), self.next_round(chunk))
    }

    /// The first rank that has not voted on the step.
    pub(crate) fn missing_vote(&self) -> Option<usize> {
        let mut ranks = 0..self.plan.workers();
        ranks.find(|&rank| !self.is_at(self.layout.vote(rank, self.steps), self.casts))
    }

    /// The largest vote on the step, of which all are there.
    pub(crate) fn largest_vote(&self) -> u64 {
        let vote = |rank| self.layout.vote(rank, self.steps) + 8;
        let votes = (0..self.plan.workers()).map(|rank| self.region.word(vote(rank)).load(Relaxed));
        votes.max().unwrap_or(0)
    }

    /// Offers numbers to all ranks, at most [`GATHER`] of them.
    pub(crate) fn offer(&mut self, mine: &[f64]) -> Result<(), GangError> {
        self.check_generation()?;
        let round = self.gathers;
        self.gathers += 1;
        for (index, number) in mine.iter().enumerate() {
            let offset = self.layout.gathered(self.rank, round, index);
            self.region.word(offset).store(number.to_bits(), Relaxed);
        }
        self.set(self.layout.gather(self.rank, round), self.gathers);
        Ok(())
    }

    /// The first rank that has not offered its numbers of the round.
    pub(crate) fn missing_offer(&self) -> Option<usize> {
        let mut ranks = 0..self.plan.workers();
        let round = self.gathers - 1;
        ranks.find(|&rank| !self.is_at(self.layout.gather(rank, round), self.gathers))
    }

    /// Reads what a rank has offered in the round.
    pub(crate) fn read_offer(&self, rank: usize, into: &mut [f64]) {
        let round = self.gathers - 1;
        for (index, number) in into.iter_mut().enumerate() {
            let offset = self.layout.gathered(rank, round, index);
            *number = f64::from_bits(self.region.word(offset).load(Relaxed));
        }
    }
}
