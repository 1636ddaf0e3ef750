//! Three renderings of one stream of events: for a terminal, as plain lines, as JSON.
//!
//! A view learns of the run only through [`Event`]s, so none can know more than the others. Views
//! write to standard output and report when that fails; what then happens to the run is not theirs
//! to decide.

pub(crate) mod chart;
mod config;
mod epochs;
pub(crate) mod evaluation;
mod json;
mod plain;
pub(crate) mod summary;
mod table;
mod terminal;
mod words;

pub(crate) use epochs::{ROUNDS, unit};
pub(crate) use json::Json;
pub(crate) use lockstep_cluster::shell;
pub(crate) use plain::Plain;
pub(crate) use summary::from_here;
pub(crate) use table::{Frame, Table, columns, lines_of};
pub(crate) use terminal::Terminal;
pub(crate) use words::{bytes, count, loss, metric, plural, seconds, threads_of};

use lockstep_events::event::{Event, LogLine};
use std::io;

/// Shows a run's events to somebody.
pub(crate) trait View {
    /// Shows one event.
    ///
    /// # Errors
    /// When the output cannot be written, as when the reader of a pipe went away.
    fn show(&mut self, event: &Event) -> io::Result<()>;
}

/// What all views are told about how the command was called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Show less: only the result.
    pub(crate) quiet: bool,
    /// Show more: every worker's progress.
    pub(crate) verbose: bool,
    /// The command that goes on with a run, up to the run's folder.
    pub(crate) resume_command: String,
    /// The run is on another machine, so its paths lead nowhere here.
    pub(crate) elsewhere: bool,
}

/// Who wrote a log line, as its prefix: `[worker 1 · pid 4242]`, with how many said the same.
fn log_prefix(log: &LogLine) -> String {
    let LogLine {
        rank, pid, count, ..
    } = log;
    match count {
        0 | 1 => format!("[worker {rank} · pid {pid}]"),
        _ => format!("[worker {rank} · pid {pid} · ×{count} workers]"),
    }
}

/// A worker's line without anything that could move the cursor or change colours.
pub(crate) fn harmless(line: &str) -> String {
    lockstep_job::printable(&console::strip_ansi_codes(line))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use lockstep_events::Metrics;
    use lockstep_events::event::*;

    pub(crate) fn started() -> Started {
        Started {
            run: "job-1".into(),
            run_dir: "runs/job-1".into(),
            workers: 2,
            threads: None,
            device: None,
            min_workers: None,
            lanes: 2,
            transport: "shm".into(),
            train_samples: 60000,
            val_samples: 0,
            test_samples: 10000,
            parameters: 669_706,
            steps_per_epoch: 1875,
            epochs: 10,
            command: Vec::new(),
            metrics: ["loss", "accuracy"].map(String::from).to_vec(),
            config: vec![("train.epochs".into(), "10".into())],
            data: Vec::new(),
            libraries: Vec::new(),
            resumed_step: 0,
        }
    }

    fn measured(loss: f64, accuracy: f64) -> Metrics {
        Metrics::from([("loss", loss), ("accuracy", accuracy)])
    }

    pub(crate) fn epoch(epoch: u32) -> EpochResult {
        EpochResult {
            epoch,
            step: u64::from(epoch) * 1875,
            train: measured(0.5, 0.8),
            val: None,
            test: Some(measured(0.4, 0.8123)),
            seconds: 1.25,
            total_s: 1.25 * f64::from(epoch),
            samples_per_s: 52311.0,
            lr: None,
            gradient_norm: None,
            best: true,
        }
    }

    pub(crate) fn result(status: Status) -> RunResult {
        RunResult {
            run: Some("job-1".into()),
            workers: 2,
            lanes: 2,
            epochs: 10,
            metrics: Some(measured(0.4, 0.8123)),
            best_epoch: Some(10),
            timing: Timing {
                start_to_first_step_s: 0.132,
                train_s: 12.5,
                total_s: 13.0,
                samples_per_s: 52311.0,
                step: None,
            },
            weights_sha256: Some("ab".repeat(32)),
            run_dir: Some("runs/job-1".into()),
            ..RunResult::without_run(status, std::time::Duration::from_secs(13))
        }
    }

    /// A whole run's events.
    pub(crate) fn story() -> Vec<Event> {
        let progress = |rank| {
            Event::Progress(Progress {
                epoch: 1,
                step: 900,
                steps: 1875,
                metrics: Metrics::from([("loss", 0.7)]),
                samples_per_s: 50000.0,
                rank,
            })
        };
        vec![
            Event::Preparing {
                message: "decoding".into(),
            },
            Event::Started(started()),
            Event::Worker { rank: 0, pid: 100 },
            Event::Worker { rank: 1, pid: 101 },
            Event::FirstStep { seconds: 0.132 },
            progress(0),
            progress(1),
            Event::Log(LogLine {
                rank: 1,
                pid: 101,
                line: "\u{1b}[31mred\u{1b}[0m\u{7}".into(),
                count: 1,
            }),
            Event::Warning {
                message: "something odd".into(),
            },
            Event::Epoch(epoch(1)),
            Event::Stopping,
            Event::Result(result(Status::Succeeded)),
        ]
    }

    pub(crate) fn options() -> Options {
        Options {
            quiet: false,
            verbose: false,
            resume_command: "lockstep run job.toml --resume".into(),
            elsewhere: false,
        }
    }

    #[test]
    fn a_folded_line_says_how_many_wrote_it() {
        let mut line = LogLine {
            rank: 1,
            pid: 42,
            line: String::new(),
            count: 1,
        };
        assert_eq!(log_prefix(&line), "[worker 1 · pid 42]");
        line.count = 3;
        assert_eq!(log_prefix(&line), "[worker 1 · pid 42 · ×3 workers]");
    }
}
