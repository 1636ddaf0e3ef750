//! What a trial came to, by the record of its run.

use super::trainer::Target;
use crate::command::has_succeeded;
use anyhow::bail;
use lockstep_events::event::Reported;
use lockstep_runs::RunDir;
use lockstep_tune::Reached;
use serde_json::{Map, Value};

/// What a run was worth when it came to the target, if it did. One that ended by itself before, as a script or with early
/// stopping, is worth what its best epoch was: that is the model it left.
pub(super) fn reached(run: &RunDir, target: &Target<'_>) -> anyhow::Result<Option<Reached>> {
    if run.metrics().entry()?.is_none() {
        return Ok(None);
    }
    let text = run.metrics().read()?;
    let mut curve = curve(&String::from_utf8_lossy(&text), target.metric)?;
    if let Some(value) = curve.get(target.epochs as usize - 1).copied() {
        curve.truncate(target.epochs as usize);
        return Ok(Some(Reached {
            epochs: target.epochs,
            value,
            curve,
        }));
    }
    if !has_succeeded(run)? {
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
        None => bail!("--metric {}: the script reported nothing", target.metric),
    }
}

/// The metric after each epoch, or in each report of a script that has it.
fn curve(text: &str, metric: &str) -> anyhow::Result<Vec<f64>> {
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
            bail!(
                "--metric {metric}: the validation set is not measured by that; there are {}",
                names(&known)
            );
        };
        // A run that went back to a checkpoint tells some epochs again.
        let at = row["epoch"].as_u64().unwrap_or(1).max(1) as usize - 1;
        curve.truncate(at);
        curve.push(value);
    }
    match others {
        Some(known) if curve.is_empty() => bail!(
            "--metric {metric}: the script reports {} and no number of that name",
            names(&known)
        ),
        _ => Ok(curve),
    }
}

fn names(known: &Map<String, Value>) -> String {
    known.keys().cloned().collect::<Vec<_>>().join(", ")
}
