//! What is written of one sample, whatever the format.

use crate::command::inference::Samples;
use lockstep_model::{Block, Outputs, Predictions, class_name};
use serde::{Serialize, Serializer};

/// What is written of one sample.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    /// What is right, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<Answer<'a>>,
    pub(super) predicted: Answer<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) probability: Option<f32>,
    pub(super) row: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) probabilities: Option<Named<'a>>,
}

/// What can be said of a sample.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer<'a> {
    Class(&'a str),
    Numbers(Named<'a>),
}

/// A number for every class or column, by its name. Of labels, what is right is 0 or 1, and what is predicted how
/// probable a label is.
pub(super) struct Named<'a> {
    pub(super) names: &'a [String],
    pub(super) numbers: &'a [f32],
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.names.iter().zip(self.numbers))
    }
}

impl Row<'_> {
    /// Where the sample comes from, or its row where that is not known.
    pub(super) fn path_or_row(&self) -> String {
        self.path.clone().unwrap_or_else(|| self.row.to_string())
    }
}

/// Hands on what a model says of each sample of a block. So many rows come before these samples.
pub(super) fn each(
    samples: &Samples,
    outputs: &Outputs,
    block: &Block,
    before: usize,
    sink: &mut dyn FnMut(&Row<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (set, names) = (&samples.set, &outputs.names[..]);
    let width = names.len().max(1);
    match &block.predictions {
        Predictions::Classes(said) => {
            let mut all = block.probabilities.chunks_exact(width);
            for (at, said) in (block.first..).zip(said) {
                let label = set.labels().get(at);
                let label = label.map(|&label| Answer::Class(class_name(set, label as usize)));
                let probabilities = all.next().map(|numbers| Named { names, numbers });
                sink(&Row {
                    path: samples.path(at),
                    label,
                    predicted: Answer::Class(&names[said.class as usize]),
                    probability: Some(said.probability),
                    row: before + at,
                    probabilities,
                })?;
            }
        }
        Predictions::Numbers { values, .. } => {
            for (at, numbers) in (block.first..).zip(values.chunks_exact(width)) {
                let right = set.numbers().get(at * width..(at + 1) * width);
                let label = right.map(|numbers| Answer::Numbers(Named { names, numbers }));
                sink(&Row {
                    path: samples.path(at),
                    label,
                    predicted: Answer::Numbers(Named { names, numbers }),
                    probability: None,
                    row: before + at,
                    probabilities: None,
                })?;
            }
        }
    }
    Ok(())
}
