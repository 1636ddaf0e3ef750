//! How the memory of a network is parted while it is planned.

use crate::memory::{Arena, DeviceSlice, Plain};

/// Numbers, and where they are to be.
pub(crate) struct Constant {
    pub(crate) slice: DeviceSlice<u64>,
    pub(crate) numbers: Vec<u64>,
}

/// Parts memory into what is kept from one launch to a later one, and what is needed only while a layer computes.
pub(crate) struct Planner {
    /// The most rows that a pass may have.
    pub(crate) rows: usize,
    /// The most rows of one that trains.
    pub(crate) trained_rows: usize,
    /// For each kind of batch, how many lanes it has, and the rows of the longest.
    lanes: [(usize, usize); 2],
    constants: Vec<Constant>,
    pub(crate) kept: Arena,
    scratch: Arena,
}

impl Planner {
    /// Of the memory at two addresses, for passes of so many rows, and of fewer that train.
    pub(crate) fn new(
        [rows, trained_rows]: [usize; 2],
        lanes: [(usize, usize); 2],
        [kept, scratch]: [u64; 2],
    ) -> Self {
        Self {
            rows,
            trained_rows,
            lanes,
            constants: Vec::new(),
            kept: Arena::new(kept),
            scratch: Arena::new(scratch),
        }
    }

    /// For each kind of batch, how many lanes it has, and the rows of the longest.
    pub(crate) fn batches(&self) -> [(usize, usize); 2] {
        self.lanes
    }

    /// The most lanes of a pass.
    pub(crate) fn most_lanes(&self) -> usize {
        let [full, last] = self.lanes.map(|(lanes, _)| lanes);
        full.max(last)
    }

    /// Into how many parts the rows of all lanes are cut at the most, where each has so many rows of one lane.
    pub(crate) fn parts(&self, rows: usize) -> usize {
        let parts = self
            .lanes
            .map(|(lanes, longest)| lanes * longest.div_ceil(rows.max(1)));
        parts.into_iter().max().unwrap_or(0)
    }

    /// Room that stays.
    pub(crate) fn keep<T: Plain>(&mut self, len: usize) -> DeviceSlice<T> {
        self.kept.take(len)
    }

    /// Numbers that are written once, before the first pass.
    pub(crate) fn constant(&mut self, numbers: Vec<u64>) -> DeviceSlice<u64> {
        let slice = self.keep(numbers.len());
        self.constants.push(Constant { slice, numbers });
        slice
    }

    /// All such numbers.
    pub(crate) fn take_constants(&mut self) -> Vec<Constant> {
        std::mem::take(&mut self.constants)
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
