//! What this machine has, and what others take of it.

use lockstep_base::cgroup;
use lockstep_track::Machine;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Linux tells programs of time in hundredths of a second, whatever it counts in itself.
const TICKS_PER_S: f64 = 100.0;

/// What this machine has for a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineFacts {
    /// What the system says of it.
    #[serde(flatten)]
    pub machine: Machine,
    /// Threads that a core has: with two, cores that programs see are half of one each.
    pub threads_per_core: usize,
    /// Cores that the control group allows; none where it sets no limit.
    pub cgroup_cores: Option<f64>,
    /// Bytes of memory that it allows.
    pub cgroup_memory_bytes: Option<u64>,
    /// Processes that wanted a core in the last minute, on average.
    pub load: f64,
}

impl MachineFacts {
    /// What is known of this machine now.
    pub fn find() -> MachineFacts {
        let siblings = text("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
        MachineFacts {
            machine: Machine::this(),
            threads_per_core: count_of(siblings.trim()).max(1),
            cgroup_cores: cgroup::cores(),
            cgroup_memory_bytes: cgroup::memory_bytes(),
            load: load(),
        }
    }

    /// Cores that can work at the same time: fewer than the system shows where a control group says so.
    pub fn usable_cores(&self) -> f64 {
        let cores = self.machine.cores as f64;
        self.cgroup_cores.map_or(cores, |limit| limit.min(cores))
    }

    /// In one line.
    pub fn words(&self) -> String {
        let Machine {
            cpu,
            cores,
            memory_bytes,
            os,
            ..
        } = &self.machine;
        let memory = (*memory_bytes as f64 / f64::from(1u32 << 30)).round();
        let threads = match self.threads_per_core {
            1 => String::new(),
            n => format!(" ({n} threads a core)"),
        };
        let limit = self.cgroup_cores.map(|n| format!(", limited to {n:.2}"));
        let limit = limit.unwrap_or_default();
        format!("{cpu}, {cores} cores{threads}{limit}, {memory:.0} GiB, {os}")
    }
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Processes that wanted a core in the last minute, on average.
pub(crate) fn load() -> f64 {
    let text = text("/proc/loadavg");
    let first = text.split_whitespace().next();
    first.and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// How many numbers a list such as `0-1,4` has.
fn count_of(list: &str) -> usize {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.saturating_sub(first) + 1)
    };
    list.split(',').filter_map(part).sum()
}

/// What others took of the machine in a span of time, each in cores: 1.0 is one core all the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Taken {
    /// Other processes of this machine.
    pub by_others: f64,
    /// Other machines that share the processors, where this one is virtual and told so.
    pub stolen: f64,
}

/// A moment, to say later how busy the machine was since.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    at: Instant,
    all: f64,
    stolen: f64,
    own: f64,
}

impl Busy {
    /// Now. None where the system does not say.
    pub fn now() -> Option<Busy> {
        let stat = text("/proc/stat");
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<f64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let [user, nice, system, _, _, irq, softirq, stolen] = times.get(..8)? else {
            return None;
        };
        let own = text("/proc/self/stat");
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        // Of this process, and of its children that have ended.
        let own: f64 = fields
            .get(11..15)?
            .iter()
            .flat_map(|word| word.parse::<f64>())
            .sum();
        Some(Busy {
            at: Instant::now(),
            all: user + nice + system + irq + softirq,
            stolen: *stolen,
            own,
        })
    }

    /// What others took since, once all children that worked have ended.
    pub fn since(&self) -> Option<Taken> {
        let now = Busy::now()?;
        let ticks = (now.at - self.at).as_secs_f64().max(1e-3) * TICKS_PER_S;
        let others = (now.all - self.all) - (now.own - self.own);
        Some(Taken {
            by_others: (others / ticks).max(0.0),
            stolen: ((now.stolen - self.stolen) / ticks).max(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_understood() {
        assert_eq!(count_of("0"), 1);
        assert_eq!(count_of("0-1,4"), 3);
    }

    #[test]
    fn this_machine_has_cores() {
        let facts = MachineFacts::find();
        assert!(facts.usable_cores() > 0.0, "{facts:?}");
        assert!(facts.words().contains("cores"), "{}", facts.words());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_this_process_does_is_not_counted_as_others() {
        let before = Busy::now().unwrap();
        let begin = Instant::now();
        // However little of the machine this process gets, it is counted as its own.
        while Busy::now().unwrap().own - before.own < 15.0 {
            assert!(begin.elapsed().as_secs() < 60, "{before:?}");
        }
    }
}
