//! What a training keeps beside parameters: the norm of the gradient, an average of the weights, and marks.

use super::{Beginning, Training, load};
use crate::epoch::check;
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::launch::LoadedLaunch;
use crate::memory::DeviceMemory;
use crate::network::{AverageMemory, Clipped, MarkMemory, NEVER};
use crate::plan::Plan;
use crate::setup::Setup;
use crate::streams::Stream;

/// How far these are.
pub(super) struct Extras {
    /// Whether there is an average of the weights.
    pub(super) is_averaged: bool,
    /// What looks at the parameters after a step on a full batch, and on the last one of an epoch.
    looks: [Vec<LoadedLaunch>; 2],
    /// Looks that were queued, and those of them whose marks were taken.
    made: u64,
    taken: u64,
}

impl Extras {
    /// Brings what training begins with to the device.
    pub(super) fn new(
        gpu: &Gpu,
        (plan, setup): (&Plan, &Setup),
        (memory, stream): (&DeviceMemory, &Stream),
        beginning: Beginning<'_>,
    ) -> Result<Self, CudaError> {
        if let Some(average) = plan.average {
            let begin = beginning.average.unwrap_or(beginning.values);
            check(
                "the average of the weights",
                begin.len(),
                average.values.len(),
            )?;
            memory.write(stream, average.values, begin)?;
        }
        if let Some(marks) = plan.marks {
            memory.write(stream, marks.made, &[0])?;
        }
        let look = |last| load(gpu, plan.look(setup, last));
        Ok(Self {
            is_averaged: plan.average.is_some() && beginning.average.is_some(),
            looks: [look(false)?, look(true)?],
            made: 0,
            taken: 0,
        })
    }

    /// Makes an epoch that goes on with this step ready.
    pub(super) fn begin_epoch(
        &self,
        average: Option<AverageMemory>,
        (memory, stream): (&DeviceMemory, &Stream),
        step: u64,
    ) -> Result<(), CudaError> {
        let Some(average) = average else {
            return Ok(());
        };
        let first = if self.is_averaged { NEVER } else { step + 1 };
        memory.write(stream, average.first, &[first])
    }
}

impl Training {
    /// The norm of the newest step's gradient before it was clipped, when all steps that were queued are done; none where
    /// none is, or before the first step.
    ///
    /// # Errors
    /// When a step has failed.
    pub fn gradient_norm(&self) -> Result<Option<f64>, CudaError> {
        let Some(clip) = self.plan.clip.as_ref().filter(|_| self.queued > 0) else {
            return Ok(None);
        };
        let mut clipped = [Clipped::NONE];
        self.memory.read(&self.stream, clip.result, &mut clipped)?;
        Ok(Some(clipped[0].norm()))
    }

    /// Whether there is an average of the weights: from the first step on, if the setup wants one.
    pub fn has_average(&self) -> bool {
        self.extras.is_averaged
    }

    /// Reads the average of the weights, when all steps that were queued are done. Before the first step it is the state
    /// vector.
    ///
    /// # Errors
    /// When the setup wants none, there is not as much room, or a step has failed.
    pub fn read_average(&self, to: &mut [f32]) -> Result<(), CudaError> {
        let average = self.plan.average.ok_or_else(|| not_wanted("an average"))?;
        self.read("the average of the weights", average.values, to)
    }

    /// Looks at the marked places after the step that was queued last, and keeps what is found until it is taken.
    ///
    /// # Errors
    /// When the setup wants no marks, no step was queued, there is no room for more, or a step has failed.
    pub fn mark(&mut self) -> Result<(), CudaError> {
        let marks = self.marks()?;
        let Extras {
            made, taken, looks, ..
        } = &mut self.extras;
        if self.queued == 0 || *made - *taken >= marks.room as u64 {
            return Err(CudaError::Mismatch {
                what: "marks of a step",
                found: format!(
                    "{} that were not taken, after {} steps",
                    *made - *taken,
                    self.queued
                ),
                expected: format!("at most {} before it, and a step", marks.room - 1),
            });
        }
        let looks = &looks[self.setup.which_batch(self.in_epoch - 1)];
        // SAFETY: the memory is dropped after the stream, which waits for what is queued.
        unsafe { self.stream.launch(looks)? };
        *made += 1;
        Ok(())
    }

    /// The marks that were made since the last call, when all that was queued is done: for each look one of the loss and
    /// one of every tensor.
    ///
    /// # Errors
    /// When the setup wants none, or a step has failed.
    pub fn take_marks(&mut self) -> Result<Vec<u32>, CudaError> {
        let marks = self.marks()?;
        let width = MarkMemory::width(&self.setup.model.layout);
        let Extras { made, taken, .. } = self.extras;
        let mut found = vec![0; (made - taken) as usize * width];
        // The ring may end between them.
        let first = (taken % marks.room as u64) as usize * width;
        let behind = found.len().min(marks.marks.len() - first);
        let (one, other) = found.split_at_mut(behind);
        let parts = [first..first + one.len(), 0..other.len()];
        for (part, to) in parts.into_iter().zip([one, other]) {
            self.memory.read(&self.stream, marks.marks.part(part), to)?;
        }
        self.extras.taken = made;
        Ok(found)
    }

    fn marks(&self) -> Result<MarkMemory, CudaError> {
        self.plan.marks.ok_or_else(|| not_wanted("marks"))
    }
}

fn not_wanted(what: &'static str) -> CudaError {
    CudaError::Mismatch {
        what,
        found: "a setup without".to_owned(),
        expected: "one that wants it".to_owned(),
    }
}
