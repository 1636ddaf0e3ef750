//! Runs that MLflow's clients are writing to.
//!
//! The server owns such a run as `lockstep run` owns its own: it holds the run's lock, so everybody sees that the run goes
//! on. All that is logged is appended to `events.jsonl` in one write each, before the client hears that it was: a server
//! that is killed loses nothing that it had confirmed. After that the run counts as lost until its client writes again.
//! MLflow's clients show no life between two calls, so a run that is silent for [`SILENCE`] is let go, too.

use super::record::{Point, Record, Status, number, shown};
use super::{MlflowError, now};
use lockstep_events::Recorded;
use lockstep_events::event::{Event, Reported, RunResult, Started};
use lockstep_place::Place;
use lockstep_runs::{Journal, RunDir, RunLock, as_json};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// After how long without a word a run's lock is let go.
const SILENCE: Duration = Duration::from_secs(24 * 3600);
/// How many runs are held at a time; each is an open file.
const MOST: usize = 128;

/// All of them, by name.
#[derive(Debug, Default)]
pub(crate) struct Writers(Mutex<HashMap<String, Arc<Mutex<Slot>>>>);

/// Where a run's writer is while it is open.
#[derive(Debug)]
pub(crate) struct Slot {
    writer: Option<Writer>,
    used: Instant,
}

/// One run that is being written to.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The run.
    pub(crate) run: RunDir,
    /// What MLflow knows of it.
    pub(crate) record: Record,
    /// The name of its experiment.
    pub(crate) experiment: String,
    journal: Journal,
    /// How many points of the step 0 there are, by metric.
    unstepped: HashMap<String, u64>,
    _lock: RunLock,
}

impl Writers {
    /// Does something with a run, alone; it is opened if need be. `Ok(None)` if it is none of MLflow's.
    pub(crate) fn with<T>(
        &self,
        store: &Place,
        name: &str,
        work: impl FnOnce(&mut Writer) -> Result<T, MlflowError>,
    ) -> Result<Option<T>, MlflowError> {
        let slot = self.slot(name);
        let mut slot = hold(&slot);
        slot.used = Instant::now();
        if slot.writer.is_none() {
            slot.writer = Writer::open(store, name)?;
        }
        let Some(writer) = slot.writer.as_mut() else {
            self.forget(name);
            return Ok(None);
        };
        let done = work(writer);
        if done.is_err() {
            // What is true then is in its files.
            slot.writer = None;
        } else if writer.record.status.is_final() {
            // What is over belongs to nobody.
            slot.close()?;
        }
        if slot.writer.is_none() {
            self.forget(name);
        }
        done.map(Some)
    }

    /// Takes over a run that was just made.
    pub(crate) fn keep(&self, writer: Writer) {
        let slot = self.slot(&writer.run.name);
        let mut slot = hold(&slot);
        slot.writer = Some(writer);
        slot.used = Instant::now();
    }

    /// What is known of a run that is open.
    pub(crate) fn record(&self, name: &str) -> Option<Record> {
        let slot = hold(&self.0).get(name).cloned()?;
        // While it is written, the disk may take its time: what the file has is as good.
        let slot = slot.try_lock().ok()?;
        slot.writer.as_ref().map(|writer| writer.record.clone())
    }

    fn slot(&self, name: &str) -> Arc<Mutex<Slot>> {
        let mut all = hold(&self.0);
        let idle = match !all.contains_key(name) && all.len() >= MOST {
            true => let_go(&mut all),
            false => Vec::new(),
        };
        let slot = all.entry(name.to_owned()).or_insert_with(|| {
            let used = Instant::now();
            Arc::new(Mutex::new(Slot { writer: None, used }))
        });
        let slot = slot.clone();
        drop(all);
        for slot in idle {
            // Nobody waits for the disk but whoever asked. What cannot be written down now is found in the run's record.
            let _ = hold(&slot).close();
        }
        slot
    }

    /// Forgets a run that its caller has closed, unless somebody waits for it.
    fn forget(&self, name: &str) {
        let mut all = hold(&self.0);
        // One is the table's, one the caller's.
        if all
            .get(name)
            .is_some_and(|slot| Arc::strong_count(slot) <= 2)
        {
            all.remove(name);
        }
    }
}

/// Takes out runs that nobody has written to for long, and at least the one that was written to the longest time ago.
fn let_go(all: &mut HashMap<String, Arc<Mutex<Slot>>>) -> Vec<Arc<Mutex<Slot>>> {
    let idle = all.iter().filter(|(_, slot)| Arc::strong_count(slot) == 1);
    let mut idle: Vec<(Instant, String)> = idle
        .filter_map(|(name, slot)| Some((slot.try_lock().ok()?.used, name.clone())))
        .collect();
    idle.sort();
    let mut taken = Vec::new();
    for (number, (used, name)) in idle.into_iter().enumerate() {
        if number > 0 && used.elapsed() < SILENCE {
            break;
        }
        taken.extend(all.remove(&name));
    }
    taken
}

impl Slot {
    /// Writes down what is known of the run, and lets it go.
    fn close(&mut self) -> Result<(), MlflowError> {
        self.writer.take().map_or(Ok(()), Writer::close)
    }
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|broken| broken.into_inner())
}

impl Writer {
    /// Makes a run.
    pub(crate) fn create(
        store: &Place,
        experiment: &str,
        mut record: Record,
        origin: &Value,
        command: &str,
    ) -> Result<Writer, MlflowError> {
        let (run, lock) = RunDir::create(store, &folder_name(experiment))?;
        // The job comes last: what has one is a run, and whole.
        record.write(&run)?;
        let origin = serde_json::to_string_pretty(origin).unwrap_or_default() + "\n";
        run.origin().write(origin.as_bytes())?;
        let mut journal = Journal::open(&run)?;
        journal.events(&[started(&run, record.start, command)])?;
        run.job().write(record.job(experiment).as_bytes())?;
        Ok(Writer {
            run,
            record,
            experiment: experiment.to_owned(),
            journal,
            unstepped: HashMap::new(),
            _lock: lock,
        })
    }

    /// Opens a run that was made before; nothing if there is none, or if it is not MLflow's.
    fn open(store: &Place, name: &str) -> Result<Option<Writer>, MlflowError> {
        let Ok(place) = store.join(name) else {
            return Ok(None);
        };
        let run = RunDir::named(name, place);
        let Some(mut record) = Record::read(&run)? else {
            return Ok(None);
        };
        let lock = run.lock(&mut |_| {})?;
        let job = run.job().read()?;
        let job = String::from_utf8_lossy(&job)
            .parse::<toml::Table>()
            .unwrap_or_default();
        let experiment = job
            .get("name")
            .and_then(|name| name.as_str())
            .unwrap_or_default();
        let mut unstepped = HashMap::new();
        each_point(&run, |key, point| {
            record.note(key, &point);
            if point.step == 0 {
                *unstepped.entry(key.to_owned()).or_default() += 1;
            }
        })?;
        if record.closed {
            record.closed = false;
            record.write(&run)?;
        }
        Ok(Some(Writer {
            experiment: experiment.to_owned(),
            journal: Journal::open(&run)?,
            run,
            record,
            unstepped,
            _lock: lock,
        }))
    }

    /// Writes down what is known, and lets the run go.
    fn close(mut self) -> Result<(), MlflowError> {
        self.journal.finish()?;
        self.record.closed = true;
        self.record.write(&self.run)
    }

    /// Adds points. Those of one step and time become one event.
    pub(crate) fn log(&mut self, points: &[(String, Point)]) -> Result<(), MlflowError> {
        let mut events: Vec<(i64, Reported)> = Vec::new();
        for (key, point) in points {
            let (report, step) = self.report(key, point);
            let same = |(timestamp, last): &&mut (i64, Reported)| {
                (*timestamp, last.report, last.step) == (point.timestamp, report, step)
                    && !last.metrics.contains_key(key)
            };
            let value = point.value.clone();
            match events.last_mut().filter(same) {
                Some((_, last)) => drop(last.metrics.insert(key.clone(), value)),
                None => {
                    let reported = Reported {
                        report,
                        step,
                        metrics: Map::from_iter([(key.clone(), value)]),
                        ..Reported::default()
                    };
                    events.push((point.timestamp, reported));
                }
            }
        }
        let events = events.into_iter();
        let events: Vec<Recorded> = events
            .map(|(timestamp, reported)| at(timestamp, Event::Reported(reported)))
            .collect();
        self.journal.events(&events)?;
        for (key, point) in points {
            self.record.note(key, point);
        }
        Ok(())
    }

    /// The number that a point has in curves, and its step if that is another. Clients that name no step mean 0, again
    /// and again: those points are counted.
    fn report(&mut self, key: &str, point: &Point) -> (u64, Option<i64>) {
        let report = match u64::try_from(point.step) {
            Ok(0) => {
                let count = self.unstepped.entry(key.to_owned()).or_default();
                *count += 1;
                *count - 1
            }
            Ok(step) => step,
            Err(_) => 0,
        };
        let step = (i64::try_from(report) != Ok(point.step)).then_some(point.step);
        (report, step)
    }

    /// Sets parameters, which can be set once.
    pub(crate) fn set_params(&mut self, params: &[(String, String)]) -> Result<(), MlflowError> {
        let before = self.record.params.len();
        let mut all = self.record.params.clone();
        for (key, value) in params {
            let known = all.entry(key.clone()).or_insert_with(|| value.clone());
            if known != value {
                return Err(MlflowError::wrong(format!(
                    "Changing param values is not allowed. Param with key='{key}' was already logged with \
                     value='{known}' for run ID='{}'. Attempted logging new value '{value}'.",
                    self.run.name
                )));
            }
        }
        if all.len() > before {
            self.record.params = all;
            self.record.write(&self.run)?;
            self.run
                .job()
                .write(self.record.job(&self.experiment).as_bytes())?;
        }
        Ok(())
    }

    /// Says how the run is.
    pub(crate) fn set_status(
        &mut self,
        status: Status,
        end: Option<i64>,
    ) -> Result<(), MlflowError> {
        let before = std::mem::replace(&mut self.record.status, status);
        let now = now();
        if status.is_final() {
            let end = end.unwrap_or(now);
            self.record.end = Some(end);
            let latest = self.record.latest.iter();
            let reported: Map<String, Value> = latest
                .map(|(key, point)| (key.clone(), point.value.clone()))
                .collect();
            let result = RunResult {
                status: status.result(),
                run: Some(self.run.name.clone()),
                run_dir: Some(self.run.place().to_string()),
                reported: Some(reported),
                error: (status == Status::Failed)
                    .then(|| "its client said that it failed".to_owned()),
                ..RunResult::default()
            };
            let text = as_json(&result) + "\n";
            self.journal.events(&[at(end, Event::Result(result))])?;
            self.run.result().write(text.as_bytes())?;
        } else if before.is_final() {
            self.record.end = None;
            self.record.closed = false;
            let command = self.record.tags.get("mlflow.source.name");
            let command = command.map_or("", String::as_str);
            self.journal.events(&[started(&self.run, now, command)])?;
            self.run.result().delete()?;
        }
        self.record.write(&self.run)
    }
}

/// An event of this time, in milliseconds since 1970.
fn at(timestamp: i64, event: Event) -> Recorded {
    Recorded::at(timestamp as f64 / 1000.0, event)
}

/// A client has begun a run, or goes on with it.
fn started(run: &RunDir, timestamp: i64, command: &str) -> Recorded {
    let started = Started {
        run: run.name.clone(),
        run_dir: run.place().to_string(),
        workers: 1,
        command: vec![command.to_owned()],
        ..Started::default()
    };
    at(timestamp, Event::Started(started))
}

/// All points of a run, in the order in which they came, one after the other: there may be millions.
pub(crate) fn each_point(
    run: &RunDir,
    mut read: impl FnMut(&str, Point),
) -> Result<(), MlflowError> {
    run.each_event(|recorded| {
        let Event::Reported(reported) = recorded.event else {
            return;
        };
        let timestamp = (recorded.time * 1000.0).round() as i64;
        let step = i64::try_from(reported.report).unwrap_or(i64::MAX);
        let step = reported.step.unwrap_or(step);
        for (key, value) in &reported.metrics {
            if let Some(value) = number(value) {
                let value = shown(value);
                let point = Point {
                    value,
                    timestamp,
                    step,
                };
                read(key, point);
            }
        }
    })?;
    Ok(())
}

/// What an experiment's name becomes in the names of its runs' folders.
fn folder_name(experiment: &str) -> String {
    let safe = experiment.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || c == '_' => c,
        _ => '-',
    });
    let safe: String = safe.take(80).collect();
    let safe = safe.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    match safe {
        "" => "mlflow".to_owned(),
        safe => safe.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;
    use lockstep_runs::files::EVENTS;
    use serde_json::json;
    use std::fs::File;
    use std::io::Write;

    fn points(run: &RunDir) -> Result<Vec<(String, Point)>, MlflowError> {
        let mut all = Vec::new();
        each_point(run, |key, point| all.push((key.to_owned(), point)))?;
        Ok(all)
    }

    fn store(folder: &std::path::Path) -> Place {
        Place::parse(folder.to_str().unwrap(), &Access::default()).unwrap()
    }

    fn point(step: i64, value: f64) -> Point {
        Point {
            value: shown(value),
            timestamp: 1_000 + step,
            step,
        }
    }

    fn made(store: &Place, writers: &Writers) -> String {
        let writer = Writer::create(store, "my exp/1", Record::default(), &json!({}), "x").unwrap();
        let name = writer.run.name.clone();
        writers.keep(writer);
        name
    }

    #[test]
    fn what_was_confirmed_is_there_after_a_crash_and_half_a_line_harms_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let writers = Writers::default();
        let name = made(&store, &writers);
        assert!(name.starts_with("my-exp-1-"), "{name}");
        let log = |writers: &Writers, step| {
            let done = writers.with(&store, &name, |writer| {
                writer.log(&[
                    ("loss".to_owned(), point(step, 0.5)),
                    ("odd".to_owned(), point(step, f64::NAN)),
                ])
            });
            done.unwrap().unwrap();
        };
        log(&writers, 1);
        // Killed in the middle of a line, without a word: nothing was closed.
        drop(writers);
        let events = folder.path().join(&name).join(EVENTS);
        File::options()
            .append(true)
            .open(&events)
            .unwrap()
            .write_all(b"{\"v\":1,\"ti")
            .unwrap();
        let writers = Writers::default();
        log(&writers, 2);
        let record = writers.record(&name).unwrap();
        assert_eq!(record.latest["loss"].step, 2);
        let run = RunDir::named(&name, store.join(&name).unwrap());
        let all = points(&run).unwrap();
        let steps: Vec<i64> = all
            .iter()
            .filter(|(key, _)| key == "loss")
            .map(|(_, point)| point.step)
            .collect();
        assert_eq!(steps, [1, 2]);
        assert!(
            all.iter()
                .any(|(key, point)| key == "odd" && point.number().is_nan())
        );
    }

    #[test]
    fn points_without_a_step_are_a_curve_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let name = made(&store, &Writers::default());
        for value in 0..5 {
            // Each time by another server.
            let log = |writer: &mut Writer| {
                writer.log(&[("loss".to_owned(), point(0, f64::from(value)))])
            };
            Writers::default()
                .with(&store, &name, log)
                .unwrap()
                .unwrap();
        }
        let run = RunDir::named(&name, store.join(&name).unwrap());
        let all = points(&run).unwrap();
        assert!(
            all.len() == 5 && all.iter().all(|(_, point)| point.step == 0),
            "{all:?}"
        );
        let mut index = lockstep_index::Index::open(&store, None).unwrap();
        index.refresh(&run).unwrap();
        let series = index.series(&name, |_, _| true).unwrap();
        let steps: Vec<u64> = series[0].points.iter().map(|point| point.step).collect();
        assert_eq!(steps, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn what_an_earlier_server_wrote_is_read_and_a_negative_step_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let name = made(&store, &Writers::default());
        // The keys in the order of the alphabet, as the first version wrote them.
        let before = concat!(
            r#"{"event":"reported","metrics":{"loss":0.5},"report":-7,"time":1.5,"v":1}"#,
            "\n",
            r#"{"event":"reported","metrics":{"loss":"NaN"},"report":1,"step":0,"time":2.5,"v":1}"#,
            "\n",
        );
        let events = folder.path().join(&name).join(EVENTS);
        let mut file = File::options().append(true).open(&events).unwrap();
        file.write_all(before.as_bytes()).unwrap();
        let log = |writer: &mut Writer| writer.log(&[("loss".to_owned(), point(-3, 1.0))]);
        Writers::default()
            .with(&store, &name, log)
            .unwrap()
            .unwrap();
        let run = RunDir::named(&name, store.join(&name).unwrap());
        let all = points(&run).unwrap();
        let steps: Vec<i64> = all.iter().map(|(_, point)| point.step).collect();
        assert_eq!(steps, [-7, 0, -3]);
        assert_eq!(all[0].1.timestamp, 1500);
        assert!(all[1].1.number().is_nan());
    }

    #[test]
    fn many_who_write_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let writers = Writers::default();
        let name = made(&store, &writers);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (writers, store, name) = (&writers, &store, &name);
                scope.spawn(move || {
                    for step in 0..50 {
                        let done = writers.with(store, name, |writer| {
                            writer.set_params(&[(format!("p{thread}-{step}"), "1".to_owned())])?;
                            writer.log(&[(format!("m{thread}"), point(step, 1.0))])
                        });
                        done.unwrap().unwrap();
                    }
                });
            }
        });
        let run = RunDir::named(&name, store.join(&name).unwrap());
        assert_eq!(points(&run).unwrap().len(), 400);
        assert_eq!(Record::read(&run).unwrap().unwrap().params.len(), 400);
    }

    #[test]
    fn a_parameter_is_set_once_and_a_run_that_ended_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let writers = Writers::default();
        let name = made(&store, &writers);
        let set = |value: &str| {
            writers.with(&store, &name, |writer| {
                writer.set_params(&[("lr".to_owned(), value.to_owned())])
            })
        };
        set("0.1").unwrap();
        set("0.1").unwrap();
        set("0.2").unwrap_err();
        let run = RunDir::named(&name, store.join(&name).unwrap());
        let end = |status| writers.with(&store, &name, |writer| writer.set_status(status, Some(5)));
        end(Status::Finished).unwrap();
        assert_eq!(run.held().unwrap(), lockstep_runs::Held::ByNobody);
        assert!(run.result().read().is_ok());
        end(Status::Running).unwrap();
        assert_eq!(run.held().unwrap(), lockstep_runs::Held::BySomebody);
        assert!(run.result().read().is_err());
        assert!(writers.with(&store, "none", |_| Ok(())).unwrap().is_none());
        assert!(writers.with(&store, "../x", |_| Ok(())).unwrap().is_none());
    }
}
