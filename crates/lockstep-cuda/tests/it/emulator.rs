//! The emulated GPU itself: threads that wait for each other and show each other numbers, and launches that it refuses.

use crate::emulated;
use lockstep_cuda::driver::{Device, Driver, Grid};
use lockstep_cuda::{Arguments, CudaError, KernelFile};
use std::sync::Arc;

/// Kernels that try what a block can do.
static FILE: KernelFile = KernelFile {
    name: "trial",
    ptx: "",
    hopper: None,
    source: r#"
#include "lockstep.cuh"

struct Trial {
    u32 *numbers; // one for each thread
    u64 unused;
};

// Every thread writes the number of the thread at the other end of the block, and what its warp has in sum.
KERNEL(meet, 96, Trial) {
    __shared__ u32 shown[96];
    shown[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const u32 other = shown[95 - threadIdx.x];
    u32 sum = threadIdx.x;
    for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    a.numbers[96 * blockIdx.x + threadIdx.x] = 1000 * sum + other;
}

KERNEL(never_meet, 96, Trial) {
    if (threadIdx.x < 50) __syncthreads();
    else __syncwarp();
    if (threadIdx.x >= 50) __syncwarp();
    __syncthreads();
    if (threadIdx.x == 3) __syncwarp();
    else __syncthreads();
}
"#,
};

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Trial {
    numbers: u64,
    unused: u64,
}

// SAFETY: two numbers of 64 bits, as C has them.
unsafe impl Arguments for Trial {
    fn declaration(&self) -> String {
        "struct Trial { u32 *numbers; u64 unused; };".to_owned()
    }
}

/// Arguments that the kernels do not take, of as many bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Other([u64; 2]);

// SAFETY: as above.
unsafe impl Arguments for Other {
    fn declaration(&self) -> String {
        "struct Other { u64 numbers[2]; };".to_owned()
    }
}

fn launch(
    device: &dyn Device,
    kernel: &'static str,
    grid: Grid,
    arguments: &dyn Arguments,
) -> Result<(), CudaError> {
    let function = device.function(&FILE, kernel, 0)?;
    let stream = device.create_stream()?;
    // SAFETY: the arguments point to as many numbers as the grid has threads, or the launch is refused.
    unsafe { device.launch(stream, function, grid, arguments) }
}

const GRID: Grid = Grid {
    blocks: [2, 1, 1],
    threads: 96,
    shared: 0,
};

fn open() -> Option<Arc<dyn Device>> {
    Some(emulated()?.open(0).unwrap())
}

/// Runs a kernel whose threads meet, and looks at what they wrote.
fn check_meeting(device: &dyn Device) {
    let mut numbers = [0u32; 192];
    let trial = Trial {
        numbers: numbers.as_mut_ptr() as u64,
        unused: 0,
    };
    launch(device, "meet", GRID, &trial).unwrap();
    for (i, &number) in numbers.iter().enumerate() {
        let thread = i as u32 % 96;
        let warp = thread / 32 * 32;
        let sum: u32 = (warp..warp + 32).sum();
        assert_eq!(number, 1000 * sum + 95 - thread, "thread {i}");
    }
}

#[test]
fn threads_of_a_block_meet_and_show_each_other_numbers() {
    let Some(device) = open() else { return };
    check_meeting(&*device);
}

#[test]
fn launches_that_would_go_wrong_are_refused_by_the_kernels_name() {
    let Some(device) = open() else { return };
    let trial = Trial {
        numbers: 0,
        unused: 0,
    };
    let refused = |kernel, grid, arguments: &dyn Arguments| {
        let launched = launch(&*device, kernel, grid, arguments);
        launched.unwrap_err().to_string()
    };
    for (found, words) in [
        (
            refused("never_meet", GRID, &trial),
            "never_meet: the emulated GPU cannot use it: its threads wait at places",
        ),
        (
            refused("meet", GRID, &Other([0; 2])),
            "its file does not have the arguments that it is launched with: struct Other",
        ),
        (
            refused(
                "meet",
                Grid {
                    threads: 32,
                    ..GRID
                },
                &trial,
            ),
            "launched with 32 threads a block, and has 96",
        ),
        (
            refused(
                "meet",
                Grid {
                    blocks: [1, 0, 1],
                    ..GRID
                },
                &trial,
            ),
            "launched with [1, 0, 1] blocks",
        ),
        (refused("absent", GRID, &trial), "has no kernel absent"),
    ] {
        assert!(found.contains(words), "{found}");
    }
    check_meeting(&*device);
}
