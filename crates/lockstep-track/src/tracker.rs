//! Tells a run's events to sinks, each in a thread of its own, and never waits for one while the run goes on.

use crate::queue::{Next, Queue};
use crate::{Begun, Origin, Sink, SinkError};
use lockstep_events::Recorded;
use lockstep_events::event::{Event, Started};
use lockstep_place::{Access, Place};
use lockstep_runs::{RunDir, files};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the end looks whether sinks are done.
const TICK: Duration = Duration::from_millis(5);

/// Tells sinks of one run.
///
/// # Guarantees
/// [`hear`](Tracker::hear) only pushes into queues in memory, and writes nothing. Nothing is written into the run's
/// folder before the run has done a step: one that fails before that leaves nothing behind.
#[derive(Debug)]
pub struct Tracker {
    access: Access,
    folder: PathBuf,
    started: Option<Started>,
    begun: bool,
    gate: Arc<Gate>,
    seats: Vec<Seat>,
    warn: Sender<String>,
    warnings: Receiver<String>,
}

/// A sink at work.
#[derive(Debug)]
struct Seat {
    name: String,
    queue: Arc<Queue>,
    /// What [`Sink::later`] says, once the run has begun.
    later: Arc<OnceLock<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Tracker {
    /// Starts a thread for each sink. `access` is how the run's store is reached, `folder` the job file's.
    pub fn start(access: Access, folder: PathBuf, sinks: Vec<Box<dyn Sink>>) -> Self {
        let (warn, warnings) = channel();
        let gate = Arc::new(Gate::new());
        let mut seats = Vec::new();
        for sink in sinks {
            let queue = Arc::new(Queue::default());
            let name = sink.name().to_owned();
            let later = Arc::new(OnceLock::new());
            let (waiting, gate, told) = (queue.clone(), gate.clone(), warn.clone());
            let says = later.clone();
            let serve = move || serve(sink, &waiting, &gate, &says, &told);
            let thread = thread::Builder::new().name(name.clone()).spawn(serve);
            match thread {
                Ok(thread) => seats.push(Seat {
                    name,
                    queue,
                    later,
                    thread: Some(thread),
                }),
                Err(error) => tell(&warn, &name, &format!("no thread can be started: {error}")),
            }
        }
        Self {
            access,
            folder,
            started: None,
            begun: false,
            gate,
            seats,
            warn,
            warnings,
        }
    }

    /// Passes an event on. Never waits.
    pub fn hear(&mut self, event: &Event) {
        if let Event::Started(started) = event {
            self.started = Some(started.clone());
        }
        if !self.begun && shows_training(event) {
            self.begin();
        }
        let event = Arc::new(Recorded::now(event.clone()));
        for seat in &self.seats {
            seat.queue.push(&event);
        }
    }

    /// What the user should know, if anything happened since this was last asked. Never waits.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.try_iter().collect()
    }

    /// Ends the tracking of a run whose last event was heard: waits until the sinks are done, for so long at most, or
    /// until `hurry` says that nobody wants to wait.
    pub fn finish(&mut self, wait: Duration, hurry: &dyn Fn() -> bool) {
        let deadline = Instant::now() + wait;
        if !self.begun {
            let _ = self.gate.set(None);
        }
        for seat in &self.seats {
            seat.queue.close(deadline);
        }
        for seat in &mut self.seats {
            let Some(thread) = seat.thread.take() else {
                continue;
            };
            while !thread.is_finished() && Instant::now() < deadline && !hurry() {
                thread::sleep(TICK);
            }
            let mut what = match thread.is_finished() {
                true if thread.join().is_err() => "it failed by a bug of this program".to_owned(),
                true => continue,
                false if hurry() => "it was not done, and was not waited for".to_owned(),
                false => format!(
                    "it was not done after {:.0} s, and was not waited for any longer",
                    wait.as_secs_f64()
                ),
            };
            if let Some(later) = seat.later.get() {
                what += &format!("; {later}");
            }
            tell(&self.warn, &seat.name, &what);
        }
    }

    /// The run has done a step, so its folder is there to stay.
    fn begin(&mut self) {
        let Some(started) = self.started.clone() else {
            return;
        };
        self.begun = true;
        let (access, folder) = (self.access.clone(), self.folder.clone());
        let (gate, warn) = (self.gate.clone(), self.warn.clone());
        let open = move || {
            let begun = open_run(started, &access, &folder);
            let begun = begun.map_err(|error| tell(&warn, "the run's origin", &error.to_string()));
            let _ = gate.set(begun.ok().map(Arc::new));
        };
        let opening = thread::Builder::new().name("origin".to_owned());
        if let Err(error) = opening.spawn(open) {
            tell(
                &self.warn,
                "tracking",
                &format!("no thread can be started: {error}"),
            );
            let _ = self.gate.set(None);
        }
    }
}

/// Whether an event shows that the run keeps its folder.
fn shows_training(event: &Event) -> bool {
    match event {
        Event::FirstStep { .. } | Event::Epoch(_) | Event::Reported(_) | Event::Restart(_) => true,
        Event::Result(result) => result.run_dir.is_some(),
        _ => false,
    }
}

/// Finds out where the run comes from, and writes it down.
fn open_run(started: Started, access: &Access, folder: &Path) -> Result<Begun, SinkError> {
    let run = RunDir::named(&started.run, Place::parse(&started.run_dir, access)?);
    let (origin, diff) = Origin::find(folder);
    let text = serde_json::to_string_pretty(&origin).unwrap_or_default() + "\n";
    run.origin().write(text.as_bytes())?;
    if !diff.is_empty() {
        run.file(files::UNCOMMITTED).write_private(&diff)?;
    }
    Ok(Begun {
        run,
        started,
        origin,
    })
}

/// Has one sink hear everything. Its first failure is told, and what it lacks at the end.
fn serve(
    mut sink: Box<dyn Sink>,
    queue: &Queue,
    gate: &Gate,
    later: &OnceLock<String>,
    warn: &Sender<String>,
) {
    let name = sink.name().to_owned();
    let mut told = None;
    let mut judge = |done: Result<(), SinkError>, again: bool| {
        let Err(error) = done else { return };
        let words = error.to_string();
        if told.is_none() || (again && told.as_ref() != Some(&words)) {
            tell(warn, &name, &words);
            told = Some(words);
        }
    };
    let begun = gate.wait();
    if let Some(begun) = &begun {
        if let Some(words) = sink.later(begun) {
            let _ = later.set(words);
        }
        judge(sink.begin(begun), false);
    }
    let mut last = None;
    let deadline = loop {
        match queue.next() {
            Next::Event(event) => {
                if begun.is_some() {
                    judge(sink.event(&event), false);
                }
                last = Some(event);
            }
            Next::End(deadline) => break deadline,
        }
    };
    if queue.has_lost() {
        let words = "it was too slow, and did not hear of everything".to_owned();
        judge(Err(SinkError::Failed(words)), false);
    }
    let ended = match (begun, last) {
        (Some(_), _) => sink.finish(deadline),
        (None, Some(last)) => sink.never_began(&last, deadline),
        (None, None) => Ok(()),
    };
    judge(ended, true);
}

fn tell(warn: &Sender<String>, name: &str, what: &str) {
    // Whoever listened may be gone: then nobody is to be told.
    let _ = warn.send(format!("{name}: {what}"));
}

/// What sinks wait for before they begin: the run, if there is one.
type Gate = OnceLock<Option<Arc<Begun>>>;

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_events::event::{RunResult, Status};
    use std::sync::mpsc;

    /// Says what it hears, after a while.
    struct Told {
        heard: mpsc::Sender<String>,
        slow: Duration,
        fails: bool,
    }

    impl Told {
        fn say(&self, words: String) -> Result<(), SinkError> {
            thread::sleep(self.slow);
            let _ = self.heard.send(words);
            match self.fails {
                true => Err(SinkError::Failed("no".to_owned())),
                false => Ok(()),
            }
        }
    }

    impl Sink for Told {
        fn name(&self) -> &str {
            "told"
        }
        fn begin(&mut self, begun: &Begun) -> Result<(), SinkError> {
            self.say(format!("begin {}", begun.run.name))
        }
        fn event(&mut self, event: &Recorded) -> Result<(), SinkError> {
            let event = serde_json::to_value(event).unwrap();
            self.say(event["event"].as_str().unwrap().to_owned())
        }
        fn finish(&mut self, _: Instant) -> Result<(), SinkError> {
            self.say("finish".to_owned())
        }
        fn never_began(&mut self, _: &Recorded, _: Instant) -> Result<(), SinkError> {
            self.say("never began".to_owned())
        }
    }

    fn started(folder: &Path) -> Event {
        let started = serde_json::json!({
            "event": "started", "run": "job-1", "run_dir": folder.join("job-1"), "workers": 1, "lanes": 1,
            "transport": "solo", "train_samples": 1, "val_samples": 0, "test_samples": 0,
            "parameters": 1, "steps_per_epoch": 1, "epochs": 1, "config": [],
        });
        serde_json::from_value(started).unwrap()
    }

    fn result(run: bool) -> Event {
        let mut result = RunResult::without_run(Status::Failed, Duration::ZERO);
        result.run_dir = run.then(|| "x".to_owned());
        Event::Result(result)
    }

    /// A tracker with one sink.
    fn tracker(folder: &Path, slow: Duration, fails: bool) -> (Tracker, mpsc::Receiver<String>) {
        let (heard, hears) = mpsc::channel();
        let sink = Told { heard, slow, fails };
        let access = Access::default();
        let tracker = Tracker::start(access, folder.to_owned(), vec![Box::new(sink)]);
        (tracker, hears)
    }

    const LONG: Duration = Duration::from_secs(120);

    #[test]
    fn a_sink_hears_all_from_the_first_event_on_and_the_folder_says_where_the_run_comes_from() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tracker, hears) = tracker(folder.path(), Duration::ZERO, false);
        tracker.hear(&started(folder.path()));
        tracker.hear(&Event::FirstStep { seconds: 1.0 });
        tracker.hear(&result(true));
        tracker.finish(LONG, &|| false);
        let heard: Vec<_> = hears.try_iter().collect();
        assert_eq!(
            heard,
            ["begin job-1", "started", "first_step", "result", "finish"]
        );
        assert_eq!(tracker.warnings(), Vec::<String>::new());
        let origin = std::fs::read(folder.path().join("job-1/origin.json")).unwrap();
        let origin: Origin = serde_json::from_slice(&origin).unwrap();
        assert!(!origin.machine.host.is_empty());
    }

    #[test]
    fn a_run_that_never_trained_leaves_nothing_and_its_end_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tracker, hears) = tracker(folder.path(), Duration::ZERO, false);
        tracker.hear(&started(folder.path()));
        tracker.hear(&result(false));
        tracker.finish(LONG, &|| false);
        assert_eq!(hears.try_iter().collect::<Vec<_>>(), ["never began"]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sink_that_fails_costs_one_warning_and_hears_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tracker, hears) = tracker(folder.path(), Duration::ZERO, true);
        tracker.hear(&started(folder.path()));
        tracker.hear(&Event::FirstStep { seconds: 1.0 });
        tracker.finish(LONG, &|| false);
        assert_eq!(hears.try_iter().count(), 4);
        assert_eq!(tracker.warnings(), ["told: no"]);
    }

    #[test]
    fn nobody_waits_for_a_sink_that_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tracker, _hears) = tracker(folder.path(), Duration::from_secs(3600), false);
        let begun = Instant::now();
        tracker.hear(&started(folder.path()));
        for _ in 0..10_000 {
            tracker.hear(&Event::FirstStep { seconds: 1.0 });
        }
        tracker.finish(Duration::from_millis(100), &|| false);
        assert!(begun.elapsed() < LONG);
        let warnings = tracker.warnings();
        assert!(warnings[0].contains("not waited for"), "{warnings:?}");
    }

    #[test]
    fn whoever_is_in_a_hurry_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tracker, _hears) = tracker(folder.path(), Duration::from_secs(3600), false);
        let begun = Instant::now();
        tracker.hear(&started(folder.path()));
        tracker.hear(&Event::FirstStep { seconds: 1.0 });
        tracker.finish(LONG, &|| true);
        assert!(begun.elapsed() < LONG);
    }
}
