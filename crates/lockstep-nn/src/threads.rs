//! Threads inside one worker, for models whose steps are large enough to share.
//!
//! A product is cut by rows of its result. Each number is still one chain in the same order, so the bits
//! do not depend on the number of threads. With one thread, the default, nothing here costs anything.

use std::sync::OnceLock;

/// Multiply-adds below which waking a thread costs more than it saves.
const WORTH_SHARING: usize = 1 << 21;

static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();

/// Sets how many threads this process computes with. Only the first call counts.
///
/// # Errors
/// When the system refuses to start them.
pub fn set_threads(threads: usize) -> Result<(), rayon::ThreadPoolBuildError> {
    let pool = match threads {
        0 | 1 => None,
        _ => Some(
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()?,
        ),
    };
    let _ = POOL.set(pool);
    Ok(())
}

/// The threads to share a product of so many multiply-adds with, if it is worth it.
pub(crate) fn pool_for(work: usize) -> Option<&'static rayon::ThreadPool> {
    if work < WORTH_SHARING {
        return None;
    }
    POOL.get()?.as_ref()
}
