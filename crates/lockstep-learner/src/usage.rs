//! What a worker takes of its machine: processor time, memory, and the time that it waits for its peers.
//!
//! A worker may have started others, as one that runs a script has: what they take is the worker's too. Where the
//! system does not say (only Linux has `/proc`), nothing is measured.

use lockstep_events::control::WorkerUsage;
use std::fs;
use std::time::{Duration, Instant};

/// Processes that are asked at most: a script that starts more is not asked about the rest.
const MOST_PROCESSES: usize = 256;

/// Linux tells programs of time in hundredths of a second, whatever it counts in itself.
const MS_PER_TICK: u64 = 10;

/// Measures what this process and its children take, from one time to the next.
pub(crate) struct UsageMeter {
    at: Instant,
    cpu: Duration,
    waited: Duration,
}

impl UsageMeter {
    /// From now on. None where the system does not say.
    pub(crate) fn new() -> Option<Self> {
        let (cpu, _) = taken()?;
        Some(Self {
            at: Instant::now(),
            cpu,
            waited: lockstep_base::progress::time_waited(),
        })
    }

    /// What was taken since the last time that this was asked.
    pub(crate) fn read(&mut self) -> Option<WorkerUsage> {
        let (cpu, memory_bytes) = taken()?;
        let waited = lockstep_base::progress::time_waited();
        let seconds = self.at.elapsed().as_secs_f64().max(1e-3);
        let usage = WorkerUsage {
            // What children took that have ended since is missing: never less than nothing.
            cpu_percent: 100.0 * cpu.saturating_sub(self.cpu).as_secs_f64() / seconds,
            memory_bytes,
            waiting: ((waited - self.waited).as_secs_f64() / seconds).min(1.0),
        };
        *self = Self {
            at: Instant::now(),
            cpu,
            waited,
        };
        Some(usage)
    }
}

/// Processor time so far, and bytes of memory now, of this process and all that it started.
fn taken() -> Option<(Duration, u64)> {
    let mut processes = vec!["self".to_owned()];
    let (mut cpu, mut memory) = of_process("self")?;
    let mut next = 0;
    while next < processes.len() && processes.len() < MOST_PROCESSES {
        let children = children(&processes[next]);
        for child in children {
            // One that has ended meanwhile takes nothing any more.
            if let Some((time, bytes)) = of_process(&child) {
                cpu += time;
                memory += bytes;
                processes.push(child);
            }
        }
        next += 1;
    }
    Some((cpu, memory))
}

/// Processor time and bytes of memory of one process.
fn of_process(process: &str) -> Option<(Duration, u64)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold anything, brackets and spaces too.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let cpu = Duration::from_millis((number(11)? + number(12)?) * MS_PER_TICK);
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|words| words.split_whitespace().next()?.parse::<u64>().ok());
    Some((cpu, kilobytes.unwrap_or(0) * 1024))
}

/// The processes that a process started.
fn children(process: &str) -> Vec<String> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    let texts = threads.flatten().filter_map(|thread| {
        let path = thread.path().join("children");
        fs::read_to_string(path).ok()
    });
    let words =
        |text: String| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    texts.flat_map(words).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn work_of_this_process_and_of_its_children_is_measured() {
        let mut meter = UsageMeter::new().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        lockstep_base::progress::waited(Duration::from_millis(10));
        std::thread::sleep(Duration::from_millis(400));
        let usage = meter.read().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(usage.cpu_percent > 10.0, "{usage:?}");
        assert!(usage.memory_bytes > 1 << 20, "{usage:?}");
        assert!((0.01..0.2).contains(&usage.waiting), "{usage:?}");
    }
}
