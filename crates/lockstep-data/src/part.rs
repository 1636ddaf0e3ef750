//! A part of another set, as a set of its own.
//!
//! The whole set is decoded first, and the rows of the part are copied from it into a decoded file of their own. Whoever
//! opens the part need not know that it is one: it has the classes and the columns of the whole.

use crate::builder::{BLOCK, Builder};
use crate::columns::TableSchema;
use crate::dataset::{Dataset, StoredElement};
use crate::decoded::Recipe;
use crate::source::Files;
use crate::split::{SplitBy, SplitKeys, SplitPart, SplitRule};
use crate::stamp::Stamp;
use crate::target::TargetKind;
use crate::{ColumnKind, DataError, Source};
use lockstep_base::fs::CacheDir;
use lockstep_table::InputColumn;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A part of another set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PartSource {
    /// The set that it is a part of.
    pub whole: Box<Source>,
    /// How that is parted.
    pub rule: SplitRule,
    /// Which part it is.
    pub part: SplitPart,
    /// Columns that only part the set: they are not in its parts.
    pub without: Vec<String>,
    /// What the columns must hold, where a model knows them.
    pub expected: Vec<InputColumn>,
}

impl PartSource {
    /// The rows of the whole that it has, in their order.
    pub(crate) fn rows(&self, cache: &CacheDir) -> Result<Vec<u32>, DataError> {
        PartSet::open(self, cache, &mut |_| {})?.rows()
    }
}

/// Rows between two times that memory is given back.
const ROWS_AT_ONCE: usize = 1 << 16;

/// The files of a part, and the whole that it is cut from.
#[derive(Debug)]
pub(crate) struct PartSet {
    of: PartSource,
    recipe: Box<dyn Recipe>,
    whole: Dataset,
}

impl PartSet {
    /// Opens the whole of a part.
    fn open(
        of: &PartSource,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, DataError> {
        let recipe = of.whole.files(cache, progress)?.recipe;
        let whole = Dataset::open_telling(&of.whole, cache, progress)?;
        Ok(PartSet {
            of: of.clone(),
            recipe,
            whole,
        })
    }

    /// Opens the whole of a part, which must have the columns that are expected.
    pub(crate) fn find(
        of: &PartSource,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Files, DataError> {
        let set = Self::open(of, cache, progress)?;
        let inputs = set.schema().inputs();
        if !of.expected.is_empty() && of.expected != inputs {
            return Err(set.unfit("its columns are not those that the model was trained on"));
        }
        Ok(Files {
            name: format!("{} ({})", set.whole.name(), of.part.word()),
            class_names: (!set.whole.class_names().is_empty())
                .then(|| set.whole.class_names().to_vec()),
            recipe: Box::new(set),
        })
    }

    fn unfit(&self, reason: impl Into<String>) -> DataError {
        DataError::Split {
            set: self.whole.name().to_owned(),
            reason: reason.into(),
        }
    }

    /// The columns of the part.
    fn schema(&self) -> TableSchema {
        let mut schema = self.whole.table().clone();
        let is_kept = |name: &String| !self.of.without.contains(name);
        schema.columns.retain(|column| is_kept(&column.column.name));
        schema
    }

    /// For each number of a row of the whole, whether the part has it.
    fn kept(&self) -> Vec<bool> {
        let columns = &self.whole.table().columns;
        let each = columns.iter().flat_map(|column| {
            let is_kept = !self.of.without.contains(&column.column.name);
            std::iter::repeat_n(is_kept, column.column.kind.width())
        });
        each.collect()
    }

    /// The rows of the whole that are in the part.
    fn rows(&self) -> Result<Vec<u32>, DataError> {
        Ok(self.of.rule.part(&self.keys()?).take(self.of.part))
    }

    /// What the rule looks at.
    fn keys(&self) -> Result<SplitKeys<'_>, DataError> {
        let whole = &self.whole;
        Ok(match &self.of.rule.by {
            SplitBy::Classes if !whole.labels().is_empty() => SplitKeys::Classes(whole.labels()),
            SplitBy::Chance | SplitBy::Classes => SplitKeys::Count(whole.len()),
            SplitBy::Order(column) => SplitKeys::Order(self.order(column)?),
            SplitBy::Group(column) => SplitKeys::Groups(whole.groups().ok_or_else(|| {
                self.unfit(format!(
                    "it has no column `{column}` that rows could be grouped by"
                ))
            })?),
        })
    }

    /// What puts the rows in order: a number, or a time in hours.
    fn order(&self, name: &str) -> Result<Vec<f64>, DataError> {
        let mut at = 0;
        let columns = &self.whole.table().columns;
        let column = columns.iter().find(|column| {
            let found = column.column.name == name;
            at += if found { 0 } else { column.column.kind.width() };
            found
        });
        let left_out = self.whole.table().left_out.iter();
        let mut left_out = left_out.filter(|column| column.name == name);
        let Some(column) = column else {
            return Err(match left_out.next() {
                Some(column) => self.unfit(format!(
                    "the column `{name}` cannot put rows in order: {}",
                    column.reason
                )),
                None => self.unfit(format!(
                    "it has no column `{name}` of dates or numbers that could put rows in order"
                )),
            });
        };
        let kind = &column.column.kind;
        if kind.is_category() {
            return Err(self.unfit(format!(
                "the column `{name}` holds names, which have no order; rows are put in order by dates or numbers"
            )));
        }
        let width = self.whole.sample_len();
        let rows = self.whole.floats().chunks_exact(width);
        let keys = rows.enumerate().map(|(row, numbers)| {
            let numbers = &numbers[at..at + kind.width()];
            match numbers.iter().any(|number| number.is_nan()) {
                true => Err(self.unfit(format!(
                    "row {} has nothing in the column `{name}`, which puts rows in order",
                    row + 1
                ))),
                false => Ok(order_key(kind, numbers)),
            }
        });
        keys.collect()
    }
}

/// A cell as one number that grows with it.
fn order_key(kind: &ColumnKind, numbers: &[f32]) -> f64 {
    match (kind, numbers) {
        (ColumnKind::Date { .. }, [year, month, day, _, rest @ ..]) => {
            let days = (f64::from(*year) * 12.0 + f64::from(*month)) * 32.0 + f64::from(*day);
            days * 24.0 + rest.first().map_or(0.0, |hour| f64::from(*hour))
        }
        _ => f64::from(numbers[0]),
    }
}

impl Recipe for PartSet {
    fn reader(&self) -> &'static str {
        "part"
    }

    fn variant(&self) -> String {
        let (rule, part, without) = (&self.of.rule, self.of.part, &self.of.without);
        let (reader, variant) = (self.recipe.reader(), self.recipe.variant());
        format!("{reader} {variant} {rule:?} {part:?} {without:?}")
    }

    fn roots(&self) -> Result<Vec<Vec<u8>>, DataError> {
        self.recipe.roots()
    }

    fn stamp(&self, stamp: &mut Stamp) -> Result<(), DataError> {
        self.recipe.stamp(stamp)
    }

    fn labels_file(&self) -> &Path {
        self.recipe.labels_file()
    }

    fn decode(&self, out: &mut Builder) -> Result<(), DataError> {
        let whole = &self.whole;
        let rows = self.rows()?;
        if rows.is_empty() {
            let part = match self.of.part {
                SplitPart::Train => "train on",
                SplitPart::Val => "validate on",
                SplitPart::Test => "test on",
            };
            let count = whole.len();
            return Err(self.unfit(format!("of its {count} rows none is left to {part}")));
        }
        let [channels, height, width] = whole.shape();
        let kept = self.kept();
        let all = kept.iter().all(|kept| *kept);
        let channels = match all {
            true => channels,
            false => kept.iter().filter(|kept| **kept).count(),
        };
        if channels == 0 {
            return Err(self.unfit("no column is left beside the one that rows are parted by"));
        }
        out.begin(whole.element(), [channels, height, width]);
        match whole.is_labelled() {
            true => out.expect_known(whole.target_kind(), whole.stored_names().to_vec()),
            false => out.expect_nothing(whole.target_kind()),
        }
        let bytes = whole.sample_len() * whole.element().size();
        let mut block = Vec::with_capacity(BLOCK + bytes);
        for (number, &row) in rows.iter().enumerate() {
            let row = row as usize;
            let sample = &whole.bytes()[row * bytes..(row + 1) * bytes];
            match all || whole.element() == StoredElement::U8 {
                true => block.extend_from_slice(sample),
                false => {
                    let numbers = sample.chunks_exact(4).zip(&kept).filter(|(_, kept)| **kept);
                    numbers.for_each(|(number, _)| block.extend_from_slice(number));
                }
            }
            if block.len() >= BLOCK {
                out.samples(&block)?;
                block.clear();
            }
            if number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1 {
                whole.release(0..row);
            }
        }
        out.samples(&block)?;
        whole.release(0..whole.len());
        self.rest(&rows, out)?;
        if !whole.table().columns.is_empty() {
            out.table(&self.schema());
        }
        Ok(())
    }
}

impl PartSet {
    /// Writes all that belongs to the samples of these rows.
    fn rest(&self, rows: &[u32], out: &mut Builder) -> Result<(), DataError> {
        let whole = &self.whole;
        let outputs = whole.output_names().len();
        let groups_kept = match &self.of.rule.by {
            SplitBy::Group(column) => !self.of.without.contains(column),
            _ => true,
        };
        for &row in rows {
            let row = row as usize;
            match whole.target_kind() {
                _ if !whole.is_labelled() => {}
                TargetKind::Classes => out.labels(&whole.labels()[row].to_ne_bytes())?,
                TargetKind::Numbers | TargetKind::Labels => {
                    out.numbers(&whole.numbers()[row * outputs..(row + 1) * outputs])?;
                }
            }
            if let Some(weights) = whole.weights() {
                out.weights(&weights[row..=row])?;
            }
            if let Some(groups) = whole.groups().filter(|_| groups_kept) {
                out.group(&groups[row].to_string())?;
            }
            if let Some(name) = whole.sample_name(row) {
                out.name(name)?;
            }
        }
        if self.of.part == SplitPart::Train {
            for skipped in whole.skipped() {
                out.skip(&skipped.path, &skipped.reason)?;
            }
        }
        Ok(())
    }
}
