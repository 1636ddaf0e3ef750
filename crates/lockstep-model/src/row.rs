//! What is written of one sample, whatever the format.

use crate::{Block, Outputs, Predictions, class_name};
use lockstep_data::Dataset;
use serde::{Serialize, Serializer};

/// What is written of one sample.
#[derive(Serialize)]
pub struct PredictedRow<'a> {
    /// Where it comes from, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
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
/// `path` where it comes from.
///
/// # Errors
/// Those of `sink`.
pub fn each_row<E>(
    set: &Dataset,
    path: &dyn Fn(usize) -> Option<String>,
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
                let label = label.map(|&label| Answer::Class(class_name(set, label as usize)));
                let probabilities = all.next().map(|numbers| Named { names, numbers });
                sink(&PredictedRow {
                    path: path(at),
                    label,
                    predicted: Answer::Class(&names[said.class as usize]),
                    probability: Some(said.probability),
                    row: place(at),
                    probabilities,
                })?;
            }
        }
        Predictions::Numbers { values, .. } => {
            for (at, numbers) in (block.first..).zip(values.chunks_exact(width)) {
                let right = set.numbers().get(at * width..(at + 1) * width);
                let label = right.map(|numbers| Answer::Numbers(Named { names, numbers }));
                sink(&PredictedRow {
                    path: path(at),
                    label,
                    predicted: Answer::Numbers(Named { names, numbers }),
                    probability: None,
                    row: place(at),
                    probabilities: None,
                })?;
            }
        }
    }
    Ok(())
}
