//! What comes back from a device where it is asked for: what lanes have come to, scores, and the state; and how the state is
//! overwritten.

use super::Training;
use crate::data_set::DataSet;
use crate::epoch::{LaneReport, check};
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::launch::{LoadedLaunch, load_all};
use crate::memory::DeviceSlice;
use crate::network::{LaneSum, Progress};

impl Training {
    /// What each lane has come to, when all steps that were queued are done.
    ///
    /// # Errors
    /// When a step has failed.
    pub fn report(&mut self) -> Result<Vec<LaneReport>, CudaError> {
        Ok(self.sums()?.iter().map(LaneSum::report).collect())
    }

    /// What each lane has come to, as the device has it.
    pub(super) fn sums(&self) -> Result<Vec<LaneSum>, CudaError> {
        let on_device = self.plan.batch.sums;
        let mut sums = vec![LaneSum::nothing(); on_device.len()];
        self.memory.read(&self.stream, on_device, &mut sums)?;
        Ok(sums)
    }

    /// Begins the next window of sums.
    ///
    /// # Errors
    /// As [`Training::report`].
    pub fn begin_window(&mut self) -> Result<(), CudaError> {
        let mut sums = self.sums()?;
        sums.iter_mut().for_each(LaneSum::begin_window);
        (self.memory).write(&self.stream, self.plan.batch.sums, &sums)
    }

    /// Scores with other values than those that are trained, or with those again. It costs a copy to the device.
    ///
    /// # Errors
    /// When they are not as many as the state vector has, or a step has failed.
    pub fn load(&mut self, values: Option<&[f32]>) -> Result<(), CudaError> {
        if let Some(values) = values {
            self.write("other values", self.plan.loaded, values)?;
        }
        self.is_loaded = values.is_some();
        Ok(())
    }

    /// The network's scores of some rows, row after row: with the values of [`Training::load`], else with the average of
    /// the weights, once there is one, else with the present ones.
    ///
    /// # Errors
    /// When these are not whole rows, or more than were planned; or when a step has failed.
    pub fn scores(&mut self, inputs: &[f32]) -> Result<&[f32], CudaError> {
        let values = match self.plan.average.filter(|_| self.extras.is_averaged) {
            _ if self.is_loaded => self.plan.loaded,
            Some(average) => average.values,
            None => self.plan.update.values,
        };
        let Self {
            memory,
            stream,
            plan,
            setup,
            scoring,
            gpu,
            ..
        } = self;
        let launches = |rows| plan.scores(setup, values, rows);
        scoring.scores((gpu, memory, stream), values, inputs, launches)
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The kernels of a step on a full batch.
    pub(crate) fn full_step(&self) -> Result<Vec<LoadedLaunch>, CudaError> {
        let content = self.set.as_ref().map(DataSet::content);
        let launches = self.plan.step(&self.setup, content, false);
        load_all(&self.gpu.device, launches)
    }

    /// Begins the epoch again, when all steps that were queued are done.
    pub(crate) fn begin_again(&self) -> Result<(), CudaError> {
        let progress = Progress {
            step: self.step,
            in_epoch: 0,
        };
        let at = self.plan.batch.progress;
        self.memory.write(&self.stream, at, &[progress])
    }

    /// Reads the state vector, when all steps that were queued are done.
    ///
    /// # Errors
    /// When there is not as much room, or a step has failed.
    pub fn read_values(&self, to: &mut [f32]) -> Result<(), CudaError> {
        self.read("the state vector", self.plan.update.values, to)
    }

    /// Reads one of the optimizer's vectors.
    ///
    /// # Errors
    /// As [`Training::read_values`].
    ///
    /// # Panics
    /// When the optimizer has no such vector.
    pub fn read_plane(&self, plane: usize, to: &mut [f32]) -> Result<(), CudaError> {
        self.read(
            "a vector of the optimizer",
            self.plan.update.planes[plane],
            to,
        )
    }

    pub(super) fn read(
        &self,
        what: &'static str,
        from: DeviceSlice<f32>,
        to: &mut [f32],
    ) -> Result<(), CudaError> {
        check(what, to.len(), from.len())?;
        self.memory.read(&self.stream, from, to)
    }

    fn write(
        &self,
        what: &'static str,
        to: DeviceSlice<f32>,
        from: &[f32],
    ) -> Result<(), CudaError> {
        check(what, from.len(), to.len())?;
        self.memory.write(&self.stream, to, from)
    }
}
