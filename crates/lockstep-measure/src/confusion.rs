//! How often each class was taken for each.

use serde::{Deserialize, Serialize};

/// Counts of samples by their class and the one that was predicted. Serialises as rows of counts: a row
/// is a class, a column what it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<u64>>", into = "Vec<Vec<u64>>")]
pub struct Confusion {
    classes: usize,
    counts: Vec<u64>,
}

impl Confusion {
    /// Nothing counted yet.
    pub fn new(classes: usize) -> Self {
        Self {
            classes,
            counts: vec![0; classes * classes],
        }
    }

    /// Counts a sample.
    ///
    /// # Panics
    /// When there is no such class.
    pub fn add(&mut self, actual: usize, predicted: usize) {
        assert!(actual < self.classes && predicted < self.classes);
        self.counts[actual * self.classes + predicted] += 1;
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How often `actual` was taken for `predicted`.
    pub fn count(&self, actual: usize, predicted: usize) -> u64 {
        self.counts[actual * self.classes + predicted]
    }

    /// What the samples of a class were taken for.
    pub fn row(&self, actual: usize) -> &[u64] {
        &self.counts[actual * self.classes..][..self.classes]
    }

    /// Samples of a class.
    pub fn support(&self, actual: usize) -> u64 {
        self.row(actual).iter().sum()
    }

    /// Samples that were taken for a class.
    pub fn predicted(&self, class: usize) -> u64 {
        (0..self.classes).map(|row| self.count(row, class)).sum()
    }

    /// Samples whose class was predicted.
    pub fn right(&self) -> u64 {
        (0..self.classes)
            .map(|class| self.count(class, class))
            .sum()
    }

    /// All samples.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl From<Confusion> for Vec<Vec<u64>> {
    fn from(confusion: Confusion) -> Self {
        let rows = 0..confusion.classes;
        rows.map(|row| confusion.row(row).to_vec()).collect()
    }
}

impl TryFrom<Vec<Vec<u64>>> for Confusion {
    type Error = String;

    fn try_from(rows: Vec<Vec<u64>>) -> Result<Self, String> {
        let classes = rows.len();
        if let Some(row) = rows.iter().position(|row| row.len() != classes) {
            let found = rows[row].len();
            return Err(format!(
                "row {row} of the confusion matrix has {found} counts for {classes} classes"
            ));
        }
        Ok(Self {
            classes,
            counts: rows.concat(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_classes_and_columns_what_they_were_taken_for() {
        let mut confusion = Confusion::new(2);
        confusion.add(0, 1);
        confusion.add(0, 1);
        confusion.add(1, 1);
        assert_eq!(serde_json::to_string(&confusion).unwrap(), "[[0,2],[0,1]]");
        assert_eq!((confusion.support(0), confusion.predicted(1)), (2, 3));
        assert_eq!((confusion.right(), confusion.total()), (1, 3));
    }

    #[test]
    fn a_matrix_that_is_not_square_is_refused() {
        let error = serde_json::from_str::<Confusion>("[[1,2],[3]]").unwrap_err();
        assert!(error.to_string().contains("row 1"), "{error}");
    }
}
