//! From what a model said of every sample to what it is worth.

use crate::{Prediction, TrainError};
use lockstep_data::Dataset;
use lockstep_measure::{Evaluation, Outcome, Tally};
use lockstep_store::{CONFUSION, EVALUATION, RunDir, write_atomic};
use std::collections::HashMap;
use std::path::Path;

/// How many of the hardest mistakes are listed.
pub const MISTAKES: usize = 20;

/// The labels of a set in the numbering of a model, by the names of the classes.
#[derive(Debug)]
pub struct Labels {
    /// By the set's own number: the model's, or a number beyond its classes.
    numbers: Vec<u32>,
}

impl Labels {
    /// For a model with these classes.
    pub fn new(set: &Dataset, classes: &[String]) -> Self {
        let known: HashMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
        let names = set.class_names().iter();
        let numbers = names.map(|name| known.get(name.as_str()).copied().unwrap_or(u32::MAX));
        Self {
            numbers: numbers.collect(),
        }
    }

    /// Puts labels of the set into the model's numbering.
    pub(crate) fn renumber(&self, labels: &mut [u32]) {
        for label in labels {
            *label = self.numbers[*label as usize];
        }
    }
}

/// Takes in predictions of a set, and says what they come to.
pub struct Assessor<'a> {
    set: &'a Dataset,
    labels: Labels,
    classes: usize,
    tally: Tally,
    loss: f64,
    seen: u64,
}

impl<'a> Assessor<'a> {
    /// For predictions of `set` by a model with these classes.
    pub fn new(set: &'a Dataset, classes: &[String]) -> Self {
        Self {
            labels: Labels::new(set, classes),
            set,
            classes: classes.len(),
            tally: Tally::new(classes),
            loss: 0.0,
            seen: 0,
        }
    }

    /// Counts what was said of the sample `row`.
    pub fn add(&mut self, row: usize, prediction: Prediction) {
        let own = self.set.labels()[row] as usize;
        let actual = self.labels.numbers[own] as usize;
        if actual >= self.classes {
            return self.tally.add_unseen(&self.set.class_names()[own]);
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
        let mut evaluation = self.tally.finish(MISTAKES, |_| None);
        evaluation.set = Some(self.set.name().to_owned());
        if self.seen > 0 {
            evaluation.summary.loss = Some(self.loss / self.seen as f64);
        }
        evaluation
    }
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
