//! Runs on hosts that come by themselves.
//!
//! Pods are `lockstep pod` processes on this machine, each gang at a loopback address of its own. The tests start them
//! again as a cluster would.

use super::{JOB, Place, Running, send};
use lockstep_base::failpoint;
use lockstep_job::pod;
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long pods may take to end.
const LIMIT: Duration = Duration::from_secs(300);

/// [`JOB`] on three hosts, long enough to be disturbed.
pub(crate) fn job() -> String {
    let job = JOB.replace("workers = 2\nlanes = 2", "workers = 3\nlanes = 3");
    let job = job.replace("epochs = 2", "epochs = 16");
    format!("{job}\n[gang]\nlease_s = 5\n")
}

/// The pods of one run.
pub(crate) struct Gang {
    pub(crate) place: Place,
    pub(crate) address: String,
    /// Those other than number 0, by index.
    pub(crate) hosts: Vec<(usize, Child)>,
    /// Process of number 0, while it may run.
    pub(crate) coordinator: Option<i32>,
    pub(crate) slow: bool,
    /// XGBoost's library, for runs that need it.
    pub(crate) xgboost: Option<PathBuf>,
}

impl Gang {
    pub(crate) fn new(job: &str) -> Self {
        static GANGS: AtomicU8 = AtomicU8::new(1);
        let place = Place::new();
        place.write_job(job);
        let token = place.path("token");
        std::fs::write(&token, "5a".repeat(32)).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o400)).unwrap();
        let [.., high, low] = std::process::id().to_be_bytes();
        let gang = GANGS.fetch_add(1, Ordering::Relaxed);
        Self {
            place,
            address: format!("127.{gang}.{high}.{low}"),
            hosts: Vec::new(),
            coordinator: None,
            slow: false,
            xgboost: None,
        }
    }

    /// With steps that take a while until [`Place::wake`], so that there is a middle of an epoch.
    pub(crate) fn slow(job: &str) -> Self {
        let mut gang = Self::new(job);
        gang.slow = true;
        gang
    }

    pub(crate) fn command(&self, index: usize) -> Command {
        let mut command = self.place.command(&["pod", "job.toml"]);
        command
            .env(pod::INDEX, index.to_string())
            .env(pod::RUN, "small-run")
            .env(pod::COORDINATOR, format!("{}:{}", self.address, pod::PORT))
            .env(pod::ADDRESS, &self.address)
            .env(pod::TOKEN, self.place.path("token"))
            // The first two share a machine, and memory; the others are on another one.
            .env("LOCKSTEP_HOST", (index / 2).to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(library) = &self.xgboost {
            command.env("LOCKSTEP_XGBOOST", library);
        }
        if self.slow {
            command.env(failpoint::VARIABLE, "step.begin=sleep:10");
        }
        command
    }

    /// Starts number 0, whose events can be read.
    pub(crate) fn coordinate(&mut self) -> Running {
        let running = Running::new(self.command(0));
        self.coordinator = i32::try_from(running.pid()).ok();
        running
    }

    /// Starts another one.
    pub(crate) fn host(&mut self, index: usize) {
        let child = self.command(index).spawn().unwrap();
        self.hosts.push((index, child));
    }

    /// Starts all of three.
    pub(crate) fn start(&mut self) -> Running {
        self.host(1);
        self.host(2);
        self.coordinate()
    }

    pub(crate) fn signal(&mut self, index: usize, signal: Signal) {
        let (_, child) = self.hosts.iter().find(|(of, _)| *of == index).unwrap();
        send(i32::try_from(child.id()).unwrap(), signal);
    }

    /// Waits for the end of a host, and returns its exit code and what it wrote for people.
    pub(crate) fn ended(&mut self, index: usize) -> (Option<i32>, String) {
        let at = self.hosts.iter().position(|(of, _)| *of == index).unwrap();
        let (_, mut child) = self.hosts.remove(at);
        let begin = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begin.elapsed() > LIMIT {
                child.kill().unwrap();
                panic!("host {index} does not end");
            }
            sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.stdout, b"", "events are number 0's");
        (output.status.code(), stderr)
    }

    /// Kills a host and starts it again, as a cluster does.
    pub(crate) fn replace(&mut self, index: usize) {
        self.signal(index, Signal::KILL);
        assert_eq!(self.ended(index).0, None);
        self.host(index);
    }

    /// The result of the rest, at full speed, which must be a success of all pods that leaves nothing behind.
    pub(crate) fn succeed(&mut self, coordinator: Running) -> Value {
        self.place.wake();
        let (code, result, stderr) = coordinator.finish();
        assert_eq!(code, Some(0), "{stderr}\n{result}");
        self.coordinator = None;
        while let Some((index, _)) = self.hosts.last() {
            let index = *index;
            let (code, stderr) = self.ended(index);
            assert_eq!(code, Some(0), "host {index}: {stderr}");
        }
        self.place.assert_no_process_is_left();
        result
    }
}

impl Drop for Gang {
    fn drop(&mut self) {
        for (_, child) in &mut self.hosts {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(pid) = self.coordinator.filter(|_| std::thread::panicking()) {
            send(pid, Signal::KILL);
        }
    }
}
