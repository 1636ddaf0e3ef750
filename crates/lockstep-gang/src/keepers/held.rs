//! What a process holds of the state of its gang, from one generation to the next.

use super::links::KeeperLinks;
use super::sender::Keeping;
use crate::shm::{KeptShape, KeptState, KeptVersion, KeptWriter, RankStamp};
use crate::{GangError, Segment};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a rank's share is made of: parts of each vector, and lanes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShareParts {
    /// In ascending order.
    pub(crate) ranges: Vec<Range<usize>>,
    pub(crate) lanes: Vec<usize>,
}

impl ShareParts {
    /// Whether these numbers are among them.
    pub(crate) fn has_range(&self, range: &Range<usize>) -> bool {
        let place = self.ranges.partition_point(|part| part.start < range.start);
        self.ranges.get(place) == Some(range)
    }

    pub(crate) fn add_range(&mut self, range: Range<usize>) {
        let place = self.ranges.partition_point(|part| part.start < range.start);
        self.ranges.insert(place, range);
    }
}

/// Parts by version and rank.
type PartsOf = BTreeMap<(usize, usize), Arc<ShareParts>>;

/// The parts of each share that a process holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holdings(Arc<Mutex<PartsOf>>);

impl Holdings {
    fn lock(&self) -> MutexGuard<'_, PartsOf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, version: usize, rank: usize, parts: Arc<ShareParts>) {
        self.lock().insert((version, rank), parts);
    }

    pub(crate) fn get(&self, version: usize, rank: usize) -> Option<Arc<ShareParts>> {
        self.lock().get(&(version, rank)).cloned()
    }
}

/// A share that a process holds, complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldShare {
    /// Which of the two versions it belongs to.
    pub version: usize,
    /// Whose it was when it was written.
    pub rank: usize,
    /// What that rank said of it.
    #[serde(flatten)]
    pub stamp: RankStamp,
}

/// A version of which each share is held by some process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeldVersion {
    /// Which of the two it is.
    pub number: usize,
    /// What all ranks said of it.
    pub stamp: RankStamp,
    /// By the rank that wrote a share, the number of a process that holds it.
    pub holders: Vec<usize>,
}

/// The newest version of which these processes hold all shares, whoever holds which.
pub fn newest_held(processes: &[&[HeldShare]]) -> Option<HeldVersion> {
    let mut newest: Option<HeldVersion> = None;
    for share in processes.iter().copied().flatten() {
        let HeldShare { version, stamp, .. } = *share;
        let known = newest.as_ref().map_or(0, |newest| newest.stamp.stamp);
        // There are two versions, whatever a process says.
        if stamp.stamp <= known || version > 1 {
            continue;
        }
        let holder = |rank| {
            let wanted = HeldShare {
                version,
                rank,
                stamp,
            };
            processes.iter().position(|held| held.contains(&wanted))
        };
        let holders: Option<Vec<usize>> = (0..stamp.ranks as usize).map(holder).collect();
        newest = match holders {
            Some(holders) if !holders.is_empty() => Some(HeldVersion {
                number: version,
                stamp,
                holders,
            }),
            _ => newest,
        };
    }
    newest
}

/// A process's memory for its own share of the state and those of its wards, and later for all of it.
///
/// It takes memory only for what is written. It is the process's own, and gone with it.
#[derive(Debug)]
pub struct HeldMemory {
    segment: Segment,
    /// What says which shares are complete.
    control: KeptState,
    pub(super) holdings: Holdings,
}

impl HeldMemory {
    /// Room for what is kept in this shape.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn create(shape: KeptShape) -> Result<Self, GangError> {
        let segment = Segment::create(shape.bytes())?;
        let control = KeptState::create(&segment, 0, shape)?;
        Ok(Self {
            segment,
            control,
            holdings: Holdings::default(),
        })
    }

    /// What is kept.
    pub fn shape(&self) -> &KeptShape {
        self.control.shape()
    }

    /// Opens what is held, to be read while nobody writes.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn open(&self) -> Result<KeptState, GangError> {
        KeptState::open_sparsely(&self.segment, 0)
    }

    /// The shares that are held, complete.
    pub fn shares(&self) -> Vec<HeldShare> {
        let mut shares = self.control.shares();
        shares.retain(|share| self.holdings.get(share.version, share.rank).is_some());
        shares
    }

    /// Forgets all of them: what follows begins with something else.
    pub fn clear(&self) {
        self.control.clear();
    }

    /// A rank's hand to write its share, in a generation of so many that goes on from `from`, if from any. What it writes
    /// goes to its keeper too, and what its wards write comes here, if there are `links`.
    ///
    /// # Errors
    /// When memory cannot be mapped, or a thread cannot be started.
    pub fn writer(
        &self,
        (rank, ranks, generation): (usize, usize, u16),
        from: Option<KeptVersion>,
        links: Option<KeeperLinks>,
    ) -> Result<KeptWriter, GangError> {
        let writer = |rank| -> Result<KeptWriter, GangError> {
            let writer = self.open()?.writer(rank, ranks, generation, from);
            Ok(writer.tracked(self.holdings.clone()))
        };
        let keeping = links.map(|links| Keeping::begin(links, self.open()?, &writer));
        Ok(writer(rank)?.kept_by(keeping.transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(version: usize, rank: usize, (stamp, step, ranks): (u64, u64, u64)) -> HeldShare {
        HeldShare {
            version,
            rank,
            stamp: RankStamp { stamp, step, ranks },
        }
    }

    #[test]
    fn the_newest_version_counts_of_which_every_share_is_held_by_somebody() {
        let (old, new) = ((5, 10, 3), (6, 11, 3));
        let first = [
            share(0, 0, old),
            share(0, 2, old),
            share(1, 0, new),
            share(1, 2, new),
        ];
        let second = [share(0, 1, old), share(0, 0, old), share(1, 1, new)];
        let newest = newest_held(&[&first, &second]).unwrap();
        assert_eq!((newest.number, newest.stamp.step), (1, 11));
        assert_eq!(newest.holders, [0, 1, 0]);
        // The share of rank 1 was not complete.
        let newest = newest_held(&[&first, &second[..2]]).unwrap();
        assert_eq!((newest.number, newest.stamp.step), (0, 10));
        assert_eq!(newest.holders, [0, 1, 0]);
        assert_eq!(newest_held(&[&first]), None);
        assert_eq!(newest_held(&[]), None);
    }

    #[test]
    fn shares_of_different_generations_are_never_taken_together() {
        let before = (1 << 48 | 4, 20, 2);
        let after = (2 << 48 | 1, 20, 2);
        let held = [share(0, 0, before), share(0, 1, after)];
        assert_eq!(newest_held(&[&held]), None);
    }
}
