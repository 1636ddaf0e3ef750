//! The distribution of a tensor's numbers, as TensorBoard draws it.

use super::proto::Histogram;

/// Buckets of equal width: as many as TensorBoard shows.
const BUCKETS: usize = 30;

/// Counts the numbers by their size. Those that are no numbers are left out; nothing if there are no others.
pub(super) fn histogram(values: &[f32]) -> Option<Histogram> {
    let finite = || {
        values
            .iter()
            .filter(|value| value.is_finite())
            .map(|v| f64::from(*v))
    };
    let min = finite().fold(f64::INFINITY, f64::min);
    let max = finite().fold(f64::NEG_INFINITY, f64::max);
    if min > max {
        return None;
    }
    let width = ((max - min) / BUCKETS as f64).max(f64::MIN_POSITIVE);
    let mut bucket = vec![0.0; BUCKETS];
    let (mut num, mut sum, mut sum_squares) = (0.0, 0.0, 0.0);
    for value in finite() {
        let at = ((value - min) / width) as usize;
        bucket[at.min(BUCKETS - 1)] += 1.0;
        num += 1.0;
        sum += value;
        sum_squares += value * value;
    }
    let limit = |at: usize| match at == BUCKETS {
        true => max,
        false => min + width * at as f64,
    };
    Some(Histogram {
        min,
        max,
        num,
        sum,
        sum_squares,
        bucket_limit: (1..=BUCKETS).map(limit).collect(),
        bucket,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_one_bucket() {
        let values: Vec<f32> = (0..100).map(|n| n as f32 / 10.0).collect();
        let found = histogram(&values).unwrap();
        assert_eq!((found.min, found.num), (0.0, 100.0));
        assert_eq!(found.bucket.iter().sum::<f64>(), 100.0);
        assert_eq!(found.bucket_limit.last(), Some(&found.max));
        let same = histogram(&[2.0, 2.0, f32::NAN]).unwrap();
        assert_eq!(same.bucket.iter().sum::<f64>(), 2.0);
        assert_eq!(histogram(&[f32::NAN]), None);
    }
}
