//! The child process that speaks with Ray: a Python that runs the script in this folder.

use crate::ray::error::PYTHON;
use crate::ray::protocol::{Open, Order, Report};
use crate::ray::state::{self, SharedState};
use crate::ray::{RayError, RayRequest};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The script, in the order of its parts: how it speaks with the coordinator, what runs on nodes, what is known of each
/// worker here, and the whole. It travels through standard input, so that no file need be written.
const SCRIPT: &str = concat!(
    include_str!("report.py"),
    include_str!("seat.py"),
    include_str!("host.py"),
    include_str!("main.py"),
);
/// Reads the script from the first line of standard input and runs it.
const BEGIN: &str =
    "import json, sys; exec(compile(json.loads(sys.stdin.readline()), 'shim.py', 'exec'))";
/// How many of the last lines that Ray's client wrote are remembered.
const LAST_LINES: usize = 5;
/// How long the shim may take to clear up; it gives up itself a second earlier.
const CLOSE: Duration = Duration::from_secs(6);
/// How often it is looked whether it ended.
const LOOK: Duration = Duration::from_millis(10);

/// The process. Dropping it ends it, and with it the actors and what they started.
pub(crate) struct Shim {
    child: Child,
    orders: Option<ChildStdin>,
}

impl Shim {
    /// Starts it; what it reports is seen in `watched`.
    pub(crate) fn start(
        request: &RayRequest,
        open: &Open,
        watched: Arc<SharedState>,
    ) -> Result<Self, RayError> {
        let named = || std::env::var_os(PYTHON).map(PathBuf::from);
        let python = request.python.clone().or_else(named);
        let python = python.unwrap_or_else(|| PathBuf::from("python3"));
        let mut command = Command::new(&python);
        if let Some(address) = &request.address {
            command.env("RAY_ADDRESS", address);
        }
        command.args(["-u", "-c", BEGIN]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C in the terminal is for the coordinator alone.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| RayError::NoPython {
            python: python.display().to_string(),
            why: error.to_string(),
        })?;
        let streams = (child.stdout.take(), child.stderr.take());
        let orders = child.stdin.take();
        let mut shim = Self { child, orders };
        if let (Some(reports), Some(words)) = streams {
            hear(reports, words, watched).map_err(RayError::system("start a thread"))?;
        }
        shim.send(&SCRIPT);
        shim.send(open);
        Ok(shim)
    }

    /// Gives an order. If it cannot be heard, the end of the process is seen soon.
    pub(crate) fn order(&mut self, order: &Order<'_>) {
        self.send(order);
    }

    fn send(&mut self, value: &impl Serialize) {
        let line = serde_json::to_string(value).expect("an order is plain data") + "\n";
        if let Some(orders) = &mut self.orders {
            let _ = orders.write_all(line.as_bytes());
        }
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        drop(self.orders.take());
        let until = Instant::now() + CLOSE;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            thread::sleep(LOOK);
        }
    }
}

/// Hears what the process reports and what it writes for people, each in a thread of its own, to the end.
fn hear(
    reports: ChildStdout,
    words: ChildStderr,
    watched: Arc<SharedState>,
) -> std::io::Result<()> {
    let last = Arc::new(Mutex::new(VecDeque::new()));
    let kept = last.clone();
    let read_words = move || {
        for line in BufReader::new(words).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            let mut last = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if !line.is_empty() {
                last.push_back(line);
            }
            if last.len() > LAST_LINES {
                last.pop_front();
            }
        }
    };
    let words = thread::Builder::new().name("ray-words".into());
    let words = words.spawn(read_words)?;
    let read_reports = move || {
        for line in BufReader::new(reports).split(b'\n').map_while(Result::ok) {
            if let Ok(report) = serde_json::from_slice::<Report>(&line) {
                state::take(&watched, report);
            }
        }
        // What it wrote last says why it ended.
        let _ = words.join();
        let last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let last_words = last.iter().cloned().collect::<Vec<_>>().join(" | ");
        state::end(&watched, &RayError::Gone { last_words });
    };
    let reports = thread::Builder::new().name("ray-reports".into());
    reports.spawn(read_reports)?;
    Ok(())
}
