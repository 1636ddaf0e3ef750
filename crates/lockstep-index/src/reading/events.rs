//! What the record of events says, one line after the other.
//!
//! Lines are read as plain JSON, so a record of a later version, with events and keys that nobody knew when this was
//! written, still gives all that is known in it.

use super::Change;
use crate::Point;
use crate::query::Kind;
use crate::run::{Run, State};
use serde_json::{Map, Value};

/// Numbers of an epoch that are no metrics.
const NOT_MEASURED: [&str; 5] = ["epoch", "step", "seconds", "total_s", "samples_per_s"];

/// Reads events into a change.
pub(super) struct Reader<'a> {
    change: &'a mut Change,
}

impl<'a> Reader<'a> {
    pub(super) fn new(change: &'a mut Change) -> Self {
        Self { change }
    }

    /// Reads one line. What cannot be read is passed over: a crash may have cut it short.
    pub(super) fn line(&mut self, line: &[u8]) {
        let Ok(Value::Object(event)) = serde_json::from_slice(line) else {
            return;
        };
        let (Some(kind), Some(time)) = (text(&event, "event"), number(&event, "time")) else {
            return;
        };
        // Whatever comes shows that it was alive.
        self.change.run.progress.last = self.change.run.progress.last.max(time);
        match kind {
            "started" => self.started(&event, time),
            "progress" => self.progress(&event, time),
            "epoch" => self.epoch(&event, time),
            "reported" => self.reported(&event, time),
            "usage" => self.usage(&event, time),
            "restart" => {
                self.change.run.restarts = count(&event, "restart").unwrap_or(0);
                self.workers(&event);
            }
            "resized" => self.workers(&event),
            "result" => self.result(&event, time),
            _ => {}
        }
    }

    fn started(&mut self, event: &Map<String, Value>, time: f64) {
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
        let set = |field: &mut u64, key| *field = count(event, key).unwrap_or(*field);
        set(&mut run.workers, "workers");
        set(&mut run.lanes, "lanes");
        set(&mut run.epochs, "epochs");
        set(&mut run.parameters, "parameters");
        set(&mut run.steps_per_epoch, "steps_per_epoch");
        if let Some(Value::Array(names)) = event.get("metrics") {
            let names = names.iter().filter_map(Value::as_str);
            run.measured = names.map(str::to_owned).collect();
        }
        if let Some(data) = event.get("data") {
            run.data = serde_json::from_value(data.clone()).unwrap_or_default();
        }
        run.progress.script =
            matches!(event.get("command"), Some(Value::Array(command)) if !command.is_empty());
        if let Some(step) = count(event, "resumed_step") {
            self.go_back(step);
        }
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

    fn workers(&mut self, event: &Map<String, Value>) {
        let run = &mut self.change.run;
        run.workers = count(event, "workers").unwrap_or(run.workers);
        if let Some(step) = count(event, "step") {
            self.go_back(step);
        }
    }

    fn progress(&mut self, event: &Map<String, Value>, time: f64) {
        if count(event, "rank").unwrap_or(0) != 0 {
            return;
        }
        let of = |key| count(event, key).unwrap_or(0);
        let step = of("epoch").saturating_sub(1) * of("steps") + of("step");
        self.change.run.step = step;
        for (name, value) in event {
            match (name.as_str(), value.as_f64()) {
                ("samples_per_s", Some(value)) => {
                    self.point(Kind::System, name, step, time, value);
                }
                ("v" | "time" | "epoch" | "step" | "steps" | "rank", _) | (_, None) => {}
                (_, Some(value)) => self.point(Kind::Metric, name, step, time, value),
            }
        }
    }

    fn epoch(&mut self, event: &Map<String, Value>, time: f64) {
        let step = count(event, "step").unwrap_or(0);
        let run = &mut self.change.run;
        run.step = step;
        run.epochs_done = count(event, "epoch").unwrap_or(run.epochs_done);
        let best = event.get("best") != Some(&Value::Bool(false));
        if best {
            run.best_epoch = count(event, "epoch");
        }
        let mut measured = Vec::new();
        for (name, value) in event {
            match value {
                Value::Object(of_set) if name == "val" || name == "test" => {
                    let named = of_set.iter().filter_map(|(n, v)| Some((n, v.as_f64()?)));
                    measured.extend(named.map(|(n, v)| (format!("{name}.{n}"), v)));
                }
                value if !NOT_MEASURED.contains(&name.as_str()) => {
                    if let (Some(n), Some(v)) = (name.strip_prefix("train_"), value.as_f64()) {
                        measured.push((format!("train.{n}"), v));
                    }
                }
                _ => {}
            }
        }
        for (name, value) in measured {
            self.point(Kind::Metric, &name, step, time, value);
            if best {
                self.change.run.metrics.insert(name, value);
            }
        }
    }

    fn reported(&mut self, event: &Map<String, Value>, time: f64) {
        let step = count(event, "report").unwrap_or(0);
        self.change.run.step = step;
        let Some(Value::Object(metrics)) = event.get("metrics") else {
            return;
        };
        let mut measured = Vec::new();
        for (name, value) in metrics {
            numbers(name.clone(), value, &mut measured);
        }
        for (name, value) in measured {
            self.point(Kind::Metric, &name, step, time, value);
            self.change.run.metrics.insert(name, value);
        }
    }

    fn usage(&mut self, event: &Map<String, Value>, time: f64) {
        let rank = count(event, "rank").unwrap_or(0);
        let step = self.change.run.step;
        for name in ["cpu_percent", "memory_bytes", "samples_per_s", "waiting"] {
            if let Some(value) = number(event, name) {
                let name = format!("worker.{rank}.{name}");
                self.point(Kind::System, &name, step, time, value);
            }
        }
    }

    fn result(&mut self, event: &Map<String, Value>, time: f64) {
        let run = &mut self.change.run;
        run.state = match text(event, "status") {
            Some("succeeded") => State::Succeeded,
            Some("interrupted") => State::Interrupted,
            _ => State::Failed,
        };
        run.ended = Some(time);
        run.error = text(event, "error").map(str::to_owned);
        run.weights_sha256 = text(event, "weights_sha256").map(str::to_owned);
        run.epochs_done = count(event, "epochs").unwrap_or(run.epochs_done);
        run.restarts = count(event, "restarts").unwrap_or(run.restarts);
        run.best_epoch = count(event, "best_epoch").or(run.best_epoch);
        let timing = event
            .get("timing")
            .and_then(|timing| timing.get("samples_per_s"));
        run.samples_per_s = timing.and_then(Value::as_f64);
        for key in ["metrics", "evaluation"] {
            let mut measured = Vec::new();
            if let Some(found) = event.get(key) {
                numbers("test".to_owned(), found, &mut measured);
            }
            // How many there were is no measure of what was learned.
            measured.retain(|(name, _)| !name.ends_with("samples"));
            run.metrics.extend(measured);
        }
        if let Some(Value::Object(last)) = event.get("reported") {
            let mut measured = Vec::new();
            for (name, value) in last {
                numbers(name.clone(), value, &mut measured);
            }
            run.metrics.extend(measured);
        }
    }

    fn point(&mut self, kind: Kind, name: &str, step: u64, time: f64, value: f64) {
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

fn text<'a>(event: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    event.get(key)?.as_str()
}

fn number(event: &Map<String, Value>, key: &str) -> Option<f64> {
    event.get(key)?.as_f64()
}

fn count(event: &Map<String, Value>, key: &str) -> Option<u64> {
    event.get(key)?.as_u64()
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
