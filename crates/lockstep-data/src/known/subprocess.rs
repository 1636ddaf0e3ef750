//! Programs that are run to their end, which must come in time.

use std::fmt;
use std::io::{self, Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a running program is looked at.
const POLL: Duration = Duration::from_millis(20);

/// How much of what a program said is worth repeating.
const LAST_WORDS: usize = 300;

/// A program did not do what it was run for.
#[derive(Debug)]
pub(crate) struct ProgramFailure {
    /// Whether the program was there at all.
    pub(crate) could_start: bool,
    message: String,
}

impl fmt::Display for ProgramFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// Runs `command` and waits until it succeeds, at most `limit`.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<(), ProgramFailure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |could_start| {
        let program = &program;
        move |error: io::Error| ProgramFailure {
            could_start,
            message: format!("{program}: {error}"),
        }
    };
    // A file, not a pipe: nobody has to read it for the program to go on.
    let mut said = tempfile::tempfile().map_err(failed(true))?;
    let output = said.try_clone().map_err(failed(true))?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output);
    let mut child = command.spawn().map_err(failed(false))?;
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.try_wait().map_err(failed(true))? {
            Some(status) => break Some(status),
            None if Instant::now() < deadline => thread::sleep(POLL),
            None => {
                // It may have ended just now; then there is nothing to kill.
                let _ = child.kill();
                child.wait().map_err(failed(true))?;
                break None;
            }
        }
    };
    if status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let ended = status.map_or_else(
        || format!("was ended after {} s without a result", limit.as_secs_f32()),
        |status: ExitStatus| format!("failed ({status})"),
    );
    let mut words = Vec::new();
    // Without its words the failure is still a failure.
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut words));
    let words = last_words(&String::from_utf8_lossy(&words));
    Err(ProgramFailure {
        could_start: true,
        message: format!("{program} {ended}{words}"),
    })
}

/// The end of what was said, in one line.
fn last_words(said: &str) -> String {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let skipped = line.chars().count().saturating_sub(LAST_WORDS);
    match (line.is_empty(), skipped) {
        (true, _) => String::new(),
        (false, 0) => format!(": {line}"),
        (false, _) => format!(": …{}", line.chars().skip(skipped).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit_ms: u64) -> Result<(), ProgramFailure> {
        run(
            Command::new("sh").args(["-c", script]),
            Duration::from_millis(limit_ms),
        )
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        assert!(shell("echo fine", 60_000).is_ok());
        let failure = shell("echo no such package >&2; exit 3", 60_000).unwrap_err();
        let message = failure.to_string();
        assert!(
            message.contains("no such package") && message.contains('3'),
            "{message}"
        );
        assert!(failure.could_start);
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let begun = Instant::now();
        let message = shell("exec sleep 60", 100).unwrap_err().to_string();
        assert!(begun.elapsed() < Duration::from_secs(50));
        assert!(message.contains("0.1 s"), "{message}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let failure = run(&mut Command::new("no-such-program"), POLL).unwrap_err();
        assert!(!failure.could_start);
        assert!(failure.to_string().contains("no-such-program"));
    }

    #[test]
    fn only_the_end_of_a_long_speech_is_repeated() {
        let words = last_words(&"äb ".repeat(1000));
        assert_eq!(words.chars().count(), LAST_WORDS + 3);
    }
}
