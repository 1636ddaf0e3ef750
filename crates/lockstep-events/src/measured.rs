//! The numbers in a run's events, each by the one name that it has everywhere.
//!
//! A name is the set that was measured, a dot, and what was measured: `train.loss`, `val.accuracy`, `test.macro.f1`.
//! MLflow, filters, the dashboard, comparisons, exports, notices and JSON all have these names; TensorBoard writes the
//! first dot as the slash that it groups by. What a script or a client of MLflow reports is called as it calls it.
//!
//! | event | names | step |
//! |---|---|---|
//! | `progress` | `loss` and what else training measures, `samples_per_s` | steps since the beginning |
//! | `epoch` | `train.loss`, `val.loss`, `test.accuracy` ..., and `lr`, `gradient_norm`, `epoch` | the same |
//! | `reported` | as the script calls them; of tables within tables, with dots between | the number of the report |
//! | `result` | `test.loss`, `test.macro.f1` ... of the kept weights, and `timing.train_s` ... | the last step or report |

use crate::Metrics;
use crate::event::{EpochResult, Event, Progress, Reported, RunResult};
use serde_json::{Map, Value};

/// A number that was measured, as long as the event says at which step.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPoint {
    /// The metric's name.
    pub name: String,
    /// What it came to.
    pub value: f64,
    /// The optimizer step since the beginning of the run, or the number of a script's report.
    pub step: u64,
}

/// What a metric is called that was measured on a set: `train`, `val` or `test`.
pub fn metric_name(set: &str, metric: &str) -> String {
    format!("{set}.{metric}")
}

/// What a metric is called now that had another name in MLflow before there was one name for each: `train_loss` is
/// `train.loss`, `result.loss` and `evaluation.macro.f1` are `test.loss` and `test.macro.f1`. A script may call its own
/// metrics so: whoever looks for a name looks for the name itself first.
pub fn current_name(earlier: &str) -> Option<String> {
    let sets = [
        ("train_", "train"),
        ("result.", "test"),
        ("evaluation.", "test"),
    ];
    let mut found = sets
        .iter()
        .filter_map(|(prefix, set)| Some((set, earlier.strip_prefix(prefix)?)));
    found.next().map(|(set, metric)| metric_name(set, metric))
}

/// All numbers of an event. `last` is the last step that is known: a result has none of its own.
pub fn points_of(event: &Event, last: u64) -> Vec<MetricPoint> {
    let at = |step: u64, named: Vec<(String, f64)>| {
        let points = named.into_iter();
        points
            .map(|(name, value)| MetricPoint { name, value, step })
            .collect()
    };
    match event {
        Event::Progress(progress) if progress.rank == 0 => {
            let metrics = progress.metrics.iter();
            let mut named: Vec<_> = metrics
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            named.push(("samples_per_s".to_owned(), progress.samples_per_s));
            at(progress.global_step(), named)
        }
        Event::Epoch(epoch) => {
            let mut named = epoch.measured();
            let steps = [("lr", epoch.lr), ("gradient_norm", epoch.gradient_norm)];
            named.extend(
                steps
                    .into_iter()
                    .filter_map(|(name, value)| Some((name.to_owned(), value?))),
            );
            named.push(("epoch".to_owned(), f64::from(epoch.epoch)));
            at(epoch.step, named)
        }
        Event::Reported(reported) => at(reported.report, reported.measured()),
        Event::Result(result) => {
            let mut named = result.measured();
            let timing = serde_json::to_value(result.timing).unwrap_or_default();
            numbers("timing".to_owned(), &timing, &mut named);
            at(last, named)
        }
        _ => Vec::new(),
    }
}

impl Progress {
    /// Steps since the beginning of the run.
    pub fn global_step(&self) -> u64 {
        u64::from(self.epoch.saturating_sub(1)) * self.steps + self.step
    }
}

impl EpochResult {
    /// What the epoch came to on each set.
    pub fn measured(&self) -> Vec<(String, f64)> {
        let sets = [
            ("train", Some(&self.train)),
            ("val", self.val.as_ref()),
            ("test", self.test.as_ref()),
        ];
        let there = sets
            .into_iter()
            .filter_map(|(set, metrics)| Some((set, metrics?)));
        there
            .flat_map(|(set, metrics)| of_set(set, metrics))
            .collect()
    }
}

impl Reported {
    /// The numbers that were reported.
    pub fn measured(&self) -> Vec<(String, f64)> {
        all_numbers(&self.metrics)
    }
}

impl RunResult {
    /// What the kept weights came to on the test set, each name once.
    pub fn measured(&self) -> Vec<(String, f64)> {
        let mut found: Vec<_> = (self.metrics.iter())
            .flat_map(|metrics| of_set("test", metrics))
            .collect();
        let mut more = Vec::new();
        let evaluation = serde_json::to_value(&self.evaluation).unwrap_or_default();
        numbers("test".to_owned(), &evaluation, &mut more);
        // How many there were is no measure of what was learned.
        more.retain(|(name, _)| !name.ends_with("samples"));
        found.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        found.extend(more);
        found
    }

    /// The numbers that a script reported last.
    pub fn measured_last(&self) -> Vec<(String, f64)> {
        self.reported.as_ref().map(all_numbers).unwrap_or_default()
    }
}

fn of_set(set: &str, metrics: &Metrics) -> impl Iterator<Item = (String, f64)> {
    metrics
        .iter()
        .map(move |(name, value)| (metric_name(set, name), value))
}

fn all_numbers(values: &Map<String, Value>) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    for (name, value) in values {
        numbers(name.clone(), value, &mut found);
    }
    found
}

/// All numbers within a value, by their paths.
fn numbers(path: String, value: &Value, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                numbers(format!("{path}.{key}"), value, found);
            }
        }
        value => found.extend(value.as_f64().map(|number| (path, number))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_measure::Summary;

    fn names(points: &[MetricPoint]) -> Vec<&str> {
        points.iter().map(|point| point.name.as_str()).collect()
    }

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
        let wanted = ["train.loss", "val.loss", "val.accuracy", "lr", "epoch"];
        assert_eq!(names(&found), wanted);
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
        let loss = MetricPoint {
            name: "loss".to_owned(),
            value: 0.5,
            step: 24,
        };
        assert_eq!(found[0], loss);
        assert_eq!(points_of(&progress(1), 0), [], "rank 0 stands for all");
    }

    #[test]
    fn a_result_is_what_the_kept_weights_came_to_on_the_test_set_each_name_once() {
        let summary = r#"{"samples":9,"accuracy":0.75,"loss":0.5,"top5":1.0,"unseen_samples":0,
            "macro":{"precision":0.5,"recall":0.5,"f1":0.5},"weighted":{"precision":0.5,"recall":0.5,"f1":0.5}}"#;
        let summary: Summary = serde_json::from_str(summary).unwrap();
        let result = RunResult {
            metrics: Some(Metrics::from([("loss", 0.5), ("accuracy", 0.75)])),
            evaluation: Some(Box::new(summary)),
            ..RunResult::default()
        };
        let points = points_of(&Event::Result(result), 7);
        let found = names(&points);
        for once in [
            "test.loss",
            "test.accuracy",
            "test.macro.f1",
            "timing.total_s",
        ] {
            let count = found.iter().filter(|name| **name == once).count();
            assert_eq!(count, 1, "{once} in {found:?}");
        }
        assert!(!found.contains(&"test.samples"), "{found:?}");
        assert!(points.iter().all(|point| point.step == 7));
    }

    #[test]
    fn names_that_metrics_had_in_mlflow_lead_to_those_that_they_have() {
        for (earlier, now) in [
            ("train_loss", "train.loss"),
            ("result.accuracy", "test.accuracy"),
            ("evaluation.macro.f1", "test.macro.f1"),
        ] {
            assert_eq!(current_name(earlier).as_deref(), Some(now));
        }
        for own in ["loss", "train.loss", "val.loss", "val_loss", "test_loss"] {
            assert_eq!(current_name(own), None, "{own}");
        }
    }
}
