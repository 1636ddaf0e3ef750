//! The process of a script: started, heard, asked to end, ended.

use crate::ScriptError;
use crate::leftovers::{self, MARK};
use lockstep_base::cgroup::oom_kills;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many of the last lines that a script wrote to standard error are remembered.
const LAST_LINES: usize = 60;
/// How much of one is.
const LINE: usize = 500;
/// What Python begins its account of an error with.
const TRACEBACK: &str = "Traceback (most recent call last)";
/// How many lines of an account are repeated in an error.
const TOLD_LINES: usize = 25;
/// The signal by which the system ends a process for lack of memory.
const KILL: i32 = Signal::KILL.as_raw();
/// How often it is looked whether a process ended.
const LOOK: Duration = Duration::from_millis(5);
/// How long the rest of what a script wrote is waited for, if something that it started holds the pipe open.
const OUTPUT: Duration = Duration::from_secs(1);

/// A script that runs. Dropping it ends it, and all that it started.
pub(crate) struct ScriptProcess {
    child: Child,
    mark: String,
    last: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
    error_file: PathBuf,
    /// How many processes the system had ended for lack of memory before it.
    shortages: Option<u64>,
}

/// What to start, and where.
pub(crate) struct Start<'a> {
    pub(crate) command: &'a [String],
    pub(crate) folder: &'a Path,
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Which run and seat it belongs to.
    pub(crate) mark: String,
    /// Where PyTorch writes an error, if it is asked to.
    pub(crate) error_file: PathBuf,
}

impl ScriptProcess {
    /// Starts the script, as a process that dies with this one.
    pub(crate) fn start(start: Start<'_>) -> Result<Self, ScriptError> {
        let failed = ScriptError::system;
        let program = std::env::current_exe().map_err(failed("find this program's own file"))?;
        let mut command = Command::new(program);
        command
            .arg("script-process")
            .args(start.command)
            .current_dir(start.folder)
            .envs(start.variables)
            .env(MARK, &start.mark)
            .env("LOCKSTEP_PARENT", std::process::id().to_string())
            .process_group(0)
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed("start the script"))?;
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let (errors, kept) = (child.stderr.take(), last.clone());
        let reader = errors.map(|errors| thread::spawn(move || pass_on(errors, &kept)));
        Ok(Self {
            child,
            mark: start.mark,
            last,
            reader,
            error_file: start.error_file,
            shortages: oom_kills(),
        })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// How it ended, in words.
    pub(crate) fn end_words(&self, status: ExitStatus) -> String {
        end_words(status, self.shortages < oom_kills())
    }

    /// Asks it to end, waits for so long, and ends it.
    pub(crate) fn stop(&mut self, patience: Duration) {
        self.signal(Signal::TERM);
        let until = Instant::now() + patience;
        while self.ended().is_none() && Instant::now() < until {
            thread::sleep(LOOK);
        }
        self.end();
    }

    /// Ends it at once, with all that it started.
    pub(crate) fn end(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        leftovers::end(&self.mark);
    }

    fn signal(&mut self, signal: Signal) {
        // One that ended has a number that may be another's by now.
        if self.ended().is_none()
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process_group(pid, signal);
        }
    }

    /// What it said of its error: PyTorch's file if there is one, else the end of standard error.
    pub(crate) fn last_words(&mut self) -> String {
        if let Some(words) = torch_error(&self.error_file) {
            return words;
        }
        let until = Instant::now() + OUTPUT;
        while self
            .reader
            .as_ref()
            .is_some_and(|reader| !reader.is_finished())
            && Instant::now() < until
        {
            thread::sleep(LOOK);
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        account(last.iter().map(String::as_str))
    }
}

impl Drop for ScriptProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// How a script ended, in words; `starved` if the system ended something for lack of memory meanwhile.
fn end_words(status: ExitStatus, starved: bool) -> String {
    match (status.code(), status.signal()) {
        (None, Some(KILL)) if starved => "was killed because it ran out of memory".to_owned(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => {
            let name = Signal::from_named_raw(signal).map(|signal| format!("{signal:?}"));
            format!(
                "was killed by {}",
                name.unwrap_or_else(|| format!("signal {signal}"))
            )
        }
        (None, None) => "ended".to_owned(),
    }
}

/// Writes what a script writes, and remembers the last of it.
fn pass_on(errors: ChildStderr, last: &Mutex<VecDeque<String>>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    let mut own = io::stderr();
    loop {
        line.clear();
        // A line without an end must not fill memory.
        let read = io::Read::take(&mut errors, 1 << 16).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let _ = own.write_all(&line);
        let text = String::from_utf8_lossy(&line);
        let text: String = text.trim_end().chars().take(LINE).collect();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        last.push_back(text);
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
}

/// The account of an error at the end of what was written: the last traceback, its last line first.
fn account<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let Some(last) = lines.last() else {
        return String::new();
    };
    let Some(begin) = lines.iter().rposition(|line| line.contains(TRACEBACK)) else {
        return (*last).to_owned();
    };
    let told = &lines[begin..];
    let told = &told[told.len().saturating_sub(TOLD_LINES)..];
    format!("{last}\n{}", told.join("\n"))
}

/// What `torch.distributed.elastic` wrote of the exception of a rank.
fn torch_error(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let error: serde_json::Value = serde_json::from_str(&text).ok()?;
    let message = &error["message"];
    let words = message["message"].as_str().or(message.as_str())?;
    let told = match message["extraInfo"]["py_callstack"].as_str() {
        Some(stack) => format!("{words}\n{}", stack.trim_end()),
        None => words.to_owned(),
    };
    Some(told.chars().take(TOLD_LINES * LINE).collect())
}

/// Makes this process the script: it dies with the worker that started it, and is a group of its own.
///
/// # Errors
/// When there is no such program.
pub fn become_script(command: &[OsString]) -> io::Result<std::convert::Infallible> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::other("there is no command"));
    };
    Err(Command::new(program).args(arguments).exec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_was_killed_for_lack_of_memory_says_so() {
        let (killed, ended) = (ExitStatus::from_raw(KILL), ExitStatus::from_raw(1 << 8));
        assert!(end_words(killed, false).contains("KILL"));
        assert!(end_words(killed, true).ends_with("ran out of memory"));
        assert_eq!(end_words(ended, true), "ended with exit code 1");
    }

    #[test]
    fn the_last_traceback_is_told_with_its_error_first() {
        let lines = [
            "noise",
            "Traceback (most recent call last):",
            "  File \"a.py\", line 1",
            "ValueError: first",
            "During handling of the above exception, another exception occurred:",
            "Traceback (most recent call last):",
            "  File \"a.py\", line 2",
            "KeyError: 'second'",
        ];
        let said = account(lines.into_iter());
        assert!(said.starts_with("KeyError: 'second'\nTraceback"), "{said}");
        assert!(!said.contains("first"), "{said}");
        assert_eq!(account(["one", "two", ""].into_iter()), "two");
    }

    #[test]
    fn the_error_file_of_torch_is_understood() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("error.json");
        let text = r#"{"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "Traceback\n x\n"}}}"#;
        std::fs::write(&path, text).unwrap();
        assert_eq!(
            torch_error(&path).unwrap(),
            "ValueError: bad\nTraceback\n x"
        );
    }
}
