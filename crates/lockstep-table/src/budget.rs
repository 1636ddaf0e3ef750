//! What decoding a file may take.
//!
//! A few hundred bytes can stand for gigabytes: a run of one number a billion times, a dictionary's one long
//! text in every row, a page that unpacks to a thousand times its size. So what a page takes when it is
//! unpacked, and what the rows of a batch take when they are decoded, is measured before either is done, and
//! what is beyond the budget is refused with the place in the file and the key that allows more.

use crate::reader::MOST_ROWS;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

/// What any file may take, however little memory is given: pages of a megabyte are usual.
const LEAST: u64 = 32 << 20;

/// Bytes of a number: as it is decoded with its levels, and as it is handed on.
pub(crate) const NUMBER: u64 = 16;

/// Bytes of a text beside its letters, which are there twice: as they are decoded, and as they are handed on.
pub(crate) const TEXT: u64 = 48;

/// Bytes that the batches of a file have been found to take, and the most that one may.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u64,
    /// Rows of a batch.
    rows: u64,
    /// Rows of the whole file, as its footer says.
    of_file: u64,
    /// Bytes of each batch, as far as its pages were seen. All columns of a file count together.
    batches: Mutex<BTreeMap<u64, u64>>,
    /// What was refused: the decoder, which carries errors on, makes mere words of them.
    refused: OnceLock<TooLarge>,
}

/// More than there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    /// Bytes that it would take, at least.
    pub(crate) bytes: u64,
    /// Bytes that it may take.
    pub(crate) most: u64,
}

/// A column of a row group that would take more than it may.
#[derive(Debug)]
pub(crate) struct TooLarge {
    pub(crate) group: usize,
    pub(crate) column: String,
    pub(crate) excess: Excess,
}

impl Budget {
    /// Half of `memory` for a batch of so many rows, and half for a page, of a file that says to have `of_file` rows.
    pub(crate) fn new(memory: u64, rows: usize, of_file: u64) -> Budget {
        Budget {
            most: (memory / 2).max(LEAST),
            rows: rows.clamp(1, MOST_ROWS) as u64,
            of_file,
            batches: Mutex::default(),
            refused: OnceLock::new(),
        }
    }

    /// The most bytes that a page may have, packed and unpacked.
    pub(crate) fn page(&self) -> u64 {
        self.most
    }

    /// Notes what was refused, if it is the first.
    pub(crate) fn refuse(&self, what: TooLarge) {
        let _ = self.refused.set(what);
    }

    /// What was refused first.
    pub(crate) fn refused(&self) -> Option<&TooLarge> {
        self.refused.get()
    }

    /// A tally of one page, whose rows begin with number `row` of the file.
    pub(crate) fn tally(&self, row: u64) -> PageTally<'_> {
        PageTally {
            budget: self,
            next: row,
            batch: 0,
            bytes: 0,
            excess: None,
        }
    }

    /// Adds to what a batch takes.
    fn add(&self, batch: u64, bytes: u64) -> Result<(), Excess> {
        // Only ever added to: what a panicking thread left is right.
        let mut batches = self
            .batches
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let sum = batches.entry(batch).or_default();
        *sum = sum.saturating_add(bytes);
        match *sum > self.most {
            true => Err(Excess {
                bytes: *sum,
                most: self.most,
            }),
            false => Ok(()),
        }
    }
}

/// Counts what the rows of a page take, batch by batch.
#[derive(Debug)]
pub(crate) struct PageTally<'a> {
    budget: &'a Budget,
    /// The number of the next row.
    next: u64,
    /// The batch that `bytes` are of.
    batch: u64,
    bytes: u64,
    excess: Option<Excess>,
}

impl PageTally<'_> {
    /// So many rows of the file begin, each with so many bytes. Nothing if the file does not have so many: a page that
    /// is damaged may say any number of rows, and to count them would take for ever.
    #[must_use]
    pub(crate) fn rows_of_file(&mut self, count: u64, each: u64) -> Option<()> {
        let end = self.next.checked_add(count)?;
        (end <= self.budget.of_file).then(|| self.rows(count, each))
    }

    /// So many rows begin, each with so many bytes.
    pub(crate) fn rows(&mut self, mut count: u64, each: u64) {
        while count > 0 && self.excess.is_none() {
            let rows = self.budget.rows;
            self.enter(self.next / rows);
            let here = (rows - self.next % rows).min(count);
            self.bytes = self.bytes.saturating_add(here.saturating_mul(each));
            self.next += here;
            count -= here;
        }
    }

    /// The row that began last has so many bytes more.
    pub(crate) fn more(&mut self, bytes: u64) {
        self.enter(self.next.saturating_sub(1) / self.budget.rows);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn enter(&mut self, batch: u64) {
        if batch != self.batch {
            self.settle();
            self.batch = batch;
        }
    }

    fn settle(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if let Err(excess) = self.budget.add(self.batch, bytes) {
            self.excess.get_or_insert(excess);
        }
    }

    /// The number of the row after the last, or what is too much.
    pub(crate) fn finish(mut self) -> Result<u64, Excess> {
        self.settle();
        self.excess.map_or(Ok(self.next), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_in_the_batch_that_they_are_read_in() {
        let budget = Budget::new(0, 100, 120);
        let mut tally = budget.tally(90);
        assert_eq!(tally.rows_of_file(30, 10), Some(()));
        tally.more(5);
        assert_eq!(tally.finish(), Ok(120));
        let batches = budget.batches.lock().unwrap().clone();
        assert_eq!(batches, BTreeMap::from([(0, 100), (1, 205)]));
    }

    #[test]
    fn rows_that_the_file_does_not_have_are_not_counted() {
        let budget = Budget::new(0, 1, 100);
        let mut tally = budget.tally(90);
        for count in [11, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(tally.rows_of_file(count, 0), None);
        }
        assert_eq!(tally.rows_of_file(10, 0), Some(()));
        assert_eq!(tally.finish(), Ok(100));
    }

    #[test]
    fn what_is_beyond_the_budget_is_found_however_it_is_spread() {
        let budget = Budget::new(LEAST * 4, 1000, 1_000_000_000);
        let most = LEAST * 2;
        // A billion small rows stream through, each batch small.
        let mut tally = budget.tally(0);
        tally.rows(1_000_000_000, 16);
        assert_eq!(tally.finish(), Ok(1_000_000_000));
        let mut tally = budget.tally(5);
        tally.rows(1, most / 2);
        assert!(tally.finish().is_ok());
        let mut tally = budget.tally(5);
        tally.more(most / 2);
        let excess = tally.finish().unwrap_err();
        assert_eq!((excess.bytes, excess.most), (most + 16_000, most));
        let mut tally = budget.tally(5000);
        tally.more(u64::MAX);
        tally.more(u64::MAX);
        assert!(tally.finish().is_err());
    }
}
