//! The integration tests of `lockstep-cuda`: one program, a module for each subject.
//!
//! It runs on a machine without cargo too: `it gpu::` is the part that needs a GPU, and nothing else; then `it --ignored
//! gpu_at_last::`.

mod conformance;
mod devices;
mod emulator;
mod timing;
mod training;

use lockstep_cuda::Gpu;
use lockstep_cuda::driver::cuda::CudaDriver;
use lockstep_cuda::driver::emulated::EmulatedDriver;
use lockstep_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The emulated GPU, if there is a compiler for it.
fn emulated() -> Option<EmulatedDriver> {
    EmulatedDriver::if_it_works(&lockstep_testkit::cache())
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

    #[test]
    fn the_emulated_gpu_has_the_processors_bits_of_images() {
        if let Some(driver) = emulated() {
            conformance::all_of_images(&driver);
        }
    }

    #[test]
    fn the_emulated_gpu_has_the_processors_bits_in_fixed16() {
        if let Some(driver) = emulated() {
            conformance::in_fixed16(&driver, 6);
        }
    }

    #[test]
    fn the_emulated_gpu_has_the_processors_bits_of_encoders() {
        if let Some(driver) = emulated() {
            conformance::all_encoders(&driver);
        }
    }

    #[test]
    #[ignore = "takes a minute"]
    fn the_emulated_gpu_has_the_processors_bits_of_whole_encoders() {
        if let Some(driver) = emulated() {
            conformance::whole_encoders(&driver);
        }
    }

    #[test]
    #[ignore = "takes half a minute"]
    fn the_emulated_gpu_has_the_processors_bits_of_resnets() {
        if let Some(driver) = emulated() {
            conformance::in_fixed16(&driver, 1);
            conformance::all_resnets(&driver);
        }
    }
}

/// What ends a process's use of a GPU.
mod gpu_at_last {
    use super::{devices, real};

    #[test]
    #[ignore = "no other test can use the GPU after it"]
    fn a_kernel_that_went_wrong_is_told_by_all_that_follows() {
        if let Some(driver) = real() {
            devices::a_kernel_that_went_wrong_is_told_by_all_that_follows(&driver);
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

    #[test]
    fn a_gpu_has_the_processors_bits_of_images() {
        if let Some(driver) = real() {
            conformance::all_of_images(&driver);
        }
    }

    #[test]
    fn a_gpu_has_the_processors_bits_in_fixed16() {
        if let Some(driver) = real() {
            conformance::in_fixed16(&driver, 1);
        }
    }

    #[test]
    fn a_gpu_has_the_processors_bits_of_resnets() {
        if let Some(driver) = real() {
            conformance::all_resnets(&driver);
        }
    }

    #[test]
    fn a_gpu_has_the_processors_bits_of_encoders() {
        if let Some(driver) = real() {
            conformance::all_encoders(&driver);
            conformance::whole_encoders(&driver);
        }
    }
}
