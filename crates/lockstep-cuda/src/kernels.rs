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
    /// The same for an H100 and its like, if the kernels use what only these have.
    pub hopper: Option<&'static str>,
    /// What that was made of.
    #[cfg(feature = "emulated")]
    pub source: &'static str,
}

/// The text, if there is one.
const fn only(texts: &'static [&'static str]) -> Option<&'static str> {
    match texts {
        [text] => Some(text),
        _ => None,
    }
}

/// Lists all files of kernels.
macro_rules! kernel_files {
    ($($(#[doc = $doc:literal])* $constant:ident = $name:literal $(, hopper = $hopper:literal)?;)*) => {
        $(
            $(#[doc = $doc])*
            pub(crate) static $constant: KernelFile = KernelFile {
                name: $name,
                ptx: include_str!(concat!("../ptx/", $name, ".ptx")),
                hopper: only(&[$(include_str!(concat!("../ptx/", $hopper, ".ptx")))?]),
                #[cfg(feature = "emulated")]
                source: include_str!(concat!("../kernels/", $name, ".cu")),
            };
        )*

        /// All files.
        #[cfg(any(test, feature = "emulated"))]
        pub(crate) static ALL: &[&KernelFile] = &[$(&$constant),*];
    };
}

kernel_files! {
    /// Activations that look at one number.
    ACTIVATION = "activation";
    /// Attention of tokens to each other.
    ATTENTION = "attention";
    /// A running average of the weights.
    AVERAGE = "average";
    /// The rows of a batch, and the sums of its losses.
    BATCH = "batch";
    /// Batch-norm.
    BATCH_NORM = "batch_norm";
    /// The same of lanes that have few rows.
    BATCH_NORM_FEW = "batch_norm_few";
    /// The norm of the gradient.
    CLIP = "clip";
    /// Dense layers.
    DENSE = "dense";
    /// Convolutions with any windows.
    DIRECT = "direct";
    /// Their gradient by the weights.
    DIRECT_WEIGHTS = "direct_weights";
    /// Embeddings.
    EMBEDDING = "embedding";
    /// Products of encoders.
    ENCODER_DENSE = "encoder_dense";
    /// Products in fixed point: outputs, and gradients by the input.
    FIXED16 = "fixed16", hopper = "fixed16.hopper";
    /// What comes before them: scales and slices.
    FIXED16_SLICES = "fixed16_slices";
    /// Their gradients by the weights.
    FIXED16_WEIGHTS = "fixed16_weights";
    /// Group-norm and layer-norm.
    GROUP_NORM = "group_norm";
    /// Grouped convolutions.
    GROUPED = "grouped";
    /// The last dense layer of a classifier, with its loss.
    HEAD = "head";
    /// Images that are seen in a step.
    IMAGES = "images";
    /// What ends a step.
    LEARN = "learn";
    /// What EfficientNet-Lite has beside products.
    LITE = "lite";
    /// Losses.
    LOSS = "loss";
    /// Marks of the parameters after a step.
    MARKS = "marks";
    /// What workers exchange whose devices read each other's memory.
    PEERS = "peers";
    /// What changes an activation where it lies.
    POINTWISE = "pointwise";
    /// Pools.
    POOL = "pool";
    /// Matrices that are turned.
    TRANSPOSE = "transpose";
    /// Sums over lanes, and optimizers.
    UPDATE = "update";
    /// Winograd's convolution.
    WINOGRAD = "winograd";
}

/// All files, for tests.
#[cfg(feature = "emulated")]
pub static FILES: &[&KernelFile] = ALL;

/// What the files include: names and texts.
#[cfg(feature = "emulated")]
pub static HEADERS: &[(&str, &str)] = &[
    ("batch_norm.cuh", include_str!("../kernels/batch_norm.cuh")),
    ("bias.cuh", include_str!("../kernels/bias.cuh")),
    ("chains.cuh", include_str!("../kernels/chains.cuh")),
    ("fixed16.cuh", include_str!("../kernels/fixed16.cuh")),
    ("lane_sums.cuh", include_str!("../kernels/lane_sums.cuh")),
    ("lanes.cuh", include_str!("../kernels/lanes.cuh")),
    ("lockstep.cuh", include_str!("../kernels/lockstep.cuh")),
    ("normal.cuh", include_str!("../kernels/normal.cuh")),
    ("numbers.cuh", include_str!("../kernels/numbers.cuh")),
    ("optimizer.cuh", include_str!("../kernels/optimizer.cuh")),
    ("pointwise.cuh", include_str!("../kernels/pointwise.cuh")),
    ("product.cuh", include_str!("../kernels/product.cuh")),
    ("relu6.cuh", include_str!("../kernels/relu6.cuh")),
    ("softmax.cuh", include_str!("../kernels/softmax.cuh")),
    ("step.cuh", include_str!("../kernels/step.cuh")),
    ("targets.cuh", include_str!("../kernels/targets.cuh")),
    ("tiles.cuh", include_str!("../kernels/tiles.cuh")),
    ("transform.cuh", include_str!("../kernels/transform.cuh")),
    ("warps.cuh", include_str!("../kernels/warps.cuh")),
    ("window.cuh", include_str!("../kernels/window.cuh")),
    (
        "window_table.cuh",
        include_str!("../kernels/window_table.cuh"),
    ),
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
