//! From what a model said of every sample to what it is worth.

use crate::mistakes::{self, PictureFiles};
use crate::{BLOCK_ROWS, Outputs, OwnMetrics, Prediction, Predictions};
use lockstep_data::{Dataset, TargetKind};
use lockstep_measure::{Evaluation, FormulaSample, LabelTally, Outcome, RegressionTally, Tally};
use lockstep_place::{Place, PlaceError};
use lockstep_runs::{CONFUSION, EVALUATION, RunDir};

/// How many of the hardest mistakes are listed.
pub const MISTAKES: usize = 20;

/// Takes in predictions of a set, in its order, and says what they come to.
pub struct Assessor<'a> {
    set: &'a Dataset,
    /// The samples that are predicted, if they are not all of the set.
    samples: Option<&'a [u32]>,
    outputs: usize,
    kind: AnyTally,
    own: OwnMetrics,
    loss: f64,
    /// Samples that were taken in, and those of them that count.
    rows: usize,
    counted: u64,
}

enum AnyTally {
    Classes(Tally),
    Numbers(RegressionTally),
    Labels(LabelTally),
}

impl<'a> Assessor<'a> {
    /// For predictions of `set`, which was opened for a model with these outputs.
    pub fn new(set: &'a Dataset, outputs: &Outputs) -> Self {
        let (names, scale) = (&outputs.names, &outputs.scale);
        Self {
            set,
            samples: None,
            outputs: names.len(),
            kind: match outputs.kind {
                TargetKind::Classes => AnyTally::Classes(match outputs.decision {
                    Some(of) => Tally::new(names).with_positive(of.positive, of.threshold),
                    None => Tally::new(names),
                }),
                TargetKind::Numbers => AnyTally::Numbers(RegressionTally::new(
                    names,
                    scale.mean(),
                    scale.std(),
                    BLOCK_ROWS,
                )),
                TargetKind::Labels => AnyTally::Labels(LabelTally::new(names)),
            },
            own: OwnMetrics::default(),
            loss: 0.0,
            rows: 0,
            counted: 0,
        }
    }

    /// For predictions of some samples of a set, in their order.
    pub fn of_samples((set, samples): (&'a Dataset, &'a [u32]), outputs: &Outputs) -> Self {
        Self {
            samples: Some(samples),
            ..Self::new(set, outputs)
        }
    }

    /// Computes these metrics of the job's own too.
    pub fn with_own(self, metrics: &OwnMetrics) -> Self {
        Self {
            own: metrics.clone(),
            ..self
        }
    }

    /// Where in the set the next sample is.
    fn sample(&self) -> usize {
        let row = self.rows;
        self.samples.map_or(row, |samples| samples[row] as usize)
    }

    /// Takes in what was said of the next samples.
    pub fn add(&mut self, predictions: &Predictions) {
        match predictions {
            Predictions::Classes(classes) => {
                for &prediction in classes {
                    self.add_class(prediction);
                }
            }
            Predictions::Numbers { width, values } => {
                for said in values.chunks_exact(*width) {
                    let actual = &self.set.numbers()[self.sample() * width..][..*width];
                    match &mut self.kind {
                        AnyTally::Numbers(tally) => tally.add(said, actual),
                        AnyTally::Labels(tally) => tally.add(said, actual),
                        AnyTally::Classes(_) => unreachable!("classes are predicted as classes"),
                    }
                    self.own.add(FormulaSample::Numbers {
                        label: actual,
                        predicted: said,
                    });
                    self.rows += 1;
                    self.counted += 1;
                }
            }
        }
    }

    fn add_class(&mut self, prediction: Prediction) {
        let row = self.sample();
        self.rows += 1;
        let AnyTally::Classes(tally) = &mut self.kind else {
            unreachable!("numbers are predicted as numbers")
        };
        let actual = self.set.labels()[row] as usize;
        if actual >= self.outputs {
            return tally.add_unseen(class_name(self.set, actual));
        }
        self.counted += 1;
        tally.add(&Outcome {
            row: row as u64,
            actual,
            predicted: prediction.class as usize,
            probability: prediction.probability,
            in_top5: prediction.in_top5,
        });
        self.own.add(FormulaSample::Class {
            label: actual,
            predicted: prediction.class as usize,
            probability: prediction.probability,
        });
    }

    /// Adds the losses of a block. For the same sum to the bit, blocks come in the order of the set.
    pub fn add_loss(&mut self, loss: f64) {
        self.loss += loss;
    }

    /// What it all comes to.
    pub fn finish(self) -> Evaluation {
        let path = |row: u64| self.set.sample_name(row as usize).map(str::to_owned);
        let mut evaluation = match self.kind {
            AnyTally::Classes(tally) => Evaluation::Classes(tally.finish(MISTAKES, path)),
            AnyTally::Numbers(tally) => Evaluation::Numbers(tally.finish(path)),
            AnyTally::Labels(tally) => Evaluation::Labels(tally.finish()),
        };
        evaluation.set_name(self.set.name());
        evaluation.set_own(self.own.finish());
        if self.counted > 0 {
            evaluation.set_loss(self.loss / self.counted as f64);
        }
        evaluation
    }
}

/// The name of a label of `set`, also of one that its model does not know.
pub fn class_name(set: &Dataset, label: usize) -> &str {
    let known = set.class_names().get(label);
    let unseen = || set.unseen().get(label - set.classes());
    let name = known.or_else(|| unseen().map(|class| &class.name));
    name.map_or("", String::as_str)
}

/// Removes the evaluation of weights that are no longer there.
pub fn remove_evaluation(run: &RunDir) {
    for file in [run.evaluation(), run.confusion(), run.mistakes()] {
        // Mostly there is none.
        let _ = file.delete();
    }
}

/// What the model of a run is worth on a set, as files show it.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationReport<'a> {
    /// The run's name.
    pub run: &'a str,
    /// The set.
    pub set: &'a Dataset,
    /// The files that the set's vectors were made of, if they were made of pictures.
    pub pictures: Option<PictureFiles<'a>>,
    /// What was measured.
    pub evaluation: &'a Evaluation,
}

impl EvaluationReport<'_> {
    /// What it is called.
    pub fn title(&self) -> String {
        format!("{} on {}", self.run, self.set.name())
    }

    /// Writes the numbers, and the pictures if there are some, into `folder`, each whole or not at all.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write(&self, folder: &Place) -> Result<(), PlaceError> {
        let file = folder.join(EVALUATION)?;
        let text = serde_json::to_string(self.evaluation).expect("an evaluation is plain data");
        file.write(format!("{text}\n").as_bytes())?;
        if let Some(picture) = self.evaluation.svg(&self.title()) {
            folder.join(CONFUSION)?.write(picture.as_bytes())?;
        }
        let pictures = mistakes::pictures(self.set, self.pictures.as_ref(), self.evaluation);
        if let Some(pictures) = pictures {
            folder.join(lockstep_runs::MISTAKES)?.write(&pictures)?;
        }
        Ok(())
    }
}
