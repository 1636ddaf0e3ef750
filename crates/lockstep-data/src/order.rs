//! Which sample is seen when: a function of the seed and the epoch, of nothing else.
//!
//! Not of the number of workers, of what was drawn before, or of the machine. So a run that is
//! resumed, repeated or carried by other workers sees the same samples in the same steps.

use crate::Dataset;
use lockstep_base::random::Stream;
use std::collections::BTreeMap;
use std::ops::Range;

/// Stream numbers of this crate: a purpose in the upper half, the epoch in the lower, so that no two
/// draws under one seed share a random number.
const SHUFFLE: u64 = u64::from_be_bytes(*b"shuf\0\0\0\0");
const BALANCE: u64 = u64::from_be_bytes(*b"blnc\0\0\0\0");
pub(crate) const SPLIT: u64 = u64::from_be_bytes(*b"splt\0\0\0\0");

/// The order in which an epoch sees its samples: each exactly once, unless classes are balanced.
#[derive(Debug, Clone)]
pub struct EpochOrder {
    samples: Samples,
    indices: Vec<u32>,
}

/// What is put in order.
#[derive(Debug, Clone)]
enum Samples {
    /// All of a set.
    All,
    /// These.
    Subset(Vec<u32>),
    /// As many of each class, of the samples of every one; none of them is empty.
    Balanced {
        classes: Vec<Vec<u32>>,
        /// Room for the samples of the largest class.
        room: Vec<u32>,
    },
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
            samples: Samples::All,
            indices: vec![0; n],
        }
        .filled(seed, epoch)
    }

    /// The order of the samples `subset` in epoch `epoch`.
    pub fn of_subset(seed: u64, epoch: u32, subset: Vec<u32>) -> EpochOrder {
        let indices = vec![0; subset.len()];
        EpochOrder {
            samples: Samples::Subset(subset),
            indices,
        }
        .filled(seed, epoch)
    }

    /// As many samples as these are, drawn from them so that all classes that they have come equally often, as near as
    /// whole samples allow; `class` says which one a sample has. Of a class, each sample comes as often as any other or
    /// once more.
    pub fn balanced(
        seed: u64,
        epoch: u32,
        samples: &[u32],
        class: impl Fn(u32) -> u32,
    ) -> EpochOrder {
        let mut classes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &sample in samples {
            classes.entry(class(sample)).or_default().push(sample);
        }
        let largest = classes.values().map(Vec::len).max().unwrap_or(0);
        EpochOrder {
            samples: Samples::Balanced {
                classes: classes.into_values().collect(),
                room: Vec::with_capacity(largest),
            },
            indices: vec![0; samples.len()],
        }
        .filled(seed, epoch)
    }

    fn filled(mut self, seed: u64, epoch: u32) -> EpochOrder {
        self.fill(seed, epoch);
        self
    }

    /// Becomes the order of another epoch. Allocates nothing.
    pub fn fill(&mut self, seed: u64, epoch: u32) {
        match &mut self.samples {
            Samples::Subset(subset) => self.indices.copy_from_slice(subset),
            Samples::Balanced { classes, room } => {
                let mut stream = Stream::new(seed, BALANCE | u64::from(epoch));
                draw_balanced(&mut self.indices, classes, room, epoch, &mut stream);
            }
            Samples::All => self
                .indices
                .iter_mut()
                .zip(0..)
                .for_each(|(index, i)| *index = i),
        }
        Stream::new(seed, SHUFFLE | u64::from(epoch)).shuffle(&mut self.indices);
    }

    /// The indices of the samples, in the order in which they are seen.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
}

/// Fills `drawn` with as many samples of each class. What cannot be parted evenly goes to other classes in other epochs.
fn draw_balanced(
    drawn: &mut [u32],
    classes: &[Vec<u32>],
    room: &mut Vec<u32>,
    epoch: u32,
    stream: &mut Stream,
) {
    let (each, rest) = (
        drawn.len() / classes.len().max(1),
        drawn.len() % classes.len().max(1),
    );
    let mut left = drawn;
    for (number, class) in classes.iter().enumerate() {
        let turn = (number + epoch as usize) % classes.len();
        let (own, others) = left.split_at_mut(each + usize::from(turn < rest));
        // Whole rounds of the class, each in an order of its own, and the beginning of one more.
        for round in own.chunks_mut(class.len()) {
            room.clear();
            room.extend(class);
            stream.shuffle(room);
            round.copy_from_slice(&room[..round.len()]);
        }
        left = others;
    }
}

/// Sets aside the share `val_split` of `n` samples, rounded to whole ones: returns the indices of
/// those to train on and those to validate on, each in ascending order.
pub fn split(n: usize, val_split: f64, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut train: Vec<u32> = (0..).take(n).collect();
    let count = ((n as f64 * val_split).round() as usize).min(n);
    Stream::new(seed, SPLIT).shuffle(&mut train);
    let mut val = train.split_off(n - count);
    train.sort_unstable();
    val.sort_unstable();
    (train, val)
}

/// The same, of samples of these classes, with the same share of every class as near as whole samples allow.
pub fn stratified_split(classes: &[u32], val_split: f64, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let n = classes.len();
    let mut order: Vec<u32> = (0..).take(n).collect();
    Stream::new(seed, SPLIT).shuffle(&mut order);
    let mut counts = vec![0usize; classes.iter().max().map_or(0, |&most| most as usize + 1)];
    for &class in classes {
        counts[class as usize] += 1;
    }
    let mut wanted = quotas(&counts, val_split);
    let (mut val, mut train): (Vec<u32>, Vec<u32>) = order.into_iter().partition(|&sample| {
        let wanted = &mut wanted[classes[sample as usize] as usize];
        let taken = *wanted > 0;
        *wanted -= usize::from(taken);
        taken
    });
    train.sort_unstable();
    val.sort_unstable();
    (train, val)
}

/// A share of each count in whole numbers, that add up to the share of all, rounded: what is left over goes to those
/// that lost most by rounding down, and of equal ones to the first.
pub(crate) fn quotas(counts: &[usize], share: f64) -> Vec<usize> {
    let all: usize = counts.iter().sum();
    let wanted = ((all as f64 * share).round() as usize).min(all);
    let mut quotas: Vec<usize> = counts
        .iter()
        .map(|&count| (count as f64 * share) as usize)
        .collect();
    let mut by_loss: Vec<usize> = (0..counts.len()).collect();
    let lost = |&place: &usize| counts[place] as f64 * share - quotas[place] as f64;
    let losses: Vec<f64> = by_loss.iter().map(lost).collect();
    by_loss.sort_by(|&a, &b| losses[b].total_cmp(&losses[a]));
    let left = wanted.saturating_sub(quotas.iter().sum());
    for &place in by_loss
        .iter()
        .cycle()
        .filter(|&&place| counts[place] > 0)
        .take(left)
    {
        quotas[place] += 1;
    }
    quotas
}

impl Dataset {
    /// Sets aside a share of the samples: returns the indices of those to train on and those to validate on, each in
    /// ascending order. With `stratify`, the same share of every class, where samples have one.
    pub fn split(&self, val_split: f64, stratify: bool, seed: u64) -> (Vec<u32>, Vec<u32>) {
        match self.labels() {
            classes if stratify && !classes.is_empty() => {
                stratified_split(classes, val_split, seed)
            }
            _ => split(self.len(), val_split, seed),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(indices: &[u32]) -> Vec<u32> {
        let mut sorted = indices.to_vec();
        sorted.sort_unstable();
        sorted
    }

    proptest! {
        #[test]
        fn every_sample_is_seen_exactly_once(seed: u64, epoch: u32, n in 0usize..500) {
            let order = EpochOrder::new(seed, epoch, n);
            prop_assert_eq!(sorted(order.indices()), (0..n as u32).collect::<Vec<_>>());
        }

        #[test]
        fn the_order_depends_on_seed_and_epoch_alone(seed: u64, epoch: u32, before: u32) {
            let mut reused = EpochOrder::new(!seed, before, 100);
            reused.fill(seed, before);
            reused.fill(seed, epoch);
            let fresh = EpochOrder::new(seed, epoch, 100);
            prop_assert_eq!(reused.indices(), fresh.indices());
        }

        #[test]
        fn another_epoch_or_seed_is_another_order(seed: u64, epoch in 0..u32::MAX) {
            let order = |seed, epoch| EpochOrder::new(seed, epoch, 100).indices().to_vec();
            prop_assert_ne!(order(seed, epoch), order(seed, epoch + 1));
            prop_assert_ne!(order(seed, epoch), order(seed ^ 1, epoch));
            prop_assert_ne!(order(seed, epoch), (0..100).collect::<Vec<_>>());
        }

        #[test]
        fn a_subset_is_ordered_whole(seed: u64, share in 0.0..1.0f64) {
            let (train, _) = split(200, share, seed);
            let order = EpochOrder::of_subset(seed, 3, train.clone());
            prop_assert_eq!(sorted(order.indices()), train);
        }

        #[test]
        fn balanced_classes_come_equally_often(seed: u64, epoch: u32, sizes in proptest::collection::vec(0usize..40, 1..6)) {
            let classes: Vec<u32> = sizes.iter().zip(0..).flat_map(|(&size, class)| vec![class; size]).collect();
            // Every other sample is set aside.
            let samples: Vec<u32> = (0..classes.len() as u32).step_by(2).collect();
            let class = |sample: u32| classes[sample as usize];
            let mut order = EpochOrder::balanced(!seed, 7, &samples, class);
            order.fill(seed, epoch);
            prop_assert_eq!(order.indices().len(), samples.len());
            let mut counts = vec![0usize; classes.len()];
            for &sample in order.indices() {
                prop_assert!(samples.contains(&sample));
                counts[sample as usize] += 1;
            }
            let present: Vec<u32> = (0..6).filter(|&one| samples.iter().any(|&sample| class(sample) == one)).collect();
            for &one in &present {
                let own = || samples.iter().filter(|&&sample| class(sample) == one).map(|&sample| counts[sample as usize]);
                let total: usize = own().sum();
                let fair = samples.len() / present.len();
                prop_assert!(total == fair || total == fair + 1);
                prop_assert!(own().max() <= own().min().map(|least| least + 1));
            }
            let fresh = EpochOrder::balanced(seed, epoch, &samples, class);
            prop_assert_eq!(order.indices(), fresh.indices());
        }

        #[test]
        fn a_split_parts_the_samples_into_two(seed: u64, n in 0usize..500, share in 0.0..=1.0f64) {
            let (train, val) = split(n, share, seed);
            prop_assert_eq!(val.len(), (n as f64 * share).round() as usize);
            prop_assert!(train.is_sorted() && val.is_sorted());
            prop_assert_eq!(sorted(&[train.clone(), val.clone()].concat()), (0..n as u32).collect::<Vec<_>>());
            prop_assert_eq!(split(n, share, seed), (train, val));
        }

        #[test]
        fn a_stratified_split_takes_the_same_share_of_every_class(
            seed: u64,
            classes in proptest::collection::vec(0u32..6, 0..300),
            share in 0.0..=1.0f64,
        ) {
            let n = classes.len();
            let (train, val) = stratified_split(&classes, share, seed);
            prop_assert_eq!(val.len(), (n as f64 * share).round() as usize);
            prop_assert!(train.is_sorted() && val.is_sorted());
            prop_assert_eq!(sorted(&[train, val.clone()].concat()), (0..n as u32).collect::<Vec<_>>());
            for class in 0..6 {
                let of_class = |samples: &[u32]| {
                    let same = samples.iter().filter(|&&sample| classes[sample as usize] == class);
                    same.count() as f64
                };
                let all: Vec<u32> = (0..n as u32).collect();
                prop_assert!((of_class(&val) - of_class(&all) * share).abs() <= 1.0);
            }
        }

        #[test]
        fn lanes_part_a_batch_evenly(lanes in 1usize..40, batch in 0usize..300) {
            let rows: Vec<_> = (0..lanes).map(|lane| lane_rows(lane, lanes, batch)).collect();
            let all: Vec<usize> = rows.iter().cloned().flatten().collect();
            prop_assert_eq!(all, (0..batch).collect::<Vec<_>>());
            let fair = |rows: &Range<usize>| (batch / lanes..=batch.div_ceil(lanes)).contains(&rows.len());
            prop_assert!(rows.iter().all(fair));
        }
    }

    #[test]
    fn the_order_of_a_seed_never_changes() {
        assert_eq!(EpochOrder::new(0, 0, 8).indices(), [0, 1, 2, 5, 3, 7, 4, 6]);
        assert_eq!(EpochOrder::new(7, 3, 8).indices(), [4, 5, 1, 2, 3, 0, 7, 6]);
        assert_eq!(split(8, 0.25, 0).1, [0, 2]);
    }

    #[test]
    fn every_place_is_equally_likely() {
        let mut counts = [[0u32; 5]; 5];
        for epoch in 0..10_000 {
            for (place, &index) in EpochOrder::new(1, epoch, 5).indices().iter().enumerate() {
                counts[index as usize][place] += 1;
            }
        }
        assert!(
            counts
                .as_flattened()
                .iter()
                .all(|count| (1850..2150).contains(count)),
            "{counts:?}"
        );
    }
}
