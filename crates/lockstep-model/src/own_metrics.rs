//! Metrics of a job's own, bound to what a model predicts.

use crate::JobMisfit;
use lockstep_data::TargetKind;
use lockstep_measure::{BoundFormula, FormulaSample, OwnMetric, Predicted};
use std::collections::BTreeMap;

/// Metrics of a job's own that take in what a model said, sample after sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnMetrics(Vec<(String, BoundFormula)>);

impl OwnMetrics {
    /// Binds the metrics of a job to a model that predicts outputs of these names.
    ///
    /// # Errors
    /// When a formula asks for what the model does not say.
    pub fn bind(
        metrics: &[OwnMetric],
        kind: TargetKind,
        names: &[String],
    ) -> Result<Self, JobMisfit> {
        let predicted = match kind {
            TargetKind::Classes => Predicted::Classes(names),
            TargetKind::Numbers => Predicted::Numbers(names),
            TargetKind::Labels => Predicted::Labels(names),
        };
        let bind = |metric: &OwnMetric| {
            let bound = metric.formula.bind(predicted).map_err(|error| JobMisfit {
                key: format!("metrics.{}", metric.name),
                reason: error.to_string(),
            });
            Ok((metric.name.clone(), bound?))
        };
        metrics.iter().map(bind).collect::<Result<_, _>>().map(Self)
    }

    /// What they are called.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in what was said of the next sample.
    pub(crate) fn add(&mut self, sample: FormulaSample<'_>) {
        for (_, formula) in &mut self.0 {
            formula.add(sample);
        }
    }

    /// What they come to. One that is no number, such as a share of nothing, is left out.
    pub(crate) fn finish(self) -> BTreeMap<String, f64> {
        let values = self.0.into_iter();
        values
            .filter_map(|(name, formula)| Some((name, formula.finish()?)))
            .collect()
    }
}
