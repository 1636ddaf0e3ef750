//! Work that goes to whoever is free.
//!
//! Cores are not equally fast at every moment, and a gang goes as fast as its slowest. The gradient of a
//! layer whose factors all ranks have can be formed by any of them, with the same bits; so a rank that is
//! done with the chunks it owns takes others' that nobody has begun, from the end of their owners' order.
//! For that, what an update reads and writes and other ranks have no copy of lives in shared memory: the
//! optimizer's vectors, and the weights that are kept by whoever computes their columns. A rank that took
//! such a chunk also computes its columns in the next step.

use super::{GangReplica, StepPlan};
use crate::TrainError;
use lockstep_gang::{CollectiveExt, GangError};
use lockstep_nn::StatePart;

impl GangReplica {
    /// Brings what lives in shared memory there. Called by all ranks before the first step.
    pub(crate) fn enter_homes(&mut self) -> Result<(), TrainError> {
        // Once all are here nobody works on for a generation that was given up.
        self.collective.recall()?;
        self.with_homes(|home, own| home.copy_from_slice(own));
        Ok(self.collective.barrier()?)
    }

    /// Brings the owned parts of what lives in shared memory back to this rank's own vectors. Called by
    /// all ranks between steps.
    pub(super) fn leave_homes(&mut self) -> Result<(), TrainError> {
        self.collective.recall()?;
        self.with_homes(|home, own| own.copy_from_slice(home));
        Ok(())
    }

    /// Does something with each vector in the home of each owned chunk and this rank's own of it.
    fn with_homes(&mut self, each: impl Fn(&mut [f32], &mut [f32])) {
        for chunk in 0..self.collective.plan().chunks() {
            if !self.collective.holds(chunk) {
                continue;
            }
            let range = self.collective.plan().chunk(chunk);
            let Some(home) = self.collective.home(chunk) else {
                continue;
            };
            let planes = home.planes.into_iter().enumerate();
            let planes = planes.map(|(number, plane)| (StatePart::Plane(number), plane));
            let values = home.values.map(|values| (StatePart::Values, values));
            for (part, numbers) in planes.chain(values) {
                if !numbers.is_empty() {
                    each(numbers, &mut self.state.part_mut(part)[range.clone()]);
                }
            }
        }
    }

    /// Takes, updates and publishes one of the others' chunks that nobody has taken, if there is any.
    pub(super) fn take_over(&mut self, step: &StepPlan<'_>) -> Result<bool, GangError> {
        match self.open.pop_back() {
            None => Ok(false),
            Some(chunk) => self.take_and_update(step, chunk).map(|()| true),
        }
    }

    /// Updates a chunk that all parts are here of, unless another rank was faster to take it.
    pub(super) fn take_and_update(
        &mut self,
        step: &StepPlan<'_>,
        chunk: usize,
    ) -> Result<(), GangError> {
        if self.collective.plan().is_common(chunk) && !self.collective.take(chunk)? {
            if !self.is_kept(chunk) {
                self.awaited.push_back(chunk);
            }
            return Ok(());
        }
        self.reduce_and_update(step, chunk);
        lockstep_base::failpoint::reach("update.publish");
        self.publish(chunk)
    }
}
