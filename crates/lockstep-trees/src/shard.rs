//! The rows that one rank has.

use crate::ranks::ranges;
use lockstep_data::{Dataset, Normaliser, StoredElement, TargetKind, TargetScale};
use lockstep_xgboost::{RowBlocks, Rows};
use std::borrow::Cow;
use std::error::Error;
use std::ops::Range;

/// A rank's part of some rows of a set: numbers and targets, row after row.
#[derive(Debug)]
pub(crate) struct Shard<'a> {
    set: &'a Dataset,
    /// Where its rows begin in the set, if they stay where they are mapped.
    mapped_from: Option<usize>,
    /// The numbers. Those of a whole set stay where they are mapped.
    pub(crate) values: Cow<'a, [f32]>,
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
    pub(crate) fn of(set: &'a Dataset, rows: &[u32], rank: usize, ranks: usize) -> Self {
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
        let values = values(set, own);
        let is_mapped = matches!(values, Cow::Borrowed(_));
        Self {
            set,
            mapped_from: own.first().filter(|_| is_mapped).map(|&row| row as usize),
            values,
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

    /// Gives the memory of some of its rows back to the system, if they are mapped. They come back when they are looked at.
    pub(crate) fn release(&self, rows: Range<usize>) {
        if let Some(from) = self.mapped_from {
            self.set.release(from + rows.start..from + rows.end);
        }
    }

    /// Lets go of the numbers, once XGBoost has what it needs of them.
    pub(crate) fn drop_values(&mut self) {
        self.release(0..self.values.len() / self.set.sample_len());
        self.values = Cow::Borrowed(&[]);
        self.mapped_from = None;
    }

    /// Its rows in blocks; each is given back once it was read.
    pub(crate) fn blocks(&self) -> ShardBlocks<'_> {
        let columns = self.set.sample_len();
        ShardBlocks {
            shard: self,
            columns,
            rows: Rows::new(&self.values, columns),
            read: 0..0,
        }
    }
}

/// The rows of a shard in blocks. What was read of a mapped file is given back at once: the bins that are made of the rows
/// take a quarter of their memory, and the rows are not looked at again.
#[derive(Debug)]
pub(crate) struct ShardBlocks<'a> {
    shard: &'a Shard<'a>,
    columns: usize,
    rows: Rows<'a>,
    /// The rows that were handed out last.
    read: Range<usize>,
}

impl RowBlocks for ShardBlocks<'_> {
    fn restart(&mut self) {
        self.shard
            .release(0..self.shard.values.len() / self.columns);
        self.rows.restart();
        self.read = 0..0;
    }

    fn next(&mut self) -> Result<Option<&[f32]>, Box<dyn Error + Send + Sync>> {
        self.shard.release(self.read.clone());
        let block = self.rows.next()?;
        let rows = block.map_or(0, |block| block.len() / self.columns);
        self.read = self.read.end..self.read.end + rows;
        Ok(block)
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

/// What is to be predicted of a row.
pub(crate) fn target(set: &Dataset, row: u32) -> f32 {
    match set.target_kind() {
        TargetKind::Classes => set.labels()[row as usize] as f32,
        TargetKind::Numbers | TargetKind::Labels => set.numbers()[row as usize * set.outputs()],
    }
}

/// How the numbers that are predicted become those of a set: they are those.
pub(crate) fn plain_scale(outputs: usize) -> TargetScale {
    TargetScale::identity(outputs)
}
