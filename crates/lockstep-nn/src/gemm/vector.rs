//! A vector of `f32` as wide as the machine's, behind one small trait.

use crate::simd::Isa;

/// `f32` lanes that are loaded, stored and fused-multiply-added together.
pub(crate) trait Vector: Copy {
    /// Number of lanes.
    const LANES: usize;

    /// The most rows of a tile of 1, 2 and 3 vectors across, so that it fits the registers beside a row of B.
    const TILE_ROWS: [usize; 3];

    /// Says that the cache line of this address will be read soon. Any address will do.
    #[inline(always)]
    fn prefetch(_: *const f32) {}

    /// All lanes zero.
    fn zero() -> Self;

    /// All lanes `x`.
    fn splat(x: f32) -> Self;

    /// Reads [`Self::LANES`] numbers.
    ///
    /// # Safety
    /// They must be readable at `p`.
    unsafe fn load(p: *const f32) -> Self;

    /// Reads `count` numbers; the lanes after them are zero.
    ///
    /// # Safety
    /// `count` is at most [`Self::LANES`] and so many are readable at `p`.
    unsafe fn load_first(p: *const f32, count: usize) -> Self;

    /// Writes [`Self::LANES`] numbers.
    ///
    /// # Safety
    /// They must be writable at `p`.
    unsafe fn store(self, p: *mut f32);

    /// Writes the first `count` lanes.
    ///
    /// # Safety
    /// `count` is at most [`Self::LANES`] and so many are writable at `p`.
    unsafe fn store_first(self, p: *mut f32, count: usize);

    /// `a * b + self`, rounded once.
    fn fma(self, a: Self, b: Self) -> Self;

    /// `self + other`.
    fn add(self, other: Self) -> Self;

    /// Each lane at least `low` and at most `high`; NaN stays.
    fn clamp(self, low: f32, high: f32) -> Self;

    /// `self - other`.
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.fma(other, Self::splat(-1.0))
    }

    /// `self * x`.
    #[inline(always)]
    fn times(self, x: f32) -> Self {
        Self::zero().fma(self, Self::splat(x))
    }

    /// `self + other * x`, rounded once.
    #[inline(always)]
    fn plus(self, other: Self, x: f32) -> Self {
        self.fma(other, Self::splat(x))
    }

    /// The first numbers of a slice.
    ///
    /// # Panics
    /// When there are fewer than [`Self::LANES`].
    #[inline(always)]
    fn read(from: &[f32]) -> Self {
        let from = &from[..Self::LANES];
        // SAFETY: the slice has as many numbers.
        unsafe { Self::load(from.as_ptr()) }
    }

    /// Overwrites the first numbers of a slice.
    ///
    /// # Panics
    /// When there are fewer than [`Self::LANES`].
    #[inline(always)]
    fn write(self, to: &mut [f32]) {
        let to = &mut to[..Self::LANES];
        // SAFETY: the slice has as many numbers.
        unsafe { self.store(to.as_mut_ptr()) }
    }
}

/// A computation that is written once for vectors of any width.
pub(crate) trait Kernel {
    /// Computes. Implementations are `#[inline(always)]`, so that they are compiled for each level.
    fn run<V: Vector>(self);
}

/// Runs a kernel with the widest vectors that this process may use.
pub(crate) fn dispatch<K: Kernel>(kernel: K) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        fn avx512<K: Kernel>(kernel: K) {
            kernel.run::<x86::Wide>();
        }
        #[target_feature(enable = "avx2,fma")]
        fn avx2<K: Kernel>(kernel: K) {
            kernel.run::<x86::Half>();
        }
        match Isa::current() {
            // SAFETY: `current` never exceeds what the machine was detected to have.
            Isa::Avx512 => return unsafe { avx512(kernel) },
            // SAFETY: as above.
            Isa::Avx2 => return unsafe { avx2(kernel) },
            Isa::Portable => {}
        }
    }
    kernel.run::<Plain>();
}

/// Eight lanes in plain Rust, for any machine.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 8]);

impl Vector for Plain {
    const LANES: usize = 8;

    /// An x86-64 processor that comes here multiplies and adds by a call of a function, so tiles would gain nothing
    /// and take half of the time that this crate takes to compile.
    const TILE_ROWS: [usize; 3] = if cfg!(target_arch = "x86_64") {
        [1, 1, 1]
    } else {
        [8, 6, 4]
    };

    #[inline(always)]
    fn zero() -> Self {
        Self([0.0; 8])
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; 8])
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: eight numbers are readable by this function's contract; no alignment is assumed.
        Self(unsafe { p.cast::<[f32; 8]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_first(p: *const f32, count: usize) -> Self {
        let mut lanes = [0.0; 8];
        // SAFETY: `count` numbers are readable by this function's contract and fit the array.
        unsafe { std::ptr::copy_nonoverlapping(p, lanes.as_mut_ptr(), count) };
        Self(lanes)
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: eight numbers are writable by this function's contract; no alignment is assumed.
        unsafe { p.cast::<[f32; 8]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn store_first(self, p: *mut f32, count: usize) {
        // SAFETY: `count` numbers are writable by this function's contract and are in the array.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), p, count) };
    }

    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        Self(std::array::from_fn(|i| a.0[i].mul_add(b.0[i], self.0[i])))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    #[inline(always)]
    fn clamp(self, low: f32, high: f32) -> Self {
        Self(self.0.map(|x| {
            let x = if low > x { low } else { x };
            if high < x { high } else { x }
        }))
    }
}

/// The x86-64 vectors. Their methods may be called only where the matching target feature is on, which
/// the kernels' entry points ensure; being inlined there, they become single instructions.
#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    /// Sixteen lanes: AVX-512.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Wide(__m512);

    /// Eight lanes: AVX2 and FMA.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Half(__m256);

    /// `count` ones from the low end.
    #[inline(always)]
    fn mask16(count: usize) -> __mmask16 {
        ((1u32 << count) - 1) as __mmask16
    }

    /// A mask vector whose first `count` lanes are set.
    #[inline(always)]
    unsafe fn mask8(count: usize) -> __m256i {
        const BITS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
        // SAFETY: `count` is at most 8, so eight numbers from 8 - count on lie inside the table.
        unsafe { _mm256_loadu_si256(BITS.as_ptr().add(8 - count).cast()) }
    }

    // SAFETY (all blocks of both impls): the features are on by the module's contract, and memory
    // is accessible by each method's own contract.
    impl Vector for Wide {
        const LANES: usize = 16;
        const TILE_ROWS: [usize; 3] = [16, 12, 8];

        #[inline(always)]
        fn prefetch(p: *const f32) {
            // SAFETY: see the impl; an address that cannot be read is no fault here.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }

        #[inline(always)]
        fn zero() -> Self {
            // SAFETY: see the impl.
            Self(unsafe { _mm512_setzero_ps() })
        }

        #[inline(always)]
        fn splat(x: f32) -> Self {
            // SAFETY: see the impl.
            Self(unsafe { _mm512_set1_ps(x) })
        }

        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: see the impl.
            Self(unsafe { _mm512_loadu_ps(p) })
        }

        #[inline(always)]
        unsafe fn load_first(p: *const f32, count: usize) -> Self {
            // SAFETY: see the impl; lanes outside the mask are not accessed.
            Self(unsafe { _mm512_maskz_loadu_ps(mask16(count), p) })
        }

        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: see the impl.
            unsafe { _mm512_storeu_ps(p, self.0) }
        }

        #[inline(always)]
        unsafe fn store_first(self, p: *mut f32, count: usize) {
            // SAFETY: see the impl; lanes outside the mask are not accessed.
            unsafe { _mm512_mask_storeu_ps(p, mask16(count), self.0) }
        }

        #[inline(always)]
        fn fma(self, a: Self, b: Self) -> Self {
            // SAFETY: see the impl.
            Self(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: see the impl.
            Self(unsafe { _mm512_add_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn clamp(self, low: f32, high: f32) -> Self {
            // Of two operands, one of them NaN, these instructions give the second.
            // SAFETY: see the impl.
            Self(unsafe {
                let x = _mm512_max_ps(_mm512_set1_ps(low), self.0);
                _mm512_min_ps(_mm512_set1_ps(high), x)
            })
        }
    }

    impl Vector for Half {
        const LANES: usize = 8;
        const TILE_ROWS: [usize; 3] = [8, 6, 4];

        #[inline(always)]
        fn prefetch(p: *const f32) {
            // SAFETY: see the impl of `Wide`; an address that cannot be read is no fault here.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }

        #[inline(always)]
        fn zero() -> Self {
            // SAFETY: see the impl of `Wide`.
            Self(unsafe { _mm256_setzero_ps() })
        }

        #[inline(always)]
        fn splat(x: f32) -> Self {
            // SAFETY: see the impl of `Wide`.
            Self(unsafe { _mm256_set1_ps(x) })
        }

        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: see the impl of `Wide`.
            Self(unsafe { _mm256_loadu_ps(p) })
        }

        #[inline(always)]
        unsafe fn load_first(p: *const f32, count: usize) -> Self {
            // SAFETY: see the impl of `Wide`; lanes outside the mask are not accessed.
            Self(unsafe { _mm256_maskload_ps(p, mask8(count)) })
        }

        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: see the impl of `Wide`.
            unsafe { _mm256_storeu_ps(p, self.0) }
        }

        #[inline(always)]
        unsafe fn store_first(self, p: *mut f32, count: usize) {
            // SAFETY: see the impl of `Wide`; lanes outside the mask are not accessed.
            unsafe { _mm256_maskstore_ps(p, mask8(count), self.0) }
        }

        #[inline(always)]
        fn fma(self, a: Self, b: Self) -> Self {
            // SAFETY: see the impl of `Wide`.
            Self(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: see the impl of `Wide`.
            Self(unsafe { _mm256_add_ps(self.0, other.0) })
        }

        #[inline(always)]
        fn clamp(self, low: f32, high: f32) -> Self {
            // Of two operands, one of them NaN, these instructions give the second.
            // SAFETY: see the impl of `Wide`.
            Self(unsafe {
                let x = _mm256_max_ps(_mm256_set1_ps(low), self.0);
                _mm256_min_ps(_mm256_set1_ps(high), x)
            })
        }
    }
}
