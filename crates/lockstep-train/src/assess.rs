//! From what a model said of every sample to what it is worth.

use crate::{Prediction, TrainError};
use lockstep_data::Dataset;
use lockstep_fs::write_atomic;
use lockstep_measure::{Evaluation, Outcome, Tally};
use lockstep_runs::{CONFUSION, EVALUATION, RunDir};
use std::path::Path;

/// How many of the hardest mistakes are listed.
pub const MISTAKES: usize = 20;

/// Takes in predictions of a set, and says what they come to.
pub struct Assessor<'a> {
    set: &'a Dataset,
    classes: usize,
    tally: Tally,
    loss: f64,
    seen: u64,
}

impl<'a> Assessor<'a> {
    /// For predictions of `set`, which was opened for a model with these classes.
    pub fn new(set: &'a Dataset, classes: &[String]) -> Self {
        Self {
            set,
            classes: classes.len(),
            tally: Tally::new(classes),
            loss: 0.0,
            seen: 0,
        }
    }

    /// Counts what was said of the sample `row`.
    pub fn add(&mut self, row: usize, prediction: Prediction) {
        let actual = self.set.labels()[row] as usize;
        if actual >= self.classes {
            return self.tally.add_unseen(class_name(self.set, actual));
        }
        self.seen += 1;
        self.tally.add(&Outcome {
            row: row as u64,
            actual,
            predicted: prediction.class as usize,
            probability: prediction.probability,
            in_top5: prediction.in_top5,
        });
    }

    /// Adds the losses of a block. For the same sum to the bit, blocks come in the order of the set.
    pub fn add_loss(&mut self, loss: f64) {
        self.loss += loss;
    }

    /// What it all comes to.
    pub fn finish(self) -> Evaluation {
        let path = |row: u64| self.set.sample_name(row as usize).map(str::to_owned);
        let mut evaluation = self.tally.finish(MISTAKES, path);
        evaluation.set = Some(self.set.name().to_owned());
        if self.seen > 0 {
            evaluation.summary.loss = Some(self.loss / self.seen as f64);
        }
        evaluation
    }
}

/// Names for all that a model may say: those of its classes, and numbers where its last layer is wider.
pub(crate) fn names_of_outputs(classes: &[String], outputs: usize) -> Vec<String> {
    let beyond = (classes.len()..outputs).map(|number| number.to_string());
    classes.iter().cloned().chain(beyond).collect()
}

/// The name of a label of `set`, also of one that its model does not know.
pub fn class_name(set: &Dataset, label: usize) -> &str {
    let known = set.class_names().get(label);
    let unseen = || set.unseen().get(label - set.classes());
    let name = known.or_else(|| unseen().map(|class| &class.name));
    name.map_or("", String::as_str)
}

/// What the picture of a run on a set is called.
pub fn title(run: &str, set: &Dataset) -> String {
    format!("{run} on {}", set.name())
}

/// Removes the evaluation of weights that are no longer there.
pub(crate) fn remove_evaluation(run: &RunDir) {
    for file in [run.evaluation(), run.confusion()] {
        // Mostly there is none.
        let _ = std::fs::remove_file(file);
    }
}

/// Writes an evaluation and its picture into `folder`, each whole or not at all.
///
/// # Errors
/// When the folder cannot be written.
pub fn write_evaluation(
    folder: &Path,
    evaluation: &Evaluation,
    title: &str,
) -> Result<(), TrainError> {
    let path = folder.join(EVALUATION);
    let text = serde_json::to_string(evaluation).map_err(|error| TrainError::Weights {
        path: path.clone(),
        reason: error.to_string(),
    })?;
    write_atomic(&path, format!("{text}\n").as_bytes())?;
    let picture = evaluation.svg(title);
    Ok(write_atomic(&folder.join(CONFUSION), picture.as_bytes())?)
}
