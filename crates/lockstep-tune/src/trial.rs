//! What a trial came to, by the record of its run.

use crate::{Reached, SearchError, Target};
use lockstep_events::event::Reported;
use lockstep_runs::RunDir;
use serde_json::{Map, Value};

/// What a run was worth when it came to the target, if it did. One that ended by itself before, as a script or with early
/// stopping, is worth what its best epoch was: that is the model it left.
pub(crate) fn reached(run: &RunDir, target: &Target<'_>) -> Result<Option<Reached>, SearchError> {
    let metrics = run.metrics();
    if metrics.entry()?.is_none() {
        return Ok(None);
    }
    let text = metrics.read()?;
    let mut curve = curve(&String::from_utf8_lossy(&text), target.metric)?;
    if let Some(value) = curve.get(target.epochs as usize - 1).copied() {
        curve.truncate(target.epochs as usize);
        return Ok(Some(Reached {
            epochs: target.epochs,
            value,
            curve,
        }));
    }
    if !run.has_succeeded()? {
        return Ok(None);
    }
    let better = |a: f64, b: f64| match target.maximise {
        true => a.max(b),
        false => a.min(b),
    };
    match curve.iter().copied().reduce(better) {
        Some(value) => Ok(Some(Reached {
            epochs: curve.len() as u32,
            value,
            curve,
        })),
        None => Err(SearchError::NothingReported {
            metric: target.metric.to_owned(),
        }),
    }
}

/// The metric after each epoch, or in each report of a script that has it.
fn curve(text: &str, metric: &str) -> Result<Vec<f64>, SearchError> {
    let mut curve = Vec::new();
    // The last line of a run that was killed may be cut.
    let rows = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut others = None;
    for row in rows {
        if let Ok(report) = serde_json::from_value::<Reported>(row.clone()) {
            match report.metrics.get(metric).and_then(Value::as_f64) {
                Some(value) => curve.push(value),
                None => others = Some(report.metrics),
            }
            continue;
        }
        let Some(value) = row["val"][metric].as_f64() else {
            let known = row["val"].as_object().cloned().unwrap_or_default();
            return Err(SearchError::NotMeasured {
                metric: metric.to_owned(),
                known: names(&known),
            });
        };
        // A run that went back to a checkpoint tells some epochs again.
        let at = row["epoch"].as_u64().unwrap_or(1).max(1) as usize - 1;
        curve.truncate(at);
        curve.push(value);
    }
    match others {
        Some(known) if curve.is_empty() => Err(SearchError::NotReported {
            metric: metric.to_owned(),
            known: names(&known),
        }),
        _ => Ok(curve),
    }
}

fn names(known: &Map<String, Value>) -> String {
    known.keys().cloned().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_that_are_told_again_replace_those_before() {
        let text = concat!(
            "{\"epoch\":1,\"val\":{\"loss\":3.0}}\n{\"epoch\":2,\"val\":{\"loss\":2.0}}\n",
            "{\"epoch\":2,\"val\":{\"loss\":1.5}}\n{\"epoch\":3,\"val\":{\"lo",
        );
        assert_eq!(curve(text, "loss").unwrap(), [3.0, 1.5]);
        let error = curve(text, "accuracy").unwrap_err().to_string();
        assert!(error.ends_with("there are loss"), "{error}");
    }
}
