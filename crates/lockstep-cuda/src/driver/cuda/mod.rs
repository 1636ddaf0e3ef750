//! NVIDIA's driver. Nothing of CUDA is linked: the driver's library is found at run time, and is all that is needed.
//!
//! All `unsafe` here is calls of its functions. What they promise is NVIDIA's documentation of the driver's interface;
//! what they are given lives at least as long as the call, or as the caller of the [`Device`] promises.

mod device;
mod functions;
mod library;

use super::{Device, DeviceFacts, Driver};
use crate::error::CudaError;
use device::CudaDevice;
use functions::{Code, DeviceNumber, number};
use library::Library;
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// The compute capability that the kernels are compiled for.
const OLDEST_CAPABILITY: [u32; 2] = [8, 0];

/// NVIDIA's driver.
#[derive(Debug, Clone, Copy)]
pub struct CudaDriver {
    library: &'static Library,
}

impl CudaDriver {
    /// The driver of this machine.
    ///
    /// # Errors
    /// When there is none, it is too old, or this program cannot load it.
    pub fn find() -> Result<Self, CudaError> {
        let library = Library::get()?;
        Ok(Self { library })
    }

    fn count(self) -> Result<usize, CudaError> {
        let mut count: c_int = 0;
        // SAFETY: a place for a number.
        let counted = unsafe { (self.library.functions.device_count)(&raw mut count) };
        self.check(counted, || "counting the GPUs".to_owned())?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    fn number(self, index: usize) -> Result<DeviceNumber, CudaError> {
        let mut device: DeviceNumber = 0;
        let wanted = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: a place for a number.
        let found = unsafe { (self.library.functions.device)(&raw mut device, wanted) };
        self.check(found, || format!("looking at GPU {index}"))?;
        Ok(device)
    }

    fn facts(self, index: usize) -> Result<DeviceFacts, CudaError> {
        let functions = &self.library.functions;
        let device = self.number(index)?;
        let check = |code| self.check(code, || format!("looking at GPU {index}"));
        let mut name = [0; 256];
        // SAFETY: room for as many characters as is said.
        check(unsafe { (functions.device_name)(name.as_mut_ptr(), name.len() as c_int, device) })?;
        // SAFETY: the driver ends the name with a zero within this room.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        let mut memory = 0usize;
        // SAFETY: a place for a number.
        check(unsafe { (functions.device_memory)(&raw mut memory, device) })?;
        let mut uuid = [0; 16];
        // SAFETY: room for sixteen bytes.
        check(unsafe { (functions.device_uuid)(&raw mut uuid, device) })?;
        let attribute = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: a place for a number.
            check(unsafe { (functions.device_attribute)(&raw mut value, attribute, device) })?;
            Ok::<_, CudaError>(value.unsigned_abs())
        };
        Ok(DeviceFacts {
            index,
            name: name.to_string_lossy().into_owned(),
            memory: memory as u64,
            capability: [
                attribute(number::CAPABILITY_MAJOR)?,
                attribute(number::CAPABILITY_MINOR)?,
            ],
            uuid: written_uuid(uuid),
            driver: self.library.version,
        })
    }

    fn check(self, code: Code, doing: impl FnOnce() -> String) -> Result<(), CudaError> {
        self.library.check(code, doing)
    }
}

impl Driver for CudaDriver {
    fn devices(&self) -> Result<Vec<DeviceFacts>, CudaError> {
        (0..self.count()?).map(|index| self.facts(index)).collect()
    }

    fn open(&self, index: usize) -> Result<Arc<dyn Device>, CudaError> {
        let count = self.count()?;
        if index >= count {
            return Err(CudaError::NoSuchDevice { index, count });
        }
        let facts = self.facts(index)?;
        let [major, minor] = facts.capability;
        if facts.capability < OLDEST_CAPABILITY {
            return Err(CudaError::TooOldDevice {
                index,
                name: facts.name,
                major,
                minor,
            });
        }
        let device = CudaDevice::open(self.library, self.number(index)?, facts)?;
        Ok(Arc::new(device))
    }
}

/// A UUID as `nvidia-smi -L` prints it.
fn written_uuid(uuid: [u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    format!("GPU-{}", parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_nvidias_tools_write_it() {
        let uuid = std::array::from_fn(|i| 0x11 * i as u8);
        let written = "GPU-00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(written_uuid(uuid), written);
    }
}
