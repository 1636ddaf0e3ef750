//! What a worker of a gang exchanges with its device.

use super::Training;
use crate::error::CudaError;
use std::ops::Range;

impl Training {
    /// A partial sum of the gradients of the newest step, as long as the state vector, once it is there: that of the lane
    /// which is the `number`-th of [`WorkerBatch::partials`](crate::WorkerBatch::partials). What never learns is not in it.
    ///
    /// # Errors
    /// When the worker trains alone, its batches have no such sum, or a step has failed.
    pub fn partial(&self, number: usize) -> Result<&[f32], CudaError> {
        let most = self.setup.batches.iter().map(|batch| batch.partials.len());
        let most = most.max().unwrap_or(0);
        match &self.gang {
            Some(gang) if number < most => gang.partial(number),
            found => Err(CudaError::Mismatch {
                what: "a partial sum",
                found: number.to_string(),
                expected: match found {
                    Some(_) => format!("one below {most}"),
                    None => "none of a worker that trains alone".to_owned(),
                },
            }),
        }
    }

    /// Room for the whole state vector, of which [`Training::queue_values`] brings parts to the device. It is written to
    /// by nobody else, and waited for until what was queued of it has gone.
    ///
    /// # Errors
    /// When the worker trains alone, or a step has failed.
    pub fn new_values(&mut self) -> Result<&mut [f32], CudaError> {
        let gang = self.gang.as_mut().ok_or_else(no_gang)?;
        gang.values()
    }

    /// Queues that a part of [`Training::new_values`] becomes that of the state vector, before the next step that is queued.
    ///
    /// # Errors
    /// When the worker trains alone, the vector has no such part, or a step has failed.
    pub fn queue_values(&mut self, range: Range<usize>) -> Result<(), CudaError> {
        let values = self.plan.update.values;
        if range.start > range.end || range.end > values.len() {
            return Err(CudaError::Mismatch {
                what: "a part of the state vector",
                found: format!("{range:?}"),
                expected: format!("a part of {}", values.len()),
            });
        }
        let gang = self.gang.as_mut().ok_or_else(no_gang)?;
        gang.queue_values(&self.memory, &self.stream, (values, range))
    }
}

fn no_gang() -> CudaError {
    CudaError::Mismatch {
        what: "values of a gang",
        found: "a worker that trains alone".to_owned(),
        expected: "one in a gang".to_owned(),
    }
}
