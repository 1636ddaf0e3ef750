//! Kernels of matrix products, of which there are several: in small tiles and in larger ones. The bits are the same.

use crate::arguments::Arguments;
use crate::kernels::{Kernel, KernelFile};
use crate::launch::Launch;

/// A size of tiles, as the kernels have it.
struct Tile {
    /// What the names of kernels end with.
    name: &'static str,
    rows: usize,
    columns: usize,
    threads: u32,
    /// What a multiprocessor takes for a step of the depth, in cycles: however many tiles it has, since a chain waits for
    /// each of its sums, and for each of them. As measured in whole steps of networks (decision 64).
    first: f64,
    each: f64,
}

const TILES: [Tile; 4] = [
    Tile {
        name: "small",
        rows: 8,
        columns: 16,
        threads: 64,
        first: 13.5,
        each: 5.0,
    },
    Tile {
        name: "medium",
        rows: 16,
        columns: 32,
        threads: 64,
        first: 21.0,
        each: 10.5,
    },
    Tile {
        name: "large",
        rows: 32,
        columns: 32,
        threads: 64,
        first: 40.0,
        each: 13.0,
    },
    Tile {
        name: "largest",
        rows: 64,
        columns: 32,
        threads: 64,
        first: 50.0,
        each: 20.0,
    },
];

/// Multiprocessors of a large GPU. Others take what is best for that.
pub(crate) const MULTIPROCESSORS: usize = 132;

/// The kernels of a product.
pub(crate) struct ProductKernels<A> {
    /// In the smallest tiles, for operands of any size.
    any: Kernel<A>,
    /// One for each size of tiles.
    kernels: [Kernel<A>; TILES.len()],
}

impl<A: Arguments + 'static> ProductKernels<A> {
    /// Of these names: the one for any size, then in the order of tiles.
    pub(crate) const fn new(
        file: &'static KernelFile,
        names: [&'static str; 1 + TILES.len()],
    ) -> Self {
        let [any, small, medium, large, largest] = names;
        Self {
            any: Kernel::new(file, any, TILES[0].threads),
            kernels: [
                Kernel::new(file, small, TILES[0].threads),
                Kernel::new(file, medium, TILES[1].threads),
                Kernel::new(file, large, TILES[2].threads),
                Kernel::new(file, largest, TILES[3].threads),
            ],
        }
    }

    /// A product of so many rows and columns. Unless it is wide, it is one of any size.
    pub(crate) fn launch(
        &self,
        [rows, columns]: [usize; 2],
        is_wide: bool,
        arguments: A,
    ) -> Launch {
        let blocks = |tile: &Tile| [columns.div_ceil(tile.columns), rows.div_ceil(tile.rows), 1];
        if !is_wide {
            return Launch::new(&self.any, blocks(&TILES[0]), arguments);
        }
        let number = best([rows, columns]);
        let (tile, kernel) = (&TILES[number], &self.kernels[number]);
        debug_assert!(
            kernel.name.ends_with(tile.name),
            "kernels in the order of sizes"
        );
        Launch::new(kernel, blocks(tile), arguments)
    }
}

/// Which tiles are the best for a product of so many rows and columns.
fn best([rows, columns]: [usize; 2]) -> usize {
    let cycles = |tile: &Tile| {
        let tiles = columns.div_ceil(tile.columns) * rows.div_ceil(tile.rows);
        tile.first + tiles.div_ceil(MULTIPROCESSORS) as f64 * tile.each
    };
    let all = TILES.iter().enumerate();
    let best = all.min_by(|(_, one), (_, other)| cycles(one).total_cmp(&cycles(other)));
    best.map_or(0, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_of_tiles_is_the_best_for_some_product() {
        // The conformance suite has networks with these.
        let products = [[32, 512], [125, 500], [1000, 620], [1001, 508]];
        assert_eq!(products.map(best), [0, 1, 2, 3]);
    }
}
