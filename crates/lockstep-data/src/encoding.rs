//! The rows of a table as a network takes them: numbers of one scale, categories as one input a value, gaps with a flag.
//!
//! A decoded table holds numbers with gaps and the places of categories. An [`Encoding`] is fitted once to the rows that
//! are trained on, in their order, so that its bits do not depend on who fits it; it is saved with the model, and every
//! row that the model sees afterwards goes through it. The result has three parts: the numbers, brought to mean 0 and
//! deviation 1, where a gap is the mean; an input for each value of each category, which is 1 where a row has that value;
//! and an input for each column that had gaps, which is 1 where a row has one. A value that no training row had is
//! none of the inputs, as a gap is. Of a category that the network learns vectors for, the last inputs have the place of the
//! row's value among those that training rows had, counted from 1; 0 is a gap or a value that they did not have.

use crate::{ColumnKind, Dataset};
use serde::{Deserialize, Serialize};

/// How rows of a table become the input of a network.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Encoding {
    /// The numbers, in the order of the input.
    pub numbers: Vec<ScaledNumber>,
    /// After these, an input for each value of each category.
    pub values: Vec<HotSlot>,
    /// After these, an input for each number of a row that had gaps: which.
    pub gaps: Vec<usize>,
    /// After these, the place of each category that becomes a learned vector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub embedded: Vec<EmbeddedColumn>,
}

/// A number of a row and its scale: `(x - mean) / std`, where `x` is `fill` if it is not there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScaledNumber {
    /// Which number of a row.
    pub column: usize,
    /// What stands for a gap: the mean of the training rows.
    pub fill: f32,
    /// What is subtracted.
    pub mean: f32,
    /// What is divided by.
    pub std: f32,
}

/// A value of a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotSlot {
    /// Which number of a row is the category.
    pub column: usize,
    /// The value's place among all values of the category.
    pub value: u32,
}

/// A category that becomes a learned vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddedColumn {
    /// Which number of a row is the category.
    pub column: usize,
    /// The values that training rows had, in their order.
    pub values: Vec<u32>,
    /// Numbers of a vector.
    pub width: usize,
}

/// The longest vector of a category.
const WIDEST: usize = 50;

impl EmbeddedColumn {
    /// Half as many numbers as values, within reason.
    fn new(column: usize, values: Vec<u32>) -> Self {
        let width = values.len().div_ceil(2).clamp(1, WIDEST);
        Self {
            column,
            values,
            width,
        }
    }

    /// Vectors that there are: one for each value, and one for what is none of them.
    pub fn vectors(&self) -> usize {
        self.values.len() + 1
    }

    /// The place of a row's value, counted from 1; 0 if it has none that is known.
    fn place(&self, row: &[f32]) -> f32 {
        let x = row[self.column];
        let found = self
            .values
            .binary_search_by(|&value| (value as f32).total_cmp(&x));
        found.map_or(0.0, |place| (place + 1) as f32)
    }
}

impl Encoding {
    /// Fits an encoding to the rows `rows` of a table. There is none for what is no table. With `standardise` off, numbers
    /// keep their scale, and plain ones need no encoding. The categories that `embedded` names become learned vectors.
    ///
    /// # Panics
    /// When a row is none of the set.
    pub fn fit(
        set: &Dataset,
        rows: &[u32],
        standardise: bool,
        embedded: &[String],
    ) -> Option<Self> {
        let table = set.table();
        let is_wanted = standardise || !table.is_plain();
        if table.columns.is_empty() || !is_wanted {
            return None;
        }
        let width = set.sample_len();
        let sums = Sums::of(set.floats(), width, rows);
        let mut encoding = Self::default();
        let mut at = 0;
        for column in &table.columns {
            let kind = &column.column.kind;
            let is_embedded = embedded.contains(&column.column.name);
            if let ColumnKind::Category { values } = kind {
                let seen = seen_values(set.floats(), (at, width), rows, values.len());
                match is_embedded {
                    true => encoding.embedded.push(EmbeddedColumn::new(at, seen)),
                    false => {
                        let slots = seen.into_iter();
                        encoding
                            .values
                            .extend(slots.map(|value| HotSlot { column: at, value }));
                    }
                }
            } else {
                let numbers = at..at + kind.width();
                encoding
                    .numbers
                    .extend(numbers.map(|at| sums.scaled(at, standardise)));
            }
            // The parts of a date are there or not together.
            if sums.counts[at] < rows.len() as u64 && !is_embedded {
                encoding.gaps.push(at);
            }
            at += kind.width();
        }
        Some(encoding)
    }

    /// Inputs of the network.
    pub fn width(&self) -> usize {
        self.numbers.len() + self.values.len() + self.gaps.len() + self.embedded.len()
    }

    /// Whether a number has another scale afterwards.
    pub fn changes_scale(&self) -> bool {
        let mut numbers = self.numbers.iter();
        numbers.any(|number| number.mean != 0.0 || number.std != 1.0)
    }

    /// Whether it can be used on rows of so many numbers.
    pub fn fits(&self, width: usize) -> bool {
        let numbers = self.numbers.iter().all(|number| {
            let finite = [number.fill, number.mean, number.std]
                .iter()
                .all(|x| x.is_finite());
            number.column < width && finite && number.std > 0.0
        });
        let values = self.values.iter().all(|slot| slot.column < width);
        let embedded = self.embedded.iter().all(|embedded| {
            let sorted = embedded.values.is_sorted_by(|a, b| a < b);
            // Places are kept as single precision.
            let exact = embedded.values.iter().all(|&value| value < 1 << 24);
            embedded.column < width && sorted && exact && (1..=WIDEST).contains(&embedded.width)
        });
        numbers
            && values
            && embedded
            && self.gaps.iter().all(|&column| column < width)
            && self.width() > 0
    }

    /// Writes the input that a row becomes.
    pub(crate) fn encode(&self, row: &[f32], out: &mut [f32]) {
        let (numbers, rest) = out.split_at_mut(self.numbers.len());
        let (values, rest) = rest.split_at_mut(self.values.len());
        let (gaps, places) = rest.split_at_mut(self.gaps.len());
        for (out, number) in numbers.iter_mut().zip(&self.numbers) {
            let x = row[number.column];
            let x = if x.is_nan() { number.fill } else { x };
            *out = (x - number.mean) / number.std;
        }
        for (out, slot) in values.iter_mut().zip(&self.values) {
            *out = f32::from(u8::from(row[slot.column] == slot.value as f32));
        }
        for (out, &column) in gaps.iter_mut().zip(&self.gaps) {
            *out = f32::from(u8::from(row[column].is_nan()));
        }
        for (out, embedded) in places.iter_mut().zip(&self.embedded) {
            *out = embedded.place(row);
        }
    }
}

/// Mean and deviation of the numbers of some rows, gaps left out.
struct Sums {
    counts: Vec<u64>,
    means: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn of(values: &[f32], width: usize, rows: &[u32]) -> Self {
        let mut sums = Self {
            counts: vec![0; width],
            means: vec![0.0; width],
            squares: vec![0.0; width],
        };
        let rows = || {
            rows.iter()
                .map(|&row| &values[row as usize * width..][..width])
        };
        for row in rows() {
            for (at, &x) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                sums.counts[at] += 1;
                sums.means[at] += f64::from(x);
            }
        }
        for (mean, &count) in sums.means.iter_mut().zip(&sums.counts) {
            *mean /= count.max(1) as f64;
        }
        for row in rows() {
            for (at, &x) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                let apart = f64::from(x) - sums.means[at];
                sums.squares[at] += apart * apart;
            }
        }
        sums
    }

    fn scaled(&self, column: usize, standardise: bool) -> ScaledNumber {
        let fill = self.means[column] as f32;
        let std = (self.squares[column] / self.counts[column].max(1) as f64).sqrt() as f32;
        // What is the same everywhere only loses its mean.
        let std = if std >= f32::MIN_POSITIVE && std.is_finite() {
            std
        } else {
            1.0
        };
        let (mean, std) = if standardise { (fill, std) } else { (0.0, 1.0) };
        ScaledNumber {
            column,
            fill,
            mean,
            std,
        }
    }
}

/// The values of a category that some rows have, in their order.
fn seen_values(
    numbers: &[f32],
    (column, width): (usize, usize),
    rows: &[u32],
    values: usize,
) -> Vec<u32> {
    let mut seen = vec![false; values];
    for &row in rows {
        let place = numbers[row as usize * width + column];
        if let Some(seen) = seen.get_mut(place as usize).filter(|_| !place.is_nan()) {
            *seen = true;
        }
    }
    let seen = (0..).zip(seen).filter(|&(_, seen)| seen);
    seen.map(|(value, _)| value).collect()
}
