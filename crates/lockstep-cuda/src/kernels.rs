//! The files of kernels, and what is known of a kernel: its file, its name and how many threads a block of it has.
//!
//! Kernels travel as PTX, which `make kernels` makes of `kernels/*.cu` and a test makes again: the driver compiles it for
//! the GPU that it finds, and keeps the result.

use crate::arguments::Arguments;
use std::marker::PhantomData;

/// A file of kernels.
#[derive(Debug)]
pub struct KernelFile {
    /// Its name, without an ending.
    pub name: &'static str,
    /// What the driver compiles.
    pub ptx: &'static str,
    /// What that was made of.
    #[cfg(feature = "emulated")]
    pub source: &'static str,
}

/// Lists all files of kernels.
macro_rules! kernel_files {
    ($($(#[doc = $doc:literal])* $constant:ident = $name:literal,)*) => {
        $(
            $(#[doc = $doc])*
            pub(crate) static $constant: KernelFile = KernelFile {
                name: $name,
                ptx: include_str!(concat!("../ptx/", $name, ".ptx")),
                #[cfg(feature = "emulated")]
                source: include_str!(concat!("../kernels/", $name, ".cu")),
            };
        )*

        /// All files, for tests.
        #[cfg(feature = "emulated")]
        pub static FILES: &[&KernelFile] = &[$(&$constant),*];
    };
}

kernel_files! {
    /// The rows of a batch, and the sums of its losses.
    BATCH = "batch",
    /// Dense layers.
    DENSE = "dense",
    /// Losses.
    LOSS = "loss",
    /// What changes an activation where it lies.
    POINTWISE = "pointwise",
    /// Sums over lanes, and optimizers.
    UPDATE = "update",
}

/// What the files include: names and texts.
#[cfg(feature = "emulated")]
pub static HEADERS: &[(&str, &str)] = &[
    ("lockstep.cuh", include_str!("../kernels/lockstep.cuh")),
    ("pointwise.cuh", include_str!("../kernels/pointwise.cuh")),
    ("product.cuh", include_str!("../kernels/product.cuh")),
];

/// A kernel that takes arguments of this type.
pub(crate) struct Kernel<A> {
    pub(crate) file: &'static KernelFile,
    pub(crate) name: &'static str,
    /// Threads of a block.
    pub(crate) threads: u32,
    takes: PhantomData<fn(A)>,
}

impl<A: Arguments> Kernel<A> {
    /// The kernel of this name, whose blocks have so many threads.
    pub(crate) const fn new(file: &'static KernelFile, name: &'static str, threads: u32) -> Self {
        Self {
            file,
            name,
            threads,
            takes: PhantomData,
        }
    }
}
