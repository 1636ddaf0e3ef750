//! Events of a run as events of TensorBoard.

use super::proto::{Datum, Event, SessionLog, Summary, Value, What};
use super::{confusion, hparams};
use lockstep_events::event::{Event as Happened, Started};
use lockstep_events::{Recorded, points_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A session that begins, in TensorBoard's words.
const START: i32 = 1;

/// What is known of the events before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WrittenSteps {
    /// The last step that was told of each metric. What comes again after a failure is not told again.
    pub(super) steps: BTreeMap<String, u64>,
    /// The last step of all.
    pub(super) last: u64,
}

/// What a metric is called: TensorBoard draws those together that have the same word before the slash, so a slash is
/// what it has for the first dot of a name.
pub(super) fn tag(name: &str) -> String {
    match name.split_once('.') {
        Some((set, rest)) => format!("{set}/{rest}"),
        None => format!("step/{name}"),
    }
}

pub(super) fn summary(time: f64, step: u64, value: Vec<Value>) -> Event {
    Event {
        wall_time: time,
        step: step as i64,
        what: Some(What::Summary(Summary { value })),
    }
}

fn scalar(tag: String, value: f64) -> Value {
    Value {
        tag,
        metadata: None,
        datum: Some(Datum::Scalar(value as f32)),
    }
}

impl WrittenSteps {
    /// What TensorBoard is told of an event. `evaluation` is read when the run has ended.
    pub(super) fn events(
        &mut self,
        recorded: &Recorded,
        user: &str,
        system: bool,
        evaluation: &dyn Fn() -> Vec<u8>,
    ) -> Vec<Event> {
        let time = recorded.time;
        match &recorded.event {
            Happened::Started(started) => self.started(started, user, time),
            Happened::Usage(usage) if system => {
                let worker = format!("system/worker-{}", usage.rank);
                let values = vec![
                    scalar(format!("{worker}/cpu_percent"), usage.cpu_percent),
                    scalar(
                        format!("{worker}/memory_megabytes"),
                        usage.memory_bytes as f64 / 1e6,
                    ),
                    scalar(format!("{worker}/waiting_percent"), usage.waiting * 100.0),
                ];
                vec![summary(time, self.last, values)]
            }
            Happened::Result(result) => {
                let mut values: Vec<Value> =
                    hparams::end(result.status, time).into_iter().collect();
                if result.metrics.is_some()
                    && let Some(image) = confusion::picture(&evaluation())
                {
                    values.push(Value {
                        tag: "test/confusion".to_owned(),
                        metadata: None,
                        datum: Some(Datum::Image(image)),
                    });
                }
                match values.is_empty() {
                    true => Vec::new(),
                    false => vec![summary(time, self.last, values)],
                }
            }
            event => {
                let mut by_step: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
                for point in points_of(event, self.last) {
                    let told = self.steps.get(&point.name);
                    if told.is_some_and(|told| point.step <= *told) {
                        continue;
                    }
                    self.last = self.last.max(point.step);
                    let values = by_step.entry(point.step).or_default();
                    values.push(scalar(tag(&point.name), point.value));
                    self.steps.insert(point.name, point.step);
                }
                let events = by_step.into_iter();
                events
                    .map(|(step, values)| summary(time, step, values))
                    .collect()
            }
        }
    }

    /// A part of the run begins. What was told of steps that are done again is forgotten.
    fn started(&mut self, started: &Started, user: &str, time: f64) -> Vec<Event> {
        let done = started.resumed_step;
        self.steps
            .values_mut()
            .for_each(|step| *step = (*step).min(done));
        self.last = self.last.min(done);
        let mark = Event {
            wall_time: time,
            // What was told of the last step that was done stays.
            step: done as i64 + 1,
            what: Some(What::SessionLog(SessionLog { status: START })),
        };
        let mut events = vec![mark];
        let hparams = hparams::start(started, user, time);
        events.extend(hparams.map(|value| summary(time, 0, vec![value])));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_events::Metrics;
    use lockstep_events::event::Progress;

    fn progress(step: u64) -> Recorded {
        Recorded::now(Happened::Progress(Progress {
            epoch: 1,
            step,
            steps: 100,
            metrics: Metrics::from([("loss", 0.5)]),
            samples_per_s: 1.0,
            rank: 0,
        }))
    }

    #[test]
    fn what_comes_again_after_a_failure_is_told_once_and_after_a_resume_again() {
        let mut told = WrittenSteps::default();
        let steps = |told: &mut WrittenSteps, step| {
            let events = told.events(&progress(step), "", true, &Vec::new);
            events.iter().map(|event| event.step).collect::<Vec<_>>()
        };
        assert_eq!(steps(&mut told, 5), [5]);
        assert_eq!(steps(&mut told, 9), [9]);
        assert!(steps(&mut told, 7).is_empty(), "the gang began again");
        let started: Started = serde_json::from_value(serde_json::json!({
            "run": "job-1", "run_dir": "x", "workers": 1, "lanes": 1, "transport": "solo",
            "train_samples": 1, "val_samples": 0, "test_samples": 0, "parameters": 1,
            "steps_per_epoch": 1, "epochs": 1, "config": [], "resumed_step": 5,
        }))
        .unwrap();
        let events = told.events(
            &Recorded::now(Happened::Started(started)),
            "",
            true,
            &Vec::new,
        );
        assert_eq!(events[0].step, 6, "what was told of step 5 stays");
        assert!(matches!(events[0].what, Some(What::SessionLog(_))));
        assert_eq!(steps(&mut told, 7), [7]);
    }

    #[test]
    fn metrics_are_grouped_by_what_they_were_measured_on() {
        assert_eq!(tag("train.loss"), "train/loss");
        assert_eq!(tag("val.accuracy"), "val/accuracy");
        assert_eq!(tag("loss"), "step/loss");
    }
}
