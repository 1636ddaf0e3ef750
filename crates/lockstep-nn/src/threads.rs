//! Threads inside one worker, for models whose steps are large enough to share.
//!
//! A product is cut by rows of its result. Each number is still one chain in the same order, so the bits
//! do not depend on the number of threads. With one thread, the default, nothing here costs anything.

use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};
use std::sync::OnceLock;

/// Rows below which a product is not cut for another thread.
const ROWS_PER_THREAD: usize = 16;

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

/// How many rows each thread takes of so many.
pub(crate) fn rows_each(rows: usize, pool: &rayon::ThreadPool) -> usize {
    rows.div_ceil(pool.current_num_threads())
        .max(ROWS_PER_THREAD)
}

/// Runs `part` on the rows of `x` and of `y`, which come with their lengths: at once, or in parts on all
/// threads if so many multiply-adds are worth it.
pub(crate) fn by_rows(
    work: usize,
    (x, inputs): (&[f32], usize),
    (y, outputs): (&mut [f32], usize),
    part: impl Fn(&[f32], &mut [f32]) + Sync,
) {
    let Some(pool) = pool_for(work) else {
        return part(x, y);
    };
    let rows = rows_each(y.len() / outputs, pool);
    pool.install(|| {
        let inputs = x.par_chunks(rows * inputs);
        let outputs = y.par_chunks_mut(rows * outputs);
        inputs.zip(outputs).for_each(|(x, y)| part(x, y));
    });
}
