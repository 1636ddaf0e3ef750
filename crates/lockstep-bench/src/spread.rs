//! What several measurements of the same thing say together.

use serde::Serialize;

/// The middle of some measurements, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Below this lies a quarter of them.
    pub first_quartile: f64,
    /// Above this lies a quarter of them.
    pub third_quartile: f64,
}

impl Spread {
    /// Of some measurements; none of no measurement.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        // Between two values the quantile is on the line from one to the other.
        let quantile = |share: f64| {
            let at = share * (values.len() - 1) as f64;
            let (below, above) = (values[at.floor() as usize], values[at.ceil() as usize]);
            below + at.fract() * (above - below)
        };
        Some(Spread {
            median: quantile(0.5),
            min,
            max,
            first_quartile: quantile(0.25),
            third_quartile: quantile(0.75),
        })
    }

    /// Whether some of these measurements lie where some of the others do.
    pub fn overlaps(&self, other: &Spread) -> bool {
        self.min <= other.max && other.min <= self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_quartiles_are_those_of_the_sorted_values() {
        let spread = Spread::of([5.0, 1.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (3.0, 1.0, 5.0));
        assert_eq!((spread.first_quartile, spread.third_quartile), (2.0, 4.0));
        assert_eq!(Spread::of([1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn values_that_lie_apart_do_not_overlap() {
        let of = |values: [f64; 2]| Spread::of(values).unwrap();
        assert!(of([1.0, 3.0]).overlaps(&of([2.0, 4.0])));
        assert!(!of([1.0, 2.0]).overlaps(&of([2.5, 4.0])));
    }
}
