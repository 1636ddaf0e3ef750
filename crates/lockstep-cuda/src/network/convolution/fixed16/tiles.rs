//! In which tiles a product is computed.

use super::super::super::product::MULTIPROCESSORS;

/// A size of tiles, as the kernels have it.
pub(super) struct Tile {
    rows: usize,
    pub(super) columns: usize,
    pub(super) threads: u32,
    /// Parts of the depth that are in shared memory or on their way.
    stages: usize,
    /// Columns from which on it is not half empty, and tiles that are enough to keep a large GPU busy.
    least_columns: usize,
    enough: usize,
}

impl Tile {
    /// Bytes that the threads of a block share: slices of all stages, and where rows are.
    pub(super) const fn shared(&self) -> usize {
        const LINE: usize = 4 * 16;
        const OF_ROW: usize = 16 + 3 * 4;
        self.stages * 2 * (self.rows + self.columns) * LINE + self.rows * OF_ROW
    }

    /// How many a product of so many rows and columns has.
    pub(super) fn count(&self, [rows, columns]: [usize; 2]) -> usize {
        rows.div_ceil(self.rows) * columns.div_ceil(self.columns)
    }
}

/// From the largest to the smallest: a larger one reads less for each of its sums.
const TILES: [Tile; 4] = [
    Tile {
        rows: 128,
        columns: 128,
        threads: 256,
        stages: 2,
        least_columns: 65,
        enough: 2 * MULTIPROCESSORS,
    },
    Tile {
        rows: 128,
        columns: 64,
        threads: 128,
        stages: 3,
        least_columns: 33,
        enough: MULTIPROCESSORS,
    },
    Tile {
        rows: 128,
        columns: 32,
        threads: 128,
        stages: 3,
        least_columns: 1,
        enough: MULTIPROCESSORS,
    },
    Tile {
        rows: 64,
        columns: 32,
        threads: 128,
        stages: 3,
        least_columns: 1,
        enough: 0,
    },
];

/// A kernel for each size of tiles, if there is one.
pub(super) type TileKernels = [Option<&'static str>; TILES.len()];

pub(super) const FORWARD: TileKernels = [
    Some("fixed16_forward_large"),
    Some("fixed16_forward_medium"),
    Some("fixed16_forward_tall"),
    Some("fixed16_forward_small"),
];
pub(super) const FORWARD_NARROW: TileKernels = [
    None,
    Some("fixed16_forward_narrow_medium"),
    Some("fixed16_forward_narrow_tall"),
    None,
];
pub(super) const INPUT_GRADIENT: TileKernels = [
    Some("fixed16_input_gradient_large"),
    Some("fixed16_input_gradient_medium"),
    Some("fixed16_input_gradient_tall"),
    Some("fixed16_input_gradient_small"),
];

/// The kernel for a product of so many rows and columns, so many times, and its tiles: the largest of which there are enough, or
/// else the smallest.
pub(super) fn best(
    kernels: &TileKernels,
    size: [usize; 2],
    times: usize,
) -> Option<(&'static str, &'static Tile)> {
    let all = TILES.iter().zip(kernels);
    let mut fitting = all.filter_map(|(tile, &kernel)| {
        let fits = size[1] >= tile.least_columns;
        kernel.filter(|_| fits).map(|kernel| (kernel, tile))
    });
    let smallest = fitting.clone().next_back();
    fitting
        .find(|(_, tile)| tile.count(size) * times >= tile.enough)
        .or(smallest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_of_tiles_is_the_best_for_some_product() {
        // The conformance suite has networks with these.
        let pixels = 5 * 65 * 64;
        let sizes = [[pixels, 256], [pixels, 40], [pixels, 20], [32, 512]];
        for (number, size) in sizes.into_iter().enumerate() {
            let (name, tile) = best(&FORWARD, size, 1).unwrap();
            assert_eq!(Some(name), FORWARD[number], "{size:?}");
            assert!(tile.shared() <= crate::launch::MOST_SHARED);
        }
        let narrow = best(&FORWARD_NARROW, [8, 8], 1).unwrap().0;
        assert_eq!(Some(narrow), FORWARD_NARROW[2]);
    }
}
