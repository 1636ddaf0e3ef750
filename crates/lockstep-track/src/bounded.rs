//! Another program that is asked something, within bounds of time and size.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether the program has ended.
const TICK: Duration = Duration::from_millis(10);
/// How long the end of its output may take after its own.
const OUTPUT_DEADLINE: Duration = Duration::from_secs(1);

/// What a program said.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) status: ExitStatus,
    /// Its standard output, up to the bound.
    pub(crate) output: Vec<u8>,
    /// Whether there was more.
    pub(crate) cut: bool,
}

/// Runs a program with `input` as its standard input. It has a process group of its own, which is killed at the
/// deadline; output beyond `most` bytes is read and thrown away.
pub(crate) fn run_bounded(
    command: &mut Command,
    input: Vec<u8>,
    most: usize,
    deadline: Instant,
) -> io::Result<ProgramOutput> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let stdin = child.stdin.take();
    // A program need not read what it is told.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let stdout = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(stdout.map(|stdout| read_up_to(stdout, most))));
    let ended = wait(&mut child, deadline);
    if ended.is_err() {
        kill(&mut child);
    }
    let status = ended?;
    // Something that it started may hold its output open.
    let read = receiver.recv_timeout(OUTPUT_DEADLINE);
    let (output, cut) = read.ok().flatten().unwrap_or_default();
    Ok(ProgramOutput {
        status,
        output,
        cut,
    })
}

/// How much of a program's answer is read.
const MOST: usize = 10_000;

/// What a program says on its standard output before the deadline, without the end of the line; none if it fails.
///
/// # Errors
/// When it cannot be started, or has not ended by then.
pub fn ask_program(command: &mut Command, deadline: Instant) -> io::Result<Option<String>> {
    let said = run_bounded(command, Vec::new(), MOST, deadline)?;
    let text = String::from_utf8_lossy(&said.output).trim().to_owned();
    Ok((said.status.success() && !text.is_empty()).then_some(text))
}

fn wait(child: &mut Child, deadline: Instant) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "it did not end in time and was killed",
            ));
        }
        thread::sleep(TICK);
    }
}

/// Kills the program with all that it started.
fn kill(child: &mut Child) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

fn read_up_to(mut from: impl Read, most: usize) -> (Vec<u8>, bool) {
    let mut output = Vec::new();
    let _ = (&mut from).take(most as u64).read_to_end(&mut output);
    let more = io::copy(&mut from, &mut io::sink());
    (output, more.is_ok_and(|more| more > 0))
}

/// How a program ended, in words, if not well.
pub(crate) fn bad_end(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("it ended with exit code {code}")),
        (None, Some(signal)) => Some(format!("it was ended by signal {signal}")),
        (None, None) => Some("it ended in an unknown way".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_program_gets_its_input_and_its_output_is_bounded() {
        let said = run_bounded(
            &mut shell("cat; cat /dev/null"),
            b"abc".to_vec(),
            100,
            soon(),
        );
        assert_eq!(said.unwrap().output, b"abc");
        let said = run_bounded(&mut shell("seq 100000"), Vec::new(), 10, soon()).unwrap();
        assert_eq!((said.output.len(), said.cut), (10, true));
        let said = run_bounded(&mut shell("exit 3"), vec![0; 1 << 20], 10, soon()).unwrap();
        assert_eq!(bad_end(said.status).unwrap(), "it ended with exit code 3");
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_what_it_started() {
        let begun = Instant::now();
        let deadline = begun + Duration::from_millis(200);
        let error = run_bounded(
            &mut shell("sleep 100 & sleep 100"),
            Vec::new(),
            10,
            deadline,
        );
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(50));
    }
}
