//! NVIDIA's driver, found and loaded at run time, and its errors in our words.

use super::functions::{Code, Functions, code};
use crate::driver::DriverVersion;
use crate::error::CudaError;
use libloading::Library as LoadedLibrary;
use std::ffi::{CStr, OsString, c_char, c_int};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

/// The variable that names the driver's library.
const VARIABLE: &str = "LOCKSTEP_CUDA";

/// What the driver's library is called: the system's loader knows where it lies.
const NAME: &str = "libcuda.so.1";

/// Where it lies when the loader does not know: on NixOS, in some containers, in the Subsystem for Linux.
const FOLDERS: [&str; 5] = [
    "/usr/local/nvidia/lib64",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/lib/x86_64-linux-gnu",
];

/// What drivers of version 525 support.
const OLDEST: DriverVersion = DriverVersion {
    major: 12,
    minor: 0,
};

/// The driver's library, loaded and begun.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) functions: Functions,
    pub(super) version: DriverVersion,
    /// It is never unloaded: its threads live as long as the process.
    _library: ManuallyDrop<LoadedLibrary>,
}

impl Library {
    /// The library, which is loaded once a process.
    pub(super) fn get() -> Result<&'static Self, CudaError> {
        static LOADED: OnceLock<Library> = OnceLock::new();
        if let Some(library) = LOADED.get() {
            return Ok(library);
        }
        // Of two threads that come here at once, both load it, which the system counts, and one is kept.
        let library = Self::load(std::env::var_os(VARIABLE))?;
        Ok(LOADED.get_or_init(|| library))
    }

    /// Loads it from the file that is named, or from where the system has it.
    pub(super) fn load(named: Option<OsString>) -> Result<Self, CudaError> {
        if cfg!(target_feature = "crt-static") {
            return Err(CudaError::Static);
        }
        let (looked, library) = match named {
            Some(path) => (path.display().to_string(), open(&path)),
            None => (NAME.to_owned(), open_where_it_may_be()),
        };
        let library = library.map_err(|source| CudaError::NoDriver {
            looked: looked.clone(),
            source,
        })?;
        // SAFETY: the types are those of `cuda.h`, which this library is of by its name or the user's word. It is not
        // unloaded.
        let functions = unsafe { Functions::of(&library) };
        let functions = functions.map_err(|function| CudaError::NoFunction { looked, function })?;
        let mut library = Self {
            functions,
            version: OLDEST,
            _library: ManuallyDrop::new(library),
        };
        library.begin()?;
        Ok(library)
    }

    /// Begins the driver and asks for its version.
    fn begin(&mut self) -> Result<(), CudaError> {
        let mut version: c_int = 0;
        // SAFETY: a place for a number. This may be asked before the driver is begun.
        let asked = unsafe { (self.functions.driver_version)(&raw mut version) };
        self.check(asked, || {
            "asking for the version of NVIDIA's driver".to_owned()
        })?;
        let version = version.unsigned_abs();
        self.version = DriverVersion {
            major: version / 1000,
            minor: version % 1000 / 10,
        };
        if self.version < OLDEST {
            return Err(CudaError::TooOldDriver {
                found: self.version,
                oldest: OLDEST,
            });
        }
        // SAFETY: no flags are defined.
        match unsafe { (self.functions.init)(0) } {
            code::NO_DEVICE => Err(CudaError::NoDevice),
            begun => self.check(begun, || "beginning to use NVIDIA's driver".to_owned()),
        }
    }

    /// Turns what a function returned into a result. `doing` says what it was called for.
    pub(super) fn check(
        &self,
        returned: Code,
        doing: impl FnOnce() -> String,
    ) -> Result<(), CudaError> {
        if returned == 0 {
            return Ok(());
        }
        Err(CudaError::Call {
            doing: doing(),
            name: self.text(self.functions.error_name, returned),
            meaning: self.text(self.functions.error_text, returned),
            advice: advice(returned),
            is_lost: is_lost(returned),
        })
    }

    /// What the driver says of an error.
    fn text(
        &self,
        function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
        error: Code,
    ) -> String {
        let mut text = std::ptr::null();
        // SAFETY: a place for the address of a text.
        let known = unsafe { function(error, &raw mut text) };
        if known != 0 || text.is_null() {
            return format!("error {error}");
        }
        // SAFETY: the text is the driver's, and lives as long as it.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

/// Loads a library.
fn open(path: impl AsRef<std::ffi::OsStr>) -> Result<LoadedLibrary, libloading::Error> {
    // SAFETY: the driver's initialisers run. It is the one that the user installed as NVIDIA's, or named.
    unsafe { LoadedLibrary::new(path.as_ref()) }
}

/// By its name; if the system does not know it, in the folders where some systems have it.
fn open_where_it_may_be() -> Result<LoadedLibrary, libloading::Error> {
    open(NAME).or_else(|unknown| {
        let paths = FOLDERS.iter().map(|folder| format!("{folder}/{NAME}"));
        paths
            .filter_map(|path| open(path).ok())
            .next()
            .ok_or(unknown)
    })
}

/// What to do about an error of the driver's.
fn advice(error: Code) -> &'static str {
    match error {
        code::OUT_OF_MEMORY => {
            "Use a smaller batch, or end other programs on the GPU: `nvidia-smi` shows them"
        }
        code::DEVICE_UNAVAILABLE => {
            "Another process holds the GPU for itself (`nvidia-smi -q -d COMPUTE` shows the mode); end it, or use another GPU"
        }
        code::NO_BINARY_FOR_GPU | code::UNSUPPORTED_PTX_VERSION | code::INVALID_PTX => {
            "The driver cannot compile the kernels for this GPU; install a newer driver, at least 525"
        }
        code::JIT_COMPILER_NOT_FOUND => {
            "The driver's compiler is missing: libnvidia-ptxjitcompiler.so.1, which comes with the driver; in a container, \
             mount it too (NVIDIA_DRIVER_CAPABILITIES=compute,utility)"
        }
        code::LAUNCH_TIMEOUT => {
            "The system ends kernels that take long on a GPU that also drives a screen; use a smaller batch or another GPU"
        }
        code::ECC_UNCORRECTABLE
        | code::NVLINK_UNCORRECTABLE
        | code::CONTEXT_IS_DESTROYED
        | code::UNKNOWN => {
            "The GPU was lost; the system's log has an Xid with the reason (`dmesg | grep -i xid`), and it may need a reset \
             (`nvidia-smi --gpu-reset`)"
        }
        code::ILLEGAL_ADDRESS
        | code::ILLEGAL_INSTRUCTION
        | code::MISALIGNED_ADDRESS
        | code::LAUNCH_FAILED => {
            "A kernel went wrong, or the GPU was lost: if the system's log has an Xid (`dmesg | grep -i xid`), it was the \
             GPU; otherwise please report it"
        }
        code::LAUNCH_OUT_OF_RESOURCES => "The GPU has too little for this kernel; please report it",
        code::SYSTEM_NOT_READY => {
            "The GPUs' switches are not ready: is nvidia-fabricmanager running, in the version of the driver?"
        }
        code::SYSTEM_DRIVER_MISMATCH => {
            "The driver's library and its module in the system are of two versions; restart the machine after an update"
        }
        _ => "Please report it",
    }
}

/// Whether a GPU computes nothing more in a process after an error, which all later calls repeat.
fn is_lost(error: Code) -> bool {
    let lost = [
        code::ECC_UNCORRECTABLE,
        code::NVLINK_UNCORRECTABLE,
        code::ILLEGAL_ADDRESS,
        code::LAUNCH_TIMEOUT,
        code::CONTEXT_IS_DESTROYED,
        code::ASSERTED,
        code::HARDWARE_STACK,
        code::ILLEGAL_INSTRUCTION,
        code::MISALIGNED_ADDRESS,
        code::INVALID_ADDRESS_SPACE,
        code::INVALID_COUNTER,
        code::LAUNCH_FAILED,
        code::UNKNOWN,
    ];
    lost.contains(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_missing_or_not_the_drivers_is_refused_by_its_name() {
        let load = |path: &str| Library::load(Some(path.into())).unwrap_err().to_string();
        let found = load("/nowhere/libcuda.so.1");
        assert!(
            found.starts_with("there is no NVIDIA driver: /nowhere/libcuda.so.1 cannot be loaded")
                && found.contains("525"),
            "{found}"
        );
        // A library that is always there.
        let found = load("libc.so.6");
        assert!(
            found.starts_with("libc.so.6 has no function cuInit"),
            "{found}"
        );
    }

    #[test]
    fn what_another_process_may_still_do_is_told_from_what_none_can() {
        assert!(is_lost(code::LAUNCH_FAILED) && is_lost(code::LAUNCH_TIMEOUT));
        let told = [
            code::OUT_OF_MEMORY,
            code::DEVICE_UNAVAILABLE,
            code::NO_DEVICE,
            code::INVALID_PTX,
        ];
        assert!(!told.into_iter().any(is_lost));
        assert!(advice(code::DEVICE_UNAVAILABLE).contains("Another process holds the GPU"));
        assert!(advice(code::LAUNCH_TIMEOUT).contains("drives a screen"));
    }
}
