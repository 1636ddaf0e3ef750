//! Products of 16-bit fixed-point numbers, whose sums are exact.
//!
//! A tensor's numbers become multiples of one power of two, 16 bits each, in two slices of 8 bits. Sums of products of
//! integers depend on no order, tile, thread or machine, so the matrix units of processors and GPUs may compute them in
//! whatever way is fastest, and all give the same bits. `docs/decisions/0057-fixed16.md` is the definition.
//!
//! An [`Engine`] computes a block of 16 rows by 32 columns of sums; it is chosen once, by what the machine has. Everything
//! around it is shared: what numbers become (`scale`, `slices`), how operands lie (`right`, `grid`), and how sums
//! become outputs (`product`).

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod block;
mod cast;
mod convolution;
mod dense;
mod engine;
mod grid;
mod matrix;
mod product;
mod right;
mod scale;
mod scales;
mod slices;
#[cfg(test)]
mod tests;
mod transpose;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub(crate) use convolution::Fixed16Conv2d;
pub(crate) use dense::Fixed16Linear;
pub use engine::{ENGINE_VARIABLE, Engine};
pub(crate) use matrix::SlicedMatrix;
use serde::{Deserialize, Serialize};

/// How the products of a network are computed: those of dense layers and of convolutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// In single precision, each sum in the order of its depth.
    #[default]
    F32,
    /// In 16-bit fixed point, with exact sums.
    Fixed16,
}

impl Precision {
    /// Its name in job files.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Fixed16 => "fixed16",
        }
    }
}
