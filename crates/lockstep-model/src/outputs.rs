//! What a model predicts: classes, numbers or labels, and what they are called.

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
}

impl Outputs {
    /// Of a model with so many outputs that is trained on `set`.
    pub fn of(set: &Dataset, scale: &TargetScale, outputs: usize) -> Self {
        let mut own = Self {
            kind: set.target_kind(),
            names: set.output_names().to_vec(),
            scale: scale.clone(),
        };
        own.widen(outputs);
        own
    }

    /// Names all that the model may say: the last layer may be wider than there are classes.
    pub fn widen(&mut self, outputs: usize) {
        let beyond = self.names.len()..outputs;
        self.names.extend(beyond.map(|number| number.to_string()));
    }
}
