//! What can go wrong on a GPU. A message says what was being done, in whose words it failed, and what to do.

use crate::driver::DriverVersion;
use std::path::PathBuf;

/// Why something on a GPU failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The program has no loader of libraries.
    #[error(
        "this is the static program, which cannot load libraries, and so not NVIDIA's driver; the one in the Python wheel \
         and the one in the archive whose name has glibc in it can"
    )]
    Static,
    /// There is no driver.
    #[error(
        "there is no NVIDIA driver: {looked} cannot be loaded. Install a driver of version 525 or newer; in a \
         container, start it with the GPU (docker: --gpus all); LOCKSTEP_CUDA names the library if it lies elsewhere"
    )]
    NoDriver {
        /// The library.
        looked: String,
        /// Why not.
        source: libloading::Error,
    },
    /// The library is not the driver's, or older than what is needed.
    #[error(
        "{looked} has no function {function}, so it is not NVIDIA's driver, or one that is older than 525; install a newer \
         driver"
    )]
    NoFunction {
        /// The library.
        looked: String,
        /// The function that is missing.
        function: &'static str,
    },
    /// The driver is too old.
    #[error(
        "the NVIDIA driver supports CUDA {found}, and at least {oldest} is needed, which drivers of version 525 and newer \
         support; install a newer driver"
    )]
    TooOldDriver {
        /// What it supports.
        found: DriverVersion,
        /// What would be new enough.
        oldest: DriverVersion,
    },
    /// There is a driver, and no GPU.
    #[error(
        "the NVIDIA driver finds no GPU; `nvidia-smi` shows what it sees, and CUDA_VISIBLE_DEVICES may hide them"
    )]
    NoDevice,
    /// There is no GPU of this number.
    #[error(
        "there is no GPU {index}: {count} are here, counted from 0; CUDA_VISIBLE_DEVICES may hide others"
    )]
    NoSuchDevice {
        /// The number that was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The GPU is too old.
    #[error(
        "GPU {index}, {name}, has compute capability {major}.{minor}, and at least 8.0 is needed: Ampere or newer"
    )]
    TooOldDevice {
        /// Its number.
        index: usize,
        /// Its name.
        name: String,
        /// Its compute capability.
        major: u32,
        /// The number after the point.
        minor: u32,
    },
    /// There is not enough memory on the GPU.
    #[error(
        "{device} has too little free memory for {what}: {asked} bytes were asked for, and {free} of {total} are free. \
         Use a smaller batch, or a GPU with more memory; `nvidia-smi` shows what other programs hold"
    )]
    OutOfMemory {
        /// The GPU.
        device: String,
        /// What the memory was for.
        what: String,
        /// Bytes that were asked for.
        asked: usize,
        /// Bytes that are free.
        free: u64,
        /// Bytes that there are.
        total: u64,
    },
    /// A call of the driver failed.
    #[error("{doing} failed: {name} ({meaning}). {advice}")]
    Call {
        /// What was being done.
        doing: String,
        /// CUDA's name of the error.
        name: String,
        /// CUDA's words for it.
        meaning: String,
        /// What to do.
        advice: &'static str,
        /// Whether the GPU computes nothing more in this process.
        is_lost: bool,
    },
    /// The GPU does not answer.
    #[error(
        "GPU {index}, {name}, has not done its work for {seconds} s and is taken for lost; the system's log may have an Xid \
         with the reason (`dmesg | grep -i xid`), and it may need a reset (`nvidia-smi --gpu-reset`)"
    )]
    Lost {
        /// Its number.
        index: usize,
        /// Its name.
        name: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The GPU computes other numbers than the processor.
    #[error(
        "GPU {index}, {name}, says something else of a row than the processor, so its weights would not be those of other \
         machines; use another driver or `device = \"cpu\"`, and please report it"
    )]
    OtherBits {
        /// Its number.
        index: usize,
        /// Its name.
        name: String,
    },
    /// A network has something in it that there is no kernel for.
    #[error("{what} cannot be computed on a GPU yet; use `device = \"cpu\"`")]
    Unsupported {
        /// What it is.
        what: String,
    },
    /// What was handed over does not fit what was planned.
    #[error("{what}: {found} instead of {expected}")]
    Mismatch {
        /// What does not fit.
        what: &'static str,
        /// What was found.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// There is no C++ compiler for the emulated GPU.
    #[error("there is no C++ compiler on the path: none of c++, g++ and clang++ runs")]
    NoCompiler,
    /// A kernel cannot be compiled for the emulated GPU.
    #[error("{path}: the emulated GPU cannot use it: {reason}", path = path.display())]
    Emulation {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl CudaError {
    /// Whether this process can do nothing more on the GPU, where another one may: a kernel went wrong or was ended, or the
    /// GPU was lost or reset.
    pub fn is_of_process(&self) -> bool {
        match self {
            Self::Call { is_lost, .. } => *is_lost,
            Self::Lost { .. } => true,
            _ => false,
        }
    }
}
