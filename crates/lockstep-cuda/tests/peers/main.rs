//! The kernels' PTX, held against NVIDIA's compiler.

mod nvrtc;

use lockstep_cuda::{FILES, KernelFile};
use nvrtc::Nvrtc;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the PTX of a file lies.
fn path(file: &KernelFile) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ptx");
    folder.join(file.name).with_extension("ptx")
}

#[test]
fn the_ptx_is_what_nvrtc_makes_of_the_kernels() {
    let nvrtc = Nvrtc::new();
    for file in FILES {
        let made = nvrtc.ptx(file);
        let is_same = made == file.ptx;
        assert!(
            is_same,
            "{} is another; `make kernels` makes it",
            path(file).display()
        );
    }
}

/// What `make kernels` does.
#[test]
#[ignore = "writes to ptx/"]
fn make_kernels() {
    let nvrtc = Nvrtc::new();
    for file in FILES {
        fs::write(path(file), nvrtc.ptx(file)).unwrap();
        println!("{}", path(file).display());
    }
}
