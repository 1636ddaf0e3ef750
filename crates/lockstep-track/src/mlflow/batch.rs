//! Metrics, parameters and tags in as few calls as MLflow's limits allow.

use super::server::Server;
use crate::SinkError;
use serde_json::{Value, json};

/// MLflow's limits of one call.
const METRICS: usize = 1000;
const PARAMS: usize = 100;
const TAGS: usize = 100;
/// MLflow's limit is 1 MB, and a metric is some hundred bytes.
const BYTES: usize = 900_000;

/// A number of a run, as MLflow has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metric {
    pub(super) key: String,
    pub(super) value: f64,
    /// Milliseconds since 1970.
    pub(super) timestamp: i64,
    pub(super) step: u64,
    /// The model that it is of, if it is of one.
    pub(super) model_id: Option<String>,
}

impl Metric {
    fn json(&self) -> Value {
        // JSON has no words for these.
        let value = match self.value {
            value if value.is_nan() => json!("NaN"),
            f64::INFINITY => json!("Infinity"),
            f64::NEG_INFINITY => json!("-Infinity"),
            value => json!(value),
        };
        let mut metric = json!({
            "key": self.key, "value": value, "timestamp": self.timestamp, "step": self.step,
        });
        if let Some(model) = &self.model_id {
            metric["model_id"] = json!(model);
        }
        metric
    }
}

/// Sends all of them.
pub(super) fn send(
    server: &Server,
    run_id: &str,
    metrics: &[Metric],
    params: &[(String, String)],
    tags: &[(String, String)],
) -> Result<(), SinkError> {
    let entry = |(key, value): &(String, String)| json!({ "key": key, "value": value });
    let metrics = pieces(metrics.iter().map(Metric::json), METRICS);
    let params = pieces(params.iter().map(entry), PARAMS);
    let tags = pieces(tags.iter().map(entry), TAGS);
    let calls = metrics.len().max(params.len()).max(tags.len());
    for call in 0..calls {
        let part = |of: &[Vec<Value>]| of.get(call).cloned().unwrap_or_default();
        let batch = json!({
            "run_id": run_id, "metrics": part(&metrics), "params": part(&params), "tags": part(&tags),
        });
        server.post("log a batch", "runs/log-batch", &batch)?;
    }
    Ok(())
}

/// Cuts a list so that no piece has more entries or bytes than it may. The three kinds share the bytes of a call.
fn pieces(all: impl Iterator<Item = Value>, most: usize) -> Vec<Vec<Value>> {
    let mut pieces: Vec<Vec<Value>> = Vec::new();
    let mut bytes = 0;
    for value in all {
        let size = value.to_string().len() + 1;
        match pieces.last_mut() {
            Some(piece) if piece.len() < most && bytes + size <= BYTES / 3 => {
                bytes += size;
                piece.push(value);
            }
            _ => {
                bytes = size;
                pieces.push(vec![value]);
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_has_more_than_mlflow_takes() {
        let many = (0..2500).map(|n| json!(n));
        let sizes: Vec<usize> = pieces(many, METRICS).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1000, 1000, 500]);
        let long = (0..100).map(|_| json!("x".repeat(6000)));
        assert!(
            pieces(long, PARAMS).len() > 1,
            "600 kB are too much for a third"
        );
        assert_eq!(pieces(std::iter::empty(), 10).len(), 0);
    }

    #[test]
    fn what_is_no_number_is_said_in_mlflows_words() {
        let metric = |value| Metric {
            key: "loss".to_owned(),
            value,
            timestamp: 1,
            step: 2,
            model_id: None,
        };
        assert_eq!(metric(f64::NAN).json()["value"], "NaN");
        assert_eq!(metric(f64::NEG_INFINITY).json()["value"], "-Infinity");
        assert_eq!(metric(0.5).json()["value"], 0.5);
    }
}
