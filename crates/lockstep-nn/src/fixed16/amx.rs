//! Blocks of sums by AMX, the matrix unit of newer processors of Intel's: permission, configuration, the loop.

use super::block::{Block, Sums, TILE};
use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, _xgetbv};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Bits of `cpuid`: the tiles, products of bytes, and that the system has enabled wide registers.
const AMX_TILE: u32 = 1 << 24;
const AMX_INT8: u32 = 1 << 25;
const OSXSAVE: u32 = 1 << 27;

/// The parts of a thread's state that tiles are.
const TILE_STATE: u64 = 0b11 << 17;

/// The system call that asks for leave to use a large part of a thread's state, and that part.
const ARCH_PRCTL: isize = 158;
const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
const XFEATURE_XTILEDATA: usize = 18;

/// Whether processor and system have AMX for bytes, and the system grants it to this process: to all its threads.
pub(super) fn permit() -> bool {
    static IS_PERMITTED: OnceLock<bool> = OnceLock::new();
    *IS_PERMITTED.get_or_init(ask)
}

#[allow(
    unused_unsafe,
    reason = "some of these intrinsics are safe in newer compilers"
)]
fn ask() -> bool {
    if !cfg!(target_os = "linux") {
        return false;
    }
    // SAFETY: every x86-64 processor has cpuid, and the leaves asked for are below its largest; xgetbv is called only
    // where the system has enabled it; the system call changes nothing but the process's leave.
    unsafe {
        if __cpuid_count(0, 0).eax < 7 || __cpuid_count(1, 0).ecx & OSXSAVE == 0 {
            return false;
        }
        let features = __cpuid_count(7, 0).edx;
        if features & AMX_TILE == 0 || features & AMX_INT8 == 0 {
            return false;
        }
        if enabled() & TILE_STATE != TILE_STATE {
            return false;
        }
        let mut result = ARCH_PRCTL;
        asm!(
            "syscall", inout("rax") result, in("rdi") ARCH_REQ_XCOMP_PERM, in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _, out("r11") _, options(nostack)
        );
        result == 0
    }
}

/// The parts of a thread's state that the system has enabled.
#[target_feature(enable = "xsave")]
fn enabled() -> u64 {
    // SAFETY: the caller has checked that the system has enabled this instruction.
    unsafe { _xgetbv(0) }
}

/// How tiles are configured.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    /// Bytes of a row of each tile.
    columns: [u16; 16],
    rows: [u8; 16],
}

/// This thread's tiles: eight of 16 rows of 64 bytes, until dropped.
pub(super) struct Tiles(PhantomData<*const ()>);

impl Tiles {
    /// # Panics
    /// When AMX is not there, or not permitted.
    pub(super) fn new() -> Self {
        assert!(permit(), "AMX is not there, or not permitted");
        let mut configuration = Configuration {
            palette: 1,
            start: 0,
            reserved: [0; 14],
            columns: [0; 16],
            rows: [0; 16],
        };
        configuration.columns[..8].fill(64);
        configuration.rows[..8].fill(16);
        // SAFETY: AMX is there and permitted; palette 1 allows this configuration.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &configuration, options(nostack)) };
        Self(PhantomData)
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: they are only made where AMX is.
        unsafe { asm!("tilerelease", options(nostack)) };
    }
}

/// What the loops read. Strides are in bytes.
#[repr(C)]
struct Operands {
    upper: *const i8,
    lower: *const i8,
    stride: usize,
    right: *const i8,
    right_step: usize,
    offsets: *const usize,
    offsets_end: *const usize,
    sums: *mut Sums,
}

/// Computes the sums of a block.
///
/// # Safety
/// This thread has [`Tiles`], and the operands are as long as the block says.
#[inline]
pub(super) unsafe fn compute(block: &Block<'_>, sums: &mut Sums) {
    let operands = Operands {
        upper: block.left.upper.as_ptr(),
        lower: block.left.lower.as_ptr(),
        stride: block.left.stride,
        right: block.right.as_ptr(),
        right_step: block.tiles * 2 * TILE,
        offsets: block.offsets.as_ptr(),
        offsets_end: block.offsets.as_ptr_range().end,
        sums,
    };
    // SAFETY: by this function's contract.
    unsafe {
        match block.tiles {
            1 => one_tile(&operands),
            _ => two_tiles(&operands),
        }
    }
}

macro_rules! block {
    ($name:ident, zero: [$($zero:literal),*], body: [$($body:literal),*], store: [$($store:literal),*]) => {
        /// # Safety
        /// As for [`compute`].
        #[inline(always)]
        unsafe fn $name(operands: &Operands) {
            // SAFETY: tiles are loaded from where the operands are, and stored to the sums; all registers that change
            // are named.
            unsafe {
                asm!(
                    "mov rsi, [rdi+56]",
                    "mov r8, [rdi]",
                    "mov r9, [rdi+8]",
                    "mov r10, [rdi+16]",
                    "mov r12, [rdi+24]",
                    "mov r13, [rdi+32]",
                    "mov r11, [rdi+40]",
                    "mov rdx, [rdi+48]",
                    "mov r14, 64",
                    $($zero,)*
                    "cmp r11, rdx",
                    "je 3f",
                    "2:",
                    "mov rax, [r11]",
                    "lea rcx, [r9+rax]",
                    "add rax, r8",
                    $($body,)*
                    "add r11, 8",
                    "add r12, r13",
                    "cmp r11, rdx",
                    "jne 2b",
                    "3:",
                    $($store,)*
                    in("rdi") operands,
                    out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r13") _,
                    out("r14") _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, out("tmm4") _, out("tmm5") _,
                    out("tmm6") _, out("tmm7") _,
                    options(nostack)
                )
            }
        }
    };
}

// Tiles 0 and 2 are the sums of upper slices, 1 and 3 the mixed ones; 4 and 5 the left operand's slices, 6 and 7 the
// right one's.
block!(two_tiles,
    zero: ["tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3"],
    body: ["tileloadd tmm6, [r12+r14*1]", "tileloadd tmm4, [rax+r10*1]", "tdpbssd tmm0, tmm4, tmm6",
           "tileloadd tmm5, [rcx+r10*1]", "tdpbssd tmm1, tmm5, tmm6",
           "tileloadd tmm6, [r12+r14*1+2048]", "tdpbssd tmm2, tmm4, tmm6", "tdpbssd tmm3, tmm5, tmm6",
           "tileloadd tmm7, [r12+r14*1+1024]", "tdpbssd tmm1, tmm4, tmm7",
           "tileloadd tmm7, [r12+r14*1+3072]", "tdpbssd tmm3, tmm4, tmm7"],
    store: ["tilestored [rsi+r14*1], tmm0", "tilestored [rsi+r14*1+1024], tmm1", "tilestored [rsi+r14*1+2048], tmm2",
            "tilestored [rsi+r14*1+3072], tmm3"]);
block!(one_tile,
    zero: ["tilezero tmm0", "tilezero tmm1"],
    body: ["tileloadd tmm6, [r12+r14*1]", "tileloadd tmm4, [rax+r10*1]", "tdpbssd tmm0, tmm4, tmm6",
           "tileloadd tmm5, [rcx+r10*1]", "tdpbssd tmm1, tmm5, tmm6",
           "tileloadd tmm7, [r12+r14*1+1024]", "tdpbssd tmm1, tmm4, tmm7"],
    store: ["tilestored [rsi+r14*1], tmm0", "tilestored [rsi+r14*1+1024], tmm1"]);
