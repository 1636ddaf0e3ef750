//! What one turn came to.

use crate::machine::Taken;
use lockstep_events::event::StepTimes;
use serde::{Deserialize, Serialize};

/// What a model was worth after an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochPoint {
    /// The epoch, counted from 1.
    pub epoch: u32,
    /// Seconds since the first step.
    pub seconds: f64,
    /// The share of the test set that was right, or of the validation set where there is none.
    pub accuracy: Option<f64>,
    /// The loss there, or that of training.
    pub loss: Option<f64>,
}

/// What measuring a setting once came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Seconds from the first step to the last, evaluation included.
    pub training_s: f64,
    /// Seconds from the start to the end of the first step.
    pub start_s: f64,
    /// Seconds from the start to the result.
    pub total_s: f64,
    /// Training samples a second, evaluation left out.
    pub samples_per_s: f64,
    /// The accuracy of what was learned.
    pub accuracy: Option<f64>,
    /// Its loss.
    pub loss: Option<f64>,
    /// The hash of what was learned.
    pub weights_sha256: Option<String>,
    /// Epoch by epoch.
    pub epochs: Vec<EpochPoint>,
    /// Where the time of its steps went.
    pub step: Option<StepTimes>,
    /// Numbers that are learned; 0 where that is not known.
    pub parameters: u64,
    /// How often a worker was lost.
    pub restarts: u32,
}

/// A measurement, where it stood, and what else the machine did meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The round, counted from 0.
    pub round: usize,
    /// The number of the setting.
    pub setting: usize,
    /// What was measured.
    pub measured: Measured,
    /// What others took of the machine.
    pub taken: Taken,
}
