//! What computes blocks of sums: the widest of what the machine has, chosen once.

use crate::simd::Isa;
use std::sync::OnceLock;

/// A way to compute sums of products of bytes. All give the same sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// Integers, one by one.
    Plain,
    /// AVX2, with numbers widened to 16 bits.
    Avx2,
    /// AVX-512 with VNNI.
    Vnni,
    /// The matrix unit of newer processors of Intel's.
    Amx,
}

/// Name of the environment variable that forces a lower engine: `plain`, `avx2` or `vnni`.
pub const ENGINE_VARIABLE: &str = "LOCKSTEP_FIXED16";

impl Engine {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Avx2, Self::Vnni, Self::Amx];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Avx2 => "avx2",
            Self::Vnni => "vnni",
            Self::Amx => "amx",
        }
    }

    /// The best that this machine has.
    pub fn detected() -> Self {
        static DETECTED: OnceLock<Engine> = OnceLock::new();
        *DETECTED.get_or_init(Self::detect)
    }

    /// Asks the system for leave to use AMX.
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if Isa::detect() == Isa::Avx512 && is_x86_feature_detected!("avx512vnni") {
                return match super::amx::permit() {
                    true => Self::Amx,
                    false => Self::Vnni,
                };
            }
            if Isa::detect() >= Isa::Avx2 {
                return Self::Avx2;
            }
        }
        Self::Plain
    }

    /// The engine in use: the detected one, or a lower one if [`ENGINE_VARIABLE`] or a lower level of instructions asks
    /// for it.
    pub fn current() -> Self {
        static CURRENT: OnceLock<Engine> = OnceLock::new();
        *CURRENT.get_or_init(|| {
            let asked = std::env::var(ENGINE_VARIABLE);
            let is_asked = |engine: &Self| asked.as_deref() == Ok(engine.name());
            let asked = Self::ALL.into_iter().find(is_asked);
            let level = match Isa::current() {
                Isa::Portable => Self::Plain,
                Isa::Avx2 => Self::Avx2,
                Isa::Avx512 => Self::Amx,
            };
            asked.unwrap_or(Self::Amx).min(level).min(Self::detected())
        })
    }

    /// Whether products with it are faster than those in single precision.
    pub fn is_fast(self) -> bool {
        self == Self::Amx
    }
}
