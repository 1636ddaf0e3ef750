//! What travels in a step beside the chunks: shares of every lane, products for every lane, and which
//! chunks any rank may work on.
//!
//! Chunks, shares and products are the *pieces* of a plan and are numbered in this order.

use super::Plan;
use crate::tree;
use std::ops::Range;

impl Plan {
    /// The same plan with *shares*: vectors that each lane's rank publishes to all others in every
    /// step, beside the chunks. There is one of each of these lengths for every lane.
    ///
    /// A share is a piece like a chunk, owned by the rank of its lane: see [`Plan::share`].
    ///
    /// # Panics
    /// When the plan has shares or products.
    pub fn with_shares(mut self, lengths: &[usize]) -> Self {
        assert_eq!(self.pieces(), self.chunks(), "shares follow the chunks");
        let mut end = self.len();
        for &length in lengths {
            for lane in 0..self.lanes {
                self.shares.push(end..end + length);
                self.owners
                    .push(tree::rank_of(lane, self.workers, self.lanes));
                end += length;
            }
        }
        self
    }

    /// The same plan with *products*: vectors that the owner of each of these chunks, which follow each
    /// other, makes for every lane in every step. Each comes with a length for its chunk.
    ///
    /// A product is a piece like a chunk, owned by the rank of its chunk and read by the rank of its lane
    /// alone: see [`Plan::product`].
    ///
    /// # Panics
    /// When the plan has products.
    pub fn with_products(mut self, chunks: Range<usize>, lengths: &[usize]) -> Self {
        assert!(self.products.is_empty(), "products are planned once");
        assert_eq!(chunks.len(), lengths.len(), "a length for each chunk");
        let mut end = self.shares.last().map_or(self.len(), |share| share.end);
        for (chunk, &length) in chunks.clone().zip(lengths) {
            for _ in 0..self.lanes {
                self.products.push(end..end + length);
                self.owners.push(self.owners[chunk]);
                end += length;
            }
        }
        self.producing = chunks;
        self
    }

    /// The same plan with these chunks in *common*: what their new values follow from, all ranks have, so
    /// that any of them can work on any of these, where memory is shared. `planes` is how many vectors
    /// beside the values belong to a chunk, such as the optimizer's.
    pub fn with_common(mut self, chunks: impl IntoIterator<Item = usize>, planes: usize) -> Self {
        for chunk in chunks {
            self.common[chunk] = true;
        }
        self.planes = planes;
        self
    }

    /// The piece that is `lane`'s share of the given kind, by its place among the lengths.
    pub fn share(&self, kind: usize, lane: usize) -> usize {
        self.chunks.len() + kind * self.lanes + lane
    }

    /// All lanes' shares of all kinds.
    pub(crate) fn shares(&self) -> Range<usize> {
        self.chunks.len()..self.chunks.len() + self.shares.len()
    }

    /// The chunks whose owners make products for all lanes.
    pub fn producing(&self) -> Range<usize> {
        self.producing.clone()
    }

    /// The piece that the owner of `chunk` makes for `lane`.
    pub fn product(&self, chunk: usize, lane: usize) -> usize {
        let number = chunk - self.producing.start;
        self.chunks.len() + self.shares.len() + number * self.lanes + lane
    }

    /// The chunk that a piece is a product of.
    pub(crate) fn produced_by(&self, piece: usize) -> Option<usize> {
        let number = piece.checked_sub(self.chunks.len() + self.shares.len())?;
        Some(self.producing.start + number / self.lanes)
    }

    /// Whether any rank may work on `chunk`.
    pub fn is_common(&self, chunk: usize) -> bool {
        self.common[chunk]
    }

    /// How many vectors beside its values belong to a common chunk.
    pub fn planes(&self) -> usize {
        self.planes
    }

    /// Whether `rank` fetches a piece of another: all do, but for products, which are for one lane.
    pub fn reads(&self, rank: usize, piece: usize) -> bool {
        match piece.checked_sub(self.chunks.len() + self.shares.len()) {
            // Of other pieces, only chunks are in a tree.
            None => piece >= self.chunks() || self.crosses_to(rank, piece),
            Some(number) => self.lanes_of(rank).contains(&(number % self.lanes)),
        }
    }

    /// Number of chunks, shares and products together, in this order.
    pub fn pieces(&self) -> usize {
        self.chunks.len() + self.shares.len() + self.products.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(chunks: usize) -> Plan {
        Plan::new((0..chunks).map(|c| 4 * c..4 * (c + 1)).collect(), 3, 2).unwrap()
    }

    #[test]
    fn every_lane_has_a_share_of_each_kind_and_its_rank_owns_it() {
        let plan = plan(2).with_shares(&[5, 7]);
        assert_eq!((plan.len(), plan.chunks(), plan.pieces()), (8, 2, 8));
        for (kind, length) in [5, 7].into_iter().enumerate() {
            for lane in 0..3 {
                let share = plan.share(kind, lane);
                assert_eq!(plan.chunk(share).len(), length);
                assert!(plan.lanes_of(plan.owner(share)).contains(&lane));
            }
        }
    }

    #[test]
    fn a_product_is_its_chunks_owners_and_for_its_lanes_rank_alone() {
        let plan = plan(4).with_shares(&[5]).with_products(1..3, &[6, 7]);
        assert_eq!(
            (plan.len(), plan.chunks(), plan.pieces()),
            (16, 4, 4 + 3 + 6)
        );
        for (chunk, length) in [(1, 6), (2, 7)] {
            for lane in 0..3 {
                let product = plan.product(chunk, lane);
                assert_eq!(plan.chunk(product).len(), length);
                assert_eq!(plan.owner(product), plan.owner(chunk));
                for rank in 0..2 {
                    assert_eq!(
                        plan.reads(rank, product),
                        plan.lanes_of(rank).contains(&lane)
                    );
                }
            }
        }
        assert_eq!(plan.chunk(12).end, 16 + 3 * 5 + 3 * 13);
        assert!((0..7).all(|piece| plan.reads(0, piece)));
        assert_eq!(plan.for_workers(2).unwrap(), plan);
        assert_eq!(plan.for_workers(3).unwrap().pieces(), plan.pieces());
    }
}
