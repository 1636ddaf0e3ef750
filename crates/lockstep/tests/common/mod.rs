//! A place to run the real binary in: small data that can be learned, a job file, a cache and a store
//! of its own.
#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod avocados;
pub(crate) mod bitmap;
pub(crate) mod cifar;
pub(crate) mod dashboard;
pub(crate) mod embedding;
pub(crate) mod idx;
pub(crate) mod kube;
pub(crate) mod own_data;
pub(crate) mod pods;
pub(crate) mod proxy;
pub(crate) mod recorder;
pub(crate) mod resnet18;
pub(crate) mod serve;
pub(crate) mod serve_jobs;
pub(crate) mod tensors;
pub(crate) mod trees;

use lockstep_base::failpoint;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything in these tests may take, on a slow machine that does other things too.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// How long something may take that happens at once, and otherwise would when a deadline of half a minute is over.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(20);

/// A setting that makes the first layer wide enough to be computed by columns, on up to three lanes.
pub(crate) const BY_COLUMNS: &str = "model.hidden=[1600, 16]";

/// The file in a place that [`Place::wake`] writes.
const AWAKE: &str = "awake";

/// The variable that marks all processes of one place, its value the place's folder.
const MARK: &str = "LOCKSTEP_TEST_PLACE";

/// The job that most tests run: a short last batch, dropout, two workers.
pub(crate) const JOB: &str = r#"
name = "small"

[data]
train = { images = "train-images", labels = "train-labels" }
test = { images = "test-images", labels = "test-labels" }

[model]
kind = "mlp"
hidden = [24, 16]
dropout = 0.25

[train]
epochs = 2
batch = 32
optimizer = { kind = "sgd", lr = 0.05, momentum = 0.9 }
workers = 2
lanes = 2

[run]
store = "runs"
"#;

/// A script that reports eight steps with checkpoints, and goes on from the newest after a loss.
pub(crate) const EIGHT_STEPS: &str = include_str!("eight_steps.py");

/// Every file below a folder, with its bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => drop(all.insert(path.clone(), fs::read(path).unwrap())),
        }
    }
    all
}

/// The folder of Fashion-MNIST's own files.
pub(crate) fn fashion_mnist() -> PathBuf {
    let cache = lockstep_testkit::cache();
    let mut get = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    lockstep_testkit::succeed(
        get.args(["data", "get", "fashion-mnist"])
            .env("LOCKSTEP_CACHE", &cache),
    );
    cache.join("datasets/fashion-mnist")
}

/// A folder with data and a job file.
pub(crate) struct Place {
    folder: TempDir,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Place {
    /// With 1,003 training and 203 test samples, and [`JOB`] as `job.toml`.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder };
        idx::write_set(
            &place.path("train-images"),
            &place.path("train-labels"),
            1003,
            1,
        );
        idx::write_set(
            &place.path("test-images"),
            &place.path("test-labels"),
            203,
            2,
        );
        place.write_job(JOB);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write_job(&self, text: &str) {
        fs::write(self.path("job.toml"), text).unwrap();
    }

    /// Writes [`JOB`] with one piece replaced, which must be there.
    pub(crate) fn edit_job(&self, from: &str, to: &str) {
        assert!(JOB.contains(from), "{from}");
        self.write_job(&JOB.replace(from, to));
    }

    /// The binary, to be run in this place.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("LOCKSTEP_CACHE", self.path("cache"))
            .env(MARK, self.folder.path())
            .env(failpoint::AWAKE, self.path(AWAKE))
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().unwrap();
        Ran::from(output)
    }

    /// Runs a command that must succeed.
    pub(crate) fn succeeds(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// What a command that must succeed prints, also on standard error.
    pub(crate) fn said(&self, args: &[&str]) -> String {
        let ran = self.succeeds(args);
        ran.stdout + &ran.stderr
    }

    /// Fails unless a command is refused with all these words.
    pub(crate) fn refused(&self, args: &[&str], words: &[&str]) {
        let ran = self.run(args);
        assert!(matches!(ran.code, Some(1 | 2)), "{args:?}: {}", ran.stdout);
        for word in words {
            assert!(
                ran.stderr.contains(word),
                "{word} is missing in\n{}",
                ran.stderr
            );
        }
    }

    /// Trains `job.toml` with these further arguments and returns the result, which must be a success.
    pub(crate) fn train(&self, args: &[&str]) -> Value {
        let ran = self.run(&[&["run", "job.toml", "--json"], args].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        ran.result()
    }

    /// Trains `job.toml` with these further arguments until a power cut in the second checkpoint, at a point that does not
    /// depend on how fast the machine is.
    pub(crate) fn cut_off(&self, args: &[&str]) {
        let mut command = self.command(&[&["run", "job.toml", "--json"], args].concat());
        command.env("LOCKSTEP_FAILPOINTS", "checkpoint.after_manifest=cut@2");
        let ran = Ran::from(command.output().unwrap());
        assert_eq!(ran.code, None, "{args:?} was not cut off: {}", ran.stderr);
        self.assert_no_process_is_left();
    }

    /// The hash of the weights that training with these further arguments ends with.
    pub(crate) fn weights(&self, args: &[&str]) -> String {
        let result = self.train(args);
        result["weights_sha256"].as_str().unwrap().to_owned()
    }

    /// Starts training `job.toml` for a time that no test waits for.
    pub(crate) fn start_long_run(&self, args: &[&str]) -> Running {
        self.start(&[&["--epochs", "1000000"], args].concat())
    }

    /// Starts training `job.toml` with these further arguments.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let command = self.command(&[&["run", "job.toml", "--json"], args].concat());
        Running::new(command)
    }

    /// Starts a command of this place with these failpoints. Whoever sleeps at one does so until [`wake`](Self::wake):
    /// so a run is slow while a test waits for its middle, and quick afterwards.
    pub(crate) fn start_slow(&self, mut command: Command, failpoints: &str) -> Running {
        let _ = fs::remove_file(self.path(AWAKE));
        command.env(failpoint::VARIABLE, failpoints);
        Running::new(command)
    }

    /// Lets all who sleep at failpoints of this place go on.
    pub(crate) fn wake(&self) {
        fs::write(self.path(AWAKE), "").unwrap();
    }

    /// The run folders in the store.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path("runs")) else {
            return Vec::new();
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.join("job.toml").exists())
            .collect()
    }

    /// Fails if a process of this place is still there after a moment.
    pub(crate) fn assert_no_process_is_left(&self) {
        let begin = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(begin.elapsed() < AT_ONCE, "left behind: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The processes that were started in this place, by themselves or by their parents.
    fn processes(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}", self.folder.path().display());
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let name = entry.ok()?.file_name();
            name.to_str()?.parse::<u32>().ok()
        });
        pids.filter(|pid| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
        .collect()
    }
}

/// A test that failed leaves nothing behind that others would have to wait for: jobs of a server outlive it.
impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let pids = self.processes().into_iter();
            for pid in pids.filter_map(|pid| rustix::process::Pid::from_raw(pid as i32)) {
                // One that has ended meanwhile is as good.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// A run in progress.
pub(crate) struct Running {
    pub(crate) child: Child,
    events: BufReader<ChildStdout>,
    last: Value,
}

impl Running {
    /// Starts a command whose standard output has events.
    pub(crate) fn new(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            events,
            last: Value::Null,
        }
    }

    /// Reads events until one of this kind comes, and returns it.
    pub(crate) fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            let event = self
                .next()
                .unwrap_or_else(|| panic!("ended before a {kind} event, with {}", self.last));
            if event["event"] == kind {
                return event;
            }
        }
    }

    /// Reads events until the worker of this rank joins, and returns its process id.
    pub(crate) fn wait_for_worker(&mut self, rank: u64) -> i32 {
        loop {
            let worker = self.wait_for("worker");
            if worker["rank"] == rank {
                return i32::try_from(worker["pid"].as_i64().unwrap()).unwrap();
            }
        }
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        send(i32::try_from(self.child.id()).unwrap(), signal);
    }

    /// Reads all remaining events and waits for the end.
    pub(crate) fn finish(mut self) -> (Option<i32>, Value, String) {
        while self.next().is_some() {}
        let output = self.child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), self.last, stderr)
    }

    /// Closes the reading end of the run's output, and waits for the end.
    pub(crate) fn hang_up(mut self) -> Option<i32> {
        drop(self.events);
        self.child.wait().unwrap().code()
    }

    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.events.read_line(&mut line).unwrap() {
            0 => None,
            _ => {
                self.last = serde_json::from_str(&line).unwrap();
                Some(self.last.clone())
            }
        }
    }
}

impl Ran {
    /// The events on standard output, each line of which must be one.
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// The last event.
    pub(crate) fn result(&self) -> Value {
        let last = self.events().pop().expect("at least one event");
        assert_eq!(last["event"], "result", "{last}");
        last
    }
}

/// The lines that a worker's script wrote.
pub(crate) fn logged(ran: &Ran) -> Vec<String> {
    let events = ran.events().into_iter();
    let logs = events.filter(|event| event["event"] == "log");
    logs.map(|event| event["line"].as_str().unwrap_or_default().to_owned())
        .collect()
}

pub(crate) fn send(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The folder of a run, by its event `started` or `result`.
pub(crate) fn run_folder(event: &Value) -> PathBuf {
    PathBuf::from(event["run_dir"].as_str().unwrap())
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
