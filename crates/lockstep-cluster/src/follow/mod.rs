//! A job on a cluster, followed to its end as if it ran here.
//!
//! The events of the run are lines of the job's log. A [`Follower`] tells them as they come, with what others write and
//! what becomes of the connection. How the job ended it tells last, once whoever runs the job has confirmed it.

mod kube;
mod lines;
mod outcome;
mod ray;
mod remote;

pub use kube::KubeJob;
pub use outcome::{Outcome, command_outcome};
pub use ray::{RayJob, wait_stopped};
pub use remote::Remote;

use crate::jobs::{JobInfo, Needs};
use crate::{ClusterError, LogEvent};
use lines::{Line, Lines};
use lockstep_events::event::{Event, RunResult};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The key of a job's metadata that says that it is ours, and so tells a result.
pub(crate) const OURS: &str = "lockstep_version";

/// How long one poll waits for more of the log.
const TICK: Duration = Duration::from_millis(200);
/// How long, and how often, the first step is looked for in the log itself: its connection shows it seconds later.
const EARLY: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);
/// How often a job whose run has not begun is asked why.
const WHY_NOT_YET: Duration = Duration::from_secs(5);
/// How often a job that has told its result is asked whether it has ended.
const ENDED: Duration = Duration::from_millis(250);
/// How long the head may take to notice the end of a job that has told its result.
const NOTICED: Duration = Duration::from_secs(60);
/// How many lines that are no events are kept for when things go wrong.
const KEPT: usize = 20;

/// What there is to tell of a job.
#[derive(Debug)]
pub enum Update {
    /// An event of the run; its result is part of the outcome.
    Event(Box<Event>),
    /// What whoever runs the job says of it before the run begins.
    Preparing(String),
    /// A line of the log that is no event.
    Line(String),
    /// What becomes of the connection.
    Connection(String),
    /// The job has ended, and nothing more comes.
    Ended {
        /// What is known of it.
        job: Box<JobInfo>,
        /// How it ended.
        outcome: Box<Outcome>,
    },
}

/// Follows a job.
pub struct Follower<'c> {
    remote: Box<dyn Remote + 'c>,
    patience: Duration,
    /// What the program needs that travelled with the job, for when it does not run there.
    sent: Option<Needs>,
    /// The last result that the run told.
    result: Option<RunResult>,
    /// Whether the run has told anything.
    begun: bool,
    /// Whether the run has told of its first step, or its end.
    stepped: bool,
    /// The last lines that were no events.
    said: VecDeque<String>,
    lines: Lines,
    lost: bool,
    began: Instant,
    looked: Instant,
    asked_why: Instant,
    asked_end: Instant,
    /// Since when the job's end is asked for.
    confirming: Option<Instant>,
}

impl<'c> Follower<'c> {
    /// Follows a job with which a program travelled that needs `sent`, if one did. Whoever runs it may take as long as
    /// `patience` to confirm its end.
    pub fn new(remote: impl Remote + 'c, patience: Duration, sent: Option<Needs>) -> Self {
        let now = Instant::now();
        Self {
            remote: Box::new(remote),
            patience,
            sent,
            result: None,
            begun: false,
            stepped: false,
            said: VecDeque::new(),
            lines: Lines::default(),
            lost: false,
            began: now,
            looked: now,
            asked_why: now,
            asked_end: now,
            confirming: None,
        }
    }

    /// The job that is followed.
    pub fn remote(&self) -> &dyn Remote {
        self.remote.as_ref()
    }

    /// Waits a moment for what is new, and appends it to `updates`.
    ///
    /// # Errors
    /// When the job cannot be followed any more. What was new before that is in `updates`.
    pub fn poll(&mut self, updates: &mut Vec<Update>) -> Result<(), ClusterError> {
        if let Some(job) = self.until_ended(updates)? {
            let outcome = Box::new(self.judge(&job)?);
            updates.push(Update::Ended { job, outcome });
        }
        Ok(())
    }

    fn until_ended(
        &mut self,
        updates: &mut Vec<Update>,
    ) -> Result<Option<Box<JobInfo>>, ClusterError> {
        let may_go_on = self.remote.may_go_on();
        if self.result.is_some() && !may_go_on {
            return self.confirmed(updates);
        }
        if !self.stepped && self.looked.elapsed() > LOOK && self.began.elapsed() < EARLY {
            self.looked = Instant::now();
            if let Some(text) = self.remote.look() {
                self.text(&text, updates);
            }
        }
        match self.remote.next(TICK)? {
            LogEvent::Text(text) => {
                self.found_again(updates);
                self.text(&text, updates);
            }
            LogEvent::Nothing => (),
            LogEvent::Lost(why) => self.lost(&why, updates),
            LogEvent::Ended(job) => {
                if let Some(rest) = self.lines.rest() {
                    self.line(rest, updates);
                }
                return Ok(Some(job));
            }
        }
        // The log's connection is closed seconds after the job's end, which need not be waited for.
        if self.result.is_some() && may_go_on && self.asked_end.elapsed() > ENDED {
            self.asked_end = Instant::now();
            if let Ok(job) = self.remote.job()
                && job.status.is_final()
            {
                return Ok(Some(Box::new(job)));
            }
        }
        if !self.begun && self.asked_why.elapsed() > WHY_NOT_YET {
            self.asked_why = Instant::now();
            updates.extend(self.remote.why_not_yet().map(Update::Preparing));
        }
        Ok(None)
    }

    fn text(&mut self, text: &str, updates: &mut Vec<Update>) {
        for line in self.lines.push(text) {
            self.line(line, updates);
        }
    }

    fn line(&mut self, line: Line, updates: &mut Vec<Update>) {
        match line {
            Line::Event(event) => {
                self.begun = true;
                self.stepped |= matches!(*event, Event::FirstStep { .. } | Event::Result(_));
                match *event {
                    Event::Result(result) => self.result = Some(result),
                    _ => updates.push(Update::Event(event)),
                }
            }
            Line::Head(message) if self.begun => self.keep(message),
            Line::Head(message) => updates.push(Update::Preparing(message)),
            Line::Other(line) => {
                updates.push(Update::Line(line.clone()));
                self.keep(line);
            }
        }
    }

    fn keep(&mut self, line: String) {
        if self.said.len() == KEPT {
            self.said.pop_front();
        }
        self.said.push_back(line);
    }

    /// A job whose run has told its result ends soon; it has ended when the head says so.
    fn confirmed(
        &mut self,
        updates: &mut Vec<Update>,
    ) -> Result<Option<Box<JobInfo>>, ClusterError> {
        let since = *self.confirming.get_or_insert_with(Instant::now);
        let who = self.remote.who();
        let cause = match self.remote.job() {
            Ok(job) if job.status.is_final() => return Ok(Some(Box::new(job))),
            Ok(job) => format!(
                "the run told its result, and {who} says it is {}",
                job.status
            ),
            Err(error) if error.is_passing() => {
                self.lost(&error.to_string(), updates);
                error.to_string()
            }
            Err(error) => return Err(error),
        };
        if since.elapsed() > NOTICED.max(self.patience) {
            let [again, _] = self.remote.again();
            return Err(ClusterError::NoEnd {
                who,
                id: self.remote.id().to_owned(),
                seconds: since.elapsed().as_secs(),
                cause,
                again,
            });
        }
        std::thread::sleep(ENDED);
        Ok(None)
    }

    /// How the job ended. Where the stream has brought no result, the whole log is looked through.
    fn judge(&mut self, job: &JobInfo) -> Result<Outcome, ClusterError> {
        let metadata = job.metadata.as_ref();
        let ours = metadata.is_some_and(|data| data.contains_key(OURS));
        if self.result.is_none() && ours {
            let log = self.remote.log()?.unwrap_or_default();
            if !log.is_empty() {
                self.said.clear();
            }
            for line in Lines::default().push(&(log + "\n")) {
                match line {
                    Line::Event(event) => {
                        if let Event::Result(result) = *event {
                            self.result = Some(result);
                        }
                    }
                    Line::Head(line) | Line::Other(line) => self.keep(line),
                }
            }
        }
        let result = self.result.take();
        if result.is_none() && !ours {
            return Ok(command_outcome(job));
        }
        let said = self.said.make_contiguous().join("\n");
        Ok(outcome::outcome(job, result, &said, self.sent.as_ref()))
    }

    fn lost(&mut self, why: &str, updates: &mut Vec<Update>) {
        if !std::mem::replace(&mut self.lost, true) {
            updates.push(Update::Connection(format!(
                "the connection to {} is lost and tried again: {why}",
                self.remote.who()
            )));
        }
    }

    fn found_again(&mut self, updates: &mut Vec<Update>) {
        if std::mem::replace(&mut self.lost, false) {
            updates.push(Update::Connection(format!(
                "the connection to {} is back",
                self.remote.who()
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::JobStatus;
    use lockstep_events::event::Status;

    /// A job whose log is one piece, and which has ended when it was asked so often.
    struct Scripted {
        log: Option<String>,
        asked: std::cell::Cell<u32>,
        ends_after: u32,
    }

    impl Remote for Scripted {
        fn id(&self) -> &str {
            "j"
        }

        fn who(&self) -> &'static str {
            "the head"
        }

        fn next(&mut self, _: Duration) -> Result<LogEvent, ClusterError> {
            Ok(self.log.take().map_or(LogEvent::Nothing, LogEvent::Text))
        }

        fn job(&self) -> Result<JobInfo, ClusterError> {
            self.asked.set(self.asked.get() + 1);
            let status = match self.asked.get() >= self.ends_after {
                true => "SUCCEEDED",
                false => "RUNNING",
            };
            Ok(serde_json::from_value(serde_json::json!({
                "submission_id": "j", "status": status, "entrypoint": "x", "metadata": {OURS: "1"},
            }))
            .unwrap())
        }

        fn log(&self) -> Result<Option<String>, ClusterError> {
            Ok(None)
        }

        fn stop(&self) -> Result<(), ClusterError> {
            Ok(())
        }

        fn why_not_yet(&self) -> Option<String> {
            None
        }

        fn again(&self) -> [String; 2] {
            [String::new(), String::new()]
        }
    }

    #[test]
    fn a_result_is_told_once_the_head_has_confirmed_the_end() {
        let result = RunResult::without_run(Status::Succeeded, Duration::ZERO);
        let result = serde_json::to_string(&Event::Result(result)).unwrap();
        let remote = Scripted {
            log: Some(format!("hello\n{{\"event\":\"stopping\"}}\n{result}\n")),
            asked: std::cell::Cell::new(0),
            ends_after: 2,
        };
        let mut follower = Follower::new(remote, Duration::ZERO, None);
        let mut updates = Vec::new();
        follower.poll(&mut updates).unwrap();
        assert!(
            matches!(&updates[..], [Update::Line(line), Update::Event(_)] if line == "hello"),
            "{updates:?}"
        );
        updates.clear();
        follower.poll(&mut updates).unwrap();
        assert!(updates.is_empty(), "{updates:?}");
        follower.poll(&mut updates).unwrap();
        let [Update::Ended { job, outcome }] = &updates[..] else {
            panic!("{updates:?}");
        };
        assert_eq!((job.status, outcome.code), (JobStatus::Succeeded, 0));
    }
}
