//! Blocks of rows that are added up in single precision, beside each other, and then one after the other.

use crate::threads::{Grid, SharedMut, Threads, pieces_mut, rows_of_a_tile};
use std::ops::Range;

/// Rows of a block. It is part of the numerics.
pub(super) const BLOCK: usize = 64;

/// Columns of a tile where blocks are combined are a multiple of these.
const COLUMNS: usize = 8;

/// What adding up two sums of a block in double precision costs, in multiply-adds.
const COMBINING: usize = 16;

/// The blocks of a pass, lane by lane; a block belongs to one lane.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    /// Rows of the batch.
    pub(super) lanes: &'a [Range<usize>],
    /// Rows that each of these is.
    pub(super) pixels: usize,
}

impl Blocks<'_> {
    /// Rows of a lane.
    fn rows(self, lane: usize) -> Range<usize> {
        let rows = &self.lanes[lane];
        rows.start * self.pixels..rows.end * self.pixels
    }

    /// Blocks of a lane.
    fn of_lane(self, lane: usize) -> usize {
        self.rows(lane).len().div_ceil(BLOCK)
    }

    /// How many there are.
    pub(super) fn count(self) -> usize {
        (0..self.lanes.len()).map(|lane| self.of_lane(lane)).sum()
    }

    /// The lane of a block, and its rows.
    fn place(self, mut block: usize) -> (usize, Range<usize>) {
        let mut lane = 0;
        while block >= self.of_lane(lane) {
            block -= self.of_lane(lane);
            lane += 1;
        }
        let rows = self.rows(lane);
        let start = rows.start + block * BLOCK;
        (lane, start..(start + BLOCK).min(rows.end))
    }

    /// Calls `work` with the lane and the rows of every block; rows have so many numbers.
    pub(super) fn each(
        self,
        threads: &Threads,
        features: usize,
        work: impl Fn(usize, Range<usize>) + Sync,
    ) {
        let (count, of_tile) = (self.count(), rows_of_a_tile(BLOCK * features));
        threads.each(0..count.div_ceil(of_tile), |_, tile| {
            for block in tile * of_tile..((tile + 1) * of_tile).min(count) {
                let (lane, rows) = self.place(block);
                work(lane, rows);
            }
        });
    }

    /// Lets `sum` write two sums of every feature for every block, behind each other in `parts`.
    pub(super) fn sum(
        self,
        threads: &Threads,
        features: usize,
        parts: &mut [f32],
        sum: impl Fn(usize, Range<usize>, &mut [f32]) + Sync,
    ) {
        let of_tile = rows_of_a_tile(BLOCK * features);
        threads.each(pieces_mut(parts, of_tile * 2 * features), |tile, parts| {
            for (block, part) in parts.chunks_exact_mut(2 * features).enumerate() {
                let (lane, rows) = self.place(tile * of_tile + block);
                sum(lane, rows, part);
            }
        });
    }

    /// Lets `combine` bring the sums of all blocks of a lane together, for some features: it gets the rows of the lane, the
    /// sums of its blocks, the first of these features, and room for what both sums come to, which is part of `to`.
    pub(super) fn combine<T: Send>(
        self,
        threads: &Threads,
        features: usize,
        parts: &[f32],
        to: [&mut [T]; 2],
        combine: impl Fn(usize, &[f32], usize, [&mut [T]; 2]) + Sync,
    ) {
        let to = to.map(SharedMut::new);
        let lanes = (self.lanes.len(), 1);
        let work = COMBINING * self.count() * features;
        let grid = Grid::new(threads, lanes, (features, COLUMNS), work);
        threads.each(0..grid.count(), |_, tile| {
            let (lanes, columns) = grid.tile(tile);
            let mut first: usize = (0..lanes.start).map(|lane| self.of_lane(lane)).sum();
            for lane in lanes {
                let blocks = first..first + self.of_lane(lane);
                first = blocks.end;
                let parts = &parts[blocks.start * 2 * features..blocks.end * 2 * features];
                let start = lane * features;
                let own = start + columns.start..start + columns.end;
                // SAFETY: every feature of every lane belongs to one tile.
                let to = to.each_ref().map(|to| unsafe { to.part(own.clone()) });
                combine(self.rows(lane).len(), parts, columns.start, to);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_row_once_and_belong_to_one_lane() {
        let lanes = [0..1, 1..5, 5..6];
        for pixels in [1, 30, 64, 200] {
            let blocks = Blocks {
                lanes: &lanes,
                pixels,
            };
            let mut end = 0;
            for block in 0..blocks.count() {
                let (lane, rows) = blocks.place(block);
                let own = blocks.rows(lane);
                assert!(own.start <= rows.start && rows.end <= own.end && rows.len() <= BLOCK);
                assert_eq!(rows.start, end);
                end = rows.end;
            }
            assert_eq!(end, 6 * pixels);
        }
    }
}
