//! What a model said of the rows of a request, in the shapes of the protocols.

use crate::about::About;
use lockstep_data::TargetKind;
use lockstep_model::{Named, Predictions};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use std::sync::Arc;

/// What a model said of the rows of a request.
#[derive(Debug)]
pub(crate) struct Said {
    /// The model.
    pub(crate) about: Arc<About>,
    /// What it said of each row.
    pub(crate) predictions: Predictions,
    /// The probabilities of all classes, row by row, if they were asked for.
    pub(crate) probabilities: Vec<f32>,
}

/// `{"predictions": [...]}`, as MLflow's clients expect it.
#[derive(Serialize)]
pub(crate) struct ForMlflow<'a> {
    predictions: Rows<'a>,
}

struct Rows<'a>(&'a Said);

/// What is said of a row that is of a class: the keys are those of `lockstep predict`.
#[derive(Serialize)]
struct ClassRow<'a> {
    predicted: &'a str,
    probability: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Named<'a>>,
}

impl Said {
    pub(crate) fn for_mlflow(&self) -> ForMlflow<'_> {
        let predictions = Rows(self);
        ForMlflow { predictions }
    }

    /// The name of the class of each row; none if numbers were said.
    pub(crate) fn classes(&self) -> Vec<&str> {
        match &self.predictions {
            Predictions::Classes(said) => {
                let names = &self.about.outputs.names;
                let name = |class: u32| names[class as usize].as_str();
                said.iter().map(|said| name(said.class)).collect()
            }
            Predictions::Numbers { .. } => Vec::new(),
        }
    }
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let said = self.0;
        let names = &said.about.outputs.names[..];
        let mut rows = serializer.serialize_seq(Some(said.predictions.len()))?;
        match &said.predictions {
            Predictions::Classes(classes) => {
                let mut all = said.probabilities.chunks_exact(names.len().max(1));
                for class in classes {
                    let probabilities = all.next().map(|numbers| Named { names, numbers });
                    rows.serialize_element(&ClassRow {
                        predicted: &names[class.class as usize],
                        probability: class.probability,
                        probabilities,
                    })?;
                }
            }
            Predictions::Numbers { width, values } => {
                let single = *width == 1 && said.about.outputs.kind == TargetKind::Numbers;
                for numbers in values.chunks_exact((*width).max(1)) {
                    match single {
                        true => rows.serialize_element(&numbers[0])?,
                        false => rows.serialize_element(&Named { names, numbers })?,
                    }
                }
            }
        }
        rows.end()
    }
}
