//! The integration tests of `lockstep-cuda`: one program, a module for each subject.
//!
//! It runs on a machine without cargo too: `it gpu::` is the part that needs a GPU, and nothing else.

mod conformance;
mod devices;
mod emulator;
mod training;

use lockstep_cuda::driver::Driver;
use lockstep_cuda::driver::cuda::CudaDriver;
use lockstep_cuda::driver::emulated::EmulatedDriver;
use lockstep_cuda::{CudaError, Gpu};
use lockstep_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The emulated GPU, if there is a compiler for it.
fn emulated() -> Option<EmulatedDriver> {
    let driver = EmulatedDriver::new(&lockstep_testkit::cache().join("cuda-emulated"));
    match driver.open(0).and_then(|device| {
        let file = lockstep_cuda::FILES[0];
        device.function(file, "end_step", 0)
    }) {
        Err(CudaError::NoCompiler) => {
            println!("skipped: {}", CudaError::NoCompiler);
            None
        }
        found => {
            found.expect("an emulated GPU that works");
            Some(driver)
        }
    }
}

/// NVIDIA's driver, if there is one, and a GPU.
fn real() -> Option<CudaDriver> {
    match Gpu::open(0) {
        Ok(_) => CudaDriver::find().ok(),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// What needs no GPU.
mod emulated {
    use super::{conformance, devices, emulated};

    #[test]
    fn the_emulated_gpu_is_a_device() {
        if let Some(driver) = emulated() {
            devices::all(&driver);
        }
    }

    #[test]
    fn the_emulated_gpu_has_the_processors_bits() {
        if let Some(driver) = emulated() {
            conformance::all(&driver);
        }
    }
}

/// What needs a GPU.
mod gpu {
    use super::{conformance, devices, real};

    #[test]
    fn a_gpu_is_a_device() {
        if let Some(driver) = real() {
            devices::all(&driver);
        }
    }

    #[test]
    fn a_gpu_has_the_processors_bits() {
        if let Some(driver) = real() {
            conformance::all(&driver);
        }
    }
}
