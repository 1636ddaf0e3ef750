//! What a network computes with: the threads of a process, passed to whoever builds one.
//!
//! A product is cut by rows of its result. Each number is still one chain in the same order, so the bits
//! do not depend on the number of threads. With one thread, the default, nothing here costs anything.

use crate::gemm::{Accumulate, Left, Shape, Span, Walk, halved, nested};
use rayon::ThreadPool;
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};
use std::sync::Arc;

/// Rows below which a product is not cut for another thread.
const ROWS_PER_THREAD: usize = 16;

/// Multiply-adds below which waking a thread costs more than it saves.
const WORTH_SHARING: usize = 1 << 21;

/// The threads to compute with. Every clone shares them.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    /// None computes on the calling thread alone.
    pool: Option<Arc<ThreadPool>>,
}

impl Threads {
    /// So many threads; 0 and 1 both mean the calling thread.
    ///
    /// # Errors
    /// When the system refuses to start them.
    pub fn with_threads(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let start = |threads| {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
            builder.build().map(Arc::new)
        };
        let pool = (threads > 1).then(|| start(threads)).transpose()?;
        Ok(Self { pool })
    }

    /// C (`m` x `n`) = A (`m` x `k`) B (`k` x `n`), or C += A B, on all threads if that is worth it. B and C
    /// come with the distances between their rows.
    pub(crate) fn gemm(
        &self,
        (m, n, k): (usize, usize, usize),
        a: Left<'_>,
        b: (&[f32], usize),
        (c, c_stride): (&mut [f32], usize),
        into: Accumulate,
    ) {
        let shape = Shape {
            rows: Span::flat(m),
            columns: n,
            depth: Span::flat(k),
        };
        self.product(shape, a, b, (c, Walk::flat(c_stride)), into);
    }

    /// As [`nested`], on all threads if that is worth it. The product's rows are one loop.
    pub(crate) fn product(
        &self,
        shape: Shape,
        a: Left<'_>,
        b: (&[f32], usize),
        (c, walk): (&mut [f32], Walk),
        into: Accumulate,
    ) {
        let rows = shape.rows.inner;
        match self.pool_for(rows * shape.columns * shape.depth.len()) {
            None => nested(shape, a, b, c, walk, into),
            Some(pool) => {
                let rows = rows_each(rows, pool);
                pool.install(|| halved(shape, a, b, c, walk, into, rows));
            }
        }
    }

    /// Runs `part` on the rows of `x` and of `y`, which come with their lengths: at once, or in parts on all
    /// threads if so many multiply-adds are worth it.
    pub(crate) fn by_rows(
        &self,
        work: usize,
        (x, inputs): (&[f32], usize),
        (y, outputs): (&mut [f32], usize),
        part: impl Fn(&[f32], &mut [f32]) + Sync,
    ) {
        let Some(pool) = self.pool_for(work) else {
            return part(x, y);
        };
        let rows = rows_each(y.len() / outputs, pool);
        pool.install(|| {
            let inputs = x.par_chunks(rows * inputs);
            let outputs = y.par_chunks_mut(rows * outputs);
            inputs.zip(outputs).for_each(|(x, y)| part(x, y));
        });
    }

    /// The threads to share so many multiply-adds with, if it is worth it.
    fn pool_for(&self, work: usize) -> Option<&ThreadPool> {
        match work < WORTH_SHARING {
            true => None,
            false => self.pool.as_deref(),
        }
    }
}

/// How many rows each thread takes of so many.
fn rows_each(rows: usize, pool: &ThreadPool) -> usize {
    rows.div_ceil(pool.current_num_threads())
        .max(ROWS_PER_THREAD)
}
