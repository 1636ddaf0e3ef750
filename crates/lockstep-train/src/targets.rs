//! What a network is to say of samples: what is minimised for it, and rows of it.

use crate::TrainError;
use lockstep_data::{Dataset, TargetKind, TargetScale};
use lockstep_nn::{Loss, Targets};
use lockstep_resolve::TrainingSettings;
use std::ops::Range;

/// What is minimised where this is to be predicted, unless the job says otherwise.
pub(crate) fn loss(kind: TargetKind) -> Loss {
    match kind {
        TargetKind::Classes => Loss::CrossEntropy,
        TargetKind::Numbers => Loss::SquaredError,
        TargetKind::Labels => Loss::BinaryCrossEntropy,
    }
}

/// A loss's name in the job file.
fn name(loss: Loss) -> &'static str {
    match loss {
        Loss::CrossEntropy => "cross-entropy",
        Loss::SquaredError => "mse",
        Loss::BinaryCrossEntropy => "bce",
        Loss::AbsoluteError => "mae",
        Loss::Huber { .. } => "huber",
        Loss::Quantile { .. } => "quantile",
        Loss::Focal { .. } => "focal",
    }
}

/// Checks that the training set has what the job minimises.
pub(crate) fn check(settings: &TrainingSettings, train: &Dataset) -> Result<(), TrainError> {
    match settings.learner.target {
        Some(wanted) if wanted != train.target_kind() => {
            let said = settings.learner.loss.unwrap_or(loss(wanted));
            let (said, set, kind) = (name(said), train.name(), train.target_kind());
            let reason = format!(
                "\"{said}\" is for {wanted}, but {set} has {kind}; use \"{}\", or leave it out",
                name(loss(kind))
            );
            Err(TrainError::misfit("train.loss", reason))
        }
        _ => Ok(()),
    }
}

/// What is said to a person who did not say what the labels are, and may not expect what was found.
pub(crate) fn note(settings: &TrainingSettings, train: &Dataset) -> Option<String> {
    let (what, other) = match (settings.learner.target, train.target_kind()) {
        (Some(_), _) => return None,
        (None, TargetKind::Classes) => {
            let classes = train.numbers_as_classes()?;
            return Some(format!(
                "the labels are {classes} different whole numbers, and each is a class (train.loss = \"cross-entropy\"; \
                 \"mse\" would predict them as numbers)"
            ));
        }
        (None, TargetKind::Numbers) if train.outputs() == 1 => {
            let found = match train.classes_as_numbers() {
                Some(count) => format!("{count} different whole numbers, which are many"),
                None => "decimals".to_owned(),
            };
            return Some(format!(
                "the labels are {found}, so they are numbers to predict (train.loss = \"mse\"; \"cross-entropy\" would make \
                 each of them a class)"
            ));
        }
        (None, TargetKind::Numbers) => ("the labels are numbers to predict", ""),
        (None, TargetKind::Labels) => (
            "the labels are 0 or 1 each, so a sample may have several",
            "; \"mse\" would predict them as numbers",
        ),
    };
    let name = name(loss(train.target_kind()));
    Some(format!("{what} (train.loss = \"{name}\"{other})"))
}

/// Room for what some rows are to be taken for.
pub(crate) struct TargetRows {
    width: usize,
    classes: Vec<u32>,
    numbers: Vec<f32>,
}

impl TargetRows {
    /// For at most so many rows of a model with so many outputs.
    pub(crate) fn new(kind: TargetKind, outputs: usize, rows: usize) -> Self {
        let (classes, numbers) = match kind {
            TargetKind::Classes => (rows, 0),
            TargetKind::Numbers | TargetKind::Labels => (0, rows * outputs),
        };
        Self {
            width: outputs,
            classes: vec![0; classes],
            numbers: vec![0.0; numbers],
        }
    }

    /// Writes what these samples are to be taken for, from row `to` on. Where that is not known, classes are
    /// beyond all others.
    pub(crate) fn gather(
        &mut self,
        set: &Dataset,
        scale: &TargetScale,
        samples: &[u32],
        to: usize,
    ) {
        let rows = to..to + samples.len();
        if !set.is_labelled() {
            // No class of any model; numbers are not looked at.
            self.classes.fill(u32::MAX);
            return;
        }
        match self.numbers.is_empty() {
            true => set.gather_labels(samples, &mut self.classes[rows]),
            false => {
                let numbers = rows.start * self.width..rows.end * self.width;
                set.gather_numbers(samples, scale, &mut self.numbers[numbers]);
            }
        }
    }

    /// What some rows are to be taken for.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Targets<'_> {
        match self.numbers.is_empty() {
            true => Targets::Classes(&self.classes[rows]),
            false => {
                Targets::Numbers(&self.numbers[rows.start * self.width..rows.end * self.width])
            }
        }
    }
}
