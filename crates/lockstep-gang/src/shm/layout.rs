//! Where everything lies in a gang's shared memory.
//!
//! ```text
//! words    header           magic, version, fingerprint of the plan
//!          state            generation, abort
//!          each rank        heartbeat and departure; two votes; two rooms of gathered numbers
//!          posted           a stamp for each rank and chunk, written by that rank
//!          published        a stamp for each chunk, share and product, written by its holder
//!          taken            a stamp for each chunk and who has it, written by whoever is first
//! floats   values           each chunk's new values, shares and products, written by their holders
//!          outboxes         each rank's partial sums of each chunk that others own
//!          homes            values and planes of common chunks, of whoever holds them
//! ```
//!
//! A stamp is `generation << 48 | sequence number`: it only ever grows, also from one generation of
//! the gang to the next, so that nothing has to be cleared when a gang starts anew, and what an
//! earlier generation stamped never looks like news. Whatever different ranks write lies on
//! different lines of 128 bytes, since processors fetch cache lines in pairs.

use super::region::Region;
use crate::collective::GATHER;
use crate::{GangError, Plan, Segment};

/// Bytes that may move between cores together.
pub(crate) const LINE: usize = 128;
/// Bits of a stamp that are the sequence number.
const SEQUENCE_BITS: u32 = 48;

/// Says that this is a gang's shared memory, in this version of the layout.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"lockstp\x01");

/// The stamp of round `sequence` in `generation`.
pub(crate) fn stamp(generation: u16, sequence: u64) -> u64 {
    debug_assert!(
        sequence >> SEQUENCE_BITS == 0,
        "a run does not have that many steps"
    );
    u64::from(generation) << SEQUENCE_BITS | sequence
}

/// The generation and the sequence number of a stamp.
pub(crate) fn unstamp(stamp: u64) -> (u16, u64) {
    (
        (stamp >> SEQUENCE_BITS) as u16,
        stamp & ((1 << SEQUENCE_BITS) - 1),
    )
}

/// Byte offsets in the segment of one plan.
#[derive(Debug)]
pub(crate) struct SegmentLayout {
    chunks: usize,
    ranks: usize,
    posted: usize,
    published: usize,
    taken: usize,
    words: usize,
    /// Where each chunk begins among the values.
    values: Vec<usize>,
    /// Where each rank's partial sums of each chunk begin, by `rank * chunks + chunk`; those of own
    /// chunks take no room.
    outboxes: Vec<usize>,
    /// Where the home of each chunk begins; only those of common ones have room.
    homes: Vec<usize>,
    bytes: usize,
}

/// Lines that belong to one rank: itself, two votes, and twice a stamp and its numbers.
const RANK_BYTES: usize = 3 * LINE + 2 * (LINE + GATHER * 8);
/// A stamp and a rank. Chunks share lines here: whoever looks for one to take looks at many.
const TAKEN_BYTES: usize = 16;

/// How many vectors live in the home of a common chunk: its planes, and its values where they are not on
/// every rank.
pub(crate) fn home_vectors(plan: &Plan, chunk: usize) -> usize {
    plan.planes() + usize::from(plan.producing().contains(&chunk))
}

impl SegmentLayout {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const FINGERPRINT: usize = 8;
    pub(crate) const GENERATION: usize = LINE;
    pub(crate) const ABORT: usize = LINE + 8;
    const RANKS: usize = 2 * LINE;

    pub(crate) fn new(plan: &Plan) -> Self {
        let (chunks, workers) = (plan.chunks(), plan.workers());
        let ranks = Self::RANKS;
        let posted = ranks + workers * RANK_BYTES;
        let published = posted + workers * chunks * LINE;
        let taken = published + plan.pieces() * LINE;
        let words = (taken + chunks * TAKEN_BYTES).next_multiple_of(LINE);

        let mut end = words;
        let mut take = |floats: usize| {
            let begin = end;
            end = (begin + floats * 4).next_multiple_of(LINE);
            begin
        };
        let values = (0..plan.pieces())
            .map(|chunk| take(plan.chunk(chunk).len()))
            .collect();
        let mut outboxes = Vec::with_capacity(workers * chunks);
        for rank in 0..workers {
            for chunk in 0..chunks {
                let partials = match plan.owner(chunk) == rank {
                    true => 0,
                    false => plan.partials_of(rank).len(),
                };
                outboxes.push(take(partials * plan.chunk(chunk).len()));
            }
        }
        let home = |chunk: usize| match plan.is_common(chunk) {
            true => home_vectors(plan, chunk) * plan.chunk(chunk).len(),
            false => 0,
        };
        let homes = (0..chunks).map(|chunk| take(home(chunk))).collect();
        Self {
            chunks,
            ranks,
            posted,
            published,
            taken,
            words,
            values,
            outboxes,
            homes,
            bytes: end,
        }
    }

    /// Bytes in all.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Maps a segment that has room for this self.
    pub(crate) fn map(&self, segment: &Segment) -> Result<Region, GangError> {
        if segment.bytes() < self.bytes() {
            return Err(GangError::Mismatch {
                what: "the size of shared memory",
                found: format!("at least {} bytes", self.bytes()),
                expected: format!("{} bytes", segment.bytes()),
            });
        }
        Region::map(segment, 0..self.bytes(), self.words())
    }

    /// Bytes of words; the floats follow.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    fn of_rank(&self, rank: usize) -> usize {
        self.ranks + rank * RANK_BYTES
    }

    /// Counts up while `rank` lives.
    pub(crate) fn heartbeat(&self, rank: usize) -> usize {
        self.of_rank(rank)
    }

    /// A stamp of the generation that `rank` left on its own account.
    pub(crate) fn left(&self, rank: usize) -> usize {
        self.of_rank(rank) + 8
    }

    /// The stamp of `rank`'s vote in round `round`; the vote is the word after it.
    pub(crate) fn vote(&self, rank: usize, round: u64) -> usize {
        self.of_rank(rank) + LINE * (1 + (round % 2) as usize)
    }

    /// The stamp of `rank`'s gathered numbers in round `round`; they begin on the line after it.
    pub(crate) fn gather(&self, rank: usize, round: u64) -> usize {
        self.of_rank(rank) + 3 * LINE + (round % 2) as usize * (LINE + GATHER * 8)
    }

    /// The word of `rank`'s gathered number `index` in round `round`.
    pub(crate) fn gathered(&self, rank: usize, round: u64, index: usize) -> usize {
        self.gather(rank, round) + LINE + index * 8
    }

    /// The stamp by which `rank` posts `chunk`.
    pub(crate) fn posted(&self, rank: usize, chunk: usize) -> usize {
        self.posted + (rank * self.chunks + chunk) * LINE
    }

    /// The stamp by which `chunk` is published.
    pub(crate) fn published(&self, chunk: usize) -> usize {
        self.published + chunk * LINE
    }

    /// The stamp of the step that `chunk` was last taken for; the word after it says by which rank.
    pub(crate) fn taken(&self, chunk: usize) -> usize {
        self.taken + chunk * TAKEN_BYTES
    }

    /// Where the home of `chunk` begins: its values, if they live there, then its planes.
    pub(crate) fn home(&self, chunk: usize) -> usize {
        self.homes[chunk]
    }

    /// Where `chunk`'s new values begin.
    pub(crate) fn values(&self, chunk: usize) -> usize {
        self.values[chunk]
    }

    /// Where `rank`'s partial sums of `chunk` begin, one after the other.
    pub(crate) fn outbox(&self, rank: usize, chunk: usize) -> usize {
        self.outboxes[rank * self.chunks + chunk]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::Range;

    #[test]
    fn a_stamp_of_a_later_generation_is_larger_than_any_before() {
        assert!(stamp(2, 0) > stamp(1, (1 << 48) - 1));
        assert_eq!(unstamp(stamp(7, 123)), (7, 123));
    }

    proptest! {
        #[test]
        fn no_two_parts_overlap_and_all_lie_inside(
            lengths in prop::collection::vec(1usize..200, 1..8), workers in 1usize..6, extra in 0usize..6,
        ) {
            let mut end = 0;
            let chunks = lengths.iter().map(|len| { end += len; end - len..end }).collect();
            let plan = Plan::new(chunks, workers + extra, workers).unwrap().with_shares(&[9, 40]);
            let common = (0..lengths.len()).step_by(2);
            let plan = plan.with_products(0..1, &[11]).with_common(common, 2);
            let layout = SegmentLayout::new(&plan);
            let mut parts: Vec<Range<usize>> = vec![0..16, SegmentLayout::GENERATION..SegmentLayout::ABORT + 8];
            for rank in 0..workers {
                parts.push(layout.heartbeat(rank)..layout.left(rank) + 8);
                for round in 0..2 {
                    parts.push(layout.vote(rank, round)..layout.vote(rank, round) + 16);
                    parts.push(layout.gather(rank, round)..layout.gathered(rank, round, GATHER));
                }
            }
            for piece in 0..plan.pieces() {
                parts.push(layout.published(piece)..layout.published(piece) + 8);
            }
            for chunk in 0..plan.chunks() {
                parts.push(layout.taken(chunk)..layout.taken(chunk) + 16);
                for rank in 0..workers {
                    parts.push(layout.posted(rank, chunk)..layout.posted(rank, chunk) + 8);
                }
            }
            prop_assert!(parts.iter().all(|part| part.end <= layout.words()));
            for piece in 0..plan.pieces() {
                let bytes = plan.chunk(piece).len() * 4;
                parts.push(layout.values(piece)..layout.values(piece) + bytes);
            }
            for chunk in 0..plan.chunks() {
                let bytes = plan.chunk(chunk).len() * 4;
                if plan.is_common(chunk) {
                    let vectors = 2 + usize::from(chunk == 0);
                    parts.push(layout.home(chunk)..layout.home(chunk) + vectors * bytes);
                }
                for rank in (0..workers).filter(|rank| *rank != plan.owner(chunk)) {
                    let begin = layout.outbox(rank, chunk);
                    parts.push(begin..begin + plan.partials_of(rank).len() * bytes);
                }
            }
            parts.sort_by_key(|part| part.start);
            prop_assert!(parts.windows(2).all(|pair| pair[0].end <= pair[1].start));
            prop_assert!(parts.last().unwrap().end <= layout.bytes());
        }
    }
}
