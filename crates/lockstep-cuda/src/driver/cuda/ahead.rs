//! Kernels that begin before the one before them has ended.
//!
//! A kernel of a few microseconds costs nearly as much to launch. GPUs since Hopper can bring its blocks to the
//! multiprocessors while the kernel before it still runs; it then waits, by an instruction of its own, until that has ended
//! and what it wrote is there ("programmatic dependent launch"). PTX for older GPUs cannot hold these instructions, so
//! the kernels have comments at their places, and here these become instructions, if the GPU and the driver can.

use crate::driver::DriverVersion;
use std::borrow::Cow;
use std::ffi::{c_int, c_uint};

/// What the PTX of all kernels has, and what it becomes.
const TARGET: [&str; 2] = [".target sm_80", ".target sm_90"];
const BEGIN: [&str; 2] = [
    "// lockstep: let the next kernel begin",
    "griddepcontrol.launch_dependents;",
];
const WAIT: [&str; 2] = [
    "// lockstep: wait for the previous kernel",
    "griddepcontrol.wait;",
];

/// The first GPUs that can.
const CAPABILITY: [u32; 2] = [9, 0];

/// The first drivers that record it in graphs.
const DRIVER: DriverVersion = DriverVersion {
    major: 12,
    minor: 3,
};

/// The variable that turns it off, with the value 0: to see whether a mistake comes from it.
const VARIABLE: &str = "LOCKSTEP_CUDA_AHEAD";

/// Whether kernels begin ahead on a GPU.
pub(super) fn is_possible(capability: [u32; 2], driver: DriverVersion) -> bool {
    let is_off = std::env::var_os(VARIABLE).is_some_and(|value| value == "0");
    capability >= CAPABILITY && driver >= DRIVER && !is_off
}

/// The PTX of kernels that may begin ahead.
pub(super) fn ptx(text: &str, is_ahead: bool) -> Cow<'_, str> {
    match is_ahead {
        false => Cow::Borrowed(text),
        true => {
            let replace = |text: String, [from, to]: [&str; 2]| text.replace(from, to);
            let all = [TARGET, BEGIN, WAIT];
            Cow::Owned(all.into_iter().fold(text.to_owned(), replace))
        }
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(super) struct LaunchConfig {
    pub(super) blocks: [c_uint; 3],
    pub(super) threads: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) stream: super::functions::Handle,
    pub(super) attributes: *const LaunchAttribute,
    pub(super) attribute_count: c_uint,
}

/// `CUlaunchAttribute`: which it is, and a value, for which there are 64 bytes.
#[repr(C, align(8))]
pub(super) struct LaunchAttribute {
    kind: c_int,
    unused: c_int,
    value: [c_int; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the kernel may begin before the one before it has ended.
pub(super) static AHEAD: LaunchAttribute = LaunchAttribute {
    kind: 6,
    unused: 0,
    value: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    #[test]
    fn every_kernel_waits_for_the_one_before_it() {
        for file in kernels::ALL {
            assert!(file.ptx.contains(TARGET[0]), "{}", file.name);
            for text in [Some(file.ptx), file.hopper].into_iter().flatten() {
                let kernels = text.split(".visible .entry ").skip(1);
                for kernel in kernels {
                    let name = kernel.split('(').next().unwrap();
                    for [mark, _] in [BEGIN, WAIT] {
                        assert!(
                            kernel.contains(mark),
                            "{name} of {} lacks {mark}",
                            file.name
                        );
                    }
                }
                let ahead = ptx(text, true);
                assert!(!ahead.contains("// lockstep: "), "{}", file.name);
                assert!(ahead.contains("griddepcontrol.wait;"), "{}", file.name);
            }
        }
    }
}
