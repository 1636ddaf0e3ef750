//! What a model came to on a set, whatever it predicts.

use crate::{
    BestBy, ClassSummary, Classification, LabelSummary, Measure, MultiLabel, Ranking,
    RankingSummary, Regression, RegressionSummary,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that is known about how a model did on a set; `evaluation.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "a model has one of these")]
pub enum Evaluation {
    /// Of a model that predicts a class.
    Classes(Classification),
    /// Of one that predicts numbers.
    Numbers(Regression),
    /// Of one that predicts labels, of which a sample may have several.
    Labels(MultiLabel),
    /// Of one that puts rows in order.
    Ranking(Ranking),
}

/// The numbers that say how good a model is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Summary {
    /// Of a model that predicts a class.
    Classes(ClassSummary),
    /// Of one that predicts numbers.
    Numbers(RegressionSummary),
    /// Of one that predicts labels, of which a sample may have several.
    Labels(LabelSummary),
    /// Of one that puts rows in order.
    Ranking(RankingSummary),
}

impl Summary {
    /// What a measure came to; nothing where it is not measured. The area under a curve needs samples of both classes.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        let numbers = serde_json::to_value(self).ok()?;
        numbers.pointer(&measure.pointer())?.as_f64()
    }
}

impl Evaluation {
    /// The numbers that say how good the model is.
    pub fn summary(&self) -> Summary {
        match self {
            Self::Classes(of) => Summary::Classes(of.summary),
            Self::Numbers(of) => Summary::Numbers(of.summary),
            Self::Labels(of) => Summary::Labels(of.summary),
            Self::Ranking(of) => Summary::Ranking(of.summary),
        }
    }

    /// How many samples they are over.
    pub fn samples(&self) -> u64 {
        match self {
            Self::Classes(of) => of.summary.samples,
            Self::Numbers(of) => of.summary.samples,
            Self::Labels(of) => of.summary.samples,
            Self::Ranking(of) => of.summary.samples,
        }
    }

    /// Says what it was measured on.
    pub fn set_name(&mut self, name: &str) {
        let set = match self {
            Self::Classes(of) => &mut of.set,
            Self::Numbers(of) => &mut of.set,
            Self::Labels(of) => &mut of.set,
            Self::Ranking(of) => &mut of.set,
        };
        *set = Some(name.to_owned());
    }

    /// Says what the mean loss was.
    pub fn set_loss(&mut self, loss: f64) {
        let to = match self {
            Self::Classes(of) => &mut of.summary.loss,
            Self::Numbers(of) => &mut of.summary.loss,
            Self::Labels(of) => &mut of.summary.loss,
            Self::Ranking(of) => &mut of.summary.loss,
        };
        *to = Some(loss);
    }

    /// The metrics of the job's own.
    pub fn own(&self) -> impl Iterator<Item = (&str, f64)> {
        let metrics = match self {
            Self::Classes(of) => Some(&of.metrics),
            Self::Numbers(of) => Some(&of.metrics),
            Self::Labels(of) => Some(&of.metrics),
            Self::Ranking(_) => None,
        };
        let metrics = metrics.into_iter().flatten();
        metrics.map(|(name, value)| (name.as_str(), *value))
    }

    /// Says what the metrics of the job's own came to. Of rankings there are none.
    pub fn set_own(&mut self, metrics: BTreeMap<String, f64>) {
        match self {
            Self::Classes(of) => of.metrics = metrics,
            Self::Numbers(of) => of.metrics = metrics,
            Self::Labels(of) => of.metrics = metrics,
            Self::Ranking(_) => {}
        }
    }

    /// What a measure or a metric of the job's own came to; nothing where it is not measured.
    pub fn value(&self, by: &BestBy) -> Option<f64> {
        match by {
            BestBy::Measure(measure) => self.summary().value(*measure),
            BestBy::Own(metric) => {
                let mut own = self.own();
                own.find(|(name, _)| *name == metric.name)
                    .map(|(_, value)| value)
            }
        }
    }

    /// The scores of every class, column or label, as aligned lines of text.
    pub fn table(&self) -> Vec<String> {
        match self {
            Self::Classes(of) => of.table(),
            Self::Numbers(of) => of.table(),
            Self::Labels(of) => of.table(),
            Self::Ranking(_) => Vec::new(),
        }
    }

    /// A picture as an SVG file, where there is one: the confusion matrix.
    pub fn svg(&self, title: &str) -> Option<String> {
        match self {
            Self::Classes(of) => Some(of.svg(title)),
            Self::Numbers(_) | Self::Labels(_) | Self::Ranking(_) => None,
        }
    }
}
