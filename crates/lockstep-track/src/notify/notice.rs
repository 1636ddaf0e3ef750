//! What a notice says, and of what.

use lockstep_events::event::{Event, RunResult, Started, Status};
use lockstep_events::{Recorded, current_name, points_of};
use lockstep_job::Condition;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// The run ended as it should.
    Success,
    /// The run failed.
    Failure,
    /// A worker was lost, and the run goes on.
    Recovery,
    /// A metric crossed a line.
    Metric,
}

/// A message. As JSON it is what a webhook gets; `text` is what Slack, Mattermost, Discord's Slack interface and others
/// show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Notice {
    /// One line for people.
    pub text: String,
    /// What it is about.
    pub occasion: Occasion,
    /// The job's name.
    pub job: String,
    /// The run's name, if it has one.
    pub run: Option<String>,
    /// The run's folder, if it has one.
    pub run_dir: Option<String>,
    /// When, in seconds since 1970.
    pub time: f64,
    /// What went wrong, or what was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Numbers: of the result, or the one that crossed a line.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
}

/// Makes notices of events.
#[derive(Debug)]
pub(super) struct Writer {
    job: String,
    on: Vec<Occasion>,
    /// Each line until it was crossed.
    when: Vec<Condition>,
    run: Option<Started>,
}

impl Writer {
    pub(super) fn new(job: String, on: Vec<Occasion>, when: Vec<Condition>) -> Self {
        Self {
            job,
            on,
            when,
            run: None,
        }
    }

    /// What is to be told of an event.
    pub(super) fn hear(&mut self, recorded: &Recorded) -> Vec<Notice> {
        let mut notices = Vec::new();
        match &recorded.event {
            Event::Started(started) => self.run = Some(started.clone()),
            Event::Restart(restart) => {
                let text = format!(
                    "{}: a worker was lost, the run goes on with {} ({})",
                    self.name(),
                    restart.workers,
                    restart.reason
                );
                let mut notice = self.notice(Occasion::Recovery, text, recorded.time);
                notice.reason = Some(restart.reason.clone());
                notices.push(notice);
            }
            Event::Result(result) => notices.extend(self.ended(result, recorded.time)),
            _ => {}
        }
        notices.retain(|notice| self.on.contains(&notice.occasion));
        notices.extend(self.crossed(recorded));
        notices
    }

    fn name(&self) -> &str {
        self.run.as_ref().map_or(&self.job, |run| &run.run)
    }

    fn notice(&self, occasion: Occasion, text: String, time: f64) -> Notice {
        Notice {
            text,
            occasion,
            job: self.job.clone(),
            run: self.run.as_ref().map(|run| run.run.clone()),
            run_dir: self.run.as_ref().map(|run| run.run_dir.clone()),
            time,
            reason: None,
            metrics: BTreeMap::new(),
        }
    }

    /// An interruption is somebody's wish, and no news to them.
    fn ended(&self, result: &RunResult, time: f64) -> Option<Notice> {
        let metrics: BTreeMap<String, f64> = match &result.metrics {
            Some(metrics) => metrics.iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            None => BTreeMap::new(),
        };
        let (occasion, text) = match result.status {
            Status::Interrupted => return None,
            Status::Succeeded => {
                let numbers = metrics
                    .iter()
                    .map(|(name, value)| format!("{name} {value:.4}"));
                let numbers: Vec<String> = numbers.collect();
                let numbers = match numbers.is_empty() {
                    true => String::new(),
                    false => format!(" ({})", numbers.join(", ")),
                };
                let text = format!(
                    "{} succeeded after {:.0} s{numbers}",
                    self.name(),
                    result.timing.total_s
                );
                (Occasion::Success, text)
            }
            Status::Failed => {
                let why = result.error.as_deref().unwrap_or("for an unknown reason");
                (Occasion::Failure, format!("{} failed: {why}", self.name()))
            }
        };
        Some(Notice {
            reason: result.error.clone(),
            metrics,
            ..self.notice(occasion, text, time)
        })
    }

    /// Lines that are crossed now. Each is told of once.
    fn crossed(&mut self, recorded: &Recorded) -> Vec<Notice> {
        if self.when.is_empty() {
            return Vec::new();
        }
        let points = points_of(&recorded.event, 0);
        let mut notices = Vec::new();
        for condition in std::mem::take(&mut self.when) {
            let called = |name: &str| points.iter().find(|point| point.name == name);
            let earlier = || called(&current_name(&condition.metric)?);
            let found = called(&condition.metric).or_else(earlier);
            match found.filter(|point| condition.holds(point.value)) {
                Some(point) => {
                    let text = format!(
                        "{}: {condition}: it is {} at step {}",
                        self.name(),
                        point.value,
                        point.step
                    );
                    let mut notice = self.notice(Occasion::Metric, text, recorded.time);
                    notice.metrics.insert(point.name.clone(), point.value);
                    notices.push(notice);
                }
                None => self.when.push(condition),
            }
        }
        notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_events::Metrics;
    use lockstep_events::event::{Progress, Restart};
    use std::time::Duration;

    fn writer(when: &[&str]) -> Writer {
        let all = vec![Occasion::Success, Occasion::Failure, Occasion::Recovery];
        let when = when.iter().map(|text| text.parse().unwrap()).collect();
        Writer::new("digits".to_owned(), all, when)
    }

    fn loss(value: f64) -> Recorded {
        Recorded::now(Event::Progress(Progress {
            epoch: 1,
            step: 3,
            steps: 10,
            metrics: Metrics::from([("loss", value)]),
            samples_per_s: 1.0,
            rank: 0,
        }))
    }

    #[test]
    fn a_line_that_is_crossed_is_told_of_once() {
        let mut writer = writer(&["loss > 10"]);
        assert_eq!(writer.hear(&loss(9.0)), []);
        let told = writer.hear(&loss(11.0));
        assert_eq!(told[0].occasion, Occasion::Metric);
        assert_eq!(told[0].text, "digits: loss > 10: it is 11 at step 3");
        assert_eq!(writer.hear(&loss(12.0)), []);
    }

    #[test]
    fn a_metric_is_found_by_the_name_that_it_had_before_too() {
        let mut writer = writer(&["train_loss > 1", "train.loss > 2"]);
        let epoch = |loss| {
            let text = format!(r#"{{"epoch":1,"step":3,"train":{{"loss":{loss}}}}}"#);
            Recorded::now(Event::Epoch(serde_json::from_str(&text).unwrap()))
        };
        assert_eq!(writer.hear(&epoch(1.5)).len(), 1);
        assert_eq!(writer.hear(&epoch(2.5)).len(), 1);
    }

    #[test]
    fn a_failure_and_a_recovery_say_why() {
        let mut writer = writer(&[]);
        let restart = Restart {
            restart: 1,
            workers: 2,
            reason: "worker 1 was killed".to_owned(),
            from: None,
            step: 0,
        };
        let told = writer.hear(&Recorded::now(Event::Restart(restart)));
        assert_eq!(told[0].occasion, Occasion::Recovery);
        assert!(told[0].text.contains("worker 1 was killed"));
        let mut result = RunResult::without_run(Status::Failed, Duration::ZERO);
        result.error = Some("no data".to_owned());
        let told = writer.hear(&Recorded::now(Event::Result(result.clone())));
        assert_eq!(told[0].text, "digits failed: no data");
        result.status = Status::Interrupted;
        assert_eq!(writer.hear(&Recorded::now(Event::Result(result))), []);
    }
}
