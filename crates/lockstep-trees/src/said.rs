//! From margins to what a model says of rows.

use crate::gradients::Objective;
use lockstep_base::math::Softmax;
use lockstep_model::{Prediction, Predictions};

/// The scores of all classes: those of two classes are made from the one margin that there is.
fn scores<'a>(objective: Objective, margins: &'a [f32], room: &'a mut [f32; 2]) -> &'a [f32] {
    match objective {
        Objective::Logistic => {
            *room = [0.0, margins[0]];
            room
        }
        _ => margins,
    }
}

/// What the margins of some rows say. `labels` are the rows' own classes, beyond all others where they are not known.
pub(crate) fn predictions(objective: Objective, margins: &[f32], labels: &[u32]) -> Predictions {
    let rows = margins.chunks_exact(objective.outputs());
    match objective {
        Objective::Logistic | Objective::Softmax { .. } => {
            let mut room = [0.0; 2];
            let said = rows.zip(labels).map(|(margins, &label)| {
                let scores = scores(objective, margins, &mut room);
                Prediction::of(scores, &Softmax::of(scores), label)
            });
            Predictions::Classes(said.collect())
        }
        _ => Predictions::Numbers {
            width: 1,
            values: rows
                .map(|margins| objective.value(margins[0]) as f32)
                .collect(),
        },
    }
}

/// The probabilities of all classes, row after row.
pub(crate) fn probabilities(objective: Objective, margins: &[f32]) -> Vec<f32> {
    let mut room = [0.0; 2];
    let mut all = Vec::new();
    for margins in margins.chunks_exact(objective.outputs()) {
        let scores = scores(objective, margins, &mut room);
        let softmax = Softmax::of(scores);
        all.extend(
            scores
                .iter()
                .map(|&score| softmax.probability(score) as f32),
        );
    }
    all
}
