//! Measuring after every epoch, and the best weights so far.

use super::steps::StepLoop;
use crate::TrainError;
use crate::device::Objective;
use crate::evaluate::{Evaluator, is_of_whole_set};
use crate::sets::{Sets, all_indices};
use crate::snapshot::Best;
use lockstep_data::Dataset;
use lockstep_events::Metrics;
use lockstep_measure::{BestBy, Evaluation};
use lockstep_model::{Assessor, Decision, Outputs, Predictions};
use lockstep_resolve::{Threshold, TrainingSettings};

/// Measures the weights, and keeps the best.
pub(super) struct EpochEvaluation<'a> {
    sets: &'a Sets,
    /// What the best epoch is chosen by.
    best_by: BestBy,
    /// What the model predicts.
    outputs: Outputs,
    /// From which probability on the positive class is predicted.
    threshold: Option<Threshold>,
    test_indices: Vec<u32>,
    evaluator: Evaluator,
    /// The best weights so far; none without validation data.
    pub(super) best: Option<Best>,
    /// The present weights on the test set.
    test: Option<Metrics>,
    /// What the kept weights say of every test sample, once they were measured.
    predictions: Predictions,
}

/// What an epoch's weights are worth.
pub(super) struct Measured {
    pub(super) val: Option<Metrics>,
    pub(super) test: Option<Metrics>,
    /// Whether they are the best so far; always without validation data.
    pub(super) best: bool,
}

/// The weights that are kept.
pub(super) struct Kept {
    /// On the test set.
    pub(super) metrics: Option<Metrics>,
    /// On the validation data that they were chosen by.
    pub(super) val: Option<Metrics>,
    /// The epoch that they are of.
    pub(super) epoch: u32,
}

impl<'a> EpochEvaluation<'a> {
    /// Measures `rows` rows at a time of a network that is trained for this.
    pub(super) fn new(
        settings: &TrainingSettings,
        sets: &'a Sets,
        objective: Objective,
        rows: usize,
        best: Option<Best>,
    ) -> Self {
        let outputs = Outputs::of(&sets.train, &sets.scale, objective.outputs);
        let outputs = outputs.deciding(sets.decision);
        Self {
            sets,
            best_by: settings.checkpoint.best.clone(),
            threshold: settings.learner.decision.threshold,
            test_indices: sets.test.as_ref().map(all_indices).unwrap_or_default(),
            evaluator: Evaluator::new(sets.input_len(), rows, outputs.clone()),
            predictions: Predictions::new(outputs.kind, objective.outputs),
            outputs,
            best,
            test: None,
        }
    }

    /// Measures the weights after an epoch, and keeps them if they are the best. All ranks come here
    /// together.
    pub(super) fn epoch(
        &mut self,
        steps: &mut StepLoop<'_>,
        epoch: u32,
        is_last: bool,
    ) -> Result<Measured, TrainError> {
        let val = self.validate(steps)?;
        self.test = self.measure_test(steps, None, val.is_none() && is_last)?;
        let best = match &val {
            None => true,
            Some(val) => self.keep_if_best(steps.kept_weights(), epoch, val),
        };
        Ok(Measured {
            val,
            test: self.test.clone(),
            best,
        })
    }

    /// Measures the weights that are kept. All ranks come here together.
    pub(super) fn of_kept(&mut self, steps: &mut StepLoop<'_>) -> Result<Kept, TrainError> {
        let best = self.best.take();
        let (metrics, epoch) = match &best {
            Some(best) => {
                let metrics = self.measure_test(steps, Some(&best.state), true)?;
                (metrics, best.epoch)
            }
            None if self.test.is_none() => {
                let metrics = self.measure_test(steps, None, true)?;
                (metrics, steps.position.epochs)
            }
            None => (self.test.clone(), steps.position.epochs),
        };
        let state = best.as_ref().map(|best| &best.state[..]);
        self.choose_threshold(steps, state)?;
        let val = best.as_ref().map(|best| best.val.clone());
        self.best = best;
        Ok(Kept {
            metrics,
            val,
            epoch,
        })
    }

    /// What the kept weights are worth on the test set, once [`EpochEvaluation::of_kept`] has measured them.
    pub(super) fn assess(&self, metrics: Option<&Metrics>) -> Option<Evaluation> {
        let (set, metrics) = (self.sets.test.as_ref()?, metrics?);
        let assessor = Assessor::new(set, &self.outputs);
        let mut evaluation = self.finish(assessor, self.predictions.clone());
        if let Some(loss) = metrics.get("loss") {
            evaluation.set_loss(loss);
        }
        Some(evaluation)
    }

    /// How the model decides; with the threshold that was chosen for it, once [`EpochEvaluation::of_kept`] has measured it.
    pub(super) fn decision(&self) -> Option<Decision> {
        self.outputs.decision
    }

    /// Chooses the threshold of the kept weights on validation data, if the job wants that.
    fn choose_threshold(
        &mut self,
        steps: &mut StepLoop<'_>,
        state: Option<&[f32]>,
    ) -> Result<(), TrainError> {
        let sets = self.sets;
        let (Some(Threshold::Best(by)), Some(decision)) = (self.threshold, self.outputs.decision)
        else {
            return Ok(());
        };
        let samples = (sets.val_set(), &sets.val_indices[..]);
        let mut predictions = self.predictions.empty();
        let said = Some(&mut predictions);
        measure(&mut self.evaluator, sets, steps, state, samples, said)?;
        if let Predictions::Classes(said) = &predictions {
            let labels = (samples.1.iter()).map(|&sample| samples.0.labels()[sample as usize]);
            let decision = decision.with_best_threshold(by, said.iter().zip(labels));
            self.outputs.decision = Some(decision);
        }
        Ok(())
    }

    fn validate(&mut self, steps: &mut StepLoop<'_>) -> Result<Option<Metrics>, TrainError> {
        let sets = self.sets;
        if sets.val_indices.is_empty() {
            return Ok(None);
        }
        let samples = (sets.val_set(), &sets.val_indices[..]);
        let of_whole_set = is_of_whole_set(&self.best_by, steps.objective.loss);
        let wants_all = of_whole_set || self.wants_all_predictions();
        let evaluator = &mut self.evaluator;
        if !wants_all {
            return measure(evaluator, sets, steps, None, samples, None).map(Some);
        }
        let mut predictions = self.predictions.empty();
        let said = Some(&mut predictions);
        let mut metrics = measure(evaluator, sets, steps, None, samples, said)?;
        let evaluation = self.complete(&mut metrics, samples, predictions);
        if let (Some(value), true) = (evaluation.value(&self.best_by), of_whole_set) {
            metrics.set(self.best_by.word(), value);
        }
        Ok(Some(metrics))
    }

    /// Whether there are metrics that do not follow from sums over the samples: those of the job's own, and those of a
    /// model that decides by a threshold.
    fn wants_all_predictions(&self) -> bool {
        let threshold = self.outputs.decision.and_then(|of| of.threshold);
        !self.sets.metrics.is_empty() || threshold.is_some()
    }

    /// Adds such metrics to those of some samples, of which the model said this.
    fn complete(
        &self,
        metrics: &mut Metrics,
        samples: (&Dataset, &[u32]),
        predictions: Predictions,
    ) -> Evaluation {
        let assessor = Assessor::of_samples(samples, &self.outputs);
        let evaluation = self.finish(assessor, predictions);
        note_decided(metrics, &evaluation);
        evaluation
    }

    /// What predictions come to, once the model has decided.
    fn finish(&self, assessor: Assessor<'_>, mut predictions: Predictions) -> Evaluation {
        self.outputs.decide(&mut predictions);
        let mut assessor = assessor.with_own(&self.sets.metrics);
        assessor.add(&predictions);
        assessor.finish()
    }

    /// The metrics on the test set of the given weights, or of the present ones. Of the ones that are
    /// `kept`, what they say of every sample is kept too.
    fn measure_test(
        &mut self,
        steps: &mut StepLoop<'_>,
        state: Option<&[f32]>,
        kept: bool,
    ) -> Result<Option<Metrics>, TrainError> {
        let sets = self.sets;
        let Some(set) = &sets.test else {
            return Ok(None);
        };
        let samples = (set, &self.test_indices[..]);
        let wants_all = self.wants_all_predictions();
        let evaluator = &mut self.evaluator;
        if !kept && !wants_all {
            return measure(evaluator, sets, steps, state, samples, None).map(Some);
        }
        let mut said = self.predictions.empty();
        let mut metrics = measure(evaluator, sets, steps, state, samples, Some(&mut said))?;
        if wants_all {
            self.complete(&mut metrics, samples, said.clone());
        }
        if kept {
            self.predictions = said;
        }
        Ok(Some(metrics))
    }

    /// Of epochs that are equally good the first is kept.
    fn keep_if_best(&mut self, state: &[f32], epoch: u32, val: &Metrics) -> bool {
        let by = &self.best_by;
        let value = |metrics: &Metrics| metrics.get(by.word()).unwrap_or(f64::NAN);
        let is_better = |best: &Best| by.is_better(value(val), value(&best.val));
        let better = self.best.as_ref().is_none_or(is_better);
        if better {
            let (state, val) = (state.to_vec().into(), val.clone());
            self.best = Some(Best { epoch, val, state });
        }
        better
    }
}

/// Takes what does not follow from sums over the samples into their metrics: those of the job's own, and with a threshold,
/// by which other classes are predicted than the more probable ones, the accuracy.
pub(super) fn note_decided(metrics: &mut Metrics, evaluation: &Evaluation) {
    if let Evaluation::Classes(of) = evaluation
        && of.threshold.is_some()
    {
        metrics.set("accuracy", of.summary.accuracy);
    }
    for (name, value) in evaluation.own() {
        metrics.set(name, value);
    }
}

/// The metrics of the given weights, or of the present ones, on some samples. Metrics that are not numbers
/// mean that the weights are lost.
fn measure(
    evaluator: &mut Evaluator,
    sets: &Sets,
    steps: &mut StepLoop<'_>,
    state: Option<&[f32]>,
    samples: (&Dataset, &[u32]),
    predictions: Option<&mut Predictions>,
) -> Result<Metrics, TrainError> {
    let (mut network, collective) = steps.replica.evaluation(state)?;
    let normaliser = &sets.normaliser;
    let metrics = evaluator.run(&mut *network, samples, normaliser, collective, predictions)?;
    drop(network);
    let loss = metrics.get("loss").unwrap_or(f64::NAN);
    match loss.is_finite() {
        true => Ok(metrics),
        false => Err(TrainError::Diverged {
            loss,
            step: steps.position.step,
            epoch: steps.position.epochs + 1,
        }),
    }
}
