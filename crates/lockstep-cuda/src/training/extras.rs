//! What a training keeps beside parameters: the norm of the gradient, an average of the weights, and marks.

use super::{Beginning, Training};
use crate::epoch::check;
use crate::error::CudaError;
use crate::memory::DeviceMemory;
use crate::network::{Clipped, Looked, MarkMemory, NEVER};
use crate::plan::Plan;
use crate::streams::Stream;

/// How far these are.
pub(super) struct Extras {
    /// Whether there is an average of the weights.
    pub(super) is_averaged: bool,
    /// Steps, counted from 0 since training began, whose marks are wanted and still lie on the device.
    wanted: Vec<u64>,
    /// Marks that were brought before others would have taken their place.
    brought: Vec<u32>,
}

impl Extras {
    /// Brings what training begins with to the device.
    pub(super) fn new(
        plan: &Plan,
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
        Ok(Self {
            is_averaged: plan.average.is_some() && beginning.average.is_some(),
            wanted: Vec::new(),
            brought: Vec::new(),
        })
    }

    /// Makes an epoch ready that goes on after so many steps of the run, of which so many were queued here.
    pub(super) fn begin_epoch(
        &self,
        plan: &Plan,
        (memory, stream): (&DeviceMemory, &Stream),
        (steps, queued): (u64, usize),
    ) -> Result<(), CudaError> {
        if let Some(marks) = plan.marks {
            let made = queued as u64;
            memory.write(stream, marks.looked, &[Looked { steps, made }])?;
        }
        if let Some(average) = plan.average {
            let first = if self.is_averaged { NEVER } else { steps + 1 };
            memory.write(stream, average.first, &[first])?;
        }
        Ok(())
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

    /// Keeps the marks of the step that was queued last until they are taken.
    ///
    /// # Errors
    /// When the setup wants no marks, or no step was queued.
    pub fn mark(&mut self) -> Result<(), CudaError> {
        self.marks()?;
        let Some(step) = (self.queued as u64).checked_sub(1) else {
            return Err(CudaError::Mismatch {
                what: "marks of a step",
                found: "no step".to_owned(),
                expected: "one that was queued".to_owned(),
            });
        };
        if self.extras.wanted.last() != Some(&step) {
            self.extras.wanted.push(step);
        }
        Ok(())
    }

    /// Brings marks that are wanted before the next step's would take the place of the oldest of them.
    pub(super) fn save_marks(&mut self) -> Result<(), CudaError> {
        let Some(marks) = self.plan.marks else {
            return Ok(());
        };
        match self.extras.wanted.first() {
            Some(&oldest) if self.queued as u64 - oldest >= marks.room as u64 => self.bring_marks(),
            _ => Ok(()),
        }
    }

    /// Brings all marks that are wanted.
    fn bring_marks(&mut self) -> Result<(), CudaError> {
        let marks = self.marks()?;
        let width = MarkMemory::width(&self.setup.model.layout);
        let mut found = vec![0; marks.marks.len()];
        self.memory.read(&self.stream, marks.marks, &mut found)?;
        let Extras {
            wanted, brought, ..
        } = &mut self.extras;
        for step in wanted.drain(..) {
            let first = (step % marks.room as u64) as usize * width;
            brought.extend(&found[first..first + width]);
        }
        Ok(())
    }

    /// The marks of the steps that were marked since the last call, when all that was queued is done: for each step one of
    /// the loss and one of every tensor.
    ///
    /// # Errors
    /// When the setup wants none, or a step has failed.
    pub fn take_marks(&mut self) -> Result<Vec<u32>, CudaError> {
        self.bring_marks()?;
        Ok(std::mem::take(&mut self.extras.brought))
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
