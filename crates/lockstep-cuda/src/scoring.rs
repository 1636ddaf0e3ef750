//! Rows that are scored: their inputs go to the device, what computes the network is queued, and its scores come back.

use crate::epoch::check;
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::launch::{Launch, LoadedLaunch, load_all};
use crate::memory::{DeviceMemory, DeviceSlice};
use crate::pinned::Pinned;
use crate::streams::Stream;

/// What scores rows of a network.
pub(crate) struct Scoring {
    answers: Pinned<f32>,
    /// Where inputs and scores lie on the device.
    inputs: DeviceSlice<f32>,
    scores: DeviceSlice<f32>,
    /// Numbers of a row of inputs, and of one of scores.
    shape: [usize; 2],
    /// The most rows at a time.
    rows: usize,
    /// What scores so many rows with the values at this address, as it was wanted last.
    planned: Option<(usize, u64, Vec<LoadedLaunch>)>,
}

impl Scoring {
    /// Of up to `rows` rows of so many inputs and outputs, which lie in these places.
    pub(crate) fn new(
        gpu: &Gpu,
        (inputs, scores): (DeviceSlice<f32>, DeviceSlice<f32>),
        shape: [usize; 2],
        rows: usize,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            answers: Pinned::zeros(&gpu.device, rows * shape[1])?,
            inputs,
            scores,
            shape,
            rows,
            planned: None,
        })
    }

    /// The scores of some rows, one after the other, with these values of the network. `plan` says what computes so many.
    pub(crate) fn scores(
        &mut self,
        (gpu, memory, stream): (&Gpu, &DeviceMemory, &Stream),
        values: DeviceSlice<f32>,
        inputs: &[f32],
        plan: impl FnOnce(usize) -> Vec<Launch>,
    ) -> Result<&[f32], CudaError> {
        let [width, outputs] = self.shape;
        let rows = inputs.len() / width.max(1);
        check("the inputs of whole rows", inputs.len(), rows * width)?;
        if rows > self.rows {
            return Err(CudaError::Mismatch {
                what: "the rows that are scored at a time",
                found: rows.to_string(),
                expected: format!("at most {}", self.rows),
            });
        }
        if rows == 0 {
            return Ok(&[]);
        }
        let launches = match self.planned.take() {
            Some((planned, at, launches)) if (planned, at) == (rows, values.address()) => launches,
            _ => load_all(&gpu.device, plan(rows))?,
        };
        let scores = rows * outputs;
        memory.write(stream, self.inputs.first(inputs.len()), inputs)?;
        // SAFETY: the memory is dropped after the stream, which waits for what is queued.
        unsafe { stream.launch(&launches)? };
        let answers = &mut self.answers[..scores];
        memory.read(stream, self.scores.first(scores), answers)?;
        self.planned = Some((rows, values.address(), launches));
        Ok(&self.answers[..scores])
    }
}
