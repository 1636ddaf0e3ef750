//! What a training comes to: the model of the rounds that are kept, and what it is worth.

use super::{Session, gathered};
use crate::apart::own_matrix;
use crate::gradients::Objective;
use crate::publish;
use crate::shard::{self, Shard};
use crate::xgboost::{Booster, ModelFormat, Predicted, RowBlocks};
use crate::{Together, TreesError, contributions, importance, ranking, said};
use lockstep_base::fs::sha256;
use lockstep_data::Dataset;
use lockstep_events::Metrics;
use lockstep_measure::Evaluation;
use lockstep_model::{Assessor, Decision, EvaluationReport, Predictions};
use lockstep_resolve::Threshold;

/// Rows of a test set that are predicted at once.
const EVALUATED_ROWS: usize = 1 << 15;

impl Session<'_> {
    /// Writes the model of the kept rounds, and what it is worth on the test set. All ranks come here together.
    pub(super) fn publish(
        &self,
        booster: &mut Booster,
        kept: u32,
        rounds: u32,
    ) -> Result<(String, Option<Evaluation>), TreesError> {
        let mut first;
        let booster = match kept < rounds {
            true => {
                first = booster.first_rounds(kept as usize)?;
                &mut first
            }
            false => booster,
        };
        let model = booster.save(ModelFormat::Ubj)?;
        let sha256 = sha256(&model);
        let decision = self.decision(booster)?;
        let evaluation = self.evaluate(booster, decision)?;
        let shap = self.contributions(booster)?;
        if self.writer.is_some() {
            self.run.check_there()?;
            let card = self.card(kept, &sha256).deciding(decision);
            publish::write(&self.run, &card, &model)?;
            importance::write(&self.run, booster, &card.column_names, &shap)?;
            if let (Some(evaluation), Some(set)) = (&evaluation, &self.tables.test) {
                let report = EvaluationReport {
                    run: &self.run.name,
                    set,
                    pictures: None,
                    evaluation,
                };
                report.write(self.run.place())?;
            }
        }
        Ok((sha256, evaluation))
    }

    /// How far each column moves what the model says of rows that were held out: those of the test set, else those that
    /// rounds were compared on, else those that were trained on.
    fn contributions(&self, booster: &mut Booster) -> Result<Vec<f64>, TreesError> {
        let tables = self.tables;
        let whole: Vec<u32>;
        let rows: (&Dataset, &[u32]) = match &tables.test {
            Some(set) => {
                whole = (0..set.len() as u32).collect();
                (set, &whole)
            }
            None if !tables.val_rows.is_empty() => (tables.val_set(), &tables.val_rows),
            None => (&tables.train, &tables.train_rows),
        };
        let threads = self.settings.threads;
        contributions::mean_sizes((self.xgboost, booster), rows, threads, self.together)
    }

    /// How the model decides, with the threshold that is best on validation data if the job wants that.
    fn decision(&self, booster: &mut Booster) -> Result<Option<Decision>, TreesError> {
        let decision = self.tables.decision;
        let rule = self.part.settings.decision.threshold;
        let (Some(decision), Some(Threshold::Best(by)), Some(val)) = (decision, rule, &self.val)
        else {
            return Ok(decision);
        };
        let margins = match &val.matrix {
            Some(matrix) => booster.predict(matrix, Predicted::Margin)?.0,
            None => Vec::new(),
        };
        let said = self.said_of_validation(&margins, val)?;
        let Predictions::Classes(said) = &said else {
            return Ok(Some(decision));
        };
        let labels = self.tables.val_set().labels();
        let labels = (self.tables.val_rows.iter()).map(|&row| labels[row as usize]);
        Ok(Some(
            decision.with_best_threshold(by, said.iter().zip(labels)),
        ))
    }

    /// What the model says of every row of the test set, the rows shared by the ranks.
    fn evaluate(
        &self,
        booster: &mut Booster,
        decision: Option<Decision>,
    ) -> Result<Option<Evaluation>, TreesError> {
        let Some(set) = &self.tables.test else {
            return Ok(None);
        };
        let rows: Vec<u32> = (0..set.len() as u32).collect();
        let (rank, ranks) = (self.together.rank(), self.together.ranks());
        let shard = Shard::of(set, &rows, rank, ranks);
        let mut own = Vec::new();
        // XGBoost makes a copy of what it is to predict.
        let (width, threads) = (set.sample_len(), self.settings.threads);
        let mut blocks = shard.blocks(EVALUATED_ROWS);
        while let Some(values) = blocks.next() {
            let matrix = own_matrix(self.xgboost, values, width, threads)?;
            own.extend(booster.predict(&matrix, Predicted::Margin)?.0);
        }
        let objective = self.settings.objective;
        let margins = gathered(self.together, &own, &shard, objective.outputs())?;
        if let (Objective::Rank { .. }, Some(groups)) = (objective, set.groups()) {
            let mut ranking = ranking(groups, &margins, set.numbers());
            ranking.set = Some(set.name().to_owned());
            return Ok(Some(Evaluation::Ranking(ranking)));
        }
        let outputs = self.outputs().deciding(decision);
        let mut assessor = Assessor::new(set, &outputs).with_own(&self.tables.metrics);
        let labels = match set.labels() {
            [] => vec![u32::MAX; rows.len()],
            labels => labels.to_vec(),
        };
        let mut said = said::predictions(objective, &margins, &labels);
        outputs.decide(&mut said);
        assessor.add(&said);
        let targets: Vec<f32> = rows.iter().map(|&row| shard::target(set, row)).collect();
        for loss in objective.losses(&margins, &targets) {
            assessor.add_loss(loss);
        }
        Ok(Some(assessor.finish()))
    }
}

/// The numbers of an evaluation that the result of a run has.
pub(super) fn metrics_of(evaluation: &Evaluation) -> Metrics {
    let summary = serde_json::to_value(evaluation.summary()).unwrap_or_default();
    let names = [
        "loss", "accuracy", "mse", "mae", "r2", "ndcg", "ndcg10", "map",
    ];
    let measured = names
        .into_iter()
        .filter_map(|name| Some((name, summary[name].as_f64()?)));
    measured.chain(evaluation.own()).collect()
}
