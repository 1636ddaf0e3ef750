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
    /// The samples of the epoch, in its order, those of steps that are done too; empty if the host prepares the batches.
    pub order: &'a [u32],
    /// The update of every step of the epoch; of a worker in a gang it is not looked at.
    pub updates: &'a [Update],
    /// What every row of a step counts, for every step of the epoch; empty unless rows count in some shape, and if the host
    /// prepares the batches.
    pub factors: &'a [f64],
    /// What each lane of the worker has come to in the steps that are done.
    pub sums: &'a [LossSum],
}

impl Epoch<'_> {
    /// Refuses parts that are not as long as the epoch, and samples that there are not.
    pub(crate) fn check(&self, setup: &Setup, set: Option<&DataSet>) -> Result<(), CudaError> {
        // What the host tells with each batch is not told with the epoch.
        let of_set = |count: usize| {
            if setup.inputs.is_prepared() { 0 } else { count }
        };
        let factors = if setup.shape.is_some() {
            setup.steps()
        } else {
            0
        };
        check(
            "the samples of an epoch",
            self.order.len(),
            of_set(setup.samples),
        )?;
        check(
            "the factors of an epoch",
            self.factors.len(),
            of_set(factors),
        )?;
        if setup.exchange.updates() {
            check("the updates of an epoch", self.updates.len(), setup.steps())?;
        }
        check("the sums of lanes", self.sums.len(), setup.lanes)?;
        let known = set.map_or(0, DataSet::samples);
        let unknown = |&&sample: &&u32| sample as usize >= known;
        if let Some(sample) = self.order.iter().find(unknown) {
            return Err(CudaError::Mismatch {
                what: "a sample of the epoch",
                found: sample.to_string(),
                expected: format!("one below {known}"),
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
    /// Since [`Training::begin_window`](crate::Training::begin_window), or since training began.
    pub window: LossSum,
    /// Its loss in the newest step that it had rows in.
    pub last: f64,
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
