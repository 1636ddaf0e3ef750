//! How a rank writes its share of the kept state.

use super::parts::ShareWords;
use super::places::LANE_WORDS;
use super::{KeptNote, KeptShape, KeptState, KeptVersion, RankStamp};
use crate::keepers::{Holdings, KeepJob, Keeping, KeptExtra, ShareParts};
use crate::shm::layout::{stamp, unstamp};
use crate::{CollectiveExt, GangError, SharingCollective};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::fence;

/// What a rank says of a step beside its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptStep {
    /// Steps that were done.
    pub step: u64,
    /// Two numbers that rank 0 adds.
    pub facts: [f64; 2],
}

impl KeptState {
    /// A rank's hand to write, in a generation of so many that goes on from `from`, if from any of the two.
    ///
    /// # Panics
    /// If only the coordinator's part is mapped, or there is no room for so many ranks.
    pub fn writer(
        self,
        rank: usize,
        ranks: usize,
        generation: u16,
        from: Option<KeptVersion>,
    ) -> KeptWriter {
        assert!(
            rank < ranks && ranks <= self.places.shape.ranks,
            "no room for {ranks} ranks"
        );
        KeptWriter {
            state: self,
            rank,
            ranks,
            generation,
            kept: 0,
            next: from.map_or(0, |from| 1 - from.number),
            track: None,
            keeping: None,
        }
    }
}

/// One rank's hand to write the kept state of its gang.
#[derive(Debug)]
pub struct KeptWriter {
    state: KeptState,
    rank: usize,
    ranks: usize,
    generation: u16,
    /// Versions that this rank has completed in this generation.
    kept: u64,
    /// The version that is written next.
    next: usize,
    /// Which parts were written, where that must be known.
    track: Option<Track>,
    /// The exchange with this rank's keeper and wards, if it has any.
    keeping: Option<Keeping>,
}

/// Which parts a rank has written.
#[derive(Debug)]
struct Track {
    /// Of each version in this generation: what does not change is not written again.
    parts: [Arc<ShareParts>; 2],
    /// Since the version in progress was begun.
    written: ShareParts,
    holdings: Holdings,
}

impl KeptWriter {
    /// The same, which tells `holdings` what it has completed.
    pub(crate) fn tracked(self, holdings: Holdings) -> Self {
        let track = Track {
            parts: Default::default(),
            written: ShareParts::default(),
            holdings,
        };
        Self {
            track: Some(track),
            ..self
        }
    }

    /// The same, which has all done at this rank's keeper too that it does.
    pub(crate) fn kept_by(self, keeping: Option<Keeping>) -> Self {
        Self { keeping, ..self }
    }

    /// What is kept.
    pub fn shape(&self) -> &KeptShape {
        self.state.shape()
    }

    /// Takes back this rank's stamp of the older version, which is about to be written, and those of earlier generations,
    /// whose ranks may have had other shares.
    pub fn begin(&mut self) {
        for share in self.state.shares() {
            let is_earlier = unstamp(share.stamp.stamp).0 != self.generation;
            if share.version == self.next && (is_earlier || share.rank == self.rank) {
                self.state.take_back(self.next, share.rank);
            }
        }
        if let Some(track) = &mut self.track {
            track.written.ranges.clear();
            track.written.lanes.clear();
        }
        // What is written from here on must not be seen before.
        fence(Release);
    }

    /// Writes some numbers of a vector.
    ///
    /// # Panics
    /// If the vector does not have them.
    pub fn write(&mut self, vector: usize, at: usize, numbers: &[f32]) {
        self.state.put_part(self.next, vector, at, numbers);
        // The parts of each vector are the same.
        if let Some(track) = self.track.as_mut().filter(|_| vector == 0) {
            track.add_range(self.next, at..at + numbers.len());
        }
    }

    /// Writes what one of this rank's lanes has summed up.
    pub fn write_lane(&mut self, lane: usize, sum: [u64; LANE_WORDS]) {
        self.state.put_lane(self.next, lane, sum);
        if let Some(track) = &mut self.track {
            track.add_lane(self.next, lane);
        }
    }

    /// Stamps what was written. It counts once all ranks have.
    pub fn complete(&mut self, of: KeptStep) {
        self.kept += 1;
        let stamp = RankStamp {
            stamp: stamp(self.generation, self.kept),
            step: of.step,
            ranks: self.ranks as u64,
        };
        if let Some(track) = &self.track {
            let parts = track.parts[self.next].clone();
            track.holdings.set(self.next, self.rank, parts);
        }
        let words = ShareWords::new(stamp, of.facts);
        self.state.put_share_words(self.next, self.rank, words);
        if let Some(track) = &self.track {
            self.keep(|| KeepJob::Version {
                number: self.next,
                of,
                written: track.written.clone(),
            });
        }
        self.next = 1 - self.next;
    }

    /// Waits until all shares of the version that was just completed lie where they are kept. All ranks call this together,
    /// and only then the version counts.
    ///
    /// # Errors
    /// When a rank is lost, or does not come.
    pub fn settle(&self, collective: &mut dyn SharingCollective) -> Result<(), GangError> {
        if let Some(keeping) = &self.keeping {
            keeping.wait(self.kept)?;
        }
        collective.barrier()
    }

    /// The notes that are whole, the newest first.
    pub fn notes(&self) -> Vec<KeptNote> {
        self.state.notes()
    }

    /// Forgets the newest note: the one before is the newest then. The rank that writes them does this.
    pub fn forget_newest_note(&mut self) {
        let (places, _, newest) = self.note_places();
        self.state.region.word(places[newest]).store(0, Release);
        self.keep(|| KeepJob::Forget);
    }

    /// Has something done at this rank's keeper too.
    fn keep(&self, job: impl FnOnce() -> KeepJob) {
        if let Some(keeping) = &self.keeping {
            keeping.send(job());
        }
    }

    /// Where the two notes lie, their stamps, and which is the newest.
    fn note_places(&self) -> ([usize; 2], [u64; 2], usize) {
        let places = [0, 1].map(|note| self.state.places.note(note));
        let stamps = places.map(|at| self.state.region.word(at).load(Relaxed));
        (places, stamps, usize::from(stamps[1] > stamps[0]))
    }

    /// Writes a note in place of the older one, about `extra`; without, about the vector of the note before. Returns
    /// whether there was room for it. One rank alone does this.
    ///
    /// # Panics
    /// If the vector has another length, or there is no room for any.
    pub fn note(&mut self, text: &[u8], extra: NoteExtra<'_>) -> bool {
        let (region, shape) = (&self.state.region, self.state.shape());
        if text.len() > shape.note || self.state.rare.is_none() {
            return false;
        }
        let (notes, stamps, newest) = self.note_places();
        let (number, at) = (1 - newest, notes[1 - newest]);
        let before = match stamps[newest] {
            0 => 0,
            _ => region.word(notes[newest] + 16).load(Relaxed),
        };
        region.word(at).store(0, Relaxed);
        fence(Release);
        let belongs = match extra {
            NoteExtra::None => 0,
            NoteExtra::Same => before,
            NoteExtra::New(numbers) => {
                let into = if before == 1 { 1 } else { 0 };
                self.state.put_extra_vector(into, numbers);
                into as u64 + 1
            }
        };
        self.state.put_note_text(number, text);
        region.word(at + 8).store(text.len() as u64, Relaxed);
        region.word(at + 16).store(belongs, Relaxed);
        region.word(at).store(stamps[newest] + 1, Release);
        self.keep(|| KeepJob::Note {
            text: text.to_vec(),
            extra: match extra {
                NoteExtra::None => KeptExtra::None,
                NoteExtra::Same => KeptExtra::Same,
                NoteExtra::New(numbers) => KeptExtra::New(numbers.to_vec()),
            },
        });
        true
    }
}

impl Track {
    fn add_range(&mut self, version: usize, range: Range<usize>) {
        if !self.parts[version].has_range(&range) {
            Arc::make_mut(&mut self.parts[version]).add_range(range.clone());
        }
        self.written.add_range(range);
    }

    fn add_lane(&mut self, version: usize, lane: usize) {
        if !self.parts[version].lanes.contains(&lane) {
            Arc::make_mut(&mut self.parts[version]).lanes.push(lane);
        }
        self.written.lanes.push(lane);
    }
}

/// Which vector a note is about.
#[derive(Debug, Clone, Copy)]
pub enum NoteExtra<'a> {
    /// None.
    None,
    /// That of the note before.
    Same,
    /// This one.
    New(&'a [f32]),
}
