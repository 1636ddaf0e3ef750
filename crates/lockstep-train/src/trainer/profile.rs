//! A profile of some steps: what each thread of this worker did, and when, as events of Chrome's trace format.

use crate::TrainError;
use lockstep_base::progress::{Activity, Span, begin_profile, end_profile};
use lockstep_events::control::{FromWorker, ProfiledSteps};
use lockstep_learner::Reporter;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Bytes of a message, about: events are many.
const MESSAGE: usize = 128 << 10;

/// Makes a profile of the steps that it is asked for.
pub(super) struct Profiler {
    rank: usize,
    steps: ProfiledSteps,
    /// When its first step began.
    began: Option<Instant>,
    /// The steps so far: which, and when they began and ended.
    done: Vec<(u64, Instant, Instant)>,
}

impl Profiler {
    /// For the worker of this rank.
    pub(super) fn new(rank: usize, steps: ProfiledSteps) -> Self {
        Self {
            rank,
            steps,
            began: None,
            done: Vec::new(),
        }
    }

    /// Called before step `step`, counted from 1.
    pub(super) fn before(&mut self, step: u64) {
        if self.began.is_none() && (self.steps.first..=self.steps.last).contains(&step) {
            begin_profile();
            self.began = Some(Instant::now());
        }
    }

    /// Called after that step, which began at `since`; tells what was done if it was the last one to be told of.
    pub(super) fn after(
        &mut self,
        step: u64,
        since: Instant,
        reporter: &mut Reporter,
    ) -> Result<(), TrainError> {
        if self.began.is_some() {
            self.done.push((step, since, Instant::now()));
        }
        match step == self.steps.last {
            true => self.finish(reporter),
            false => Ok(()),
        }
    }

    /// Tells what was done, if that was not told yet: training may end before the last of these steps.
    pub(super) fn finish(&mut self, reporter: &mut Reporter) -> Result<(), TrainError> {
        if self.began.take().is_none() {
            return Ok(());
        }
        let trace = Trace::new(self.rank, self.steps.since_us);
        let mut text = trace.name("process_name", 0, &format!("worker {}", self.rank));
        let mut add = |event: String| {
            if text.len() > MESSAGE {
                let events = std::mem::take(&mut text);
                reporter.send(&FromWorker::Profile { events })?;
            }
            if !text.is_empty() {
                text += ",\n";
            }
            text += &event;
            Ok::<(), TrainError>(())
        };
        for (step, begin, end) in self.done.drain(..) {
            add(trace.span(0, &json!(format!("step {step}")), "step", [begin, end]))?;
        }
        for (thread, profile) in end_profile().into_iter().enumerate() {
            add(trace.name("thread_name", thread, &profile.thread))?;
            let mut names = HashMap::new();
            for Span {
                activity,
                begin,
                end,
            } in profile.spans
            {
                let name = names.entry(activity).or_insert_with(|| name_of(activity));
                add(trace.span(thread, name, activity.phase.word(), [begin, end]))?;
            }
        }
        Ok(reporter.send(&FromWorker::Profile { events: text })?)
    }
}

/// What something is called: its layer, its phase, its part.
fn name_of(activity: Activity) -> Value {
    let layer = activity.layer.name();
    let words = [&layer, activity.phase.word(), activity.part];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    json!(words.join(" "))
}

/// Events of Chrome's trace format. There may be a hundred in a step of a millisecond, so spans are written without a
/// [`Value`] of each.
struct Trace {
    process: usize,
    /// A moment, and how many microseconds after the profile's begin it was.
    now: (Instant, f64),
}

impl Trace {
    /// Those of a process, of which the profile began at this time.
    fn new(process: usize, since_us: u64) -> Self {
        let (instant, clock) = (Instant::now(), SystemTime::now());
        let now = clock.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_us = now.as_secs_f64() * 1e6 - since_us as f64;
        Self {
            process,
            now: (instant, now_us),
        }
    }

    /// The name of the process or of a thread.
    fn name(&self, kind: &str, thread: usize, name: &str) -> String {
        let args = json!({ "name": name });
        json!({ "ph": "M", "name": kind, "pid": self.process, "tid": thread, "args": args })
            .to_string()
    }

    /// What a thread did from then to then.
    fn span(&self, thread: usize, name: &Value, kind: &str, [begin, end]: [Instant; 2]) -> String {
        let (process, (now, now_us)) = (self.process, self.now);
        let ts = now_us - (now - begin).as_secs_f64() * 1e6;
        let dur = (end - begin).as_secs_f64() * 1e6;
        format!(
            r#"{{"ph":"X","name":{name},"cat":"{kind}","pid":{process},"tid":{thread},"ts":{ts:.3},"dur":{dur:.3}}}"#
        )
    }
}
