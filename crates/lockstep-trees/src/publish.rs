//! What a run of trees leaves behind: the model, and what one must know to use it. Rank 0 writes it.

use crate::TreesError;
use crate::gradients::Objective;
use crate::model_file::with_names;
use lockstep_data::{Dataset, InputColumn, TargetKind, TargetScale};
use lockstep_model::{Decision, Outputs};
use lockstep_place::PlaceError;
use lockstep_runs::RunDir;
use serde::{Deserialize, Serialize};

/// The format of `model.json`. It grows when a key changes its meaning or goes.
const VERSION: u32 = 1;

/// What the trees are of; `model.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Card {
    /// Format of this file.
    pub(crate) version: u32,
    /// What the model is: `xgboost`.
    pub(crate) kind: String,
    /// Numbers of a row.
    pub(crate) columns: usize,
    /// What they are called, in their order; none if that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) column_names: Vec<String>,
    /// What the columns of the table hold, where they are not just numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inputs: Vec<InputColumn>,
    /// A row of the table, cell by cell, for people who want to see what goes in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) example: Vec<serde_json::Value>,
    /// XGBoost's name for what was minimised.
    pub(crate) objective: String,
    /// The share of all that a predicted quantile is above, of models that predict one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quantile: Option<f64>,
    /// Class names by number. Empty if a number is predicted.
    pub(crate) classes: Vec<String>,
    /// Of two classes, the one that is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) positive: Option<String>,
    /// The probability from which on it is predicted; absent if the more probable class is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) threshold: Option<f64>,
    /// The column whose number is predicted.
    pub(crate) target: Option<String>,
    /// Rounds of trees.
    pub(crate) rounds: u32,
    /// SHA-256 of `model.ubj` without the names of its columns.
    pub(crate) weights_sha256: String,
}

impl Card {
    pub(crate) fn new(set: &Dataset, objective: Objective, rounds: u32, sha256: &str) -> Self {
        let is_class = set.target_kind() == TargetKind::Classes;
        Self {
            version: VERSION,
            kind: "xgboost".to_owned(),
            columns: set.sample_len(),
            column_names: set.columns().to_vec(),
            inputs: match set.table().is_plain() {
                true => Vec::new(),
                false => set.table().inputs(),
            },
            example: set.example_row(),
            objective: objective.xgboost_name().to_owned(),
            quantile: match objective {
                Objective::Quantile { share } => Some(share),
                _ => None,
            },
            classes: match is_class {
                true => set.class_names().to_vec(),
                false => Vec::new(),
            },
            positive: None,
            threshold: None,
            target: set.output_names().first().filter(|_| !is_class).cloned(),
            rounds,
            weights_sha256: sha256.to_owned(),
        }
    }

    /// The same of a model that decides in this way.
    pub(crate) fn deciding(self, decision: Option<Decision>) -> Self {
        Self {
            positive: decision.map(|decision| self.classes[decision.positive].clone()),
            threshold: decision.and_then(|decision| decision.threshold),
            ..self
        }
    }

    /// Reads the card of a run's model; nothing if its model is something else.
    pub(crate) fn read(run: &RunDir) -> Result<Option<Self>, TreesError> {
        let file = run.model();
        let text = match file.read() {
            Ok(text) => text,
            Err(PlaceError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let refused = |reason: String| TreesError::saved(&file, reason);
        let value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))?;
        if value["kind"] != "xgboost" {
            return Ok(None);
        }
        if value["version"].as_u64() > Some(u64::from(VERSION)) {
            return Err(refused(format!(
                "it is of version {}, written by a newer lockstep; this one reads up to {VERSION}",
                value["version"]
            )));
        }
        let card = serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
        Ok(Some(card))
    }

    /// What the model predicts.
    pub(crate) fn outputs(&self) -> Outputs {
        let (kind, names) = match &self.target {
            None => (TargetKind::Classes, self.classes.clone()),
            Some(column) => (TargetKind::Numbers, vec![column.clone()]),
        };
        Outputs {
            kind,
            decision: Decision::named(&self.classes, self.positive.as_deref(), self.threshold),
            scale: TargetScale::identity(names.len()),
            names,
        }
    }

    /// What was minimised.
    pub(crate) fn objective(&self) -> Option<Objective> {
        let share = self.quantile.unwrap_or(0.5);
        Objective::of_xgboost(&self.objective, self.classes.len(), share)
    }
}

/// Writes the model and its card.
pub(crate) fn write(run: &RunDir, card: &Card, model: &[u8]) -> Result<(), TreesError> {
    // The card comes last: without it, there is no model.
    let _ = run.model().delete();
    run.file(lockstep_runs::files::MODEL).make_folder()?;
    run.trees().write(&with_names(model, &card.column_names))?;
    let text = serde_json::to_string_pretty(card).expect("a card is plain data");
    run.model().write(format!("{text}\n").as_bytes())?;
    Ok(())
}
