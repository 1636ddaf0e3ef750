//! The keyed permutation itself.

const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// How many blocks [`Philox::fill`] computes side by side, so that the compiler can use vectors.
const WIDTH: usize = 16;

/// Philox 4x32-10 under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Philox {
    key: [u32; 2],
}

impl Philox {
    /// A generator whose every value is determined by `key` and a counter.
    pub const fn new(key: u64) -> Self {
        Self {
            key: [key as u32, (key >> 32) as u32],
        }
    }

    /// The four numbers at position `counter`.
    pub fn block(self, counter: u128) -> [u32; 4] {
        let words = [0, 32, 64, 96].map(|shift| [(counter >> shift) as u32]);
        permute(words, self.key).map(|word| word[0])
    }

    /// Fills `out` with the numbers at positions `counter`, `counter + 1`, ... of which each gives four
    /// values. Only the low 32 bits of the counter move: they wrap within the same upper 96 bits.
    ///
    /// The same numbers as [`Philox::block`] would give one by one, several times faster.
    #[inline(always)]
    pub fn fill(self, counter: u128, out: &mut [u32]) {
        let high = [32, 64, 96].map(|shift| [(counter >> shift) as u32; WIDTH]);
        let mut low = counter as u32;
        for piece in out.chunks_mut(4 * WIDTH) {
            let lows = std::array::from_fn(|i| low.wrapping_add(i as u32));
            let words = permute([lows, high[0], high[1], high[2]], self.key);
            if let Ok(whole) = <&mut [u32; 4 * WIDTH]>::try_from(&mut *piece) {
                for i in 0..WIDTH {
                    for (w, word) in words.iter().enumerate() {
                        whole[4 * i + w] = word[i];
                    }
                }
            } else {
                for (i, value) in piece.iter_mut().enumerate() {
                    *value = words[i % 4][i / 4];
                }
            }
            low = low.wrapping_add(WIDTH as u32);
        }
    }
}

/// Ten rounds on `N` counters at once.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // four arrays move in step; zips of them hide that
fn permute<const N: usize>(mut c: [[u32; N]; 4], mut key: [u32; 2]) -> [[u32; N]; 4] {
    for _ in 0..ROUNDS {
        for i in 0..N {
            let p0 = u64::from(c[0][i]) * u64::from(MULTIPLIER[0]);
            let p1 = u64::from(c[2][i]) * u64::from(MULTIPLIER[1]);
            let (c1, c3) = (c[1][i], c[3][i]);
            c[0][i] = (p1 >> 32) as u32 ^ c1 ^ key[0];
            c[1][i] = p1 as u32;
            c[2][i] = (p0 >> 32) as u32 ^ c3 ^ key[1];
            c[3][i] = p0 as u32;
        }
        key[0] = key[0].wrapping_add(WEYL[0]);
        key[1] = key[1].wrapping_add(WEYL[1]);
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors' Random123 library is tested with.
    #[test]
    fn the_published_test_vectors_come_out() {
        assert_eq!(
            Philox::new(0).block(0),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            Philox::new(u64::MAX).block(u128::MAX),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            Philox::new(0x299f_31d0_a409_3822).block(0x0370_7344_1319_8a2e_85a3_08d3_243f_6a88),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn fill_gives_the_same_numbers_as_block() {
        let philox = Philox::new(0x1234_5678_9abc_def0);
        for len in [1, 3, 4, 63, 64, 65, 200, 256] {
            let start = (7u128 << 64) | 0xffff_fff0;
            let mut filled = vec![0; len];
            philox.fill(start, &mut filled);
            for (i, &value) in filled.iter().enumerate() {
                let low = (start as u32).wrapping_add(i as u32 / 4);
                let counter = (start & !0xffff_ffff) | u128::from(low);
                assert_eq!(value, philox.block(counter)[i % 4], "value {i} of {len}");
            }
        }
    }
}
