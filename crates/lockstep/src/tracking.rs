//! Who hears of a run beside its view, by what the job says.

use crate::command::Watched;
use lockstep_engine::{RunRequest, Stop, StopFlag};
use lockstep_events::event::Event;
use lockstep_place::Access;
use lockstep_track::{Sink, Tracker};
use std::time::Duration;

/// How long the end of a run waits for whoever tracks it.
const WAIT: Duration = Duration::from_secs(15);

/// A run that is shown and tracked.
pub(crate) struct Tracked {
    tracker: Tracker,
    stop: StopFlag,
    wait: Duration,
}

impl Tracked {
    /// Tracks what a request asks for.
    pub(crate) fn of(request: &RunRequest) -> Self {
        // What is wrong with it the engine says, before there is anything to track.
        let access = lockstep_resolve::access(request.job.storage()).unwrap_or_default();
        Self {
            tracker: Tracker::start(
                access.clone(),
                request.folder.clone(),
                sinks(request, &access),
            ),
            stop: request.stop.clone(),
            wait: WAIT,
        }
    }

    /// Shows an event and tells it to whoever tracks the run. The result is shown last: after the trackers are done.
    pub(crate) fn show(&mut self, watched: &mut Watched, event: &Event) {
        self.tracker.hear(event);
        if matches!(event, Event::Result(_)) {
            let stop = self.stop.clone();
            self.tracker.finish(self.wait, &|| stop.get() == Stop::Now);
        }
        for message in self.tracker.warnings() {
            watched.show(&Event::Warning { message });
        }
        watched.show(event);
    }
}

/// Whoever shall hear of the run.
fn sinks(_request: &RunRequest, _access: &Access) -> Vec<Box<dyn Sink>> {
    Vec::new()
}
