//! An allocator that counts, for tests of what takes memory and what takes none.
//!
//! A test program that counts makes [`CountingAllocator`] its global one. Each thread has counters of its own, so that
//! tests that run at the same time do not disturb each other. [`allocations_of_all_threads`] is of the whole process:
//! it says something only where one test runs alone, as a [child](fn@crate::child).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// How often this thread has allocated.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// The bytes that it has allocated less those that it has freed; below zero if it freed what others had allocated.
    static HELD: Cell<i64> = const { Cell::new(0) };
    /// The most of it.
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

static TOTAL: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, which also counts.
///
/// A block that grows counts as a new one beside the old one, which is the most that the system may take for it.
pub struct CountingAllocator;

fn count(layout: Layout) {
    TOTAL.fetch_add(1, Ordering::Relaxed);
    COUNT.set(COUNT.get() + 1);
    HELD.set(HELD.get() + layout.size() as i64);
    PEAK.set(PEAK.get().max(HELD.get()));
}

// SAFETY: every call is passed on to the system's allocator as it came. Counting neither allocates nor unwinds: the
// counters are constants at first and need no destructor.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller keeps the promises that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How often `work` allocates on this thread.
pub fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

/// How often all threads of this process have allocated.
pub fn allocations_of_all_threads() -> u64 {
    TOTAL.load(Ordering::SeqCst)
}

/// What `work` gives, and the most bytes that this thread held for it at a time, beyond those that it held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as usize)
}

/// The bytes that this thread has allocated less those that it has freed.
pub fn held() -> i64 {
    HELD.get()
}
