//! A job's log, line by line: the run's events among what Ray and others write.

use lockstep_events::event::Event;

/// The longest line that is kept together; no event is as long.
const LONGEST: usize = 16 << 20;

/// Puts pieces of a log together to lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: String,
}

/// What a line of the log is.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// An event of the run.
    Event(Box<Event>),
    /// Ray's own word on the job's beginning, without its date and file.
    Head(String),
    /// Anything else: what the run writes to standard error, and what others write.
    Other(String),
}

impl Lines {
    /// The lines that a further piece completes.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<Line> {
        self.begun += piece;
        let Some(end) = self.begun.rfind('\n') else {
            if self.begun.len() > LONGEST {
                return vec![Line::read(&std::mem::take(&mut self.begun))];
            }
            return Vec::new();
        };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        whole.lines().map(Line::read).collect()
    }

    /// What the log ends with, if it does not end with a line.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.begun);
        (!rest.is_empty()).then(|| Line::read(&rest))
    }
}

impl Line {
    fn read(text: &str) -> Line {
        if text.starts_with('{')
            && let Ok(event) = serde_json::from_str(text)
            && event != Event::Unknown
        {
            return Line::Event(Box::new(event));
        }
        if let Some((place, said)) = text.split_once(" -- ")
            && place.contains("INFO job_manager.py:")
        {
            return Line::Head(said.to_owned());
        }
        if let Some(said) = text.strip_prefix("Running entrypoint for job ") {
            let id = said.split(':').next().unwrap_or_default();
            return Line::Head(format!("the head starts the command of {id}"));
        }
        Line::Other(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_however_the_log_is_cut() {
        let log = concat!(
            "2026-11-16 03:17:12,451\tINFO job_manager.py:579 -- Runtime env is setting up.\n",
            "{\"event\":\"first_step\",\"seconds\":0.5}\n",
            "{\"event\":\"of a later version\"}\n",
            "warning: ü\n",
            "{\"event\":\"stopping\"}"
        );
        let wanted = [
            Line::Head("Runtime env is setting up.".into()),
            Line::Event(Box::new(Event::FirstStep { seconds: 0.5 })),
            Line::Other("{\"event\":\"of a later version\"}".into()),
            Line::Other("warning: ü".into()),
            Line::Event(Box::new(Event::Stopping)),
        ];
        for length in [1, 7, 1000] {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            let mut rest = log;
            while !rest.is_empty() {
                let mut end = length.min(rest.len());
                while !rest.is_char_boundary(end) {
                    end += 1;
                }
                found.extend(lines.push(&rest[..end]));
                rest = &rest[end..];
            }
            found.extend(lines.rest());
            assert_eq!(found, wanted, "{length}");
        }
    }
}
