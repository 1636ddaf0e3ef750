//! What a network computes with: the threads of a process, passed to whoever builds one.
//!
//! A layer cuts its work into tiles, and each tile is computed by one thread as it would be by any other: every number
//! stays one chain in the same order, so the bits do not depend on the number of threads. With one thread, the default,
//! tiles are computed one after the other where they are asked for.

mod grid;
mod pool;
mod tiles;
mod vectors;

use crate::layers::carved;
pub(crate) use grid::Grid;
use pool::Pool;
use std::fmt;
use std::io;
use std::sync::Arc;
pub use tiles::{Pieces, PiecesMut, Tiles, pieces, pieces_mut};
pub(crate) use tiles::{SharedMut, ranges_mut};
pub use vectors::{VectorRange, VectorRanges, VectorSet};

/// Numbers of a tile of work that does little with each. Giving a tile to a thread costs less than a tenth of it.
pub(crate) const NUMBERS: usize = 16 * 1024;

/// Multiply-adds of a tile of products, at the least.
pub(crate) const PRODUCTS: usize = 1 << 17;

/// Rows of a tile, if a row has so many numbers and little is done with each.
pub(crate) fn rows_of_a_tile(width: usize) -> usize {
    (NUMBERS / width.max(1)).max(1)
}

/// The threads to compute with. Every clone shares them.
#[derive(Clone)]
pub struct Threads {
    count: usize,
    /// None computes on the calling thread alone.
    pool: Option<Arc<Pool>>,
}

/// The calling thread.
impl Default for Threads {
    fn default() -> Self {
        Self::planned(1)
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}

impl Threads {
    /// So many threads; 0 and 1 both mean the calling thread.
    ///
    /// # Errors
    /// When the system refuses to start them.
    pub fn with_threads(threads: usize) -> io::Result<Self> {
        let mut all = Self::planned(threads.max(1));
        if threads > 1 {
            all.pool = Some(Arc::new(Pool::new(threads - 1)?));
        }
        Ok(all)
    }

    /// So many threads, none of which is started: for whoever only plans what they will need.
    pub fn planned(count: usize) -> Self {
        Self { count, pool: None }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many of them a job has that begins now: inside of a job, the thread that has it.
    pub(crate) fn free(&self) -> usize {
        let is_taken = self.pool.as_ref().is_some_and(|pool| pool.is_taken());
        if is_taken { 1 } else { self.count }
    }

    /// Calls `work` with every tile and its number, on all threads if there are several tiles. A job inside of a job is
    /// done by the thread that has it.
    pub fn each<C: Tiles>(&self, tiles: C, work: impl Fn(usize, C::Tile) + Sync) {
        self.run(tiles, &|_, number, tile| work(number, tile));
    }

    /// As [`Threads::each`], with room of `length` numbers to work in for each thread, which hold nothing of meaning.
    ///
    /// # Panics
    /// When there is not enough room for all threads: see [`Threads::rooms`].
    pub fn each_in<C: Tiles>(
        &self,
        room: &mut [f32],
        length: usize,
        tiles: C,
        work: impl Fn(&mut [f32], usize, C::Tile) + Sync,
    ) {
        let (threads, count) = (self.count(), tiles.count());
        let room = SharedMut::new(&mut room[..self.rooms(length, count)]);
        self.run(tiles, &|thread, number, tile| {
            let own = if count <= threads { number } else { thread };
            let start = own * carved(length);
            // SAFETY: a thread computes one tile at a time, and each has a number of its own.
            let room = unsafe { room.part(start..start + length) };
            work(room, number, tile);
        });
    }

    /// Numbers that rooms of this length take, one for each thread that works on so many tiles.
    pub fn rooms(&self, length: usize, tiles: usize) -> usize {
        carved(length) * self.count().min(tiles)
    }

    /// Calls `work` with every tile, behind the number of the thread and that of the tile.
    fn run<C: Tiles>(&self, tiles: C, work: &(dyn Fn(usize, usize, C::Tile) + Sync)) {
        let count = tiles.count();
        let compute = |thread, number| {
            // SAFETY: every number is asked for once.
            work(thread, number, unsafe { tiles.tile(number) });
        };
        let is_done = match &self.pool {
            Some(pool) if count > 1 => pool.run(count, &compute),
            _ => false,
        };
        if !is_done {
            (0..count).for_each(|number| compute(0, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_go_together_with_rooms_that_no_two_threads_share() {
        for threads in [1, 2, 3, 8] {
            let threads = Threads::with_threads(threads).unwrap();
            for (len, length) in [(0, 3), (5, 9), (100, 7), (1000, 3)] {
                let from: Vec<u32> = (0..len as u32).collect();
                let mut to = vec![0; len];
                let mut room = vec![f32::NAN; threads.rooms(5, len.div_ceil(length))];
                let tiles = (pieces(&from, length), pieces_mut(&mut to, length));
                threads.each_in(&mut room, 5, tiles, |room, number, (from, to)| {
                    room.fill(number as f32);
                    // Whatever it does meanwhile, a job of its own too, nobody else writes there.
                    threads.each(0..3, |_, _| std::thread::yield_now());
                    assert_eq!(from[0] as usize, number * length);
                    to.copy_from_slice(from);
                    assert!(room.iter().all(|&x| x == number as f32));
                });
                assert_eq!(from, to);
            }
        }
    }
}
