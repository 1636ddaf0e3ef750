//! Which sample is seen when: a function of the seed and the epoch, of nothing else.
//!
//! Not of the number of workers, of what was drawn before, or of the machine. So a run that is
//! resumed, repeated or carried by other workers sees the same samples in the same steps.

use lockstep_random::Stream;
use std::ops::Range;

/// Stream numbers of this crate: a purpose in the upper half, the epoch in the lower, so that no two
/// draws under one seed share a random number.
const SHUFFLE: u64 = u64::from_be_bytes(*b"shuf\0\0\0\0");
const SPLIT: u64 = u64::from_be_bytes(*b"splt\0\0\0\0");

/// The order in which an epoch sees its samples, each exactly once.
#[derive(Debug, Clone)]
pub struct EpochOrder {
    /// The samples to order, if they are not simply all of a set.
    subset: Option<Vec<u32>>,
    indices: Vec<u32>,
}

impl EpochOrder {
    /// The order of all samples `0..n` in epoch `epoch`.
    ///
    /// # Panics
    /// When `n` does not fit 32 bits.
    pub fn new(seed: u64, epoch: u32, n: usize) -> EpochOrder {
        assert!(
            u32::try_from(n).is_ok(),
            "{n} samples are more than 32 bits can count"
        );
        EpochOrder {
            subset: None,
            indices: vec![0; n],
        }
        .filled(seed, epoch)
    }

    /// The order of the samples `subset` in epoch `epoch`.
    pub fn of_subset(seed: u64, epoch: u32, subset: Vec<u32>) -> EpochOrder {
        let indices = vec![0; subset.len()];
        EpochOrder {
            subset: Some(subset),
            indices,
        }
        .filled(seed, epoch)
    }

    fn filled(mut self, seed: u64, epoch: u32) -> EpochOrder {
        self.fill(seed, epoch);
        self
    }

    /// Becomes the order of another epoch. Allocates nothing.
    pub fn fill(&mut self, seed: u64, epoch: u32) {
        match &self.subset {
            Some(subset) => self.indices.copy_from_slice(subset),
            None => self
                .indices
                .iter_mut()
                .zip(0..)
                .for_each(|(index, i)| *index = i),
        }
        shuffle(
            &mut self.indices,
            Stream::new(seed, SHUFFLE | u64::from(epoch)),
        );
    }

    /// The indices of the samples, in the order in which they are seen.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
}

/// Sets aside the share `val_split` of `n` samples, rounded to whole ones: returns the indices of
/// those to train on and those to validate on, each in ascending order.
pub fn split(n: usize, val_split: f64, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut train: Vec<u32> = (0..).take(n).collect();
    let count = ((n as f64 * val_split).round() as usize).min(n);
    shuffle(&mut train, Stream::new(seed, SPLIT));
    let mut val = train.split_off(n - count);
    train.sort_unstable();
    val.sort_unstable();
    (train, val)
}

/// The rows of a batch of `batch` that belong to lane `lane` of `lanes`: as equal as whole rows allow,
/// none left out, none twice. A batch shorter than `lanes` leaves some lanes empty.
///
/// # Panics
/// When `lane` is not below `lanes`.
pub fn lane_rows(lane: usize, lanes: usize, batch: usize) -> Range<usize> {
    assert!(lane < lanes, "there is no lane {lane} of {lanes}");
    lane * batch / lanes..(lane + 1) * batch / lanes
}

/// Fisher and Yates: every order is equally likely.
fn shuffle(indices: &mut [u32], mut stream: Stream) {
    for last in (1..indices.len()).rev() {
        let chosen = stream.below(last as u32 + 1) as usize;
        indices.swap(last, chosen);
    }
}
