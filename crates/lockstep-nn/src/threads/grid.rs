//! A matrix that is cut into tiles of rows and columns.

use super::{PRODUCTS, Threads};
use std::ops::Range;

/// Tiles for each thread, so that one that is held up leaves some to the others.
const TILES: usize = 4;

/// One dimension of a matrix, in parts that consist of whole units but for the end.
#[derive(Debug, Clone, Copy)]
struct Cut {
    length: usize,
    unit: usize,
    parts: usize,
}

impl Cut {
    fn units(self) -> usize {
        self.length.div_ceil(self.unit)
    }

    /// The range of a part. Parts differ by at most a unit.
    fn part(self, number: usize) -> Range<usize> {
        let place =
            |number: usize| (number * self.units() / self.parts * self.unit).min(self.length);
        place(number)..place(number + 1)
    }
}

/// How a matrix is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    rows: Cut,
    columns: Cut,
}

impl Grid {
    /// Cuts so many rows and columns for these threads. Both come with the units that they are worth computing in.
    /// `work` is how many multiply-adds there are in all: with little to do, or one thread, there is one tile. So there is
    /// inside of a job: what is cut without need is packed more often, or not at all.
    pub(crate) fn new(
        threads: &Threads,
        rows: (usize, usize),
        columns: (usize, usize),
        work: usize,
    ) -> Self {
        let [mut rows, mut columns] = [rows, columns].map(|(length, unit)| Cut {
            length,
            unit,
            parts: 1,
        });
        let count = threads.free();
        if count > 1 && rows.length > 0 && columns.length > 0 {
            let wanted = (work / PRODUCTS).clamp(1, TILES * count);
            let (longer, other) = match rows.units() >= columns.units() {
                true => (&mut rows, &mut columns),
                false => (&mut columns, &mut rows),
            };
            longer.parts = longer.units().min(wanted);
            other.parts = other.units().min(wanted.div_ceil(longer.parts));
        }
        Self { rows, columns }
    }

    /// How many tiles there are.
    pub(crate) fn count(self) -> usize {
        self.rows.parts * self.columns.parts
    }

    /// The rows and the columns of a tile. Neighbours have the same columns.
    pub(crate) fn tile(self, number: usize) -> (Range<usize>, Range<usize>) {
        let (row, column) = (number % self.rows.parts, number / self.rows.parts);
        (self.rows.part(row), self.columns.part(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_a_matrix_once_and_are_about_equal() {
        for count in [1, 2, 3, 16] {
            let threads = Threads::with_threads(count).unwrap();
            for (height, width) in [(1, 1), (33, 512), (784, 31), (5, 1000), (300, 300)] {
                let grid = Grid::new(&threads, (height, 8), (width, 32), height * width * 5000);
                let mut seen = vec![0; height * width];
                for number in 0..grid.count() {
                    let (rows, columns) = grid.tile(number);
                    assert!(columns.start.is_multiple_of(32) && rows.start.is_multiple_of(8));
                    for row in rows {
                        columns
                            .clone()
                            .for_each(|column| seen[row * width + column] += 1);
                    }
                }
                assert!(seen.iter().all(|&times| times == 1), "{height} x {width}");
                assert!(grid.count() <= TILES * count + count);
            }
        }
        let threads = Threads::with_threads(4).unwrap();
        assert_eq!(Grid::new(&threads, (64, 8), (64, 32), PRODUCTS).count(), 1);
        let large = |threads| Grid::new(threads, (512, 8), (512, 32), 512 * 512 * 512).count();
        assert!(large(&threads) > 4);
        threads.each(0..2, |_, _| {
            assert_eq!(large(&threads), 1, "inside of a job")
        });
    }
}
