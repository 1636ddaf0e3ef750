//! The rows that one rank has.

use crate::ranks::ranges;
use crate::xgboost::RowBlocks;
use lockstep_data::{Dataset, Normaliser, StoredElement, TargetKind};
use std::borrow::Cow;
use std::ops::Range;

/// A rank's part of some rows of a set, with what is to be predicted of each.
#[derive(Debug)]
pub(crate) struct Shard<'a> {
    set: &'a Dataset,
    rows: &'a [u32],
    /// The class of each row, or the number that is to be predicted.
    pub(crate) targets: Vec<f32>,
    /// How much each row counts, if not all count alike.
    pub(crate) weights: Option<Vec<f32>>,
    /// Where each group begins and ends among the rank's rows; none if rows do not belong to groups.
    pub(crate) groups: Vec<Range<usize>>,
    /// Where the rank's rows begin among all.
    pub(crate) first: usize,
    /// Rows of all ranks together.
    pub(crate) all: usize,
}

impl<'a> Shard<'a> {
    /// The part of rank `rank` of `ranks`: as equal as whole rows allow, or whole groups of rows that follow each other.
    pub(crate) fn of(set: &'a Dataset, rows: &'a [u32], rank: usize, ranks: usize) -> Self {
        let mut part = own_part(rows.len(), rank, ranks);
        let group = |row: u32| set.groups().map(|groups| groups[row as usize]);
        for end in [&mut part.start, &mut part.end] {
            let is_within = |at: usize| {
                let around = rows.get(at.wrapping_sub(1)).zip(rows.get(at));
                around.is_some_and(|(&before, &after)| {
                    group(before).is_some() && group(before) == group(after)
                })
            };
            while is_within(*end) {
                *end += 1;
            }
        }
        let own = &rows[part.clone()];
        let own_groups: Vec<u32> = own.iter().filter_map(|&row| group(row)).collect();
        Self {
            set,
            rows: own,
            targets: own.iter().map(|&row| target(set, row)).collect(),
            weights: set.weights().map(|weights| {
                let own = own.iter();
                own.map(|&row| weights[row as usize]).collect()
            }),
            groups: ranges(&own_groups),
            first: part.start,
            all: rows.len(),
        }
    }

    /// The numbers of all its rows.
    pub(crate) fn values(&self) -> Cow<'a, [f32]> {
        values(self.set, self.rows)
    }

    /// The numbers of its rows in blocks of so many.
    pub(crate) fn blocks(&self, rows: usize) -> ShardBlocks<'a> {
        ShardBlocks {
            set: self.set,
            rows: self.rows,
            block_rows: rows,
            at: 0,
            last: &[],
            block: Cow::Borrowed(&[]),
        }
    }
}

/// The rows of a shard in blocks. What was read of a mapped file is given back at once: a table may be larger than memory,
/// and of rows that were binned nothing is looked at again.
#[derive(Debug)]
pub(crate) struct ShardBlocks<'a> {
    set: &'a Dataset,
    rows: &'a [u32],
    block_rows: usize,
    /// How many rows were handed out.
    at: usize,
    /// The last of them, and their numbers.
    last: &'a [u32],
    block: Cow<'a, [f32]>,
}

impl ShardBlocks<'_> {
    /// Gives the memory of the last block back.
    fn release(&mut self) {
        if let (Some(&first), Some(&last)) = (self.last.first(), self.last.last()) {
            // Rows that are in order by their groups lie anywhere, and stay.
            self.set.release(first as usize..last as usize + 1);
        }
        self.last = &[];
    }
}

impl RowBlocks for ShardBlocks<'_> {
    fn restart(&mut self) {
        self.release();
        self.at = 0;
    }

    fn next(&mut self) -> Option<&[f32]> {
        self.release();
        let left = &self.rows[self.at..];
        self.last = &left[..left.len().min(self.block_rows)];
        self.at += self.last.len();
        self.block = values(self.set, self.last);
        Some(&*self.block).filter(|block| !block.is_empty())
    }
}

/// The rows of rank `rank` of `ranks` among so many: as equal parts as whole rows allow.
pub(crate) fn own_part(rows: usize, rank: usize, ranks: usize) -> Range<usize> {
    rows * rank / ranks..rows * (rank + 1) / ranks
}

/// The numbers of some rows of a set.
pub(crate) fn values<'a>(set: &'a Dataset, rows: &[u32]) -> Cow<'a, [f32]> {
    let width = set.sample_len();
    if set.element() == StoredElement::F32 {
        if let Some(range) = in_a_row(rows) {
            return Cow::Borrowed(&set.floats()[range.start * width..range.end * width]);
        }
        let mut values = Vec::with_capacity(rows.len() * width);
        for &row in rows {
            values.extend_from_slice(&set.floats()[row as usize * width..][..width]);
        }
        return Cow::Owned(values);
    }
    let mut values = vec![0.0; rows.len() * width];
    let plain = Normaliser::identity(set.shape()[0]);
    set.gather(rows, &plain, &mut values);
    Cow::Owned(values)
}

/// The range of rows that follow each other without a gap.
fn in_a_row(rows: &[u32]) -> Option<Range<usize>> {
    let (&first, &last) = (rows.first()?, rows.last()?);
    let range = first as usize..last as usize + 1;
    (range.len() == rows.len() && rows.is_sorted()).then_some(range)
}

/// What is to be predicted of a row. It is one number or class: sets with several are refused before.
pub(crate) fn target(set: &Dataset, row: u32) -> f32 {
    match set.target_kind() {
        TargetKind::Classes => set.labels()[row as usize] as f32,
        TargetKind::Numbers | TargetKind::Labels => set.numbers()[row as usize * set.outputs()],
    }
}
