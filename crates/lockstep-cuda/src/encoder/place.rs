//! Places the numbers of an encoder in a GPU's memory.

use crate::error::CudaError;
use crate::memory::{Arena, DeviceMemory, DeviceSlice};
use crate::streams::Stream;

/// Hands out memory, and brings numbers to it. Without memory it only counts.
pub(super) struct Placer<'a> {
    arena: Arena,
    to: Option<(&'a DeviceMemory, &'a Stream)>,
}

impl<'a> Placer<'a> {
    /// One that only counts.
    pub(super) fn counting() -> Self {
        Self {
            arena: Arena::new(0),
            to: None,
        }
    }

    /// Of this memory.
    pub(super) fn into(memory: &'a DeviceMemory, stream: &'a Stream) -> Self {
        Self {
            arena: Arena::new(memory.address()),
            to: Some((memory, stream)),
        }
    }

    /// Bytes that were handed out.
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// Room for so many numbers.
    pub(super) fn room(&mut self, numbers: usize) -> DeviceSlice<f32> {
        self.arena.take(numbers)
    }

    /// These numbers.
    pub(super) fn numbers(&mut self, numbers: &[f32]) -> Result<DeviceSlice<f32>, CudaError> {
        self.made(numbers.len(), || numbers)
    }

    /// A matrix of so many columns, turned: column by column.
    pub(super) fn turned(
        &mut self,
        matrix: &[f32],
        columns: usize,
    ) -> Result<DeviceSlice<f32>, CudaError> {
        let rows = matrix.len() / columns.max(1);
        self.made(matrix.len(), || {
            let mut turned = vec![0.0; matrix.len()];
            for (i, row) in matrix.chunks_exact(columns.max(1)).enumerate() {
                for (j, &number) in row.iter().enumerate() {
                    turned[j * rows + i] = number;
                }
            }
            turned
        })
    }

    fn made<N: AsRef<[f32]>>(
        &mut self,
        len: usize,
        numbers: impl FnOnce() -> N,
    ) -> Result<DeviceSlice<f32>, CudaError> {
        let slice = self.room(len);
        if let Some((memory, stream)) = self.to {
            memory.write(stream, slice, numbers().as_ref())?;
        }
        Ok(slice)
    }
}
