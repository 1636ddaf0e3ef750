//! Plain lines without control characters: for files, pipes and CI logs.

use super::epochs::{Epochs, unit};
use super::table::{Frame, Table};
use super::{Options, View, harmless, log_prefix, summary, words};
use lockstep_events::event::{Embedding, EpochResult, Event, Progress, RunResult, Started};
use lockstep_events::{Recorded, Thin};
use std::io::{self, Write};

/// Where nothing says how wide a line may be.
const WIDTH: usize = 100;

/// The view for files and pipes.
pub(crate) struct Plain<W> {
    out: W,
    options: Options,
    epochs: Option<Epochs>,
    /// What the run counts: epochs, or rounds.
    unit: &'static str,
    /// Whether the head of the table of epochs was written.
    headed: bool,
    /// Mentions progress now and then, so that a log shows a run that is alive.
    thin: Thin,
}

impl<W: Write> Plain<W> {
    /// Writes to `out` what happens from `began` on, in seconds since 1970.
    pub(crate) fn new(out: W, options: Options, began: f64) -> Self {
        Self {
            out,
            options,
            epochs: None,
            unit: "epoch",
            headed: false,
            thin: Thin::new(began),
        }
    }

    fn started(&mut self, started: &Started) -> io::Result<()> {
        writeln!(self.out, "run {}", started.run)?;
        let (said, defaults) = split_defaults(started, self.options.verbose);
        let table = Table::for_pairs(&said, Frame::Bare, usize::MAX);
        for line in table.pairs(&said) {
            writeln!(self.out, "  {line}")?;
        }
        if let Some(defaults) = defaults {
            writeln!(self.out, "  {defaults}")?;
        }
        writeln!(self.out, "{}", scale(started).join(", "))?;
        if started.command.is_empty() {
            let all = self.options.verbose;
            self.epochs = Some(Epochs::new(started, Frame::Bare, WIDTH, all));
        }
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        writeln!(
            self.out,
            "{} {}: step {} of {}, {}, {} samples/s",
            self.unit,
            progress.epoch,
            words::count(progress.step),
            words::count(progress.steps),
            summary::measured(&progress.metrics),
            words::rate(progress.samples_per_s)
        )
    }

    fn embedding(&mut self, embedding: &Embedding) -> io::Result<()> {
        writeln!(self.out, "embedding: {}", summary::embedding(embedding))
    }

    /// Writes the row of an epoch, and before the first the head of the table.
    fn row(&mut self, epoch: &EpochResult) -> io::Result<()> {
        let Some(epochs) = &self.epochs else {
            return Ok(());
        };
        if !std::mem::replace(&mut self.headed, true) {
            for line in epochs.head(|title| title) {
                writeln!(self.out, "{line}")?;
            }
        }
        writeln!(self.out, "{}", epochs.row(epoch, |cell| cell))
    }

    fn result(&mut self, result: &RunResult) -> io::Result<()> {
        if let Some(best) = self.epochs.as_mut().and_then(Epochs::take_best) {
            self.row(&best)?;
        }
        writeln!(
            self.out,
            "{}",
            summary::headline(result, &self.options, self.unit)
        )?;
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
        self.show_at(event, Recorded::clock())
    }
}

impl<W: Write> Plain<W> {
    /// Shows an event of the given time, in seconds since 1970: now, or when it was recorded.
    fn show_at(&mut self, event: &Event, time: f64) -> io::Result<()> {
        if let Event::Started(started) = event {
            self.unit = unit(&started.config);
        }
        if self.options.quiet && !matches!(event, Event::Result(_)) || !self.thin.keeps(event, time)
        {
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
            Event::Hosts { hosts, bytes_sent } if self.options.verbose => {
                writeln!(self.out, "{}", summary::hosts(hosts, *bytes_sent))?;
            }
            Event::FirstStep { seconds } if self.epochs.is_some() => {
                let seconds = words::seconds(*seconds);
                writeln!(self.out, "first step after {seconds}")?;
            }
            Event::Progress(progress) => self.progress(progress)?,
            Event::Epoch(epoch) => {
                let epochs = self.epochs.as_mut();
                if epochs.is_some_and(|epochs| epochs.has_row(epoch)) {
                    self.row(epoch)?;
                }
            }
            Event::Reported(reported) => writeln!(self.out, "{}", summary::reported(reported))?,
            Event::Log(log) => {
                writeln!(self.out, "{} {}", log_prefix(log), harmless(&log.line))?;
            }
            Event::Warning { message } => writeln!(self.out, "warning: {message}")?,
            Event::Restart(restart) => writeln!(self.out, "{}", summary::restarted(restart))?,
            Event::Resized {
                workers, reason, ..
            } => {
                writeln!(self.out, "{}", summary::resized(*workers, reason))?;
            }
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

/// The configuration that is worth a line each, and in words how many keys have their defaults, unless `all` are shown.
pub(super) fn split_defaults(
    started: &Started,
    all: bool,
) -> (Vec<(String, String)>, Option<String>) {
    let is_said = |(key, value): &&(String, String)| all || !lockstep_job::is_default(key, value);
    let said: Vec<_> = started.config.iter().filter(is_said).cloned().collect();
    let defaults = match started.config.len() - said.len() {
        0 => None,
        1 => Some("1 more key has its default (-v shows it)".to_owned()),
        more => Some(format!(
            "{more} more keys have their defaults (-v shows them)"
        )),
    };
    (said, defaults)
}

/// How large the run is, piece by piece.
pub(super) fn scale(started: &Started) -> Vec<String> {
    let link = match started.transport.as_str() {
        "shm" => " over shared memory",
        "tcp" => " over TCP",
        _ => "",
    };
    if !started.command.is_empty() {
        return vec![words::workers(started)];
    }
    let samples = words::plural(started.train_samples, "sample");
    // Trees have neither parameters that are known before, nor steps, nor lanes.
    if unit(&started.config) == "round" {
        return vec![samples, format!("{}{link}", words::workers(started))];
    }
    let steps = usize::try_from(started.steps_per_epoch).unwrap_or(usize::MAX);
    vec![
        words::plural(started.parameters, "parameter"),
        samples,
        format!("{} an epoch", words::plural(steps, "step")),
        format!(
            "{} on {}{link}",
            words::plural(started.lanes, "lane"),
            words::workers(started)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{options, story};
    use super::*;

    fn render(options: Options) -> String {
        let mut out = Vec::new();
        let mut view = Plain::new(&mut out, options, Recorded::clock());
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
            "10 epochs in 13.0 s: accuracy 0.8123, loss 0.4000; runs/job-1\n"
        );
    }

    #[test]
    fn the_view_is_redrawn_from_what_a_run_recorded() {
        // An event a second, with a lot of progress; what is recorded is what is shown.
        let progress = |step: u64| {
            let mut told = story();
            told.retain(|event| matches!(event, Event::Progress(progress) if progress.rank == 0));
            let Some(Event::Progress(mut told)) = told.pop() else {
                panic!("the story has progress");
            };
            told.step = step;
            Event::Progress(told)
        };
        let mut events = story();
        let last = events.split_off(events.len() - 2);
        events.extend((0..60).map(progress));
        events.extend(last);
        let (mut live, mut redrawn) = (Vec::new(), Vec::new());
        let mut view = Plain::new(&mut live, options(), 0.0);
        let mut thin = Thin::new(0.0);
        let mut recorded = String::new();
        for (second, event) in events.into_iter().enumerate() {
            let time = second as f64;
            view.show_at(&event, time).unwrap();
            if thin.keeps(&event, time) {
                let line = Recorded::at(time, event);
                recorded += &(serde_json::to_string(&line).unwrap() + "\n");
            }
        }
        let mut view = Plain::new(&mut redrawn, options(), 0.0);
        for line in recorded.lines() {
            let line: Recorded = serde_json::from_str(line).unwrap();
            view.show_at(&line.event, line.time).unwrap();
        }
        let text = String::from_utf8(live).unwrap();
        assert_eq!(text.matches("epoch 1: step").count(), 6, "{text}");
        assert_eq!(String::from_utf8(redrawn).unwrap(), text);
    }
}
