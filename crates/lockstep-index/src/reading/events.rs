//! What the events of a run come to, one after the other.

use super::Change;
use crate::Point;
use crate::query::Kind;
use crate::run::{Mark, MarkKind, Run, State};
use lockstep_events::Recorded;
use lockstep_events::event::{
    EpochResult, Event, Progress, Reported, RunResult, Started, Status, Usage,
};
use serde_json::Value;

/// The most marks of a run that are kept, the newest: a run that changes its workers all day has some hundred.
const MARKS: usize = 1000;

/// Reads events into a change.
pub(super) struct Reader<'a> {
    change: &'a mut Change,
}

impl<'a> Reader<'a> {
    pub(super) fn new(change: &'a mut Change) -> Self {
        Self { change }
    }

    /// Reads one event.
    pub(super) fn event(&mut self, recorded: Recorded) {
        let Recorded { time, event, .. } = recorded;
        // Whatever comes shows that it was alive.
        self.change.run.progress.last = self.change.run.progress.last.max(time);
        match event {
            Event::Started(started) => self.started(started, time),
            Event::Progress(progress) => self.progress(&progress, time),
            Event::Epoch(epoch) => self.epoch(&epoch, time),
            Event::Reported(reported) => self.reported(&reported, time),
            Event::Usage(usage) => self.usage(&usage, time),
            Event::Restart(restart) => {
                let run = &mut self.change.run;
                run.restarts = u64::from(restart.restart);
                run.workers = restart.workers as u64;
                // A state of no steps is none: this is a record of before the step was said.
                if restart.step > 0 || restart.from.is_none() {
                    self.go_back(restart.step);
                }
                self.mark(MarkKind::Restart, restart.step, time, restart.reason);
            }
            Event::Resized {
                workers,
                reason,
                step,
            } => {
                self.change.run.workers = workers as u64;
                if step > 0 {
                    self.go_back(step);
                }
                self.mark(MarkKind::Resized, step, time, reason);
            }
            Event::Result(result) => self.result(result, time),
            _ => {}
        }
    }

    fn started(&mut self, started: Started, time: f64) {
        let run = &mut self.change.run;
        match run.started {
            None => run.started = Some(time),
            Some(_) => {
                run.resumes += 1;
                let end = run.ended.unwrap_or(run.progress.last);
                run.progress.before_s += (end - run.progress.began).max(0.0);
            }
        }
        run.progress.began = time;
        run.state = State::Running;
        (run.ended, run.error, run.weights_sha256) = (None, None, None);
        run.workers = started.workers as u64;
        run.lanes = started.lanes as u64;
        run.epochs = u64::from(started.epochs);
        run.parameters = started.parameters as u64;
        run.steps_per_epoch = started.steps_per_epoch;
        run.measured = started.metrics;
        run.data = started.data;
        run.progress.script = !started.command.is_empty();
        // A record of before the step was said does not have the data either.
        if started.resumed_step > 0 || !run.data.is_empty() {
            self.go_back(started.resumed_step);
        }
        // One that begins at the beginning is not gone on with.
        if started.resumed_step > 0 {
            let step = started.resumed_step;
            self.mark(MarkKind::Resumed, step, time, String::new());
        }
    }

    fn mark(&mut self, kind: MarkKind, step: u64, time: f64, reason: String) {
        let run = &mut self.change.run;
        if run.marks.len() >= MARKS {
            run.marks.remove(0);
        }
        run.marks.push(Mark {
            kind,
            step,
            time,
            workers: run.workers,
            reason,
        });
    }

    /// What was told of later steps is told again. The reports of a script are counted for themselves, and one that comes
    /// again has its number again.
    fn go_back(&mut self, step: u64) {
        if self.change.run.progress.script {
            return;
        }
        let change = &mut *self.change;
        change.back_to = Some(change.back_to.map_or(step, |before| before.min(step)));
        change.run.step = change.run.step.min(step);
        for ((kind, _), points) in &mut change.points {
            if *kind == Kind::Metric {
                points.retain(|point| point.step <= step);
            }
        }
    }

    fn progress(&mut self, progress: &Progress, time: f64) {
        if progress.rank != 0 {
            return;
        }
        let step = progress.global_step();
        self.change.run.step = step;
        self.point(
            Kind::System,
            "samples_per_s",
            step,
            time,
            progress.samples_per_s,
        );
        for (name, value) in progress.metrics.iter() {
            self.point(Kind::Metric, name, step, time, value);
        }
    }

    fn epoch(&mut self, epoch: &EpochResult, time: f64) {
        let run = &mut self.change.run;
        run.step = epoch.step;
        run.epochs_done = u64::from(epoch.epoch);
        if epoch.best {
            run.best_epoch = Some(run.epochs_done);
        }
        for (name, value) in epoch.measured() {
            self.point(Kind::Metric, &name, epoch.step, time, value);
            if epoch.best {
                self.change.run.metrics.insert(name, value);
            }
        }
    }

    fn reported(&mut self, reported: &Reported, time: f64) {
        let step = reported.report;
        self.change.run.step = step;
        for (name, value) in reported.measured() {
            self.point(Kind::Metric, &name, step, time, value);
            self.change.run.metrics.insert(name, value);
        }
    }

    fn usage(&mut self, usage: &Usage, time: f64) {
        let step = self.change.run.step;
        for (name, value) in [
            ("cpu_percent", usage.cpu_percent),
            ("memory_bytes", usage.memory_bytes as f64),
            ("samples_per_s", usage.samples_per_s),
            ("waiting", usage.waiting),
        ] {
            let name = format!("worker.{}.{name}", usage.rank);
            self.point(Kind::System, &name, step, time, value);
        }
    }

    fn result(&mut self, result: RunResult, time: f64) {
        let run = &mut self.change.run;
        run.state = match result.status {
            Status::Succeeded => State::Succeeded,
            Status::Interrupted => State::Interrupted,
            Status::Failed => State::Failed,
        };
        run.ended = Some(time);
        run.metrics.extend(result.measured());
        run.metrics.extend(result.measured_last());
        run.error = result.error;
        run.weights_sha256 = result.weights_sha256;
        run.epochs_done = u64::from(result.epochs);
        run.restarts = u64::from(result.restarts);
        run.best_epoch = result.best_epoch.map(u64::from).or(run.best_epoch);
        let rate = result.timing.samples_per_s;
        run.samples_per_s = (rate > 0.0).then_some(rate);
    }

    /// Adds a point. What was not measured is no number, and no point.
    fn point(&mut self, kind: Kind, name: &str, step: u64, time: f64, value: f64) {
        if !value.is_finite() {
            return;
        }
        let point = Point { step, time, value };
        match self.change.points.get_mut(&(kind, name.to_owned())) {
            Some(points) => {
                // Of a step that is told again the last word counts.
                while kind == Kind::Metric && points.last().is_some_and(|last| last.step >= step) {
                    points.pop();
                }
                points.push(point);
            }
            None => {
                let points = vec![point];
                self.change.points.insert((kind, name.to_owned()), points);
            }
        }
    }
}

/// What `origin.json` says that lists need.
pub(super) fn origin(run: &mut Run, found: Option<&str>) {
    let origin: Value = found
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let of = |paths: &[&str]| {
        let found = paths.iter().find_map(|path| origin.pointer(path)?.as_str());
        found.map(str::to_owned)
    };
    run.commit = of(&["/git/commit", "/commit", "/git_commit"]);
    run.host = of(&["/host", "/machine/host"]);
    run.user = of(&["/user"]);
}

/// The name that `mlflow-run.json` says; empty if it says none.
pub(super) fn run_name(found: &[u8]) -> String {
    #[derive(Default, serde::Deserialize)]
    #[serde(default)]
    struct Named {
        name: String,
    }
    let named: Named = serde_json::from_slice(found).unwrap_or_default();
    named.name
}
