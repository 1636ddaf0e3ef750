//! How a rank writes its share of the kept state.

use super::places::LANE_WORDS;
use super::{KeptNote, KeptShape, KeptState, KeptVersion};
use crate::shm::layout::stamp;
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
}

impl KeptWriter {
    /// What is kept.
    pub fn shape(&self) -> &KeptShape {
        self.state.shape()
    }

    /// Takes back this rank's stamp of the older version, which is about to be written.
    pub fn begin(&mut self) {
        let at = self.state.places.rank(self.next, self.rank);
        self.state.region.word(at).store(0, Relaxed);
        // What is written from here on must not be seen before.
        fence(Release);
    }

    /// Writes some numbers of a vector.
    ///
    /// # Panics
    /// If the vector does not have them.
    pub fn write(&mut self, vector: usize, at: usize, numbers: &[f32]) {
        let places = &self.state.places;
        assert!(
            at + numbers.len() <= places.shape.len,
            "no {} numbers at {at}",
            numbers.len()
        );
        let to = places.vector(self.next, vector) + 4 * at;
        // SAFETY: of a version each rank writes its own share, between `begin` and `complete`, when nobody reads it.
        let to = unsafe { self.state.region.floats_mut(to, numbers.len()) };
        to.copy_from_slice(numbers);
    }

    /// Writes what one of this rank's lanes has summed up.
    pub fn write_lane(&mut self, lane: usize, sum: [u64; LANE_WORDS]) {
        let at = self.state.places.lane(self.next, lane);
        for (number, word) in sum.into_iter().enumerate() {
            self.state.region.word(at + 8 * number).store(word, Relaxed);
        }
    }

    /// Stamps what was written. It counts once all ranks have.
    pub fn complete(&mut self, of: KeptStep) {
        self.kept += 1;
        let at = self.state.places.rank(self.next, self.rank);
        let region = &self.state.region;
        let words = [
            of.step,
            self.ranks as u64,
            of.facts[0].to_bits(),
            of.facts[1].to_bits(),
        ];
        for (number, word) in words.into_iter().enumerate() {
            region.word(at + 8 * (1 + number)).store(word, Relaxed);
        }
        region
            .word(at)
            .store(stamp(self.generation, self.kept), Release);
        self.next = 1 - self.next;
    }

    /// The notes that are whole, the newest first.
    pub fn notes(&self) -> Vec<KeptNote> {
        self.state.notes()
    }

    /// Forgets the newest note: the one before is the newest then. The rank that writes them does this.
    pub fn forget_newest_note(&mut self) {
        let (places, _, newest) = self.note_places();
        self.state.region.word(places[newest]).store(0, Release);
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
        let (region, places) = (&self.state.region, &self.state.places);
        let Some(rare) = self
            .state
            .rare
            .as_ref()
            .filter(|_| text.len() <= places.shape.note)
        else {
            return false;
        };
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
                assert!(
                    places.shape.extra && numbers.len() == places.shape.len,
                    "no such vector"
                );
                let into = if before == 1 { 1 } else { 0 };
                // SAFETY: the newest note is about the other vector, and one rank alone writes notes.
                let to = unsafe { rare.floats_mut(places.extra(into), numbers.len()) };
                to.copy_from_slice(numbers);
                into as u64 + 1
            }
        };
        let words = text.len().div_ceil(4);
        // SAFETY: one rank alone writes notes, and this one does not count.
        let to = unsafe { rare.floats_mut(places.text(number), words) };
        for (to, from) in to.iter_mut().zip(text.chunks(4)) {
            let mut bytes = [0; 4];
            bytes[..from.len()].copy_from_slice(from);
            *to = f32::from_bits(u32::from_le_bytes(bytes));
        }
        region.word(at + 8).store(text.len() as u64, Relaxed);
        region.word(at + 16).store(belongs, Relaxed);
        region.word(at).store(stamps[newest] + 1, Release);
        true
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
