//! A GPU that is open.

use crate::driver::cuda::CudaDriver;
use crate::driver::{Device, DeviceFacts, Driver};
use crate::error::CudaError;
use std::sync::Arc;

/// A GPU. Every clone is the same one.
#[derive(Clone)]
pub struct Gpu {
    pub(crate) device: Arc<dyn Device>,
}

impl Gpu {
    /// What is known of the GPUs of this machine.
    ///
    /// # Errors
    /// When there is no driver, or none that can be used.
    pub fn find() -> Result<Vec<DeviceFacts>, CudaError> {
        CudaDriver::find()?.devices()
    }

    /// Opens the GPU of this number, counted from 0.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn open(index: usize) -> Result<Self, CudaError> {
        Self::of(&CudaDriver::find()?, index)
    }

    /// Opens a GPU of some driver.
    ///
    /// # Errors
    /// As [`Gpu::open`].
    pub fn of(driver: &dyn Driver, index: usize) -> Result<Self, CudaError> {
        let device = driver.open(index)?;
        Ok(Self { device })
    }

    /// What is known of it.
    pub fn facts(&self) -> &DeviceFacts {
        self.device.facts()
    }

    /// Bytes of its memory that are free.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub fn free_memory(&self) -> Result<u64, CudaError> {
        self.device.free_memory()
    }
}
