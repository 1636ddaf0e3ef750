//! Plain lines without control characters: for files, pipes and CI logs.

use super::epochs::Epochs;
use super::table::{Frame, Table};
use super::{Options, View, harmless, log_prefix, summary, words};
use lockstep_events::event::{Embedding, Event, Progress, RunResult, Started};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Where nothing says how wide a line may be.
const WIDTH: usize = 100;

/// How often an epoch in progress is mentioned, so that a log shows a run that is alive.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// The view for files and pipes.
pub(crate) struct Plain<W> {
    out: W,
    options: Options,
    epochs: Option<Epochs>,
    /// Whether the head of the table of epochs was written.
    headed: bool,
    last_progress: Instant,
}

impl<W: Write> Plain<W> {
    /// Writes to `out`.
    pub(crate) fn new(out: W, options: Options) -> Self {
        Self {
            out,
            options,
            epochs: None,
            headed: false,
            last_progress: Instant::now(),
        }
    }

    fn started(&mut self, started: &Started) -> io::Result<()> {
        writeln!(self.out, "run {}", started.run)?;
        let table = Table::for_pairs(&started.config, Frame::Bare, usize::MAX);
        for line in table.pairs(&started.config) {
            writeln!(self.out, "  {line}")?;
        }
        writeln!(self.out, "{}", scale(started).join(", "))?;
        self.epochs = Some(Epochs::new(started, Frame::Bare, WIDTH));
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        if progress.rank != 0 || self.last_progress.elapsed() < PROGRESS_EVERY {
            return Ok(());
        }
        self.last_progress = Instant::now();
        writeln!(
            self.out,
            "epoch {}: step {} of {}, {}, {} samples/s",
            progress.epoch,
            words::count(progress.step),
            words::count(progress.steps),
            summary::measured(&progress.metrics),
            words::rate(progress.samples_per_s)
        )
    }

    fn embedding(&mut self, embedding: &Embedding) -> io::Result<()> {
        if self.last_progress.elapsed() < PROGRESS_EVERY {
            return Ok(());
        }
        self.last_progress = Instant::now();
        writeln!(self.out, "embedding: {}", summary::embedding(embedding))
    }

    fn result(&mut self, result: &RunResult) -> io::Result<()> {
        writeln!(self.out, "{}", summary::headline(result))?;
        let details = summary::details(result, &self.options);
        let table = Table::for_pairs(&details, Frame::Bare, usize::MAX);
        for line in table.pairs(&details) {
            writeln!(self.out, "  {line}")?;
        }
        Ok(())
    }
}

impl<W: Write> View for Plain<W> {
    fn show(&mut self, event: &Event) -> io::Result<()> {
        if self.options.quiet && !matches!(event, Event::Result(_)) {
            return Ok(());
        }
        match event {
            Event::Preparing { message } | Event::Note { message } => {
                writeln!(self.out, "{message}")?;
            }
            Event::Embedding(embedding) => self.embedding(embedding)?,
            Event::Embedded(embedded) => writeln!(self.out, "{}", summary::embedded(embedded))?,
            Event::Started(started) => self.started(started)?,
            Event::Worker { rank, pid } if self.options.verbose => {
                writeln!(self.out, "worker {rank} joined, pid {pid}")?;
            }
            Event::FirstStep { seconds } => {
                let seconds = words::seconds(*seconds);
                writeln!(self.out, "first step after {seconds}")?;
            }
            Event::Progress(progress) => self.progress(progress)?,
            Event::Epoch(epoch) => {
                if let Some(epochs) = &self.epochs {
                    if !std::mem::replace(&mut self.headed, true) {
                        for line in epochs.head(|title| title) {
                            writeln!(self.out, "{line}")?;
                        }
                    }
                    writeln!(self.out, "{}", epochs.row(epoch, |cell| cell))?;
                }
            }
            Event::Log(log) => {
                writeln!(self.out, "{} {}", log_prefix(log), harmless(&log.line))?;
            }
            Event::Warning { message } => writeln!(self.out, "warning: {message}")?,
            Event::Restart(restart) => writeln!(self.out, "{}", summary::restarted(restart))?,
            Event::Stopping => writeln!(self.out, "{STOPPING}")?,
            Event::Result(result) => self.result(result)?,
            _ => (),
        }
        self.out.flush()
    }
}

/// What is said when a stop was asked for.
pub(super) const STOPPING: &str =
    "stopping: finishing what is begun and keeping it; press Ctrl-C again to end at once";

/// How large the run is, piece by piece.
pub(super) fn scale(started: &Started) -> Vec<String> {
    let link = match started.transport.as_str() {
        "shm" => " over shared memory",
        "tcp" => " over TCP",
        _ => "",
    };
    let count = |number: usize| words::count(number as u64);
    vec![
        format!("{} parameters", count(started.parameters)),
        format!("{} samples", count(started.train_samples)),
        format!("{} steps an epoch", words::count(started.steps_per_epoch)),
        format!(
            "{} on {}{link}",
            words::plural(started.lanes, "lane"),
            words::plural(started.workers, "worker")
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{options, story};
    use super::*;

    fn render(options: Options) -> String {
        let mut out = Vec::new();
        let mut view = Plain::new(&mut out, options);
        for event in story() {
            view.show(&event).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_control_character_is_written_even_if_a_worker_sends_some() {
        let text = render(options());
        assert!(text.contains("[worker 1 · pid 101] red"), "{text}");
        let control = text.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(control, None, "{text}");
    }

    #[test]
    fn the_whole_story_is_told() {
        let text = render(options());
        let parts = [
            "decoding",
            "run job-1",
            "train.epochs",
            "669,706 parameters",
            "2 lanes on 2 workers over shared memory",
            "first step after 132 ms",
            "warning: something odd",
            "accuracy",
            "10 epochs in 13.0 s",
            "sha256",
        ];
        for part in parts {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn quiet_leaves_the_result_alone() {
        let quiet = Options {
            quiet: true,
            ..options()
        };
        assert_eq!(
            render(quiet),
            "10 epochs in 13.0 s: accuracy 0.8123, loss 0.4000\n"
        );
    }
}
