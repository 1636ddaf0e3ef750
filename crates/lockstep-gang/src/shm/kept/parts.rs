//! Single parts of a kept state, as they are sent from one process to another.

use super::places::LANE_WORDS;
use super::{KeptState, RankStamp};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// What is kept of a share beside its numbers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ShareWords {
    pub(crate) stamp: RankStamp,
    /// The bits of two numbers that rank 0 adds.
    facts: [u64; 2],
}

impl ShareWords {
    pub(super) fn new(stamp: RankStamp, facts: [f64; 2]) -> Self {
        Self {
            stamp,
            facts: facts.map(f64::to_bits),
        }
    }
}

/// What is kept of a note beside its text. Newer ones are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct NoteWords {
    stamp: u64,
    length: u64,
    extra: u64,
}

impl NoteWords {
    pub(super) fn counts(&self) -> bool {
        self.stamp > 0
    }

    /// Which vector it is about, if it counts and is about any.
    pub(crate) fn extra(&self) -> Option<usize> {
        let extra = self.extra.checked_sub(1).filter(|_| self.counts())?;
        Some(extra as usize)
    }
}

impl KeptState {
    /// Takes back all stamps of both versions but this one.
    pub(crate) fn keep_only(&self, version: usize, stamp: RankStamp) {
        for share in self.shares() {
            if (share.version, share.stamp) != (version, stamp) {
                self.take_back(share.version, share.rank);
            }
        }
    }

    pub(super) fn take_back(&self, version: usize, rank: usize) {
        let at = self.places.rank(version, rank);
        self.region.word(at).store(0, Release);
    }

    pub(crate) fn share_words(&self, version: usize, rank: usize) -> ShareWords {
        let at = self.places.rank(version, rank) + 24;
        ShareWords {
            stamp: self.stamp(version, rank),
            facts: [0, 8].map(|word| self.region.word(at + word).load(Relaxed)),
        }
    }

    /// Stamps a share whose numbers lie here by now.
    pub(crate) fn put_share_words(&self, version: usize, rank: usize, words: ShareWords) {
        let at = self.places.rank(version, rank);
        let RankStamp { stamp, step, ranks } = words.stamp;
        let [first, second] = words.facts;
        for (number, word) in [step, ranks, first, second].into_iter().enumerate() {
            self.region.word(at + 8 * (1 + number)).store(word, Relaxed);
        }
        self.region.word(at).store(stamp, Release);
    }

    pub(crate) fn lane(&self, version: usize, lane: usize) -> [u64; LANE_WORDS] {
        let at = self.places.lane(version, lane);
        [0, 8, 16].map(|word| self.region.word(at + word).load(Relaxed))
    }

    pub(crate) fn put_lane(&self, version: usize, lane: usize, sum: [u64; LANE_WORDS]) {
        let at = self.places.lane(version, lane);
        for (number, word) in sum.into_iter().enumerate() {
            self.region.word(at + 8 * number).store(word, Relaxed);
        }
    }

    /// Numbers of a vector.
    ///
    /// # Panics
    /// If the vector does not have them.
    pub(crate) fn part(&self, version: usize, vector: usize, range: Range<usize>) -> &[f32] {
        assert!(range.end <= self.places.shape.len, "no numbers {range:?}");
        let at = self.places.vector(version, vector) + 4 * range.start;
        // SAFETY: this is read of a version that was completed, before its rank writes it again: that happens only after all
        // ranks have passed the barrier of the next version, and so after the keeper has got this one.
        unsafe { self.region.floats(at, range.len()) }
    }

    /// Puts numbers to a vector.
    ///
    /// # Panics
    /// If the vector does not have them.
    pub(crate) fn put_part(&self, version: usize, vector: usize, at: usize, numbers: &[f32]) {
        assert!(
            at + numbers.len() <= self.places.shape.len,
            "no {} numbers at {at}",
            numbers.len()
        );
        let to = self.places.vector(version, vector) + 4 * at;
        // SAFETY: of a version each rank's share is written by one thread alone: by the rank, between `begin` and
        // `complete`; by the thread that hears a ward; or before a generation's first copy, when nobody else is at work.
        let to = unsafe { self.region.floats_mut(to, numbers.len()) };
        to.copy_from_slice(numbers);
    }

    pub(crate) fn note_words(&self) -> [NoteWords; 2] {
        let word = |at: usize| self.region.word(at).load(Relaxed);
        [0, 1].map(|note| {
            let at = self.places.note(note);
            NoteWords {
                stamp: word(at),
                length: word(at + 8),
                extra: word(at + 16),
            }
        })
    }

    /// Stamps notes whose texts and vectors lie here by now.
    pub(crate) fn put_note_words(&self, notes: [NoteWords; 2]) {
        for (note, words) in notes.into_iter().enumerate() {
            let at = self.places.note(note);
            self.region.word(at + 8).store(words.length, Relaxed);
            self.region.word(at + 16).store(words.extra, Relaxed);
            self.region.word(at).store(words.stamp, Release);
        }
    }

    /// The text of a note, empty if it does not count.
    pub(crate) fn note_text(&self, note: usize) -> Vec<u8> {
        let NoteWords { stamp, length, .. } = self.note_words()[note];
        let length = if stamp == 0 { 0 } else { length as usize };
        let Some(rare) = &self.rare else {
            return Vec::new();
        };
        // SAFETY: notes are written by one process, and read by it, or by others before it writes the first.
        let text = unsafe { rare.floats(self.places.text(note), length.div_ceil(4)) };
        let bytes = text.iter().flat_map(|word| word.to_bits().to_le_bytes());
        bytes.take(length).collect()
    }

    /// Puts down the text of a note, which must not count.
    ///
    /// # Panics
    /// If it is too long, or only the coordinator's part is mapped.
    pub(crate) fn put_note_text(&self, note: usize, text: &[u8]) {
        assert!(
            text.len() <= self.places.shape.note,
            "a note that is too long"
        );
        let rare = self.rare.as_ref().expect("all of it is mapped");
        // SAFETY: one thread alone writes notes, and this one does not count.
        let to = unsafe { rare.floats_mut(self.places.text(note), text.len().div_ceil(4)) };
        for (to, from) in to.iter_mut().zip(text.chunks(4)) {
            let mut bytes = [0; 4];
            bytes[..from.len()].copy_from_slice(from);
            *to = f32::from_bits(u32::from_le_bytes(bytes));
        }
    }

    /// A vector that a note is about.
    ///
    /// # Panics
    /// If only the coordinator's part is mapped.
    pub(crate) fn extra_vector(&self, extra: usize) -> &[f32] {
        let rare = self.rare.as_ref().expect("all of it is mapped");
        // SAFETY: a vector of a note that counts is not the one that is written next.
        unsafe { rare.floats(self.places.extra(extra), self.places.shape.len) }
    }

    /// Puts down a vector that the next note is about.
    ///
    /// # Panics
    /// If there is no room for it, or it has another length.
    pub(crate) fn put_extra_vector(&self, extra: usize, numbers: &[f32]) {
        let shape = &self.places.shape;
        assert!(shape.extra && numbers.len() == shape.len, "no such vector");
        let rare = self.rare.as_ref().expect("all of it is mapped");
        // SAFETY: one thread alone writes notes, and the newest that counts is about the other vector.
        let to = unsafe { rare.floats_mut(self.places.extra(extra), numbers.len()) };
        to.copy_from_slice(numbers);
    }
}
