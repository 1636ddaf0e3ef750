//! A profile of some steps: what each thread of this worker did, and when, as events of Chrome's trace format.

use crate::TrainError;
use lockstep_base::progress::{Span, begin_profile, end_profile};
use lockstep_events::control::{FromWorker, ProfiledSteps};
use lockstep_learner::Reporter;
use serde_json::json;
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
        let mut text = String::new();
        for event in self.events() {
            if !text.is_empty() {
                text += ",\n";
            }
            text += &event.to_string();
            if text.len() > MESSAGE {
                let events = std::mem::take(&mut text);
                reporter.send(&FromWorker::Profile { events })?;
            }
        }
        match text.is_empty() {
            true => Ok(()),
            false => Ok(reporter.send(&FromWorker::Profile { events: text })?),
        }
    }

    /// The names of the process and its threads, the steps, and all that the threads did.
    fn events(&mut self) -> Vec<serde_json::Value> {
        let rank = self.rank;
        let (instant, clock) = (Instant::now(), SystemTime::now());
        let now = clock.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_us = now.as_secs_f64() * 1e6 - self.steps.since_us as f64;
        let us = |at: Instant| now_us - (instant - at).as_secs_f64() * 1e6;
        let name = |kind: &str, thread: usize, name: &str| json!({ "ph": "M", "name": kind, "pid": rank, "tid": thread, "args": { "name": name } });
        let span = |thread: usize, name: &str, kind: &str, begin: Instant, end: Instant| {
            let dur = (end - begin).as_secs_f64() * 1e6;
            json!({
                "ph": "X", "name": name, "cat": kind, "pid": rank, "tid": thread,
                "ts": us(begin), "dur": dur,
            })
        };
        let mut events = vec![name("process_name", 0, &format!("worker {rank}"))];
        for (step, begin, end) in self.done.drain(..) {
            events.push(span(0, &format!("step {step}"), "step", begin, end));
        }
        for (thread, profile) in end_profile().into_iter().enumerate() {
            events.push(name("thread_name", thread, &profile.thread));
            for Span {
                activity,
                begin,
                end,
            } in profile.spans
            {
                let phase = activity.phase.word();
                let words = [&activity.layer.name(), phase, activity.part];
                let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
                events.push(span(thread, &words.join(" "), phase, begin, end));
            }
        }
        events
    }
}
