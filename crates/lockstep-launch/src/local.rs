//! Workers that are child processes of this one, on this machine.
//!
//! A worker ends for any of three independent reasons: its [`LocalLauncher`] is dropped (on return, on
//! error and on panic alike), its standard input closes because this process is gone, or the kernel kills
//! it because its parent died. The last holds also against `kill -9` of this process.

use crate::lines::each_line;
use crate::{
    Ending, LaunchError, LaunchNotice, Launched, Launcher, Notify, Site, WorkerEnd, WorkerEvent,
    WorkerId, WorkerSpec,
};
use lockstep_base::cgroup::oom_kills;
use lockstep_gang::GangError;
use rustix::process::{Pid, WaitId, WaitIdOptions};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, thread};

/// How much sooner than this process the system shall end a worker for lack of memory, of 1000.
const SOONER: i32 = 500;

/// Starts workers as child processes.
///
/// Workers die with the thread that started them, not only with its process: start them from the thread
/// that owns the launcher.
#[derive(Debug)]
pub struct LocalLauncher {
    program: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    /// The newest of each seat.
    workers: Vec<Option<(WorkerId, Child)>>,
    shortages: Shortages,
}

impl LocalLauncher {
    /// Workers are hidden commands of `program`, usually this process's own.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            environment: Vec::new(),
            workers: Vec::new(),
            shortages: Shortages::now(),
        }
    }

    /// With this variable in the environment of every worker.
    pub fn with(mut self, variable: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((variable, value.into()));
        self
    }

    fn child(&mut self, id: WorkerId) -> Option<&mut Child> {
        match self.workers.get_mut(id.seat) {
            Some(Some((of, child))) if *of == id => Some(child),
            _ => None,
        }
    }

    fn spawn(&mut self, spec: &WorkerSpec<'_>, notify: Notify) -> Result<Launched, SpawnError> {
        let id = spec.id;
        let mut command = Command::new(&self.program);
        command.arg(spec.command).stdin(Stdio::piped());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        // A group of its own, so that Ctrl-C in the terminal reaches only the coordinator.
        command.process_group(0);
        die_with_parent(&mut command);
        let memory = spec
            .memory
            .map(|segment| segment.give_to(&mut command))
            .transpose()?;
        let mut pipe = None;
        if spec.speaks {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        } else {
            // One pipe for both streams keeps the order in which the worker wrote to them.
            let (output, input) = io::pipe()?;
            command.stdout(input.try_clone()?).stderr(input);
            pipe = Some(output);
        }
        let mut child = command.spawn()?;
        // The command holds the other ends of pipes: as long as it lives, the output has no end.
        drop(command);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let launched = Launched {
            pid: Some(child.id()),
            memory,
        };
        let pid = Pid::from_child(&child);
        end_sooner(pid);
        while self.workers.len() <= id.seat {
            self.workers.push(None);
        }
        if let Some((_, mut before)) = self.workers[id.seat].replace((id, child)) {
            let _ = before.kill();
            let _ = before.wait();
        }
        self.tell(id, &spec.invitation);
        let tell = move |what| notify(LaunchNotice { id, what });
        let wait = {
            let (tell, shortages) = (tell.clone(), self.shortages.clone());
            move || {
                let end = match wait_for(pid) {
                    WorkerEnd::Signal(KILL) if shortages.explain_one(oom_kills().unwrap_or(0)) => {
                        WorkerEnd::OutOfMemory
                    }
                    end => end,
                };
                tell(WorkerEvent::Ended(end));
            }
        };
        named("exit", id).spawn(wait)?;
        let hear = move || {
            let spoken = stdout.map(|stdout| {
                let tell = tell.clone();
                let hear = move || each_message(stdout, |line| tell(WorkerEvent::Said(line)));
                named("said", id).spawn(hear)
            });
            let written = match (pipe, stderr) {
                (Some(pipe), _) => each_line(pipe, |line| tell(WorkerEvent::Wrote(line))),
                (None, Some(stderr)) => each_line(stderr, |line| tell(WorkerEvent::Wrote(line))),
                (None, None) => Ok(()),
            };
            if let Err(error) = written {
                let line = format!("(the output of this worker can no longer be read: {error})");
                tell(WorkerEvent::Wrote(line));
            }
            if let Some(Ok(thread)) = spoken {
                let _ = thread.join();
            }
            tell(WorkerEvent::OutputEnded);
        };
        named("output", id).spawn(hear)?;
        Ok(launched)
    }
}

impl Launcher for LocalLauncher {
    fn start(&mut self, spec: &WorkerSpec<'_>, notify: Notify) -> Result<Launched, LaunchError> {
        self.spawn(spec, notify).map_err(|source| {
            // It may run already, and lack a thread that hears it.
            self.end(spec.id);
            LaunchError {
                seat: spec.id.seat,
                program: format!("{} {}", self.program.display(), spec.command),
                source: source.into(),
            }
        })
    }

    fn tell(&mut self, id: WorkerId, line: &str) {
        if let Some(stdin) = self.child(id).and_then(|child| child.stdin.as_mut()) {
            let _ = stdin.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn end(&mut self, id: WorkerId) -> Ending {
        if let Some(child) = self.child(id) {
            // Fails only for a worker that is gone already.
            let _ = child.kill();
        }
        Ending::Certain
    }

    fn end_all(&mut self) {
        for (_, child) in self.workers.iter_mut().flatten() {
            // Fails only for a worker that is gone already.
            let _ = child.kill();
        }
        for (_, mut child) in self.workers.drain(..).flatten() {
            let _ = child.wait();
        }
    }

    fn describe(&self, id: WorkerId) -> String {
        match self.workers.get(id.seat) {
            Some(Some((of, child))) if *of == id => format!("pid {}", child.id()),
            _ => "gone".to_owned(),
        }
    }

    fn site(&self) -> Site {
        Site::ONE_HOST
    }
}

impl Drop for LocalLauncher {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// The signal by which the system ends a process for lack of memory.
const KILL: i32 = rustix::process::Signal::KILL.as_raw();

/// Has the system end a worker before this process when memory runs out: a worker can be replaced, and this process is
/// the one that can say what happened. Where that is not allowed, all stays as it is.
fn end_sooner(worker: Pid) {
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let own: i32 = own.trim().parse().unwrap_or(0);
    let path = format!("/proc/{}/oom_score_adj", worker.as_raw_nonzero());
    let _ = fs::write(path, (own + SOONER).min(1000).to_string());
}

/// How often the system has ended a process for lack of memory, as far as that explains how workers ended.
#[derive(Debug, Clone)]
struct Shortages(Arc<AtomicU64>);

impl Shortages {
    fn now() -> Self {
        Self(Arc::new(AtomicU64::new(oom_kills().unwrap_or(0))))
    }

    /// Whether one more happened, of `all`, which is then explained.
    fn explain_one(&self, all: u64) -> bool {
        let next = |known: u64| (known < all).then_some(known + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.0.fetch_update(set, fetch, next).is_ok()
    }
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum SpawnError {
    /// The shared memory could not be handed to it.
    Gang(#[from] GangError),
    /// The system refused.
    Io(#[from] io::Error),
}

fn named(what: &str, id: WorkerId) -> thread::Builder {
    thread::Builder::new().name(format!("{what}-{}", id.seat))
}

/// Waits until a process ended, and says how. It is not reaped yet: as long as it is not, its id is its
/// own, and its launcher can signal it safely.
fn wait_for(pid: Pid) -> WorkerEnd {
    loop {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(pid), options) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(Some(status)) => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => WorkerEnd::Code(code),
                    (None, Some(signal)) => WorkerEnd::Signal(signal),
                    (None, None) => WorkerEnd::Unknown,
                };
            }
            // It was reaped, as when all are ended together.
            Ok(None) | Err(_) => return WorkerEnd::Unknown,
        }
    }
}

/// Reads messages, each a line of any length, to their end or until `each` returns false.
fn each_message(source: impl Read, mut each: impl FnMut(String) -> bool) {
    let mut source = BufReader::new(source);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match source.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if !each(String::from_utf8_lossy(&bytes).trim_end().to_owned()) {
            return;
        }
    }
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
    use crate::conformance::{self, NoticeChannel, spec};
    use std::path::Path;
    use std::time::Duration;

    /// A launcher whose workers do what the script says.
    ///
    /// A script cannot be executed while any process has it open for writing, which a fork in
    /// another test would inherit from this one: so a shell writes it.
    fn launcher(folder: &tempfile::TempDir, body: &str) -> LocalLauncher {
        let path = folder.path().join("worker.sh");
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#,
        ]);
        let written = shell.args(["sh", body]).arg(&path).status().unwrap();
        assert!(written.success());
        LocalLauncher::new(path)
    }

    fn is_alive(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn child_processes_conform_to_what_is_asked_of_a_launcher() {
        let folder = tempfile::tempdir().unwrap();
        conformance::check(&mut |script| Box::new(launcher(&folder, script)));
    }

    #[test]
    fn a_dropped_launcher_leaves_no_process() {
        let folder = tempfile::tempdir().unwrap();
        let mut launcher = launcher(&folder, "exec sleep 1000");
        let heard = NoticeChannel::default();
        let start = |seat| {
            let launched = launcher.start(&spec(seat, 1), heard.notify());
            launched.unwrap().pid.unwrap()
        };
        let pids = [0, 1].map(start);
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        drop(launcher);
        assert!(!pids.iter().any(|pid| is_alive(*pid)));
    }

    #[test]
    fn a_worker_dies_with_the_thread_that_started_it() {
        let folder = tempfile::tempdir().unwrap();
        let heard = NoticeChannel::default();
        let notify = heard.notify();
        let mut launcher = launcher(&folder, "exec sleep 1000");
        let started = thread::spawn(move || {
            launcher.start(&spec(0, 1), notify).unwrap();
            launcher
        });
        let _launcher = started.join().unwrap();
        let end = heard.end(WorkerId {
            seat: 0,
            incarnation: 1,
        });
        assert_eq!(end, WorkerEnd::Signal(9));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_that_runs_out_ends_workers_before_this_process() {
        let folder = tempfile::tempdir().unwrap();
        let mut launcher = launcher(&folder, "exec sleep 1000");
        let launched = launcher.start(&spec(0, 1), NoticeChannel::default().notify());
        let pid = launched.unwrap().pid.unwrap().to_string();
        let sooner = |of: &str| -> i32 {
            let text = fs::read_to_string(format!("/proc/{of}/oom_score_adj")).unwrap();
            text.trim().parse().unwrap()
        };
        assert_eq!(sooner(&pid), (sooner("self") + SOONER).min(1000));
    }

    #[test]
    fn each_shortage_of_memory_explains_one_end() {
        let shortages = Shortages(Arc::new(AtomicU64::new(3)));
        assert!(!shortages.explain_one(3));
        let explained = [(); 3].map(|()| shortages.explain_one(5));
        assert_eq!(explained, [true, true, false]);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let mut launcher = LocalLauncher::new("/no/such/program");
        let heard = NoticeChannel::default();
        let error = launcher.start(&spec(3, 1), heard.notify()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("worker 3 as `/no/such/program worker`"),
            "{said}"
        );
        assert_eq!(heard.next(Duration::from_millis(50)), None);
    }
}
