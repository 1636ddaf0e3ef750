//! How ranks complete a version of which each holds some shares.

use super::held::{HeldMemory, HeldVersion, ShareParts};
use crate::collective::CollectiveExt;
use crate::shm::{KeptState, NoteWords, ShareWords};
use crate::{GangError, SharingCollective};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// What a rank has for all others.
#[derive(Default, Serialize, Deserialize)]
struct Offer {
    shares: Vec<OfferedShare>,
    /// Notes, if it has the share of the rank that wrote them.
    notes: Option<[NoteWords; 2]>,
}

/// A share without its numbers.
#[derive(Serialize, Deserialize)]
struct OfferedShare {
    rank: usize,
    words: ShareWords,
    ranges: Vec<Range<usize>>,
    lanes: Vec<(usize, [u64; 3])>,
}

impl Offer {
    /// Numbers of each vector.
    fn numbers(&self) -> usize {
        let ranges = self.shares.iter().flat_map(|share| &share.ranges);
        ranges.map(|range| range.len()).sum()
    }
}

impl HeldMemory {
    /// Completes a version in this process's memory, with what the others hold of it; `holders` are ranks of the present
    /// gang. All ranks call this together, before any of them keeps a step. Of everything else that is held here nothing
    /// counts any more.
    ///
    /// # Errors
    /// When a rank is lost, or does not have what it should. What was held of the version before is still held then.
    pub fn complete(
        &self,
        version: &HeldVersion,
        collective: &mut dyn SharingCollective,
    ) -> Result<(), GangError> {
        let (rank, number) = (collective.rank(), version.number);
        let state = self.open()?;
        state.keep_only(number, version.stamp);
        let held = |old: usize| self.holdings.get(number, old);
        let mine = (0..version.holders.len()).filter(|&old| version.holders[old] == rank);
        let offer = |old: usize| -> Option<OfferedShare> {
            let parts = held(old)?;
            let lanes = parts.lanes.iter();
            Some(OfferedShare {
                rank: old,
                words: state.share_words(number, old),
                ranges: parts.ranges.clone(),
                lanes: lanes
                    .map(|&lane| (lane, state.lane(number, lane)))
                    .collect(),
            })
        };
        let own = Offer {
            shares: mine.filter_map(offer).collect(),
            notes: (version.holders.first() == Some(&rank)).then(|| state.note_words()),
        };
        let all = collective.gather_bytes(&serde_json::to_vec(&own)?)?;
        let all: Result<Vec<Offer>, _> = all
            .iter()
            .map(|text| serde_json::from_slice(text))
            .collect();
        let offers = Offers {
            all: all?,
            rank,
            number,
            state: &state,
        };
        offers.check(version)?;
        for vector in 0..state.shape().vectors {
            offers.exchange_vector(vector, collective)?;
        }
        offers.exchange_notes(collective)?;
        for (from, offer) in offers.all.into_iter().enumerate() {
            for share in offer.shares.into_iter().filter(|_| from != rank) {
                for &(lane, sum) in &share.lanes {
                    state.put_lane(number, lane, sum);
                }
                let parts = ShareParts {
                    ranges: share.ranges,
                    lanes: share.lanes.iter().map(|(lane, _)| *lane).collect(),
                };
                self.holdings.set(number, share.rank, Arc::new(parts));
                state.put_share_words(number, share.rank, share.words);
            }
        }
        Ok(())
    }
}

/// What all ranks have for each other.
struct Offers<'a> {
    all: Vec<Offer>,
    rank: usize,
    number: usize,
    state: &'a KeptState,
}

impl Offers<'_> {
    /// Each rank must have what it was said to hold, and nothing that the state has not.
    fn check(&self, version: &HeldVersion) -> Result<(), GangError> {
        let shape = self.state.shape();
        for (rank, offer) in self.all.iter().enumerate() {
            let is_asked = |share: &OfferedShare| version.holders.get(share.rank) == Some(&rank);
            if !offer.shares.iter().all(is_asked) {
                let what = "it offers a share of the state that others give".to_owned();
                return Err(GangError::Protocol { rank, what });
            }
        }
        for (old, &holder) in version.holders.iter().enumerate() {
            let share = self.all[holder]
                .shares
                .iter()
                .find(|share| share.rank == old);
            let fits = share.is_some_and(|share| {
                let fits =
                    |range: &Range<usize>| range.start <= range.end && range.end <= shape.len;
                share.words.stamp == version.stamp
                    && share.ranges.iter().all(fits)
                    && share.lanes.iter().all(|(lane, _)| *lane < shape.lanes)
            });
            if !fits || (old == 0 && self.all[holder].notes.is_none()) {
                let what = format!("it does not hold the share of the state of rank {old}");
                return Err(GangError::Protocol { rank: holder, what });
            }
        }
        Ok(())
    }

    /// Brings every number of a vector to this rank.
    fn exchange_vector(
        &self,
        vector: usize,
        collective: &mut dyn SharingCollective,
    ) -> Result<(), GangError> {
        let own = &self.all[self.rank];
        let mut numbers: Vec<f32> = Vec::with_capacity(own.numbers());
        for range in own.shares.iter().flat_map(|share| &share.ranges) {
            numbers.extend_from_slice(self.state.part(self.number, vector, range.clone()));
        }
        let all = collective.gather_bytes(bytemuck::cast_slice(&numbers))?;
        for (from, bytes) in all
            .iter()
            .enumerate()
            .filter(|(from, _)| *from != self.rank)
        {
            let numbers = self.numbers(from, bytes, self.all[from].numbers())?;
            let mut rest = &numbers[..];
            for range in self.all[from].shares.iter().flat_map(|share| &share.ranges) {
                let (part, others) = rest.split_at(range.len());
                self.state.put_part(self.number, vector, range.start, part);
                rest = others;
            }
        }
        Ok(())
    }

    /// Brings the notes to this rank, with the vectors that they are about.
    fn exchange_notes(&self, collective: &mut dyn SharingCollective) -> Result<(), GangError> {
        let from = self.all.iter().position(|offer| offer.notes.is_some());
        let notes = from.and_then(|from| Some((from, self.all[from].notes?)));
        let Some((from, notes)) = notes else {
            return Ok(());
        };
        let extras = notes.iter().filter_map(NoteWords::extra);
        let mut extras: Vec<usize> = extras.collect();
        extras.sort_unstable();
        extras.dedup();
        for note in 0..notes.len() {
            let text = match from == self.rank {
                true => self.state.note_text(note),
                false => Vec::new(),
            };
            let all = collective.gather_bytes(&text)?;
            if from != self.rank {
                self.state.put_note_text(note, &all[from]);
            }
        }
        for extra in extras {
            let numbers = match from == self.rank {
                true => self.state.extra_vector(extra),
                false => &[],
            };
            let all = collective.gather_bytes(bytemuck::cast_slice(numbers))?;
            if from != self.rank {
                let numbers = self.numbers(from, &all[from], self.state.shape().len)?;
                self.state.put_extra_vector(extra, &numbers);
            }
        }
        if from != self.rank {
            self.state.put_note_words(notes);
        }
        Ok(())
    }

    /// So many numbers that a rank has sent.
    fn numbers(&self, from: usize, bytes: &[u8], wanted: usize) -> Result<Vec<f32>, GangError> {
        let numbers = bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes);
        match bytes.len() == 4 * wanted {
            true => Ok(numbers.collect()),
            false => Err(GangError::Protocol {
                rank: from,
                what: format!(
                    "it sent {} bytes for {wanted} numbers of the state",
                    bytes.len()
                ),
            }),
        }
    }
}
