//! The coordinator's hold on a gang's shared memory.

use super::layout::{MAGIC, SegmentLayout, stamp};
use super::region::Region;
use crate::{GangError, Plan, Segment};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What the abort word says besides its generation: the step is called off.
pub(crate) const CALLED_OFF: u64 = 1;
/// What it says when a rank died: this and the rank.
pub(crate) const LOST: u64 = 2;

/// Prepares the memory, watches the workers in it, and calls them off.
#[derive(Debug)]
pub struct ShmControl {
    region: Region,
    layout: SegmentLayout,
    workers: usize,
}

impl ShmControl {
    /// Prepares `segment` for a gang that follows `plan`, before the first worker joins. Preparing it
    /// again with a later generation shuts out all workers of the generations before: they find it
    /// out before their next write. One that was stopped in the midst of a write would finish that
    /// one when it wakes up, so the process of a worker that is replaced must have ended before, and
    /// the others must have stopped working. The plan may be another one, of fewer workers.
    ///
    /// # Errors
    /// [`GangError::Mismatch`] when the segment is too small for the plan, [`GangError::Replaced`]
    /// when it was prepared for a later generation.
    pub fn new(segment: &Segment, plan: &Plan, generation: u16) -> Result<Self, GangError> {
        let layout = SegmentLayout::new(plan);
        let region = layout.map(segment)?;
        let current = region.word(SegmentLayout::GENERATION).load(Acquire) as u16;
        if current > generation {
            return Err(GangError::Replaced {
                mine: generation,
                current,
            });
        }
        // Another plan has its stamps in other places, where the generation before may have left
        // anything: numbers that would pass for stamps.
        for word in (SegmentLayout::ABORT..layout.words()).step_by(8) {
            region.word(word).store(0, Relaxed);
        }
        region
            .word(SegmentLayout::GENERATION)
            .store(u64::from(generation), Release);
        region
            .word(SegmentLayout::FINGERPRINT)
            .store(plan.fingerprint(), Release);
        region.word(SegmentLayout::MAGIC).store(MAGIC, Release);
        Ok(Self {
            region,
            layout,
            workers: plan.workers(),
        })
    }

    /// Makes every worker's wait fail with [`GangError::Aborted`].
    pub fn abort(&self) {
        self.set_abort(CALLED_OFF);
    }

    /// Tells all workers that `rank` died: their waits fail with [`GangError::PeerLost`].
    pub fn lost(&self, rank: usize) {
        self.set_abort(LOST + rank as u64);
    }

    /// How often `rank` has shown that it lives. Also a rank that waits for others shows it.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn heartbeat(&self, rank: usize) -> u64 {
        assert!(
            rank < self.workers,
            "a gang of {} has no rank {rank}",
            self.workers
        );
        self.region.word(self.layout.heartbeat(rank)).load(Relaxed)
    }

    fn set_abort(&self, word: u64) {
        let generation = self.region.word(SegmentLayout::GENERATION).load(Acquire) as u16;
        self.region
            .word(SegmentLayout::ABORT)
            .store(stamp(generation, word), Release);
    }
}
