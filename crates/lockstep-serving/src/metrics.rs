//! What a monitor such as Prometheus reads of predictions, as OpenMetrics text.

use crate::histogram::Histogram;
use http::StatusCode;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What the media type of OpenMetrics is called.
pub(crate) const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
];
const ROWS: &[f64] = &[
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0, 4096.0, 16384.0,
];

/// How requests for predictions were answered so far.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Requests by the status of their answers.
    answered: Mutex<BTreeMap<u16, u64>>,
    rows: AtomicU64,
    opened: AtomicU64,
    seconds: Histogram,
    batches: Histogram,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            answered: Mutex::default(),
            rows: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            seconds: Histogram::new(SECONDS),
            batches: Histogram::new(ROWS),
        }
    }
}

impl Counters {
    /// Counts an answer, and how long it took.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        *answered.entry(status.as_u16()).or_default() += 1;
        drop(answered);
        self.seconds.count(took.as_secs_f64());
    }

    /// Counts rows that were computed at once.
    pub(crate) fn batch(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.batches.count(rows as f64);
    }

    /// Counts a model that was opened.
    pub(crate) fn opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// All of it as text; `held` are the models that are held now.
    pub(crate) fn text(&self, held: &[String]) -> String {
        let mut page = String::new();
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let errors: u64 = answered.range(400..).map(|(_, count)| count).sum();
        // Writing to a text cannot fail.
        let mut counter = |name: &str, help: &str, samples: Vec<(String, u64)>| {
            let _ = writeln!(page, "# TYPE {name} counter\n# HELP {name} {help}");
            for (labels, value) in samples {
                let _ = writeln!(page, "{name}_total{labels} {value}");
            }
        };
        let by_status = answered.iter();
        let by_status =
            by_status.map(|(status, count)| (format!("{{status=\"{status}\"}}"), *count));
        counter(
            "lockstep_serving_requests",
            "Requests for predictions, by the status of their answers.",
            by_status.collect(),
        );
        let alone = |count: u64| vec![(String::new(), count)];
        counter(
            "lockstep_serving_errors",
            "Requests for predictions that were refused or failed.",
            alone(errors),
        );
        counter(
            "lockstep_serving_rows",
            "Rows that were predicted.",
            alone(self.rows.load(Ordering::Relaxed)),
        );
        counter(
            "lockstep_serving_models_opened",
            "Models that were opened.",
            alone(self.opened.load(Ordering::Relaxed)),
        );
        let name = "lockstep_serving_model";
        let _ = writeln!(
            page,
            "# TYPE {name} gauge\n# HELP {name} The models that are held now."
        );
        for title in held {
            let _ = writeln!(page, "{name}{{model=\"{title}\"}} 1");
        }
        let help = "How long requests for predictions took.";
        self.seconds
            .write("lockstep_serving_request_seconds", help, &mut page);
        let help = "Rows that were predicted at once.";
        self.batches
            .write("lockstep_serving_batch_rows", help, &mut page);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_errors_and_rows_are_counted() {
        let counters = Counters::default();
        counters.answered(StatusCode::OK, Duration::from_millis(3));
        counters.answered(StatusCode::BAD_REQUEST, Duration::from_millis(1));
        counters.batch(7);
        let text = counters.text(&["digits@2".to_owned()]);
        for line in [
            "lockstep_serving_requests_total{status=\"200\"} 1",
            "lockstep_serving_errors_total 1",
            "lockstep_serving_rows_total 7",
            "lockstep_serving_model{model=\"digits@2\"} 1",
            "lockstep_serving_request_seconds_bucket{le=\"0.005\"} 2",
            "lockstep_serving_batch_rows_bucket{le=\"8.0\"} 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
