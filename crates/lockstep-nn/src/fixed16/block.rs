//! A block of sums: 16 rows of the left operand times up to 32 columns of the right one.

use super::engine::Engine;

/// Rows of a block.
pub(super) const ROWS: usize = 16;

/// Columns of a tile of the right operand.
pub(super) const TILE_COLUMNS: usize = 16;

/// Columns of a block: two tiles.
pub(super) const COLUMNS: usize = 2 * TILE_COLUMNS;

/// Depth that is multiplied at a time: operands are filled up to whole ones with zeros.
pub(super) const DEPTH: usize = 64;

/// Bytes of a tile: one slice of [`DEPTH`] by [`TILE_COLUMNS`].
pub(super) const TILE: usize = DEPTH * TILE_COLUMNS;

/// The deepest sum that 32 bits hold, whatever the numbers.
pub(super) const DEEPEST: usize = 65_536;

/// Sums of a tile: products of upper slices, and products of an upper and a lower one.
#[derive(Debug, Clone, PartialEq)]
#[repr(C)]
pub(super) struct TileSums {
    pub(super) upper: [[i32; TILE_COLUMNS]; ROWS],
    pub(super) mixed: [[i32; TILE_COLUMNS]; ROWS],
}

/// Sums of a block, tile by tile.
#[derive(Debug, Clone, PartialEq)]
#[repr(C, align(64))]
pub(super) struct Sums(pub(super) [TileSums; 2]);

impl Sums {
    pub(super) const ZERO: Self = {
        const TILE: TileSums = TileSums {
            upper: [[0; TILE_COLUMNS]; ROWS],
            mixed: [[0; TILE_COLUMNS]; ROWS],
        };
        Self([TILE; 2])
    };
}

/// The left operand: rows of both slices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left<'a> {
    /// Upper slices of the rows.
    pub(super) upper: &'a [i8],
    /// Lower slices, which lie like those.
    pub(super) lower: &'a [i8],
    /// From a row to the next.
    pub(super) stride: usize,
}

impl<'a> Left<'a> {
    /// Without its first rows, and without the beginning of each.
    pub(super) fn at(self, row: usize, depth: usize) -> Self {
        let start = row * self.stride + depth;
        Self {
            upper: &self.upper[start..],
            lower: &self.lower[start..],
            ..self
        }
    }
}

/// Where rows that lie in one piece have each next 64 numbers.
static CONTIGUOUS: [usize; DEEPEST / DEPTH] = {
    let mut offsets = [0; DEEPEST / DEPTH];
    let mut i = 0;
    while i < offsets.len() {
        offsets[i] = i * DEPTH;
        i += 1;
    }
    offsets
};

/// Where rows that lie in one piece have each next 64 numbers, of so many times 64.
pub(super) fn contiguous(depths: usize) -> &'static [usize] {
    &CONTIGUOUS[..depths]
}

/// One block: the first 16 rows of `left`, with tiles of the right operand: for each 64 in depth the upper and the lower
/// tile of each 16 columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) left: Left<'a>,
    /// Where in a row each 64 numbers lie; none lies behind the last.
    pub(super) offsets: &'a [usize],
    pub(super) right: &'a [i8],
    /// How many tiles: 1 or 2.
    pub(super) tiles: usize,
}

/// A thread's leave to use an engine. With AMX it configures the thread's tiles, until dropped.
pub(super) struct Session {
    engine: Engine,
    /// Of the newest block and of the one before it.
    sums: [Sums; 2],
    newest: usize,
    #[cfg(target_arch = "x86_64")]
    _tiles: Option<super::amx::Tiles>,
}

impl Session {
    /// # Panics
    /// When the machine does not have the engine.
    pub(super) fn new(engine: Engine) -> Self {
        assert!(
            engine <= Engine::detected(),
            "this machine has no {engine:?}"
        );
        Self {
            engine,
            sums: [Sums::ZERO; 2],
            newest: 0,
            #[cfg(target_arch = "x86_64")]
            _tiles: (engine == Engine::Amx).then(super::amx::Tiles::new),
        }
    }

    /// The sums of the block that was computed last.
    #[inline]
    pub(super) fn newest(&self) -> &Sums {
        &self.sums[self.newest]
    }

    /// Those of the block before it.
    #[inline]
    pub(super) fn before(&self) -> &Sums {
        &self.sums[1 - self.newest]
    }

    /// Computes the sums of a block, which is at most [`DEEPEST`] deep.
    ///
    /// # Panics
    /// When an operand is too short.
    #[inline]
    pub(super) fn compute(&mut self, block: &Block<'_>) {
        let Block {
            left,
            offsets,
            right,
            tiles,
        } = *block;
        let last = offsets.last().map_or(0, |offset| offset + DEPTH);
        let is_last = |offset: &usize| offset + DEPTH <= last;
        debug_assert!(offsets.iter().all(is_last), "offsets behind the last");
        let reach = (ROWS - 1) * left.stride + last;
        let is_long_enough = left.upper.len() >= reach && left.lower.len() >= reach;
        assert!(is_long_enough, "the left operand is too short");
        assert!((1..=2).contains(&tiles), "one tile or two");
        let length = offsets.len() * tiles * 2 * TILE;
        assert!(right.len() >= length, "the right operand is too short");
        self.newest = 1 - self.newest;
        let sums = &mut self.sums[self.newest];
        if self.engine != Engine::Amx {
            *sums = Sums::ZERO;
        }
        match self.engine {
            Engine::Plain => plain(block, sums),
            // SAFETY: the operands are long enough, as was just checked, and a session is of an engine that the
            // machine has; with AMX this thread's tiles are configured.
            #[cfg(target_arch = "x86_64")]
            engine => unsafe {
                match engine {
                    Engine::Avx2 => super::avx2::add(block, sums),
                    Engine::Vnni => super::vnni::add(block, sums),
                    _ => super::amx::compute(block, sums),
                }
            },
            #[cfg(not(target_arch = "x86_64"))]
            engine => panic!("{engine:?} on another processor"),
        }
    }
}

/// The definition of the sums.
fn plain(block: &Block<'_>, sums: &mut Sums) {
    let Left {
        upper,
        lower,
        stride,
    } = block.left;
    let wide = |slice: &[i8], at: usize| -> [i32; DEPTH] {
        let mut numbers = [0; DEPTH];
        let from = slice[at..at + DEPTH].iter();
        numbers
            .iter_mut()
            .zip(from)
            .for_each(|(to, &x)| *to = x.into());
        numbers
    };
    for (tile, sums) in sums.0.iter_mut().enumerate().take(block.tiles) {
        for (depth, offset) in block.offsets.iter().enumerate() {
            let right = &block.right[(depth * block.tiles + tile) * 2 * TILE..][..2 * TILE];
            for row in 0..ROWS {
                let at = row * stride + offset;
                let (h, l) = (wide(upper, at), wide(lower, at));
                for column in 0..TILE_COLUMNS {
                    let (mut of_upper, mut mixed) = (0, 0);
                    for k in 0..DEPTH {
                        let at = k / 4 * 4 * TILE_COLUMNS + column * 4 + k % 4;
                        let (rh, rl) = (i32::from(right[at]), i32::from(right[TILE + at]));
                        of_upper += h[k] * rh;
                        mixed += h[k] * rl + l[k] * rh;
                    }
                    sums.upper[row][column] += of_upper;
                    sums.mixed[row][column] += mixed;
                }
            }
        }
    }
}
