//! What is written of one sample, whatever the format.

use crate::{Block, Outputs, Predictions, class_name};
use lockstep_data::{Dataset, KeptKind};
use lockstep_table::WrittenCell;
use serde::{Serialize, Serializer};

/// What is written of one sample.
#[derive(Serialize)]
pub struct PredictedRow<'a> {
    /// Where it comes from, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is kept of its row of the table.
    #[serde(flatten, serialize_with = "as_a_map")]
    pub kept: Vec<KeptCell<'a>>,
    /// What is right, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Answer<'a>>,
    /// What the model says.
    pub predicted: Answer<'a>,
    /// How probable the class is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f32>,
    /// Its number, counted from 0.
    pub row: usize,
    /// How probable all classes are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<Named<'a>>,
    /// What each number of the row adds to what the model says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shap: Option<Named<'a>>,
}

/// What is written of a sample beside what a model says.
#[derive(Default)]
pub struct Beside<'a> {
    /// Where it comes from, if that is known.
    pub path: Option<String>,
    /// What is kept of its row of the table.
    pub kept: Vec<KeptCell<'a>>,
    /// What each number of the row adds to what the model says.
    pub shap: Option<Named<'a>>,
}

/// A cell of a column that is kept.
#[derive(Clone, Copy)]
pub struct KeptCell<'a> {
    /// The name of the column.
    pub name: &'a str,
    /// What the column holds.
    pub kind: KeptKind,
    /// The cell; empty where there is none.
    pub text: &'a str,
}

impl KeptCell<'_> {
    /// The cell by the type of its column.
    pub(crate) fn written(&self) -> WrittenCell {
        let text = Some(self.text).filter(|text| !text.is_empty());
        match self.kind {
            KeptKind::Whole => WrittenCell::Whole(text.and_then(|text| text.parse().ok())),
            KeptKind::Number => WrittenCell::Double(text.and_then(|text| text.parse().ok())),
            KeptKind::Text => WrittenCell::Text(text.map(str::to_owned)),
        }
    }
}

impl Serialize for KeptCell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.written() {
            WrittenCell::Text(cell) => cell.serialize(serializer),
            WrittenCell::Whole(cell) => cell.serialize(serializer),
            WrittenCell::Single(cell) => cell.serialize(serializer),
            WrittenCell::Double(cell) => cell.serialize(serializer),
        }
    }
}

fn as_a_map<S: Serializer>(kept: &[KeptCell<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(kept.iter().map(|cell| (cell.name, cell)))
}

/// What can be said of a sample.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Answer<'a> {
    /// A class.
    Class(&'a str),
    /// A number for every column or label.
    Numbers(Named<'a>),
}

/// A number for every class or column, by its name. Of labels, what is right is 0 or 1, and what is predicted how
/// probable a label is.
pub struct Named<'a> {
    /// The names.
    pub names: &'a [String],
    /// Their numbers.
    pub numbers: &'a [f32],
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.names.iter().zip(self.numbers))
    }
}

impl PredictedRow<'_> {
    /// Where the sample comes from, or its row where that is not known.
    pub fn path_or_row(&self) -> String {
        self.path.clone().unwrap_or_else(|| self.row.to_string())
    }
}

/// Hands on what a model says of each sample of a block. `place` says which row of what is written each of them is, and
/// `beside` what else is written of it. What is right may not be known of some: a class without a name, a number that is
/// none.
///
/// # Errors
/// Those of `sink`.
pub fn each_row<'b, E>(
    set: &Dataset,
    beside: &dyn Fn(usize) -> Beside<'b>,
    (outputs, block): (&Outputs, &Block),
    place: &dyn Fn(usize) -> usize,
    sink: &mut dyn FnMut(&PredictedRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let names = &outputs.names[..];
    let width = names.len().max(1);
    match &block.predictions {
        Predictions::Classes(said) => {
            let mut all = block.probabilities.chunks_exact(width);
            for (at, said) in (block.first..).zip(said) {
                let label = set.labels().get(at);
                let label = label.map(|&label| class_name(set, label as usize));
                let label = label.filter(|label| !label.is_empty()).map(Answer::Class);
                let Beside { path, kept, shap } = beside(at);
                let probabilities = all.next().map(|numbers| Named { names, numbers });
                sink(&PredictedRow {
                    path,
                    kept,
                    label,
                    predicted: Answer::Class(&names[said.class as usize]),
                    probability: Some(said.probability),
                    row: place(at),
                    probabilities,
                    shap,
                })?;
            }
        }
        Predictions::Numbers { values, .. } => {
            for (at, numbers) in (block.first..).zip(values.chunks_exact(width)) {
                let right = set.numbers().get(at * width..(at + 1) * width);
                let right = right.filter(|numbers| numbers.iter().any(|y| !y.is_nan()));
                let label = right.map(|numbers| Answer::Numbers(Named { names, numbers }));
                let Beside { path, kept, shap } = beside(at);
                sink(&PredictedRow {
                    path,
                    kept,
                    label,
                    predicted: Answer::Numbers(Named { names, numbers }),
                    probability: None,
                    row: place(at),
                    probabilities: None,
                    shap,
                })?;
            }
        }
    }
    Ok(())
}
