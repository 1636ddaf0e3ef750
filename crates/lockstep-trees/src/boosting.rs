//! A model in training on one rank's rows: a round at a time, together with the other ranks.

use crate::apart::apart;
use crate::cuts::{RankRows, as_rows, cuts};
use crate::exact_sum::exact_sums;
use crate::gradients::{Gradients, Objective, RankTargets};
use crate::quantiles::{DividedNumbers, quantiles};
use crate::refitted::Refitted;
use crate::sample::{self, RowSample};
use crate::xgboost::{
    Booster, Matrix, MatrixForm, ModelFormat, Predicted, Rows, Xgboost, XgboostError,
};
use crate::{BoostSettings, Together, TreesError};

/// The weight of a column that is chosen, beside which one without weight is never chosen.
const CHOSEN: f32 = 1e30;

/// Trees that are being grown on one rank's rows. All ranks call the same functions in the same order.
#[derive(Debug)]
pub struct Boosting<'a, T> {
    xgboost: Xgboost,
    settings: &'a BoostSettings,
    together: &'a T,
    targets: RankTargets<'a>,
    columns: usize,
    matrix: Matrix,
    booster: Booster,
    /// The trees, where their leaves are set after they were grown.
    refitted: Option<Refitted>,
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
        mut rows: RankRows<'_>,
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
        let reference = match settings.exact {
            true => {
                let cuts = as_rows(&cuts(&mut rows, settings.bins, together)?);
                Some(reference(xgboost, &cuts, form)?)
            }
            false => None,
        };
        let mut matrix = Matrix::binned(xgboost, rows.blocks, form, reference.as_ref())?;
        let refits = settings.exact && settings.objective.quantile().is_some();
        if refits {
            // XGBoost's own objective looks whether there is a label, though nobody asks it for gradients.
            matrix.set_labels(targets.targets, 1)?;
        }
        if !settings.exact {
            matrix.set_labels(targets.targets, 1)?;
            if let Some(weights) = targets.weights {
                matrix.set_weights(weights)?;
            }
            if let Objective::Rank { .. } = settings.objective {
                let sizes = targets.groups.iter().map(|group| group.len() as f32);
                matrix.set_groups(&sizes.collect::<Vec<_>>())?;
            }
        }
        let mut booster = Booster::new(xgboost, &[&matrix])?;
        let base_score = match (model, settings.exact) {
            (Some(_), _) => None,
            (None, true) => Some(base_score(settings, targets, together)?),
            (None, false) => settings.base_score,
        };
        for (name, value) in settings.for_xgboost(columns, base_score) {
            booster.set(&name, &value)?;
        }
        let mut rounds = 0;
        if let Some(model) = model {
            booster.load(model)?;
            // Loading brings the parameters of the model's making back.
            for (name, value) in settings.for_xgboost(columns, None) {
                booster.set(&name, &value)?;
            }
            rounds = booster.rounds()?;
        }
        if settings.device.is_gpu() && !booster.is_on_gpu()? {
            return Err(XgboostError::NoGpu.into());
        }
        let refitted = match refits {
            true => Some(Refitted::of(&mut booster, &matrix)?),
            false => None,
        };
        Ok(Self {
            xgboost: xgboost.clone(),
            refitted,
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
        if !settings.exact {
            self.booster.update(&self.matrix, self.rounds)?;
            self.rounds += 1;
            return Ok(());
        }
        if let Some(chosen) = settings.chosen_columns(self.columns) {
            let mut weights = vec![0.0; self.columns];
            for column in sample::columns(settings.seed, self.rounds, self.columns, chosen) {
                weights[column] = CHOSEN;
            }
            self.matrix.set_column_weights(&weights)?;
        }
        let sample = RowSample::new(settings.seed, self.rounds, settings.row_share);
        let objective = settings.objective;
        let margins = match &self.refitted {
            Some(refitted) => &refitted.margins,
            None => self.booster.margins(&self.matrix)?,
        };
        self.gradients
            .compute(objective, self.targets, margins, sample, self.together)?;
        let gradients = (&*self.gradients.first, &*self.gradients.second);
        let (matrix, outputs) = (&self.matrix, objective.outputs());
        match &mut self.refitted {
            None => (self.booster).boost(matrix, self.rounds, gradients, outputs)?,
            Some(refitted) => {
                let mut grown = Booster::new(&self.xgboost, &[matrix])?;
                for (name, value) in settings.for_one_tree(self.columns) {
                    grown.set(&name, &value)?;
                }
                grown.boost(matrix, self.rounds, gradients, outputs)?;
                let rows = (settings, self.targets, sample);
                refitted.take(&self.xgboost, grown, matrix, rows, self.together)?;
            }
        }
        self.rounds += 1;
        Ok(())
    }

    /// The model as it is now; the same bytes on every rank.
    ///
    /// # Errors
    /// When XGBoost cannot write it.
    pub fn model(&mut self) -> Result<Vec<u8>, TreesError> {
        Ok(self.booster()?.save(ModelFormat::Ubj)?)
    }

    /// The margins of this rank's rows, as the trees have them now.
    ///
    /// # Errors
    /// When XGBoost refuses.
    pub fn margins(&mut self) -> Result<&[f32], TreesError> {
        match &self.refitted {
            Some(refitted) => Ok(&refitted.margins),
            None => Ok(self.booster.margins(&self.matrix)?),
        }
    }

    /// The margins of rows that are not trained on: the same rows each time.
    ///
    /// # Errors
    /// When XGBoost refuses.
    pub fn margins_of(&mut self, matrix: &Matrix) -> Result<Vec<f32>, TreesError> {
        match &mut self.refitted {
            Some(refitted) => Ok(refitted.margins_of(&self.xgboost, matrix)?.to_vec()),
            None => Ok(self.booster.predict(matrix, Predicted::Margin)?.0),
        }
    }

    /// The model itself.
    ///
    /// # Errors
    /// When its trees cannot be put together.
    pub fn booster(&mut self) -> Result<&mut Booster, TreesError> {
        if let Some(refitted) = &self.refitted {
            self.booster = refitted.booster(&self.xgboost)?;
            let threads = self.settings.threads.to_string();
            self.booster.set("nthread", &threads)?;
        }
        Ok(&mut self.booster)
    }
}

/// The matrix that others are cut like. XGBoost knows nothing of the gang here, and takes the cuts from these rows alone.
fn reference(xgboost: &Xgboost, cuts: &[f32], form: MatrixForm<'_>) -> Result<Matrix, TreesError> {
    let made = apart(|| {
        let mut rows = Rows::new(cuts, form.categorical.len());
        Matrix::binned(xgboost, &mut rows, form, None)
    });
    Ok(made?)
}

/// What is predicted without any tree: what the settings say, or the mean of all rows.
fn base_score<T: Together>(
    settings: &BoostSettings,
    rows: RankTargets<'_>,
    together: &T,
) -> Result<f64, T::Error> {
    if let Some(score) = settings.base_score {
        return Ok(score);
    }
    match settings.objective {
        Objective::Softmax { .. } => return Ok(0.5),
        // Only differences count.
        Objective::Rank { .. } => return Ok(0.0),
        _ => {}
    }
    if let Some(share) = settings.objective.quantile() {
        let all = DividedNumbers {
            numbers: rows.targets,
            parts: &vec![0; rows.targets.len()],
            weights: rows.weights,
        };
        let found = quantiles(all, 1, share, together)?;
        return Ok(found[0].map_or(0.0, f64::from));
    }
    let weight = |row: usize| rows.weights.map_or(1.0, |weights| f64::from(weights[row]));
    let [above, below, all] = exact_sums(together, || {
        rows.targets.iter().enumerate().map(|(row, &target)| {
            let weight = weight(row);
            let target = f64::from(target) * weight;
            [target.max(0.0), (-target).max(0.0), weight]
        })
    })?;
    let mean = (above - below) / if all > 0.0 { all } else { 1.0 };
    Ok(match settings.objective {
        // Of one class alone there would be no margin.
        Objective::Logistic => mean.clamp(1e-6, 1.0 - 1e-6),
        Objective::Poisson | Objective::Gamma => mean.max(1e-6),
        _ => mean,
    })
}
