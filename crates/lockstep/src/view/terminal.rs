//! The view for a terminal: tables, live bars, a little colour.
//!
//! What was printed stays; only the bars at the bottom move. Colours come from `console`, which
//! leaves them out where `NO_COLOR` asks for it.

use super::epochs::{Epochs, unit};
use super::plain::STOPPING;
use super::table::Frame;
use super::{Options, View, config, harmless, log_prefix, summary, words};
use console::{Term, style};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lockstep_events::event::{EpochResult, Event, Progress, RunResult, Started, Status};
use std::io;
use std::time::Duration;

/// Wider tables are harder to read, not easier.
const WIDEST: usize = 100;

/// How often bars are redrawn at most, in Hz.
const REFRESH: u8 = 15;

/// The view for people.
pub(crate) struct Terminal {
    bars: MultiProgress,
    /// For what stays.
    lines: Term,
    width: usize,
    options: Options,
    /// A bar a worker; rank 0's stands for the gang and is the only one unless verbose.
    ranks: Vec<ProgressBar>,
    /// Turns while data is prepared or workers start.
    spinner: Option<ProgressBar>,
    started: Option<Started>,
    epochs: Option<Epochs>,
    /// What the run counts: epochs, or rounds.
    unit: &'static str,
}

impl Terminal {
    /// Writes to this process's standard output.
    pub(crate) fn new(options: Options) -> Self {
        let lines = Term::stdout();
        let width = usize::from(lines.size().1).min(WIDEST);
        let target = ProgressDrawTarget::term(Term::buffered_stdout(), REFRESH);
        Self {
            bars: MultiProgress::with_draw_target(target),
            lines,
            width,
            options,
            ranks: Vec::new(),
            spinner: None,
            started: None,
            epochs: None,
            unit: "epoch",
        }
    }

    fn say(&self, line: impl AsRef<str>) -> io::Result<()> {
        self.bars.suspend(|| self.lines.write_line(line.as_ref()))
    }

    fn spin(&mut self, message: String) {
        let spinner = self.spinner.get_or_insert_with(|| {
            let spinner = self.bars.add(ProgressBar::new_spinner());
            spinner.set_style(template("{spinner:.cyan} {msg}"));
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        });
        spinner.set_message(message);
    }

    fn stop_spinning(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    fn begin(&mut self, started: &Started) -> io::Result<()> {
        self.stop_spinning();
        for line in config::lines(started, self.width, self.options.verbose) {
            self.say(line)?;
        }
        if started.command.is_empty() {
            let all = self.options.verbose;
            self.epochs = Some(Epochs::new(started, Frame::Rounded, self.width, all));
        }
        self.started = Some(started.clone());
        self.spin(format!("starting {}", words::workers(started)));
        Ok(())
    }

    fn first_step(&mut self, seconds: f64) -> io::Result<()> {
        self.stop_spinning();
        if self.epochs.is_some() {
            let after = format!("first step after {}", words::seconds(seconds));
            self.say(style(after).dim().to_string())?;
            self.say("")?;
        }
        if let Some(epochs) = &self.epochs {
            for line in epochs.head(|title| style(title).bold().to_string()) {
                self.say(line)?;
            }
        }
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) {
        let shown = if self.options.verbose { usize::MAX } else { 1 };
        let Some(started) = &self.started else { return };
        if progress.rank >= shown.min(started.workers) {
            return;
        }
        while self.ranks.len() <= progress.rank {
            let bar = self.bars.add(ProgressBar::new(progress.steps));
            bar.set_style(
                template("{prefix} {bar:20.cyan/dim} {percent:>3}% {wide_msg}")
                    .progress_chars("━╸─"),
            );
            self.ranks.push(bar);
        }
        let bar = &self.ranks[progress.rank];
        let prefix = if self.options.verbose {
            format!(
                "{} {}/{} w{}",
                self.unit, progress.epoch, started.epochs, progress.rank
            )
        } else {
            format!("{} {}/{}", self.unit, progress.epoch, started.epochs)
        };
        bar.set_prefix(prefix);
        bar.set_length(progress.steps);
        bar.set_position(progress.step);
        let batch = started.train_samples as f64 / started.steps_per_epoch.max(1) as f64;
        let left = (progress.steps.saturating_sub(progress.step)) as f64 * batch;
        let mut message = format!(
            "{}  {} samples/s",
            summary::measured(&progress.metrics),
            words::rate(progress.samples_per_s)
        );
        if progress.samples_per_s > 0.0 {
            message += &format!("  {} left", words::clock(left / progress.samples_per_s));
        }
        bar.set_message(message);
    }

    fn clear_bars(&mut self) {
        self.stop_spinning();
        for bar in self.ranks.drain(..) {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
    }

    fn row(&self, epoch: &EpochResult) -> io::Result<()> {
        match &self.epochs {
            Some(epochs) => self.say(epochs.row(epoch, |cell| style(cell).green().to_string())),
            None => Ok(()),
        }
    }

    fn result(&mut self, result: &RunResult) -> io::Result<()> {
        self.clear_bars();
        if !self.options.quiet {
            if let Some(best) = self.epochs.as_mut().and_then(Epochs::take_best) {
                self.row(&best)?;
            }
            if let Some(foot) = self.epochs.as_ref().and_then(Epochs::foot)
                && result.timing.start_to_first_step_s > 0.0
            {
                self.say(foot)?;
            }
            self.say("")?;
        }
        let headline = summary::headline(result, &self.options, self.unit);
        let mark = match result.status {
            Status::Succeeded => style("✔").green(),
            Status::Interrupted => style("■").yellow(),
            Status::Failed => style("✘").red(),
        };
        self.say(format!("{} {}", mark.bold(), style(headline).bold()))?;
        for (name, value) in summary::details(result, &self.options) {
            self.say(format!("  {} {value}", style(format!("{name:<10}")).cyan()))?;
        }
        Ok(())
    }
}

impl View for Terminal {
    fn show(&mut self, event: &Event) -> io::Result<()> {
        if let Event::Started(started) = event {
            self.unit = unit(&started.config);
        }
        if self.options.quiet && !matches!(event, Event::Result(_)) {
            return Ok(());
        }
        match event {
            Event::Preparing { message } => self.spin(message.clone()),
            Event::Note { message } => self.say(message.clone())?,
            Event::Embedding(embedding) => {
                self.spin(format!("embedding: {}", summary::embedding(embedding)));
            }
            Event::Embedded(embedded) => {
                self.stop_spinning();
                self.say(summary::embedded(embedded))?;
            }
            Event::Started(started) => self.begin(started)?,
            Event::Worker { rank, pid } if self.options.verbose => {
                self.say(
                    style(format!("worker {rank} joined, pid {pid}"))
                        .dim()
                        .to_string(),
                )?;
            }
            Event::Hosts { hosts, bytes_sent } if self.options.verbose => {
                let words = summary::hosts(hosts, *bytes_sent);
                self.say(style(words).dim().to_string())?;
            }
            Event::FirstStep { seconds } => self.first_step(*seconds)?,
            Event::Progress(progress) => self.progress(progress),
            Event::Epoch(epoch) => {
                let epochs = self.epochs.as_mut();
                if epochs.is_some_and(|epochs| epochs.has_row(epoch)) {
                    self.row(epoch)?;
                }
            }
            Event::Reported(reported) => {
                self.say(style(summary::reported(reported)).green().to_string())?;
            }
            Event::Log(log) => {
                let prefix = style(log_prefix(log)).dim();
                self.say(format!("{prefix} {}", harmless(&log.line)))?;
            }
            Event::Warning { message } => {
                self.say(format!("{} {message}", style("warning:").yellow().bold()))?;
            }
            Event::Restart(restart) => {
                self.say(style(summary::restarted(restart)).yellow().to_string())?;
            }
            Event::Resized {
                workers, reason, ..
            } => {
                let words = summary::resized(*workers, reason);
                self.say(style(words).cyan().to_string())?;
            }
            Event::Stopping => self.say(style(STOPPING).yellow().to_string())?,
            Event::Result(result) => self.result(result)?,
            _ => (),
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.clear_bars();
    }
}

fn template(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("templates are constants of this file")
}
