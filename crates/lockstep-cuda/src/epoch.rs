//! Epochs: what a training is handed, and what it tells.

use crate::data_set::DataSet;
use crate::error::CudaError;
use crate::setup::Setup;
use lockstep_nn::{LossSum, Update};

/// The rest of an epoch, or all of it.
#[derive(Debug, Clone, Copy)]
pub struct Epoch<'a> {
    /// Steps of the run that are done.
    pub step: u64,
    /// Steps of the epoch that are done.
    pub in_epoch: usize,
    /// The samples of the epoch, in its order, those of steps that are done too.
    pub order: &'a [u32],
    /// The update of every step of the epoch.
    pub updates: &'a [Update],
    /// What each lane of the worker has come to in the steps that are done.
    pub sums: &'a [LossSum],
}

impl Epoch<'_> {
    /// Refuses parts that are not as long as the epoch, and samples that there are not.
    pub(crate) fn check(&self, setup: &Setup, set: &DataSet) -> Result<(), CudaError> {
        check("the samples of an epoch", self.order.len(), setup.samples)?;
        check("the updates of an epoch", self.updates.len(), setup.steps())?;
        check("the sums of lanes", self.sums.len(), setup.lanes)?;
        let unknown = |&&sample: &&u32| sample as usize >= set.samples();
        if let Some(sample) = self.order.iter().find(unknown) {
            return Err(CudaError::Mismatch {
                what: "a sample of the epoch",
                found: sample.to_string(),
                expected: format!("one below {}", set.samples()),
            });
        }
        Ok(())
    }
}

/// What a lane has come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneReport {
    /// Since the epoch began.
    pub epoch: LossSum,
    /// Since the report before this one, or since the epoch began.
    pub window: LossSum,
    /// The number of the first step whose loss was not finite, and that loss.
    pub diverged: Option<(u64, f64)>,
}

/// Refuses another length than what was planned.
pub(crate) fn check(what: &'static str, found: usize, expected: usize) -> Result<(), CudaError> {
    match found == expected {
        true => Ok(()),
        false => Err(CudaError::Mismatch {
            what,
            found: format!("{found} numbers"),
            expected: format!("{expected} numbers"),
        }),
    }
}
