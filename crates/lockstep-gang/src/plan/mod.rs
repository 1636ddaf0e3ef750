//! The plan of an exchange: the chunks of the vector, who owns each, which partial sums travel.
//!
//! A plan is a function of its three inputs alone. Every rank computes it for itself and gets the
//! same; [`Plan::fingerprint`] lets them check that before the first number moves.

mod hosts;
mod pieces;
mod traffic;

use crate::{GangError, tree};
use hosts::HostMap;
use sha2::{Digest, Sha256};
use std::ops::Range;

/// One sum of lanes that a rank forms by itself: a whole node of the lanes' tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// The rank that forms it.
    pub rank: usize,
    /// Its place among that rank's partial sums.
    pub index: usize,
    /// The lanes that it sums.
    pub lanes: Range<usize>,
}

/// Who sends what to whom in a step. A function of its three inputs alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    chunks: Vec<Range<usize>>,
    lanes: usize,
    workers: usize,
    /// The owning rank of each chunk.
    owners: Vec<usize>,
    /// Each rank's partial sums.
    partials_of: Vec<Vec<Range<usize>>>,
    /// What each lane shares beside the chunks, lane by lane for each kind.
    shares: Vec<Range<usize>>,
    /// What the owners of some chunks make for each lane, lane by lane for each chunk.
    products: Vec<Range<usize>>,
    /// The chunks that those are of.
    producing: Range<usize>,
    /// Which chunks any rank may work on, and how many vectors belong to each beside its values.
    common: Vec<bool>,
    planes: usize,
    /// Where the workers are, in a tree of hosts.
    hosts: Option<HostMap>,
}

impl Plan {
    /// Plans the exchange of a vector cut into `chunks` among `workers` that carry `lanes`.
    ///
    /// # Errors
    /// [`GangError::BadPlan`] unless the chunks are not empty, ascending and without gaps from 0 on,
    /// and 1 <= workers <= lanes.
    pub fn new(chunks: Vec<Range<usize>>, lanes: usize, workers: usize) -> Result<Self, GangError> {
        let bad = |reason| Err(GangError::BadPlan { reason });
        if workers == 0 || workers > lanes {
            return bad(format!(
                "{workers} workers for {lanes} lanes; there must be at least one worker and at \
                 least one lane for each"
            ));
        }
        let mut end = 0;
        for (index, chunk) in chunks.iter().enumerate() {
            if chunk.start != end || chunk.is_empty() {
                return bad(format!(
                    "chunk {index} is {chunk:?}; it must begin at {end} and not be empty"
                ));
            }
            end = chunk.end;
        }
        if u32::try_from(chunks.len()).is_err() || end > usize::MAX / 8 {
            return bad(format!(
                "{} chunks of {end} numbers are too many",
                chunks.len()
            ));
        }

        let partials_of: Vec<_> = (0..workers)
            .map(|rank| tree::maximal_subtrees(tree::lanes_of(rank, workers, lanes), lanes))
            .collect();
        let owners = balance(&chunks, workers);
        Ok(Self {
            common: vec![false; chunks.len()],
            planes: 0,
            chunks,
            lanes,
            workers,
            owners,
            partials_of,
            hosts: None,
            shares: Vec::new(),
            products: Vec::new(),
            producing: 0..0,
        })
    }

    /// The same exchange among another number of workers.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn for_workers(&self, workers: usize) -> Result<Self, GangError> {
        let lengths = |pieces: &[Range<usize>]| -> Vec<usize> {
            pieces.iter().step_by(self.lanes).map(Range::len).collect()
        };
        let plan = Self::new(self.chunks.clone(), self.lanes, workers)?;
        let common = (0..self.chunks()).filter(|&chunk| self.common[chunk]);
        Ok(plan
            .with_shares(&lengths(&self.shares))
            .with_products(self.producing.clone(), &lengths(&self.products))
            .with_common(common, self.planes))
    }

    /// Numbers in the vector.
    #[allow(clippy::len_without_is_empty)] // A plan is not a container.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.end)
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Where chunk `chunk` lies in the vector. Shares and products lie, in thought, behind its end.
    pub fn chunk(&self, chunk: usize) -> Range<usize> {
        let mut pieces = [&self.chunks, &self.shares, &self.products].into_iter();
        let mut number = chunk;
        pieces
            .find_map(|pieces| {
                let found = pieces.get(number);
                number = number.wrapping_sub(pieces.len());
                found.cloned()
            })
            .unwrap_or_else(|| panic!("no chunk {chunk} among {}", self.pieces()))
    }

    /// Numbers in the longest chunk.
    pub fn longest_chunk(&self) -> usize {
        self.chunks.iter().map(Range::len).max().unwrap_or(0)
    }

    /// The rank that reduces, updates and publishes chunk `chunk`, or whose share or product it is.
    pub fn owner(&self, chunk: usize) -> usize {
        self.owners[chunk]
    }

    /// Panics unless `rank` owns `chunk`, or unless it does not: whichever the protocol asks for.
    pub(crate) fn require_owner(&self, chunk: usize, rank: usize, own: bool) {
        let owner = self.owner(chunk);
        assert_eq!(owner == rank, own, "chunk {chunk} is owned by rank {owner}");
    }

    /// All ranks but `rank`.
    pub(crate) fn others(&self, rank: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.workers).filter(move |other| *other != rank)
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The lanes that `rank` computes.
    pub fn lanes_of(&self, rank: usize) -> Range<usize> {
        tree::lanes_of(rank, self.workers, self.lanes)
    }

    /// The sums of lanes that `rank` forms by itself, in lane order: for each chunk that it does not
    /// own it posts one vector for each of these.
    pub fn partials_of(&self, rank: usize) -> &[Range<usize>] {
        &self.partials_of[rank]
    }

    /// A number that differs, for all practical purposes, between any two different plans.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Sha256::new();
        let producing = [self.producing.start, self.producing.len()];
        for number in [
            self.workers,
            self.lanes,
            self.chunks.len(),
            self.shares.len(),
            self.planes,
        ]
        .into_iter()
        .chain(producing)
        .chain(self.common.iter().map(|&common| usize::from(common)))
        {
            hash.update((number as u64).to_le_bytes());
        }
        for chunk in self.chunks.iter().chain(&self.shares).chain(&self.products) {
            hash.update((chunk.end as u64).to_le_bytes());
        }
        // In a tree of hosts these depend on where the workers are.
        let sums = self.partials_of.iter().flatten().map(|lanes| lanes.start);
        let hosts = self.hosts().unwrap_or_default().iter();
        let hosts = hosts.map(|ranks| ranks.start + 1);
        for number in self.owners.iter().copied().chain(sums).chain(hosts) {
            hash.update((number as u64).to_le_bytes());
        }
        let digest = hash.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        u64::from_le_bytes(first)
    }
}

/// Gives each chunk to the least loaded rank so far, from the last chunk to the first (the order in
/// which backward finishes them), ties to the lowest rank. So work is even in size and, at every
/// moment of the backward pass, spread over all ranks.
fn balance(chunks: &[Range<usize>], workers: usize) -> Vec<usize> {
    let mut load = vec![0usize; workers];
    let mut owners = vec![0; chunks.len()];
    for (chunk, owner) in chunks.iter().zip(&mut owners).rev() {
        let mut least = 0;
        for rank in 1..workers {
            if load[rank] < load[least] {
                least = rank;
            }
        }
        load[least] += chunk.len();
        *owner = least;
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunks(lengths: &[usize]) -> Vec<Range<usize>> {
        let mut end = 0;
        lengths
            .iter()
            .map(|len| {
                end += len;
                end - len..end
            })
            .collect()
    }

    #[test]
    fn chunks_with_a_gap_or_out_of_order_are_refused() {
        assert!(Plan::new(vec![0..4, 5..8], 2, 2).is_err());
        assert!(Plan::new(vec![4..8, 0..4], 2, 2).is_err());
        assert!(Plan::new(vec![0..4, 4..4], 2, 2).is_err());
        assert!(Plan::new(vec![1..4, 4..8], 2, 2).is_err());
        assert!(Plan::new(vec![0..4, 4..8], 2, 2).is_ok());
    }

    #[test]
    fn more_workers_than_lanes_are_refused_with_both_numbers() {
        let error = Plan::new(chunks(&[8]), 2, 3).unwrap_err().to_string();
        assert!(error.contains("3 workers for 2 lanes"), "{error}");
        assert!(Plan::new(chunks(&[8]), 2, 0).is_err());
    }

    #[test]
    fn plans_that_differ_have_different_fingerprints() {
        let plan = |lengths, lanes, workers| Plan::new(chunks(lengths), lanes, workers).unwrap();
        let base = plan(&[4, 4], 4, 2);
        assert_eq!(base.fingerprint(), plan(&[4, 4], 4, 2).fingerprint());
        for other in [
            base.clone().with_shares(&[3]),
            base.clone().with_common([0], 0),
            base.clone().with_common([1], 0),
            base.clone().with_common([1], 1),
            base.clone().with_products(0..1, &[3]),
            base.clone().with_products(1..2, &[3]),
            base.clone().with_shares(&[3]).with_products(0..1, &[3]),
            plan(&[4, 5], 4, 2),
            plan(&[8], 4, 2),
            plan(&[4, 4], 5, 2),
            plan(&[4, 4], 4, 3),
            plan(&[4, 4], 4, 2).on_hosts(&[2]).unwrap(),
        ] {
            assert_ne!(base.fingerprint(), other.fingerprint());
        }
    }

    #[test]
    fn owners_take_turns_from_the_last_chunk_to_the_first() {
        let plan = Plan::new(chunks(&[4, 4, 4, 4, 4]), 2, 2).unwrap();
        let owners: Vec<_> = (0..5).map(|chunk| plan.owner(chunk)).collect();
        assert_eq!(owners, [0, 1, 0, 1, 0]);
    }

    proptest! {
        #[test]
        fn no_rank_owns_more_than_the_mean_and_one_chunk(
            lengths in prop::collection::vec(1usize..100, 1..40), workers in 1usize..9,
        ) {
            let plan = Plan::new(chunks(&lengths), workers, workers).unwrap();
            let mut load = vec![0; workers];
            for chunk in 0..plan.chunks() {
                load[plan.owner(chunk)] += plan.chunk(chunk).len();
            }
            let most = load.iter().max().unwrap();
            prop_assert!(*most <= plan.len() / workers + plan.longest_chunk());
        }

        #[test]
        fn the_partial_sums_of_all_ranks_cover_the_lanes_in_order(
            lanes in 1usize..40, workers in 1usize..40,
        ) {
            prop_assume!(workers <= lanes);
            let plan = Plan::new(chunks(&[1]), lanes, workers).unwrap();
            let partials = plan.partials_for(0);
            let covered: Vec<_> = partials.iter().flat_map(|p| p.lanes.clone()).collect();
            prop_assert_eq!(covered, (0..lanes).collect::<Vec<_>>());
            for partial in partials {
                prop_assert_eq!(&plan.partials_of(partial.rank)[partial.index], &partial.lanes);
            }
        }
    }
}
