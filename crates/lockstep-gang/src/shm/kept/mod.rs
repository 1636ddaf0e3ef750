//! The state of a gang, kept in shared memory that outlives its workers.
//!
//! A worker that is killed leaves its own memory half way through an update. So there are two *versions* of the state
//! beside the one that is worked on, and the ranks write them in turn: each writes its share of the older one, and then
//! *stamps* it. A version counts once all ranks of its generation have stamped it, and until then the other one does.
//!
//! ```text
//! words    header       magic, shape
//!          each version and rank   a stamp: generation and number of the version, its step, the gang's size; two facts
//!          each version and lane   what the lane has summed up in the epoch in progress
//!          each note    a stamp, how long it is, and which extra vector belongs to it
//! floats   each version its vectors
//!          extra        two vectors that notes are about
//!          notes        two texts that one rank writes in turn
//! ```
//!
//! # The protocol
//! 1. A generation begins when no rank of an earlier one works any more. It goes on from one version, and its ranks write
//!    the other one first.
//! 2. To keep a step, each rank [`begin`](KeptWriter::begin)s, which takes back its stamp, writes its share, and
//!    [`complete`](KeptWriter::complete)s. Nobody begins the next step before all have come to a barrier after that.
//!
//! # Why one version is always whole
//! A rank takes back its stamp of version *n-2* when it begins *n*. By then it has passed the barrier of *n-1*, which all
//! ranks came to after they had stamped *n-1*. So when the first number of *n-2* is overwritten, *n-1* is whole, and it
//! stays so until all have stamped *n*. A process may be killed between any two of its instructions: what it wrote before
//! is there for all others, in the order of the fences.
//!
//! *Notes* hold what changes with an epoch alone. One rank writes them, each into the place of the older one, so that the
//! newest is always there, and mostly the one before.

mod parts;
mod places;
mod writer;

pub(crate) use parts::{NoteWords, ShareWords};
pub use places::KeptShape;
pub use writer::{KeptStep, KeptWriter, NoteExtra};

use super::layout::LINE;
use super::region::Region;
use crate::keepers::{HeldShare, newest_held};
use crate::{GangError, Segment};
use places::{LANE_WORDS, Places};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Says that this is a kept state, in this version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"lockkep\x01");

/// What a rank says of a version that it has completed; all zeros if it has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RankStamp {
    /// Generation and number of the version: larger means newer.
    pub stamp: u64,
    /// Steps that were done.
    pub step: u64,
    /// Ranks of the generation.
    pub ranks: u64,
}

/// A version that all ranks have completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptVersion {
    /// Which of the two it is.
    pub number: usize,
    /// Steps that were done.
    pub step: u64,
}

/// What was written of an epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptNote {
    /// The text.
    pub text: Vec<u8>,
    /// Which vector belongs to it, if any does ([`KeptState::extra`]).
    extra: Option<usize>,
}

/// The kept state of a gang, to be read while nobody writes.
#[derive(Debug)]
pub struct KeptState {
    /// Words and versions.
    region: Region,
    /// What is rarely written; none for the coordinator, which only looks which versions are whole.
    rare: Option<Region>,
    places: Places,
}

impl KeptState {
    /// Prepares the part of `segment` that begins at `at`. Only the part that says which versions are whole is mapped.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn create(segment: &Segment, at: usize, shape: KeptShape) -> Result<Self, GangError> {
        let places = Places::of(&shape);
        let region = Region::map(segment, at..at + places.words, places.words)?;
        for (number, word) in shape.numbers().into_iter().enumerate() {
            region.word(8 * (1 + number)).store(word as u64, Relaxed);
        }
        region.word(0).store(MAGIC, Release);
        Ok(Self {
            region,
            rare: None,
            places,
        })
    }

    /// Opens what was prepared at `at` in `segment`.
    ///
    /// # Errors
    /// When nothing was prepared there, or it cannot be mapped.
    pub fn open(segment: &Segment, at: usize) -> Result<Self, GangError> {
        Self::open_by(segment, at, Region::map)
    }

    /// The same where only a part of it will ever be written: nothing else takes memory.
    pub(crate) fn open_sparsely(segment: &Segment, at: usize) -> Result<Self, GangError> {
        Self::open_by(segment, at, Region::map_sparsely)
    }

    fn open_by(
        segment: &Segment,
        at: usize,
        map: fn(&Segment, Range<usize>, usize) -> Result<Region, GangError>,
    ) -> Result<Self, GangError> {
        let missing = || GangError::Mismatch {
            what: "the kept state in shared memory",
            found: "another one".to_owned(),
            expected: "one that was prepared".to_owned(),
        };
        if at + LINE > segment.bytes() {
            return Err(missing());
        }
        let header = Region::map(segment, at..at + LINE, LINE)?;
        if header.word(0).load(Acquire) != MAGIC {
            return Err(missing());
        }
        let number = |number: usize| header.word(8 * (1 + number)).load(Relaxed) as usize;
        let shape = KeptShape {
            vectors: number(0),
            len: number(1),
            lanes: number(2),
            ranks: number(3),
            note: number(4),
            extra: number(5) == 1,
        };
        let places = Places::of(&shape);
        if at + places.end > segment.bytes() {
            return Err(missing());
        }
        let region = map(segment, at..at + places.rare, places.words)?;
        let rare = Region::map_lazily(segment, at + places.rare..at + places.end)?;
        Ok(Self {
            region,
            rare: Some(rare),
            places,
        })
    }

    /// What is kept.
    pub fn shape(&self) -> &KeptShape {
        &self.places.shape
    }

    /// The newest version that is whole.
    pub fn newest(&self) -> Option<KeptVersion> {
        let newest = newest_held(&[&self.shares()])?;
        Some(KeptVersion {
            number: newest.number,
            step: newest.stamp.step,
        })
    }

    /// The shares that are complete.
    pub fn shares(&self) -> Vec<HeldShare> {
        let ranks = self.places.shape.ranks;
        let all = [0, 1].map(|version| (0..ranks).map(move |rank| (version, rank)));
        let share = |(version, rank)| HeldShare {
            version,
            rank,
            stamp: self.stamp(version, rank),
        };
        let shares = all.into_iter().flatten().map(share);
        shares.filter(|share| share.stamp.stamp > 0).collect()
    }

    /// Forgets both versions: what follows begins with something else.
    pub fn clear(&self) {
        for version in [0, 1] {
            for rank in 0..self.places.shape.ranks {
                self.region
                    .word(self.places.rank(version, rank))
                    .store(0, Release);
            }
        }
        for note in [0, 1] {
            self.region.word(self.places.note(note)).store(0, Release);
        }
    }

    fn stamp(&self, version: usize, rank: usize) -> RankStamp {
        let at = self.places.rank(version, rank);
        match self.region.word(at).load(Acquire) {
            0 => RankStamp::default(),
            stamp => RankStamp {
                stamp,
                step: self.region.word(at + 8).load(Relaxed),
                ranks: self.region.word(at + 16).load(Relaxed),
            },
        }
    }

    /// What rank 0 has added to a version that is whole.
    pub fn facts(&self, version: KeptVersion) -> [f64; 2] {
        let at = self.places.rank(version.number, 0) + 24;
        [0, 8].map(|word| f64::from_bits(self.region.word(at + word).load(Relaxed)))
    }

    /// What each lane had summed up in a version that is whole.
    pub fn lanes(&self, version: KeptVersion) -> Vec<[u64; LANE_WORDS]> {
        let lanes = 0..self.places.shape.lanes;
        lanes.map(|lane| self.lane(version.number, lane)).collect()
    }

    /// A vector of a version that is whole.
    pub fn vector(&self, version: KeptVersion, vector: usize) -> Vec<f32> {
        let all = 0..self.places.shape.len;
        self.part(version.number, vector, all).to_vec()
    }

    /// The notes that are whole, the newest first: two at the most.
    pub fn notes(&self) -> Vec<KeptNote> {
        let words = self.note_words();
        let mut notes: Vec<usize> = vec![0, 1];
        notes.retain(|&note| words[note].counts());
        notes.sort_unstable_by_key(|&note| std::cmp::Reverse(words[note]));
        let note = |number: usize| KeptNote {
            text: self.note_text(number),
            extra: words[number].extra(),
        };
        notes.into_iter().map(note).collect()
    }

    /// The vector that belongs to a note.
    pub fn extra(&self, note: &KeptNote) -> Option<Vec<f32>> {
        Some(self.extra_vector(note.extra?).to_vec())
    }
}
