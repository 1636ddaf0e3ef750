//! What the processes of jobs use, as the system counts it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// The system counts time in these parts of a second.
const TICKS: f32 = 100.0;

/// What is needed to say how much was used since the last time.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// The ticks of each process, and when they were read.
    before: BTreeMap<u32, u64>,
    when: Option<Instant>,
}

/// What some processes use together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Use {
    pub(super) cpu_percent: f32,
    pub(super) memory_bytes: u64,
    pub(super) processes: usize,
    pub(super) workers: usize,
}

impl Processes {
    /// What each of these and all that it has started use.
    pub(super) fn of(&mut self, roots: &[u32]) -> BTreeMap<u32, Use> {
        if roots.is_empty() {
            (self.before, self.when) = (BTreeMap::new(), None);
            return BTreeMap::new();
        }
        let all = all();
        let now: BTreeMap<u32, u64> = all.iter().map(|(pid, one)| (*pid, one.ticks)).collect();
        let seconds = self.when.map(|when| when.elapsed().as_secs_f32());
        let mut found: BTreeMap<u32, Use> = BTreeMap::new();
        for pid in all.keys() {
            let Some(root) = ancestor(*pid, roots, &all) else {
                continue;
            };
            let used = found.entry(root).or_default();
            let before = self.before.get(pid).copied();
            if let (Some(before), Some(seconds)) = (before, seconds) {
                let ticks = now[pid].saturating_sub(before) as f32;
                used.cpu_percent += ticks / TICKS / seconds.max(0.01) * 100.0;
            }
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            used.memory_bytes += kilobytes(&status.unwrap_or_default(), "VmRSS:");
            used.processes += 1;
            used.workers += usize::from(is_worker(*pid));
        }
        (self.before, self.when) = (now, Some(Instant::now()));
        found
    }
}

struct One {
    parent: u32,
    ticks: u64,
}

fn all() -> BTreeMap<u32, One> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    let pids = entries.flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, one(&stat)?))
    })
    .collect()
}

/// Reads a line of `/proc/PID/stat`: the name in it may hold anything, so what follows its last parenthesis counts.
fn one(stat: &str) -> Option<One> {
    let (_, rest) = stat.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    Some(One {
        parent: u32::try_from(number(1)?).ok()?,
        ticks: number(11)? + number(12)?,
    })
}

fn ancestor(pid: u32, roots: &[u32], all: &BTreeMap<u32, One>) -> Option<u32> {
    let mut at = pid;
    // Parents do not go in circles; but they may change while they are read.
    for _ in 0..64 {
        if roots.contains(&at) {
            return Some(at);
        }
        at = all.get(&at)?.parent;
    }
    None
}

fn is_worker(pid: u32) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = command.split(|byte| *byte == 0).skip(1);
    words.next() == Some(b"worker")
}

/// What a line such as `VmRSS:  1024 kB` says, in bytes.
pub(super) fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_started_counts_and_a_name_cannot_mislead() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let used = Processes::default().of(&[own]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(used[&own].processes >= 2 && used[&own].memory_bytes > 0);
        let odd = one("7 (a) R 1 (b) S 42 1 1 0 -1 0 0 0 0 0 5 6 0").unwrap();
        assert_eq!((odd.parent, odd.ticks), (42, 11));
    }
}
