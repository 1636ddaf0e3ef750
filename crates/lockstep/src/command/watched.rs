//! Work that somebody watches: it ends when nobody does any more, as a command in a pipe does.

use super::BROKEN_PIPE;
use crate::view::View;
use anyhow::Context;
use lockstep_engine::{Stop, StopFlag};
use lockstep_events::event::Event;
use std::io;
use std::process::ExitCode;

/// A view of work that can be stopped.
pub(crate) struct StoppableView {
    view: Box<dyn View>,
    stop: StopFlag,
    unseen: Option<io::Error>,
}

impl StoppableView {
    pub(crate) fn new(view: Box<dyn View>, stop: StopFlag) -> Self {
        Self {
            view,
            stop,
            unseen: None,
        }
    }

    /// Shows an event; asks the work to stop when that fails.
    pub(crate) fn show(&mut self, event: &Event) {
        if let Err(error) = self.view.show(event) {
            self.stop.raise(Stop::Now);
            self.unseen.get_or_insert(error);
        }
    }

    /// Ends the view. The exit code to leave with if nobody saw the end.
    pub(crate) fn end(self) -> anyhow::Result<Option<ExitCode>> {
        drop(self.view);
        match self.unseen {
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(Some(ExitCode::from(BROKEN_PIPE)))
            }
            Some(error) => Err(error).context("cannot write to standard output"),
            None => Ok(None),
        }
    }
}
