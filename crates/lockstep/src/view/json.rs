//! Events as JSON lines on standard output, for programs.
//!
//! One object a line, each line written whole and at once; nothing else ever goes to standard
//! output. Warnings are repeated in words on standard error, for the person who watches.

use super::{Options, View};
use lockstep_events::event::Event;
use std::io::{self, Write};

/// The view for programs.
pub(crate) struct Json<W> {
    out: W,
    options: Options,
}

impl<W: Write> Json<W> {
    /// Writes to `out`.
    pub(crate) fn new(out: W, options: Options) -> Self {
        Self { out, options }
    }

    fn is_wanted(&self, event: &Event) -> bool {
        match event {
            Event::Result(_) => true,
            _ if self.options.quiet => false,
            // Rank 0 stands for the gang.
            Event::Progress(progress) => progress.rank == 0 || self.options.verbose,
            _ => true,
        }
    }
}

impl<W: Write> View for Json<W> {
    fn show(&mut self, event: &Event) -> io::Result<()> {
        if let Event::Warning { message } = event {
            eprintln!("warning: {message}");
        }
        if !self.is_wanted(event) {
            return Ok(());
        }
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        self.out.write_all(line.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{options, story};
    use super::*;

    fn render(options: Options) -> Vec<Event> {
        let mut out = Vec::new();
        let mut view = Json::new(&mut out, options);
        for event in story() {
            view.show(&event).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn every_event_is_one_line_that_reads_back_as_itself() {
        let verbose = Options {
            verbose: true,
            ..options()
        };
        assert_eq!(render(verbose), story());
    }

    #[test]
    fn the_result_is_last_and_the_only_line_when_quiet() {
        assert!(matches!(render(options()).last(), Some(Event::Result(_))));
        let quiet = Options {
            quiet: true,
            ..options()
        };
        assert_eq!(render(quiet).len(), 1);
    }

    #[test]
    fn only_the_gangs_own_progress_is_told_unless_asked() {
        let progress = |events: &[Event]| {
            let told = events.iter().filter(|e| matches!(e, Event::Progress(_)));
            told.count()
        };
        assert_eq!(progress(&render(options())), 1);
    }
}
