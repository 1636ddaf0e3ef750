//! How the memory of a network is parted while it is planned.

use crate::memory::{Arena, DeviceSlice, Plain};

/// Parts memory into what is kept from one launch to a later one, and what is needed only while a layer computes.
pub(crate) struct Planner {
    /// The most rows that a pass may have.
    pub(crate) rows: usize,
    kept: Arena,
    scratch: Arena,
}

impl Planner {
    /// Of the memory at two addresses.
    pub(crate) fn new(rows: usize, [kept, scratch]: [u64; 2]) -> Self {
        Self {
            rows,
            kept: Arena::new(kept),
            scratch: Arena::new(scratch),
        }
    }

    /// Room that stays.
    pub(crate) fn keep<T: Plain>(&mut self, len: usize) -> DeviceSlice<T> {
        self.kept.take(len)
    }

    /// Room that stays until [`Planner::lend`] returns to whoever called it.
    pub(crate) fn borrow<T: Plain>(&mut self, len: usize) -> DeviceSlice<T> {
        self.scratch.take(len)
    }

    /// Plans something that has borrowed room for itself: what is planned after it gets the same room.
    pub(crate) fn lend<R>(&mut self, plan: impl FnOnce(&mut Self) -> R) -> R {
        let mark = self.scratch.mark();
        let result = plan(self);
        self.scratch.take_back(mark);
        result
    }

    /// Bytes that are kept, and bytes that are needed beside them.
    pub(crate) fn bytes(&self) -> [usize; 2] {
        [self.kept.bytes(), self.scratch.bytes()]
    }
}
