//! Trees whose leaves are set after they were grown.
//!
//! The gradient of a quantile or of an absolute error says in which direction a prediction should go, but not how far. So a
//! leaf is set to that quantile of what is still to be explained of its rows. XGBoost does this too, but in every worker
//! for itself, and takes the mean: that depends on how the rows are divided. Here a tree is grown alone, by a model of its
//! own; its leaves become exact quantiles of the rows of all ranks; and the model is the trees put together.

use crate::gradients::RankTargets;
use crate::quantiles::{DividedNumbers, NO_PART, quantiles};
use crate::sample::RowSample;
use crate::tree_json::ModelJson;
use crate::xgboost::{Booster, Matrix, Xgboost};
use crate::{BoostSettings, Together, TreesError};

/// Trees, and the margins that they come to.
#[derive(Debug)]
pub(crate) struct Refitted {
    model: ModelJson,
    base: f32,
    /// The margins of the rows that are trained on.
    pub(crate) margins: Vec<f32>,
    /// The newest tree as a model of its own.
    newest: Option<Booster>,
    /// The margins of other rows, and how many trees they are of.
    others: (Vec<f32>, usize),
}

impl Refitted {
    /// Begins with the trees of a model, which may have none.
    pub(crate) fn of(booster: &mut Booster, matrix: &Matrix) -> Result<Self, TreesError> {
        let model = ModelJson::of(booster)?;
        let base = model.base_score()?;
        let mut margins = vec![base; matrix.rows()?];
        for (round, tree) in model.trees.iter().enumerate() {
            add(
                &mut margins,
                &booster.rounds_in(round..round + 1)?.leaves(matrix)?,
                &tree.worths()?,
            );
        }
        Ok(Self {
            model,
            base,
            margins,
            newest: None,
            others: (Vec::new(), 0),
        })
    }

    /// Takes in a tree that was grown: `grown` has it alone. Its leaves become the quantile of what the rows' targets are
    /// beyond their margins, of the rows that took part.
    pub(crate) fn take<T: Together>(
        &mut self,
        xgboost: &Xgboost,
        mut grown: Booster,
        matrix: &Matrix,
        (settings, rows, sample): (&BoostSettings, RankTargets<'_>, Option<RowSample>),
        together: &T,
    ) -> Result<(), TreesError>
    where
        TreesError: From<T::Error>,
    {
        let leaves = grown.leaves(matrix)?;
        let mut one = ModelJson::of(&mut grown)?;
        let nodes = one.trees[0].leaves()?;
        let takes_part =
            |row: usize| sample.is_none_or(|sample| sample.has(rows.first_row + row as u64));
        let part = |(row, &node): (usize, &u32)| match takes_part(row) {
            true => nodes
                .binary_search(&(node as usize))
                .map_or(NO_PART, |part| part as u32),
            false => NO_PART,
        };
        let parts: Vec<u32> = leaves.iter().enumerate().map(part).collect();
        let both = rows.targets.iter().zip(&self.margins);
        let left: Vec<f32> = both.map(|(target, margin)| target - margin).collect();
        let numbers = DividedNumbers {
            numbers: &left,
            parts: &parts,
            weights: rows.weights,
        };
        let share = settings.objective.quantile().unwrap_or(0.5);
        let found = quantiles(numbers, nodes.len(), share, together)?;
        for (&node, quantile) in nodes.iter().zip(found) {
            // A leaf that no row of the sample is in stays as it was grown.
            if let Some(quantile) = quantile {
                one.trees[0].set_leaf(node, quantile * settings.eta() as f32)?;
            }
        }
        add(&mut self.margins, &leaves, &one.trees[0].worths()?);
        self.newest = Some(one.booster(xgboost)?);
        self.model.trees.append(&mut one.trees);
        Ok(())
    }

    /// The margins of rows that are not trained on: the same rows each time. Asked for after every round, it looks at the
    /// newest tree alone.
    pub(crate) fn margins_of(
        &mut self,
        xgboost: &Xgboost,
        matrix: &Matrix,
    ) -> Result<&[f32], TreesError> {
        let (margins, counted) = &mut self.others;
        if *counted == 0 {
            *margins = vec![self.base; matrix.rows()?];
        }
        let mut whole = None;
        while let Some(tree) = self.model.trees.get(*counted) {
            let is_newest = *counted + 1 == self.model.trees.len();
            let leaves = match &mut self.newest {
                Some(newest) if is_newest => newest.leaves(matrix)?,
                _ => {
                    let whole = match &mut whole {
                        Some(whole) => whole,
                        None => whole.insert(self.model.booster(xgboost)?),
                    };
                    whole.rounds_in(*counted..*counted + 1)?.leaves(matrix)?
                }
            };
            add(margins, &leaves, &tree.worths()?);
            *counted += 1;
        }
        Ok(margins)
    }

    /// The model with all trees.
    pub(crate) fn booster(&self, xgboost: &Xgboost) -> Result<Booster, TreesError> {
        self.model.booster(xgboost)
    }
}

/// Adds to each margin what its leaf is worth.
fn add(margins: &mut [f32], leaves: &[u32], worths: &[f32]) {
    for (margin, &node) in margins.iter_mut().zip(leaves) {
        *margin += worths[node as usize];
    }
}
