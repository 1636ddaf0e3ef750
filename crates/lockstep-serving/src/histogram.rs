//! Numbers counted by how large they are, as a monitor reads them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers counted by how large they are.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// The largest number of each part but the last, which has all others.
    bounds: &'static [f64],
    counts: Vec<AtomicU64>,
    /// The sum of all numbers, in millionths.
    millionths: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            millionths: AtomicU64::new(0),
        }
    }

    /// Counts a number.
    pub(crate) fn count(&self, number: f64) {
        let part = self.bounds.partition_point(|&bound| bound < number);
        self.counts[part].fetch_add(1, Ordering::Relaxed);
        self.millionths
            .fetch_add((number * 1e6) as u64, Ordering::Relaxed);
    }

    /// Writes it as OpenMetrics text.
    pub(crate) fn write(&self, name: &str, help: &str, page: &mut String) {
        // Writing to a text cannot fail.
        let _ = writeln!(page, "# TYPE {name} histogram\n# HELP {name} {help}");
        let mut all = 0;
        for (part, count) in self.counts.iter().enumerate() {
            all += count.load(Ordering::Relaxed);
            let _ = match self.bounds.get(part) {
                Some(bound) => writeln!(page, "{name}_bucket{{le=\"{bound:?}\"}} {all}"),
                None => writeln!(page, "{name}_bucket{{le=\"+Inf\"}} {all}"),
            };
        }
        let sum = self.millionths.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(page, "{name}_sum {sum}\n{name}_count {all}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_up_to_each_bound() {
        let histogram = Histogram::new(&[1.0, 2.5]);
        [0.5, 1.0, 2.0, 9.0]
            .into_iter()
            .for_each(|number| histogram.count(number));
        let mut page = String::new();
        histogram.write("x", "Words.", &mut page);
        let expected = "# TYPE x histogram\n# HELP x Words.\nx_bucket{le=\"1.0\"} 2\nx_bucket{le=\"2.5\"} 3\n\
                        x_bucket{le=\"+Inf\"} 4\nx_sum 12.5\nx_count 4\n";
        assert_eq!(page, expected);
    }
}
