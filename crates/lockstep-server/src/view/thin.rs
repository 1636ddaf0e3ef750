//! Curves with no more points than a screen has columns.
//!
//! Where several points fall into one column, their mean is drawn, and the smallest and the largest beside it: no peak is
//! lost, however long the run.

use lockstep_index::Point;
use serde::Serialize;

/// What a curve goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum By {
    /// Optimizer steps.
    #[default]
    Step,
    /// Seconds since the run began.
    Time,
}

/// A curve. The lists are equally long.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Curve {
    /// Where, from left to right.
    pub(super) x: Vec<f64>,
    /// The means.
    pub(super) y: Vec<f32>,
    /// The smallest values; empty where nothing was put together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) low: Vec<f32>,
    /// The largest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) high: Vec<f32>,
}

/// What of a curve is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) by: By,
    /// When the run began: time is counted from there.
    pub(super) began: f64,
    /// How many columns there are.
    pub(super) width: usize,
    /// From where to where.
    pub(super) range: (f64, f64),
}

impl Wanted {
    /// Where a point lies.
    pub(super) fn place(&self, point: &Point) -> f64 {
        match self.by {
            By::Step => point.step as f64,
            // To the millisecond: more would only be more digits.
            By::Time => ((point.time - self.began) * 1000.0).round() / 1000.0,
        }
    }
}

/// The curve of these points. What is no number is left out.
pub(super) fn thin(points: &[Point], wanted: &Wanted) -> Curve {
    let (from, to) = wanted.range;
    let placed = points
        .iter()
        .map(|point| (wanted.place(point), point.value));
    let inside = placed.filter(|(x, y)| *x >= from && *x <= to && y.is_finite());
    let inside: Vec<(f64, f64)> = inside.collect();
    let mut curve = Curve::default();
    if inside.len() <= wanted.width {
        for (x, y) in inside {
            curve.x.push(x);
            curve.y.push(y as f32);
        }
        return curve;
    }
    let (first, last) = (inside[0].0, inside[inside.len() - 1].0);
    let columns = wanted.width as f64 / (last - first).max(f64::MIN_POSITIVE);
    let column = |x: f64| ((x - first) * columns).min(wanted.width as f64 - 1.0) as usize;
    for together in inside.chunk_by(|a, b| column(a.0) == column(b.0)) {
        let values = || together.iter().map(|(_, y)| *y);
        curve.x.push(together[together.len() / 2].0);
        let mean = values().sum::<f64>() / together.len() as f64;
        curve.y.push(mean as f32);
        curve
            .low
            .push(values().fold(f64::INFINITY, f64::min) as f32);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        curve.high.push(high as f32);
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(count: u64, value: impl Fn(u64) -> f64) -> Vec<Point> {
        let point = |step| Point {
            step,
            time: 1000.0 + step as f64 / 10.0,
            value: value(step),
        };
        (0..count).map(point).collect()
    }

    const ALL: Wanted = Wanted {
        by: By::Step,
        began: 1000.0,
        width: 100,
        range: (f64::NEG_INFINITY, f64::INFINITY),
    };

    #[test]
    fn a_peak_of_one_step_in_ten_thousand_is_still_there() {
        let curve = thin(
            &points(10_000, |step| f64::from(u8::from(step == 4321))),
            &ALL,
        );
        assert!(curve.x.len() <= 101, "{}", curve.x.len());
        assert_eq!(curve.high.iter().copied().fold(0.0, f32::max), 1.0);
        assert!(curve.x.is_sorted() && curve.x.last() > Some(&9_900.0));
        let lists = [curve.y.len(), curve.low.len(), curve.high.len()];
        assert_eq!(lists, [curve.x.len(); 3]);
    }

    #[test]
    fn few_points_are_sent_as_they_are_and_what_is_no_number_is_not() {
        let value = |step| if step == 3 { f64::NAN } else { step as f64 };
        let by_time = Wanted {
            by: By::Time,
            range: (0.2, 0.4),
            ..ALL
        };
        let curve = thin(&points(50, value), &by_time);
        assert_eq!((curve.x, curve.y), (vec![0.2, 0.4], vec![2.0, 4.0]));
        assert!(curve.low.is_empty());
        assert_eq!(thin(&[], &ALL), Curve::default());
    }

    #[test]
    fn many_points_in_one_place_are_one() {
        let same: Vec<Point> = points(1000, |step| step as f64)
            .into_iter()
            .map(|point| Point { step: 7, ..point })
            .collect();
        assert_eq!(thin(&same, &ALL).x, [7.0]);
    }
}
