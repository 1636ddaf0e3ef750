//! Before workers are started: a cluster must have room for them.

use crate::{EngineError, Stop, StopFlag};
use lockstep_events::event::Event;
use lockstep_launch::Launcher;
use std::time::Duration;

/// Waits until the launcher can start the workers of a job, at most for `deadline`. Returns false when a stop was asked for meanwhile.
pub(crate) fn ready(
    launcher: &mut dyn Launcher,
    deadline: Duration,
    stop: &StopFlag,
    events: &mut dyn FnMut(Event),
) -> Result<bool, EngineError> {
    let mut waiting = |news: Option<String>| {
        if let Some(message) = news {
            events(Event::Preparing { message });
        }
        stop.get() == Stop::No
    };
    Ok(launcher.ready(deadline, &mut waiting)?)
}
