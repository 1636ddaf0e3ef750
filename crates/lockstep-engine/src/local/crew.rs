//! The worker processes: started, listened to, and never left behind.
//!
//! A worker ends for any of three independent reasons: the [`Crew`] is dropped (on return, on error
//! and on panic alike), its standard input closes because this process is gone, or the kernel kills
//! it because its parent died. The last holds also against `kill -9` of this process.

use super::lines::each_line;
use super::notice::Notice;
use lockstep_gang::{GangError, Segment};
use rustix::process::{Pid, WaitId, WaitIdOptions};
use std::io::{self, PipeReader, Write};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;

/// All worker processes of a gang, by rank.
///
/// Workers die with the thread that spawned them, not only with its process: spawn from the thread
/// that owns the crew.
#[derive(Default)]
pub(super) struct Crew {
    /// Those that were not replaced, by seat.
    children: Vec<Child>,
}

impl Crew {
    /// Starts `command` as the worker of a seat, with `invitation` as the first line of its standard
    /// input. It is the next seat, or one whose process has ended and was reaped.
    ///
    /// The worker gets a process group of its own, so that Ctrl-C in the terminal reaches only the
    /// coordinator. What it writes and its end arrive at `notices`. Returns the number of the
    /// descriptor under which it inherits `segment`, if there is one.
    ///
    /// # Errors
    /// When the process, a pipe or a thread cannot be made. Workers that run already keep running.
    pub(super) fn spawn(
        &mut self,
        rank: usize,
        mut command: Command,
        invitation: &str,
        segment: Option<&Segment>,
        notices: &SyncSender<Notice>,
    ) -> Result<Option<RawFd>, SpawnError> {
        // One pipe for both streams keeps the order in which the worker wrote to them.
        let (output, input) = io::pipe()?;
        command.stdout(input.try_clone()?).stderr(input);
        let inherited = segment
            .map(|segment| segment.give_to(&mut command))
            .transpose()?;
        self.start(rank, command)?;
        self.tell(rank, invitation);
        let (lines, exits) = (notices.clone(), notices.clone());
        thread::Builder::new()
            .name(format!("output-{rank}"))
            .spawn(move || report_output(rank, output, &lines))?;
        self.when_ended(rank, move || {
            let _ = exits.send(Notice::Exited { rank });
        })?;
        Ok(inherited)
    }

    /// Starts `command` as the process of a seat, with a process group of its own and on a leash: it
    /// ends with this crew. It is the next seat, or one whose process has ended and was reaped.
    ///
    /// # Errors
    /// When the process cannot be started. Those that run already keep running.
    pub(super) fn start(&mut self, seat: usize, mut command: Command) -> io::Result<&mut Child> {
        command.stdin(Stdio::piped()).process_group(0);
        die_with_parent(&mut command);
        let child = command.spawn()?;
        // The command holds the other ends of pipes: as long as it lives, the output has no end.
        drop(command);
        match self.children.get_mut(seat) {
            Some(ended) => *ended = child,
            None => self.children.push(child),
        }
        Ok(&mut self.children[seat])
    }

    /// Writes a line to a worker's standard input. One that can no longer read is reported by its exit.
    pub(super) fn tell(&mut self, seat: usize, line: &str) {
        if let Some(stdin) = &mut self.children[seat].stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Calls `then` on a thread of its own when the process of a seat has ended. It is not reaped
    /// yet: as long as it is not, its id is its own, and the crew can signal it safely.
    pub(super) fn when_ended(
        &self,
        seat: usize,
        then: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let pid = Pid::from_child(&self.children[seat]);
        let wait = move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let waited = || rustix::process::waitid(WaitId::Pid(pid), options);
            while let Err(rustix::io::Errno::INTR) = waited() {}
            then();
        };
        thread::Builder::new()
            .name(format!("exit-{seat}"))
            .spawn(wait)?;
        Ok(())
    }

    /// The worker's process id.
    pub(super) fn pid(&self, rank: usize) -> u32 {
        self.children[rank].id()
    }

    /// How the worker ended; waits until it has.
    pub(super) fn reap(&mut self, rank: usize) -> io::Result<ExitStatus> {
        self.children[rank].wait()
    }

    /// Ends one worker at once; its end is reported like any other.
    pub(super) fn kill_one(&mut self, rank: usize) {
        // Fails only for a worker that was reaped already.
        let _ = self.children[rank].kill();
    }

    /// Ends all workers at once and waits until they are gone.
    pub(super) fn kill(&mut self) {
        for child in &mut self.children {
            // Fails only for a worker that was reaped already.
            let _ = child.kill();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Why a worker could not be started.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum SpawnError {
    /// The shared memory could not be handed to it.
    Gang(#[from] GangError),
    /// The system refused.
    Io(#[from] io::Error),
}

fn report_output(rank: usize, output: PipeReader, notices: &SyncSender<Notice>) {
    let read = each_line(output, |line| {
        notices.send(Notice::Line { rank, line }).is_ok()
    });
    if let Err(error) = read {
        let line = format!("(the output of this worker can no longer be read: {error})");
        let _ = notices.send(Notice::Line { rank, line });
    }
    let _ = notices.send(Notice::OutputEnded { rank });
}

/// Has the kernel kill the child as soon as the thread that spawns it ends.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let arrange = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The parent may have died before the arrangement was made.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes two
    // plain system calls, allocates nothing, takes no lock, and its error holds no allocation.
    unsafe { command.pre_exec(arrange) };
}

/// Elsewhere a worker notices by its standard input and its control link that its parent died.
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::mpsc::{Receiver, sync_channel};
    use std::time::Duration;

    /// An executable that stands for a worker and does what the script says.
    ///
    /// A script cannot be executed while any process has it open for writing, which a fork in
    /// another test would inherit from this one: so a shell writes it.
    fn script(folder: &tempfile::TempDir, body: &str) -> Command {
        let path = folder.path().join("worker.sh");
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#,
        ]);
        let written = shell.args(["sh", body]).arg(&path).status().unwrap();
        assert!(written.success());
        Command::new(path)
    }

    fn next(notices: &Receiver<Notice>) -> Notice {
        notices.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    fn is_alive(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_worker_gets_its_invitation_and_both_its_streams_arrive_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let exe = script(
            &folder,
            "read line; echo \"got $line\"; echo two >&2; echo three",
        );
        let (sender, notices) = sync_channel(16);
        let mut crew = Crew::default();
        crew.spawn(0, exe, "hello", None, &sender).unwrap();
        let mut lines = Vec::new();
        loop {
            match next(&notices) {
                Notice::Line { rank: 0, line } => lines.push(line),
                Notice::OutputEnded { rank: 0 } => break,
                Notice::Exited { rank: 0 } => (),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(lines, ["got hello", "two", "three"]);
        assert!(crew.reap(0).unwrap().success());
    }

    #[test]
    fn a_dropped_crew_leaves_no_process() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, _notices) = sync_channel(16);
        let mut crew = Crew::default();
        for seat in 0..2 {
            let exe = script(&folder, "exec sleep 1000");
            crew.spawn(seat, exe, "", None, &sender).unwrap();
        }
        let pids = [crew.pid(0), crew.pid(1)];
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        drop(crew);
        assert!(!pids.iter().any(|pid| is_alive(*pid)));
    }

    #[test]
    fn a_worker_dies_with_the_thread_that_spawned_it() {
        let folder = tempfile::tempdir().unwrap();
        let exe = script(&folder, "exec sleep 1000");
        let (sender, notices) = sync_channel(16);
        let spawned = thread::spawn(move || {
            let mut crew = Crew::default();
            crew.spawn(0, exe, "", None, &sender).unwrap();
            crew
        });
        let mut crew = spawned.join().unwrap();
        while !matches!(next(&notices), Notice::Exited { rank: 0 }) {}
        let status = crew.reap(0).unwrap();
        assert_eq!(
            super::super::blame::describe_exit(status),
            "killed by signal 9 (SIGKILL)"
        );
    }
}
