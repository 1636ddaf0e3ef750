//! The numbers in a run's events, each with its name and step.
//!
//! | event | names | step |
//! |---|---|---|
//! | `progress` | `loss` and what else training measures, `samples_per_s` | steps since the beginning |
//! | `epoch` | `train_loss`, `val.loss`, `test.accuracy` ... | the same |
//! | `reported` | as the script calls them | the number of the report |
//! | `result` | `result.loss`, `evaluation.macro.f1`, `timing.train_s` ... | the last step or report |

use lockstep_events::Metrics;
use lockstep_events::event::{Event, Progress};
use serde_json::Value;

/// A number that was measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) step: u64,
}

fn point(name: impl Into<String>, value: f64, step: u64) -> Point {
    Point {
        name: name.into(),
        value,
        step,
    }
}

/// Steps since the beginning of the run.
pub(crate) fn global_step(progress: &Progress) -> u64 {
    u64::from(progress.epoch.saturating_sub(1)) * progress.steps + progress.step
}

/// All numbers of an event. `last` is the last step that was told of: a result has none of its own.
pub(crate) fn points_of(event: &Event, last: u64) -> Vec<Point> {
    let named = |prefix: &str, metrics: &Metrics, step: u64| {
        let metrics = metrics.iter();
        let each = metrics.map(|(name, value)| point(format!("{prefix}{name}"), value, step));
        each.collect::<Vec<_>>()
    };
    match event {
        Event::Progress(progress) if progress.rank == 0 => {
            let step = global_step(progress);
            let mut points = named("", &progress.metrics, step);
            points.push(point("samples_per_s", progress.samples_per_s, step));
            points
        }
        Event::Epoch(epoch) => {
            let mut points = named("train_", &epoch.train, epoch.step);
            for (prefix, metrics) in [("val.", &epoch.val), ("test.", &epoch.test)] {
                if let Some(metrics) = metrics {
                    points.extend(named(prefix, metrics, epoch.step));
                }
            }
            let steps = [("lr", epoch.lr), ("gradient_norm", epoch.gradient_norm)];
            for (name, value) in steps {
                points.extend(value.map(|value| point(name, value, epoch.step)));
            }
            points.push(point("epoch", f64::from(epoch.epoch), epoch.step));
            points
        }
        Event::Reported(reported) => {
            let numbers = reported.metrics.iter();
            let numbers = numbers.filter_map(|(name, value)| Some((name, value.as_f64()?)));
            numbers
                .map(|(name, value)| point(name, value, reported.report))
                .collect()
        }
        Event::Result(result) => {
            let mut points = match &result.metrics {
                Some(metrics) => named("result.", metrics, last),
                None => Vec::new(),
            };
            let parts = [
                ("evaluation", serde_json::to_value(&result.evaluation)),
                ("timing", serde_json::to_value(result.timing)),
            ];
            for (name, value) in parts {
                flatten(name, &value.unwrap_or_default(), last, &mut points);
            }
            points
        }
        _ => Vec::new(),
    }
}

/// The numbers within a JSON value, by their paths.
fn flatten(path: &str, value: &Value, step: u64, points: &mut Vec<Point>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&format!("{path}.{name}"), value, step, points);
            }
        }
        value => {
            if let Some(number) = value.as_f64() {
                points.push(point(path, number, step));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_events::event::EpochResult;

    #[test]
    fn an_epoch_is_its_numbers_by_step() {
        let epoch = Event::Epoch(EpochResult {
            epoch: 2,
            step: 20,
            train: Metrics::from([("loss", 0.5)]),
            val: Some(Metrics::from([("loss", 0.6), ("accuracy", 0.7)])),
            test: None,
            seconds: 1.0,
            total_s: 2.0,
            samples_per_s: 3.0,
            lr: Some(0.1),
            gradient_norm: None,
            best: true,
        });
        let found = points_of(&epoch, 0);
        let names: Vec<_> = found.iter().map(|point| point.name.as_str()).collect();
        assert_eq!(
            names,
            ["train_loss", "val.loss", "val.accuracy", "lr", "epoch"]
        );
        assert!(found.iter().all(|point| point.step == 20));
    }

    #[test]
    fn progress_counts_steps_from_the_beginning_of_the_run() {
        let progress = |rank| {
            Event::Progress(Progress {
                epoch: 3,
                step: 4,
                steps: 10,
                metrics: Metrics::from([("loss", 0.5)]),
                samples_per_s: 9.0,
                rank,
            })
        };
        let found = points_of(&progress(0), 0);
        assert_eq!(found[0], point("loss", 0.5, 24));
        assert_eq!(points_of(&progress(1), 0), [], "rank 0 stands for all");
    }
}
