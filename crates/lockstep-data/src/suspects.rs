//! Columns of a table that a person should look at before a model learns from them: those that number the rows, those
//! that say nothing, and those that tell the label by themselves.

use crate::dataset::Dataset;
use crate::source::TableSource;
use crate::target::TargetKind;
use crate::{ColumnKind, DataError};
use lockstep_table::{WholeNumbers, find_files, whole_numbers};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Fewer rows say nothing.
const LEAST_ROWS: usize = 20;
/// Numbers that follow the label so closely are made of it.
const SAME: f64 = 0.9999;
/// The largest whole number up to which single precision has all.
const EXACT: f32 = 16_777_216.0;

/// Why a column is suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspicion {
    /// Every row has another whole number: it looks like an id.
    Id,
    /// All rows say the same.
    Constant,
    /// It tells the label by itself.
    Leak,
}

/// A column that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suspect {
    /// Its name.
    pub column: String,
    /// Why.
    pub suspicion: Suspicion,
}

/// The columns of a table that a person should look at, in their order.
pub fn suspects(set: &Dataset) -> Vec<Suspect> {
    let table = set.table();
    let mut found = Vec::new();
    let mut at = 0;
    for column in &table.columns {
        let input = &column.column;
        let numbers = Numbers { set, at };
        let suspicion = match () {
            () if column.is_constant() => Some(Suspicion::Constant),
            () if set.len() < LEAST_ROWS => None,
            () if column.gaps == 0
                && input.kind == ColumnKind::Number
                && numbers.are_ids(&input.name) =>
            {
                Some(Suspicion::Id)
            }
            () if input.kind.width() == 1 && numbers.tell_the_label() => Some(Suspicion::Leak),
            () => None,
        };
        found.extend(suspicion.map(|suspicion| Suspect {
            column: input.name.clone(),
            suspicion,
        }));
        at += input.kind.width();
    }
    found
}

/// The numbers of a column.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    set: &'a Dataset,
    at: usize,
}

impl<'a> Numbers<'a> {
    fn each(self) -> impl Iterator<Item = f32> + 'a {
        let width = self.set.sample_len();
        self.set
            .floats()
            .iter()
            .skip(self.at)
            .step_by(width)
            .copied()
    }

    /// Whether they are whole, all different, and in order, without gaps, or of a column that says so.
    fn are_ids(self, name: &str) -> bool {
        let (mut seen, mut before) = (HashSet::new(), None);
        let (mut grows, mut least, mut most) = (true, f32::INFINITY, f32::NEG_INFINITY);
        for number in self.each() {
            // Large ones that differ may be the same here.
            let is_same = !seen.insert(number.to_bits()) && number.abs() < EXACT;
            if number.fract() != 0.0 || is_same {
                return false;
            }
            grows &= before.is_none_or(|before| before <= number);
            before = Some(number);
            (least, most) = (least.min(number), most.max(number));
        }
        let is_dense = f64::from(most) - f64::from(least) < 1.1 * self.set.len() as f64;
        grows || is_dense || names_an_id(name)
    }

    fn tell_the_label(self) -> bool {
        if !self.set.is_labelled() {
            return false;
        }
        match self.set.target_kind() {
            TargetKind::Classes => self.tell_the_class(),
            TargetKind::Numbers => self.follow_the_number(),
            TargetKind::Labels => false,
        }
    }

    /// Whether each value comes with one class alone, though values come several times; or the numbers of each class lie
    /// apart from those of all others.
    fn tell_the_class(self) -> bool {
        let labels = self.set.labels();
        let mut class_of: HashMap<u32, u32> = HashMap::new();
        let mut ranges: HashMap<u32, [f32; 2]> = HashMap::new();
        for (number, &label) in self.each().zip(labels) {
            // Of most columns, a few hundred rows say that.
            if *class_of.entry(number.to_bits()).or_insert(label) != label {
                return false;
            }
            let range = ranges
                .entry(label)
                .or_insert([f32::INFINITY, f32::NEG_INFINITY]);
            *range = [range[0].min(number), range[1].max(number)];
        }
        let mut ranges: Vec<[f32; 2]> = ranges.into_values().collect();
        ranges.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let are_apart = ranges.windows(2).all(|pair| pair[0][1] < pair[1][0]);
        let is_repeated = class_of.len() > 1 && 2 * class_of.len() <= self.set.len();
        ranges.len() > 1 && (is_repeated || are_apart)
    }

    /// Whether a line through all points leaves nothing of the number to predict.
    fn follow_the_number(self) -> bool {
        let targets = self.set.numbers().iter().step_by(self.set.outputs());
        let [mut n, mut x, mut y, mut xx, mut yy, mut xy] = [0.0_f64; 6];
        let pairs = || {
            let pairs = self.each().zip(targets.clone());
            pairs.filter(|(number, _)| !number.is_nan())
        };
        let Some((first_x, first_y)) = pairs().next() else {
            return false;
        };
        for (number, target) in pairs() {
            // From the first on: what is far from 0 would lose its digits in squares.
            let a = f64::from(number) - f64::from(first_x);
            let b = f64::from(*target) - f64::from(*first_y);
            n += 1.0;
            x += a;
            y += b;
            xx += a * a;
            yy += b * b;
            xy += a * b;
        }
        let (vx, vy, cov) = (n * xx - x * x, n * yy - y * y, n * xy - x * y);
        n >= LEAST_ROWS as f64 && vx > 0.0 && vy > 0.0 && cov.abs() >= SAME * (vx * vy).sqrt()
    }
}

/// Whether a column of this name has ids.
fn names_an_id(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_word = ["id", "key", "uuid", "guid", "index"].contains(&lower.as_str());
    let ends = ["_id", " id", "-id", ".id", "_key"].iter();
    is_word
        || name.ends_with("Id")
        || name.ends_with("ID")
        || ends.clone().any(|end| lower.ends_with(end))
}

impl TableSource {
    /// The numbers of some of its columns, each if all of them are whole.
    ///
    /// # Errors
    /// When a file cannot be read, or lacks a column.
    pub fn whole_numbers(
        &self,
        columns: &[String],
    ) -> Result<Vec<Option<WholeNumbers>>, DataError> {
        let files = find_files(&self.place, self.format)?;
        let form = &self.columns.form;
        Ok(whole_numbers(
            &files,
            self.format,
            columns,
            form,
            self.memory,
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn found(text: &str) -> Vec<(String, Suspicion)> {
        let folder = Folder::new();
        let set = folder.table(text);
        let found = suspects(&set).into_iter();
        found.map(|found| (found.column, found.suspicion)).collect()
    }

    #[test]
    fn ids_constants_and_leaks_are_found_and_other_columns_are_not() {
        let mut text = String::from("n,customer_id,same,told,apart,word,age,real,label\n");
        for i in 0..40_u32 {
            let noise = i * 7919 % 101;
            let class = noise % 2;
            text += &format!(
                "{},{},5,{},{}.5,{},{},{}.25,{}\n",
                i + 1_000_000_000,
                noise * 1000,
                ["a", "b", "c", "d"][(class * 2 + i % 2) as usize],
                class * 1000 + i,
                ["x", "y"][(i % 2) as usize],
                noise % 17,
                noise,
                ["no", "yes"][class as usize],
            );
        }
        let expected = [
            ("n", Suspicion::Id),
            ("customer_id", Suspicion::Id),
            ("same", Suspicion::Constant),
            ("told", Suspicion::Leak),
            ("apart", Suspicion::Leak),
        ];
        assert_eq!(
            found(&text),
            expected.map(|(name, why)| (name.to_owned(), why))
        );
    }

    #[test]
    fn a_column_that_is_the_number_to_predict_is_found() {
        let mut text = String::from("total,size,label\n");
        for i in 0..60_u32 {
            let noise = f64::from(i * 7919 % 101) + 0.5;
            text += &format!("{},{},{}\n", 1e6 + noise * 1.19, i % 9, noise);
        }
        assert_eq!(found(&text), [("total".to_owned(), Suspicion::Leak)]);
        assert_eq!(found("a,label\n1,x\n2,y\n"), []);
    }
}
