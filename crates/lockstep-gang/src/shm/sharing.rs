//! Shares, products and common chunks in shared memory: written and read in place.

use super::layout::{home_vectors, stamp};
use super::{ShmCollective, owned};
use crate::sharing::{Home, SharingCollective};
use crate::{CollectiveExt, GangError};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

impl SharingCollective for ShmCollective {
    fn draft(&mut self, share: usize) -> Result<&mut [f32], GangError> {
        self.values_mut(share)
    }

    fn announce(&mut self, share: usize) -> Result<(), GangError> {
        self.set_published(share)
    }

    fn accept(&mut self, share: usize) -> Result<(), GangError> {
        self.wait_published(share)
    }

    fn view(&self, share: usize) -> &[f32] {
        let stamp = self.layout.published(share);
        assert!(
            self.plan.shares().contains(&share) && self.is_at(stamp, self.next_round(share)),
            "piece {share} is not a share that was announced in this step"
        );
        self.values(share)
    }

    fn holds(&self, piece: usize) -> bool {
        let chunk = self.plan.produced_by(piece).unwrap_or(piece);
        match self.held.get(chunk) {
            Some(held) => *held,
            None => self.plan.owner(piece) == self.rank,
        }
    }

    fn take(&mut self, chunk: usize) -> Result<bool, GangError> {
        assert!(self.plan.is_common(chunk), "chunk {chunk} is not in common");
        self.check_generation()?;
        let offset = self.layout.taken(chunk);
        let now = stamp(self.generation, self.steps + 1);
        // The first to come in this step finds an earlier one's stamp.
        let first = self.region.word(offset).fetch_max(now, AcqRel) < now;
        if first {
            self.region
                .word(offset + 8)
                .store(self.rank as u64, Relaxed);
        }
        self.held[chunk] = first;
        Ok(first)
    }

    fn home(&mut self, chunk: usize) -> Option<Home<'_>> {
        assert!(
            self.holds(chunk),
            "rank {} does not hold chunk {chunk}",
            self.rank
        );
        if !self.plan.is_common(chunk) {
            return None;
        }
        let len = self.plan.chunk(chunk).len();
        let (offset, vectors) = (self.layout.home(chunk), home_vectors(&self.plan, chunk));
        // SAFETY: only its holder touches a home. There is one: ranks begin with what they own, take what
        // is free by an atomic operation, and come to a barrier before everything is its owner's again.
        // Whoever held it before used it before it shared something that this rank has fetched. The
        // slice borrows self, so that nothing of this can happen before its end.
        let home = unsafe { self.region.floats_mut(offset, vectors * len) };
        let (values, planes) = home.split_at_mut((vectors - self.plan.planes()) * len);
        let (first, second) = planes.split_at_mut(len.min(planes.len()));
        Some(Home {
            values: (!values.is_empty()).then_some(values),
            planes: [first, second],
        })
    }

    fn recall(&mut self) -> Result<(), GangError> {
        self.barrier()?;
        self.held.clear();
        self.held.extend(owned(&self.plan, self.rank));
        Ok(())
    }
}
