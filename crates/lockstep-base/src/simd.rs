//! Which instruction set this process computes with, chosen once at run time.
//!
//! Code that is worth it is compiled for each level and dispatched by [`Isa::current`]. All levels give
//! the same bits: vectors run across independent outputs, never across a sum, and a fused
//! multiply-add is the same operation at every width.

use std::sync::OnceLock;

/// An instruction set level that code is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// What every machine of this architecture has.
    Portable,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
}

/// Name of the environment variable that forces a lower level: `portable`, `avx2` or `avx512`.
pub const ISA_VARIABLE: &str = "LOCKSTEP_ISA";

impl Isa {
    /// The best level of this machine.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("fma")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// The level in use: the detected one, or a lower one when [`ISA_VARIABLE`] asks for it.
    #[inline]
    pub fn current() -> Self {
        static CURRENT: OnceLock<Isa> = OnceLock::new();
        *CURRENT.get_or_init(|| {
            let detected = Self::detect();
            let asked = match std::env::var(ISA_VARIABLE).as_deref() {
                Ok("portable") => Self::Portable,
                Ok("avx2") => Self::Avx2,
                _ => Self::Avx512,
            };
            asked.min(detected)
        })
    }

    /// The name as [`ISA_VARIABLE`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// Defines functions whose bodies are compiled once a level and dispatched by [`Isa::current`].
///
/// The body is ordinary safe Rust that the compiler vectorises with what the level offers. Plain `*`
/// and `+` are never contracted, so every level gives the same bits.
#[macro_export]
macro_rules! for_each_isa {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx512($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx2($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                match $crate::simd::Isa::current() {
                    // SAFETY: `current` never exceeds what the machine was detected to have.
                    $crate::simd::Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::simd::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::simd::Isa::Portable => {}
                }
            }
            body($($arg),*)
        }
    )*};
}
pub use for_each_isa;
