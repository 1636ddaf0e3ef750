//! A model in training on one rank's rows: a round at a time, together with the other ranks.

use crate::cuts::{RankRows, as_rows, cuts};
use crate::gradients::{Gradients, RankTargets};
use crate::sample::{self, RowSample};
use crate::{BoostSettings, Together, TreesError};
use lockstep_xgboost::{Booster, Matrix, MatrixForm, ModelFormat, Rows, Xgboost};
use std::thread;

/// The weight of a column that is chosen, beside which one without weight is never chosen.
const CHOSEN: f32 = 1e30;

/// Trees that are being grown on one rank's rows. All ranks call the same functions in the same order.
#[derive(Debug)]
pub struct Boosting<'a, T> {
    settings: &'a BoostSettings,
    together: &'a T,
    targets: RankTargets<'a>,
    columns: usize,
    matrix: Matrix,
    booster: Booster,
    gradients: Gradients,
    rounds: usize,
}

impl<'a, T: Together> Boosting<'a, T>
where
    TreesError: From<T::Error>,
{
    /// Finds the cuts, bins this rank's rows, and begins: without trees, or with those of `model`. The thread must have
    /// joined the gang before, and stays the one that trains.
    ///
    /// # Errors
    /// When XGBoost refuses something, or a peer is lost.
    pub fn begin(
        xgboost: &Xgboost,
        settings: &'a BoostSettings,
        rows: RankRows<'_>,
        targets: RankTargets<'a>,
        model: Option<&[u8]>,
        together: &'a T,
    ) -> Result<Self, TreesError> {
        let columns = rows.categorical.len();
        let form = MatrixForm {
            categorical: rows.categorical,
            bins: settings.bins,
            threads: settings.threads,
        };
        let reference = as_rows(&cuts(rows, settings.bins, together)?);
        // In a thread of its own: there, XGBoost knows nothing of the gang, and takes the cuts from these rows alone.
        let reference = thread::scope(|scope| {
            let made = scope.spawn(|| {
                let mut reference = Rows::new(&reference, columns);
                Matrix::binned(xgboost, &mut reference, form, None)
            });
            made.join().expect("making a matrix does not panic")
        })?;
        let mut blocks = Rows::new(rows.values, columns);
        let matrix = Matrix::binned(xgboost, &mut blocks, form, Some(&reference))?;
        let mut booster = Booster::new(xgboost, &[&matrix])?;
        for (name, value) in settings.for_xgboost(columns, model.is_none()) {
            booster.set(&name, &value)?;
        }
        let mut rounds = 0;
        if let Some(model) = model {
            booster.load(model)?;
            // Loading brings the parameters of the model's making back.
            for (name, value) in settings.for_xgboost(columns, false) {
                booster.set(&name, &value)?;
            }
            rounds = booster.rounds()?;
        }
        Ok(Self {
            settings,
            together,
            targets,
            columns,
            matrix,
            booster,
            gradients: Gradients::default(),
            rounds,
        })
    }

    /// Rounds that were trained.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Adds a round of trees.
    ///
    /// # Errors
    /// When XGBoost refuses a parameter, or a peer is lost.
    pub fn round(&mut self) -> Result<(), TreesError> {
        let settings = self.settings;
        if let Some(chosen) = settings.chosen_columns(self.columns) {
            let mut weights = vec![0.0; self.columns];
            for column in sample::columns(settings.seed, self.rounds, self.columns, chosen) {
                weights[column] = CHOSEN;
            }
            self.matrix.set_column_weights(&weights)?;
        }
        let sample = RowSample::new(settings.seed, self.rounds, settings.row_share);
        let margins = self.booster.margins(&self.matrix)?;
        let objective = settings.objective;
        self.gradients
            .compute(objective, self.targets, margins, sample, self.together)?;
        let gradients = (&*self.gradients.first, &*self.gradients.second);
        self.booster
            .boost(&self.matrix, self.rounds, gradients, objective.outputs())?;
        self.rounds += 1;
        Ok(())
    }

    /// The model as it is now; the same bytes on every rank.
    ///
    /// # Errors
    /// When XGBoost cannot write it.
    pub fn model(&mut self) -> Result<Vec<u8>, TreesError> {
        Ok(self.booster.save(ModelFormat::Ubj)?)
    }

    /// The model itself.
    pub fn booster(&mut self) -> &mut Booster {
        &mut self.booster
    }
}
