//! The kernels' PTX, held against NVIDIA's compiler.

mod nvrtc;

use lockstep_cuda::{FILES, KernelFile};
use nvrtc::{AMPERE, HOPPER, Nvrtc};
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The texts of a file: which GPUs each is for, where it lies, and what lies there.
fn texts(
    file: &'static KernelFile,
) -> impl Iterator<Item = (&'static CStr, PathBuf, &'static str)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ptx");
    let path = move |ending: &str| folder.join(format!("{}{ending}.ptx", file.name));
    let hopper = file.hopper.map(|text| (HOPPER, path(".hopper"), text));
    [Some((AMPERE, path(""), file.ptx)), hopper]
        .into_iter()
        .flatten()
}

#[test]
fn the_ptx_is_what_nvrtc_makes_of_the_kernels() {
    let nvrtc = Nvrtc::new();
    for file in FILES {
        for (gpus, path, text) in texts(file) {
            let is_same = nvrtc.ptx(file, gpus) == text;
            assert!(
                is_same,
                "{} is another; `make kernels` makes it",
                path.display()
            );
        }
    }
}

/// What `make kernels` does.
#[test]
#[ignore = "writes to ptx/"]
fn make_kernels() {
    let nvrtc = Nvrtc::new();
    for file in FILES {
        for (gpus, path, _) in texts(file) {
            fs::write(&path, nvrtc.ptx(file, gpus)).unwrap();
            println!("{}", path.display());
        }
    }
}
