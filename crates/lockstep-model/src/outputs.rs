//! What a model predicts: classes, numbers or labels, and what they are called.

use crate::{Decision, Predictions};
use lockstep_data::{Dataset, TargetKind, TargetScale};

/// What a model predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs {
    /// What its outputs are.
    pub kind: TargetKind,
    /// What each of them is called: a class, or the column of a table.
    pub names: Vec<String>,
    /// How its numbers become those of the set.
    pub scale: TargetScale,
    /// How it decides, if it tells two classes apart and that is known.
    pub decision: Option<Decision>,
}

impl Outputs {
    /// Of a model with so many outputs that is trained on `set`.
    pub fn of(set: &Dataset, scale: &TargetScale, outputs: usize) -> Self {
        let mut own = Self {
            kind: set.target_kind(),
            names: set.output_names().to_vec(),
            scale: scale.clone(),
            decision: None,
        };
        own.widen(outputs);
        own
    }

    /// Names all that the model may say: the last layer may be wider than there are classes.
    pub fn widen(&mut self, outputs: usize) {
        let beyond = self.names.len()..outputs;
        self.names.extend(beyond.map(|number| number.to_string()));
        self.decision = self.decision.filter(|_| self.names.len() == 2);
    }

    /// The same of a model that decides in this way.
    pub fn deciding(self, decision: Option<Decision>) -> Self {
        let decision = decision.filter(|_| self.names.len() == 2);
        Self { decision, ..self }
    }

    /// Turns the more probable classes into those that are predicted: once, where a model has said what it says.
    pub fn decide(&self, said: &mut Predictions) {
        if let (Some(decision), Predictions::Classes(classes)) = (self.decision, said) {
            for class in classes {
                *class = decision.decide(*class);
            }
        }
    }
}
