//! Numbers drawn one after the other, for the places that are not in a hurry.

use crate::random::Philox;

/// The numbers of one numbered stream under one key, in order.
///
/// Streams with different numbers never share a value's position, so they are independent.
#[derive(Debug, Clone)]
pub struct Stream {
    philox: Philox,
    /// Stream number in the upper half, position in the lower.
    counter: u128,
    block: [u32; 4],
    used: usize,
}

impl Stream {
    /// Stream number `stream` under `key`, at its beginning.
    pub const fn new(key: u64, stream: u64) -> Self {
        Self {
            philox: Philox::new(key),
            counter: (stream as u128) << 64,
            block: [0; 4],
            used: 4,
        }
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.block = self.philox.block(self.counter);
            self.counter += 1;
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let low = self.next_u32();
        u64::from(low) | u64::from(self.next_u32()) << 32
    }

    /// A number in `0..bound`, each equally likely (Lemire's method with rejection).
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "there is no number below 0");
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(bound);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }

    /// Puts the items in an order of which every one is equally likely (Fisher and Yates).
    ///
    /// # Panics
    /// When there are more than `u32::MAX` of them.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        let len = u32::try_from(items.len()).expect("fewer items than 2^32");
        for last in (1..len).rev() {
            items.swap(last as usize, self.below(last + 1) as usize);
        }
    }

    /// A number in `[0, 1)` with the 24 bits that an `f32` can hold.
    pub fn unit_f32(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 * (1.0 / 16_777_216.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |key, stream| {
            let mut s = Stream::new(key, stream);
            [s.next_u64(), s.next_u64(), s.next_u64()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn below_is_even_and_stays_below() {
        let mut s = Stream::new(3, 0);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[s.below(7) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&c| (9_600..10_400).contains(&c)),
            "{counts:?}"
        );
    }

    #[test]
    fn unit_f32_is_in_the_half_open_interval() {
        let mut s = Stream::new(4, 0);
        let mean = (0..10_000)
            .map(|_| s.unit_f32())
            .inspect(|x| assert!((0.0..1.0).contains(x)))
            .sum::<f32>()
            / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
